# SPDX-License-Identifier: Apache-2.0
"""scripts/proof-days: two of its days, short, so that it goes on to work. What is expected of them is the script's to say."""
import os
import re
import subprocess
import sys

from harness import ROOT, binary

SCRIPT = os.path.join(ROOT, "scripts", "proof-days")


def days(*args, firebreak=None):
    return subprocess.run([sys.executable, "-B", SCRIPT, *map(str, args)], capture_output=True, text=True, timeout=180,
                          env={**os.environ, "FIREBREAK": firebreak or binary()})


def test_a_black_hole_and_a_drain_are_had_measured_and_written_down(tmp_path):
    file = tmp_path / "days.md"
    done = days("--only", "blackhole,drain", "--short", "--lanes", 2, "--out", file, "--keep", tmp_path)
    text = file.read_text()
    rows = {r.split(" | ")[0].lstrip("| "): r.strip("| ").split(" | ") for r in text.splitlines() if r.startswith("| one ")}
    assert len(rows) == 2 and all(len(r) == 9 for r in rows.values()), text + done.stderr
    missed = [r for r in rows.values() if r[-1] != "as expected"]
    assert all(r[-1].startswith("MISSED: ") for r in missed)
    assert done.returncode == (1 if missed else 0) and done.stderr.count("MISSED") == len(missed)

    hole = rows["one black hole"]
    out = r"(\d+\.\d s|–)" if missed else r"\d+\.\d s"
    assert re.match(rf"suspect {out}, out {out}; \d+ % of its share", hole[1]), hole
    assert hole[2] == "0"  # well hosts that went out
    before, during, after = map(float, hole[4].split(" / "))
    assert min(before, after) > 99 and during > 95
    assert all(40 < float(ms) < 5000 for ms in hole[5].split(" / "))
    # It is asked in the middle, and a host that answers nothing and so gets next to nothing may be in still.
    assert re.search(r"^127\.0\.0\.1:\d+ is (healthy|suspect|ejected|probing)", text, re.M), text

    drain = next(r for name, r in rows.items() if name.startswith("one draining"))
    assert re.match(r"\d+ requests under way and \d+ connections at the mark, gone after", drain[1]), drain
    assert "no new request" not in drain[-1] and "ejection" not in drain[-1]
    assert (tmp_path / "blackhole" / "requests").read_text().count("\n") > 1500


def test_a_day_that_cannot_be_had_is_missed_and_there_is_no_day_of_any_other_name(tmp_path):
    done = days("--only", "drain", "--short", "--out", tmp_path / "days.md", firebreak="/bin/false")
    assert done.returncode == 1 and "drain: MISSED" in done.stderr
    done = days("--only", "drain,nightmare", "--short")
    assert done.returncode == 2 and "nightmare" in done.stderr
