# SPDX-License-Identifier: Apache-2.0
"""firebreak check: thirty and more configurations under check/, each broken or risky in one way.

Beside NAME.yaml stands NAME.txt, what is printed of it, to the letter. Its first line says what it
is about and, before the words, where the messages are: "# expect 9:7 timeout-none, 12:5 error".
NAME.old.yaml is what it is to replace (--against). To write the .txt files anew after a change of
wording, and review them as any other change:

    FIREBREAK_WRITE_CHECKS=1 python3 -B -m pytest -q tests/e2e/test_check.py
"""
import json
import os
import pathlib
import pty
import re
import signal
import subprocess

import pytest

from harness import ROOT, Process, binary, wait_for

HERE = pathlib.Path(__file__).parent / "check"
CASES = sorted(p for p in HERE.glob("*.yaml") if not p.name.endswith(".old.yaml"))
PLACE = re.compile(r"^[^ :]+\.yaml:(\d+):(\d+): (?:(danger|warning|advice|accepted): )?(.*?)(?: \[([a-z0-9-]+)\])?$")


def check(*args, cwd=HERE):
    done = subprocess.run([binary(), "check", *map(str, args)], cwd=cwd, capture_output=True, text=True,
                          timeout=20, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def arguments(path):
    old = path.with_suffix(".old.yaml")
    return ["-c", path.name] + (["--against", old.name] if old.exists() else [])


def expected(path):
    first = path.read_text().splitlines()[0]
    assert first.startswith("# expect "), path
    return [tuple(e.split()) for e in first.removeprefix("# expect ").split(", ")]


def found(printed):
    return [(f"{m[1]}:{m[2]}", m[5] if m[3] else "error")
            for m in map(PLACE.match, printed.splitlines()) if m]


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_each_message_points_at_the_spot_and_says_what_to_write(path):
    code, out, err = check(*arguments(path))
    errors = [e for e in expected(path) if e[1] == "error"]
    assert found(out + err) == expected(path), out + err
    assert code == (2 if errors else 0), out + err
    assert bool(err) == bool(errors)  # what is wrong goes where errors go
    said = path.with_suffix(".txt")
    if os.environ.get("FIREBREAK_WRITE_CHECKS"):
        said.write_text(out + err)
    assert said.read_text() == out + err


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_the_caret_is_under_the_place(path):
    lines = path.read_text().splitlines()
    _, out, err = check(*arguments(path))
    printed = (out + err).splitlines()
    for at, line in enumerate(printed):
        m = PLACE.match(line)
        if not m:
            continue
        row, column = int(m[1]), int(m[2])
        caret = printed[at + 2].index("^")
        assert printed[at + 2].strip() == "^"
        assert lines[row - 1][column - 1:].startswith(printed[at + 1][caret:caret + 20].rstrip()[:8])


def test_there_are_thirty_of_them():
    assert len(CASES) >= 30


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_programs_are_told_the_same(path):
    code, out, err = check(*arguments(path), "--json")
    assert err == ""
    told = json.loads(out)
    at = [(f"{e['line']}:{e['column']}", "error") for e in told["errors"]]
    at += [(f"{f['line']}:{f['column']}", f["trap"]) for f in told["findings"]]
    assert at == expected(path)
    assert told["valid"] == (code == 0)
    assert all(e["file"] == path.name and e["message"] for e in told["errors"])
    for f in told["findings"]:
        assert f["file"] == path.name and f["why"] and f["severity"] in ("danger", "warning", "advice")
        assert f["instead"] or f["trap"] == "istio-says"
    counted = sum(told["counts"][s] for s in ("danger", "warning", "advice"))
    assert counted + told["counts"]["accepted"] == len(told["findings"])


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_strict_fails_where_there_is_a_trap(path):
    code, out, _ = check(*arguments(path), "--strict", "--json")
    counts = json.loads(out)["counts"]
    want = 1 if counts["danger"] + counts["warning"] + counts["advice"] else 0
    assert code == (2 if any(e[1] == "error" for e in expected(path)) else want)


def test_the_examples_are_without_traps_and_stay_so():
    code, out, err = check("-c", "examples/firebreak.yaml", "--strict", cwd=ROOT)
    assert code == 0 and err == "", out
    assert "accepted: two endpoints" in out and "1 accepted" in out


def on_a_terminal(*args, env=None):
    master, slave = pty.openpty()
    done = subprocess.run([binary(), "check", *args], cwd=HERE, stdout=slave, stderr=slave,
                          stdin=subprocess.DEVNULL, timeout=20, env={**os.environ, **(env or {})})
    os.close(slave)
    data = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        data += part
    os.close(master)
    return done.returncode, data.decode()


def test_colours_are_for_terminals_only():
    case = CASES_WITH_TRAPS[0]
    _, plain, _ = check(*arguments(case))
    _, shown = on_a_terminal(*arguments(case), env={"NO_COLOR": ""})
    assert "\033[" not in plain
    assert "\033[" in shown
    assert re.sub(r"\033\[\d*m", "", shown).replace("\r\n", "\n") == plain
    _, shown = on_a_terminal(*arguments(case), env={"NO_COLOR": "1"})
    assert "\033[" not in shown


CASES_WITH_TRAPS = [p for p in CASES if expected(p)[0][1] != "error"]


def test_bad_usage():
    assert check()[0] == 2
    assert "write -c FILE" in check()[2]
    code, _, err = check("-c", "nothing-there.yaml")
    assert code == 2 and "nothing-there.yaml: cannot be read" in err
    code, out, _ = check("--help")
    assert code == 0 and "Exit codes: 0 valid" in out and "firebreak check -c" in out


RISKY = """admin: {listen: 127.0.0.1:0}
listeners:
  - name: web
    listen: 127.0.0.1:0
    routes: [{cluster: a, timeout: none}]
clusters:
  - name: a
    endpoints: [{address: 127.0.0.1:1}, {address: 127.0.0.1:2}]
    resilience: {accept: [{trap: few-peers, reason: a test}]}
"""


def traps(process):
    return [line for line in process.err if "config.trap" in line]


def test_the_daemon_says_the_same_in_its_log(start, tmp_path):
    file = tmp_path / "risky.yaml"
    file.write_text(RISKY)
    process = start(Process, "run", "-c", file)
    process.wait_line("server.started", process.err)
    said = traps(process)
    assert len(said) == 1 and "risky.yaml:5:27: danger: " in said[0], process.err
    assert said[0].endswith("[timeout-none]; `firebreak check` says what to write"), said[0]


def test_and_at_a_reload(start, tmp_path):
    file = tmp_path / "changing.yaml"
    file.write_text(RISKY.replace("timeout: none", "timeout: 20s"))
    process = start(Process, "run", "-c", file)
    process.wait_line("server.started", process.err)
    assert traps(process) == []
    file.write_text(RISKY)
    process.popen.send_signal(signal.SIGHUP)
    wait_for(lambda: traps(process), "what is risky in the new file")
    assert "changing.yaml:5:27: danger: " in traps(process)[0]


def test_a_reload_says_only_what_is_new(start, tmp_path):
    file = tmp_path / "same.yaml"
    file.write_text(RISKY)
    process = start(Process, "run", "-c", file)
    process.wait_line("server.started", process.err)
    for version in (2, 3):
        file.write_text("# another comment, so each line is elsewhere\n" + file.read_text())
        process.popen.send_signal(signal.SIGHUP)
        process.wait_line(f"version {version} is in force", process.err)
    assert len(traps(process)) == 1
    file.write_text(file.read_text().replace("timeout: none", "timeout: none, retry: {on: [5xx]}"))
    process.popen.send_signal(signal.SIGHUP)
    process.wait_line("version 4 is in force", process.err)
    said = traps(process)[1:]
    assert said and all("retry" in line or "retries" in line for line in said), said


def test_the_bound_on_retries_at_once_is_explained(tmp_path):
    file = tmp_path / "retries.yaml"
    risky = RISKY.replace("timeout: none", "timeout: 2s, retry: {on: [5xx]}")
    for pool, said in (
            ("", "at once: 3, by maxRetries; 3 where no connectionPool is written"),
            ("http: {maxRetries: 8}", "at once: 8, by maxRetries; 3 where no connectionPool is written"),
            ("tcp: {maxConnections: 8}", "at once: any number, maxRetries is not written")):
        policy = f"    trafficPolicy: {{connectionPool: {{{pool}}}}}\n" if pool else ""
        file.write_text(risky + policy)
        code, out, err = check("-c", file, "--explain")
        assert code == 0 and said in out, out + err


ADAPTIVE = """listeners:
  - {name: web, listen: 127.0.0.1:0, routes: [{cluster: a, timeout: 2s}]}
clusters:
  - name: a
    endpoints: [{address: 127.0.0.1:1}, {address: 127.0.0.1:2}, {address: 127.0.0.1:3}, {address: 127.0.0.1:4}]
"""


def explained(tmp_path, resilience):
    file = tmp_path / "explained.yaml"
    file.write_text(ADAPTIVE + "    resilience: " + resilience + "\n")
    code, out, err = check("-c", file, "--explain")
    assert code == 0, out + err
    return out


def seconds_until_seen(text):
    line = next(row for row in text.splitlines() if "3 times as long" in row)
    return [float(s) for s in re.findall(r"after ([\d.]+)s with", line)]


def test_detection_is_explained(tmp_path):
    said = explained(tmp_path, "{profile: adaptive, readmit: {after: 4s, probes: 2, successes: 7, ramp: 3s}, "
                               "ejection: {base: 20s, max: 2m}, capacity: {maxLoad: 60%}, "
                               "escalate: {repeatedFor: 6m, timesPerHour: 5}}")
    for part in ("profile adaptive: all evidence against its peers ejects a host", "down to 5 % of a fair one",
                 "within 60 % of the load", "probed 4s after it went, then every 3s", "20s x times out, 2m at most",
                 "after 7 probes in a row", "(2 at once at first", "to the whole within 3s",
                 "out for 6m without a break, or 5 times within an hour"):
        assert part in said, (part, said)
    assert "every 30s" not in said  # no return by the clock beside a return on proof
    assert "down to 20 %" in explained(tmp_path, "{profile: starter}")
    assert "none beyond that" in explained(tmp_path, "{semantics: envoy}")
    observed = explained(tmp_path, "{mode: observe}")
    assert "nothing is done" in observed and "no rule ejects" in observed
    assert "a human" not in explained(tmp_path, "{escalate: {repeatedFor: none, timesPerHour: none}}")


def test_how_long_detection_takes_is_explained_by_rate_and_threshold(tmp_path):
    quick = seconds_until_seen(explained(tmp_path, "{profile: adaptive}"))
    slow = seconds_until_seen(explained(tmp_path, "{profile: adaptive, detect: {falseAlarms: 1 per week}}"))
    assert len(quick) == 3 and quick[0] < quick[1] < quick[2]  # at 100, 10 and 1 request a second
    assert quick[0] >= 1.4 and slow[2] > quick[2]
    assert "not looked at" in explained(tmp_path, "{detect: {latency: off, errors: off}}")


def test_a_name_is_as_many_hosts_as_it_has_addresses(tmp_path):
    file = tmp_path / "names.yaml"
    file.write_text(RISKY.replace("timeout: none", "timeout: 20s").replace("127.0.0.1:2", "localhost:2"))
    code, out, err = check("-c", file, "--explain")
    assert code == 0 and "few-peers" not in out and "some are names" in out, out + err


def test_semantics_of_a_whole_run_are_looked_at_as_such():
    name = "cap-all-of-three.yaml"
    assert "[cap-half-of-few]" in check("-c", name)[1]
    code, out, _ = check("-c", name, "--semantics", "envoy")
    assert code == 0 and "[cap-empties-cluster]" in out
    assert check("-c", name, "--semantics", "nginx")[0] == 2
