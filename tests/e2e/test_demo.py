# SPDX-License-Identifier: Apache-2.0
"""firebreak demo: that it shows the effect, and that nothing of it stays behind."""
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from harness import (Process, binary, firebreak, needs_terminal, parse_address, request,
                     wait_for)


def children(pid):
    """Living processes that |pid| started."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(p) for p in f.read().split()]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def comparison(out):
    """The closing table: {row: [cells]}."""
    rows = {}
    for line in out[out.rindex("ejection off"):].splitlines()[1:]:
        m = re.match(r"  (requests|success|p50|p99|attempts upstream)\s+(.*)$", line)
        if m:
            rows[m.group(1)] = re.split(r"\s{2,}", m.group(2).strip())
    return rows


def share(cell):
    return float(cell.rstrip(" %"))


def ms(cell):
    value, unit = re.match(r"([\d.]+)(us|ms|s)$", cell).groups()
    return float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def test_it_shows_what_ejection_does():
    for _ in range(3):  # half of its answers fail: now and then no five in a row for long
        code, out, err = firebreak("demo", "--seconds", "10", "--rate", "500", within=90)
        assert code == 0 and err == "", (out, err)
        rows = comparison(out)
        requests = [int(c) for c in rows["requests"]]
        if len(requests) == 3 and requests[2] > 500:
            break
    success = [share(c) for c in rows["success"]]
    assert requests[0] == requests[1] > 2000  # the same load twice
    assert 92 < success[0] < 97.5  # one of ten fails half of its answers
    assert success[1] > success[0]
    assert success[2] == 100
    assert ms(rows["p99"][0]) >= 300
    assert [int(c) for c in rows["attempts upstream"]] == requests[:2]  # nothing is retried
    bad = re.search(r"(\S+) is bad", out).group(1)
    assert re.search(rf"{bad} was taken out after \S+: consecutive_5xx", out)
    off = out[:out.index("Ejection on")]
    assert "out: nobody" in off and "consecutive" not in off
    assert "\033" not in out


def scenario(name, seconds):
    """Its closing table: {row: [without, with]}."""
    code, out, err = firebreak("demo", "--scenario", name, "--seconds", str(seconds), within=120)
    assert code == 0 and err == "", (out, err)
    rows = {}
    for line in out[out.rindex("since the fault began"):].splitlines()[1:]:
        cells = re.split(r"\s{2,}", line.strip())
        if len(cells) == 3:
            rows[cells[0]] = cells[1:]
    assert list(rows) == ["requests", "success", "p50", "p99", "p99.9", "p99 in the second half",
                          "answered by bad servers", "servers taken out"]
    assert all(int(n) > 100 * seconds / 2 for n in rows["requests"])
    assert rows["servers taken out"][0] == "0"  # without detection nobody is ever
    return rows


def test_a_slow_server_is_taken_out_with_detection():
    rows = scenario("slow", 30)
    assert re.match(r"1, after ", rows["servers taken out"][1]), rows
    assert share(rows["answered by bad servers"][1]) < share(rows["answered by bad servers"][0]) / 2


def test_a_black_hole_is_taken_out_before_its_timeouts():
    rows = scenario("blackhole", 18)
    after = re.match(r"1, after (\S+)$", rows["servers taken out"][1])
    assert after and ms(after.group(1)) < 2000, rows  # the timeout
    assert share(rows["success"][0]) < 93 < 98 < share(rows["success"][1])


def test_a_slow_fleet_loses_nobody():
    rows = scenario("fleet", 24)
    assert rows["servers taken out"][1] == "0"
    assert rows["answered by bad servers"][1] == "100.00 %"


def test_a_slow_zone_gets_less_and_loses_nobody():
    rows = scenario("zone", 30)
    assert rows["servers taken out"][1] == "0", rows
    assert share(rows["answered by bad servers"][1]) < share(rows["answered by bad servers"][0]) - 5


def test_a_few_slow_answers_take_nobody_out():
    rows = scenario("minority", 16)
    assert rows["servers taken out"][1] == "0"
    assert ms(rows["p99.9"][0]) > 60  # a twentieth of a tenth is twenty times slower


def read_terminal(args, until=None, within=60):
    """What it draws on a terminal of its own, up to its end (or to |until|, then it is interrupted);
    with its exit code."""
    needs_terminal()
    pid, master = pty.fork()
    if pid == 0:
        os.execv(binary(), [binary(), *args])
    shown = b""
    interrupted = False
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        ready, _, _ = select.select([master], [], [], 1)
        if ready:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            shown += data
        if until is not None and not interrupted and until in shown:
            os.write(master, b"\x03")  # Ctrl-C, as a person does
            interrupted = True
    _, status = os.waitpid(pid, 0)
    os.close(master)
    return shown.decode(), os.waitstatus_to_exitcode(status)


def table_lines(shown):
    """The rows that are drawn over: a peer's, or what clients see."""
    lines = [re.sub(r"\033\[\d*[AK]", "", line).rstrip() for line in shown.splitlines()]
    rows = [x for x in lines if x.startswith(("  127.0.0.1:", "  what clients see", "  peer"))]
    assert rows
    return rows


def test_on_a_terminal_the_table_is_drawn_over_itself():
    shown, code = read_terminal(["demo", "--seconds", "4"])
    assert code == 0
    frames = shown.split("\033[14A")
    assert len(frames) > 8
    for frame in frames[1:4]:
        assert frame.split("Ejection on")[0].count("\n") == 14 and "what clients see" in frame
    assert frames[1].count("127.0.0.1:") == 10
    assert all(len(re.sub(r"\033\[\d*[AK]", "", l)) < 80 for l in table_lines(shown))
    assert "ejection off    ejection on" in shown


def test_ctrl_c_ends_it_and_its_children():
    shown, code = read_terminal(["demo", "--seconds", "60"], until=b"what clients see")
    assert code == 1 and "interrupted" in shown


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_its_children_die_with_it_however_it_dies(number):
    p = Process("demo", "--seconds", "60")
    p.wait_line("Ejection off, 1 s")
    started = children(p.pid)
    assert len(started) == 2
    p.signal(number)
    assert p.wait() == (-9 if number == signal.SIGKILL else 1)
    wait_for(lambda: not any(alive(c) for c in started), "children are gone")


@pytest.mark.parametrize("which", [0, 1])
def test_a_child_that_dies_is_said_and_ends_it(which):
    p = Process("demo", "--seconds", "60")
    p.wait_line("Ejection off, 1 s")
    started = sorted(children(p.pid))
    os.kill(started[which], signal.SIGKILL)
    assert p.wait() == 1
    assert any("ended" in l for l in p.err), str(p)
    wait_for(lambda: not any(alive(c) for c in started), "children are gone")


def test_keep_leaves_it_running_with_admin_open():
    p = Process("demo", "--seconds", "2", "--keep")
    m = p.wait_line(r"admin http://(\S+)/, faults http://(\S+)/fault")
    admin, control = parse_address(m.group(1)), parse_address(m.group(2))
    assert request(admin, "GET", "/clusters").status == 200
    before = request(control, "GET", "/stats").json()["servers"][0]["requests"]
    wait_for(lambda: request(control, "GET", "/stats").json()["servers"][0]["requests"] > before,
             "load goes on")
    started = children(p.pid)
    p.signal(signal.SIGINT)
    assert p.wait() == 0
    assert not any(alive(c) for c in started)


def test_it_leaves_no_files(tmp_path):
    done = subprocess.run([binary(), "demo", "--seconds", "2"], capture_output=True, timeout=60,
                          env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path) == []


def test_a_temporary_folder_that_is_none_is_said():
    done = subprocess.run([binary(), "demo", "--seconds", "2"], capture_output=True, timeout=60,
                          env={**os.environ, "TMPDIR": "/nonexistent"})
    assert done.returncode == 1 and b"/nonexistent" in done.stderr


def test_it_ends_when_nobody_reads_any_more():
    begun = time.monotonic()
    p = subprocess.Popen([binary(), "demo", "--seconds", "600"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    p.stdout.readline()
    p.stdout.close()
    assert p.wait(60) == 1 and time.monotonic() - begun < 60
    assert b"cannot write" in p.stderr.read()
    p.stderr.close()


@pytest.mark.parametrize("args, words", [
    (["--seconds", "1"], "2 to 86400"),
    (["--rate", "0"], "1 to 20000"),
    (["--sceonds", "3"], "did you mean --seconds"),
    (["--scenario", "slo"], "write slow, minority, fleet, blackhole or zone"),
])
def test_wrong_options_are_refused(args, words):
    code, out, err = firebreak("demo", *args)
    assert code == 2 and words in err
