# SPDX-License-Identifier: Apache-2.0
"""Examples in the documentation: each command is run, and has to show the lines below it."""

import pathlib
import re
import subprocess

from rawpeers import PATIENCE, wait_for


def read(path):
    """Heading to [(command, [lines it has to show])], of blocks marked console."""
    found = {}
    title = "start"
    for part in re.split(r"^(#+ .*)$", pathlib.Path(path).read_text(), flags=re.M):
        if part.startswith("#"):
            title = part.lstrip("# ")
            continue
        for block in re.findall(r"^```console\n(.*?)^```$", part, re.M | re.S):
            for line in block.splitlines():
                if line.startswith("$ "):
                    found.setdefault(title, []).append((line[2:], []))
                else:
                    found[title][-1][1].append(line)
    return found


# Counts: a number that is not zero may be another one that is not.
COUNTS = r"(.*: |.*(?:fail|timeout|error|UC|DC)::)([1-9]\d*)"


def pattern(line, address):
    """'*' is anything, ADDR the host."""
    line = line.replace("ADDR", address)
    count = re.fullmatch(COUNTS, line)
    if count:
        return re.escape(count[1]) + r"[1-9]\d*"
    return re.escape(line).replace(r"\*", ".*")


def missing(wanted, lines, address):
    """The first of |wanted| that is not there, in order; others may stand between."""
    at = 0
    for want in wanted:
        while at < len(lines) and not re.fullmatch(pattern(want, address), lines[at]):
            at += 1
        if at == len(lines):
            return want
        at += 1
    return None


def run(example, proxy, address):
    command, wanted = example
    real = command.replace("127.0.0.1:9901", f"127.0.0.1:{proxy.admin_port}").replace("access.log", str(proxy.log_path))
    real = real.replace("ADDR", address)
    said = []

    def shown():
        done = subprocess.run(["bash", "-c", real], capture_output=True, text=True, timeout=PATIENCE)
        want = missing(wanted, done.stdout.splitlines(), address)
        said.append(f"{command}\nhas no line {want!r}:\n{done.stdout[:3000]}{done.stderr}")
        return want is None

    try:
        wait_for(shown, command, patience=10)
    except AssertionError as error:
        raise AssertionError(said[-1]) from error
