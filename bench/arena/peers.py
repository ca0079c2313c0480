#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peers.py RESULTS.jsonl RESULTS.md targets.json [NAME]: the medians of NAME (firebreak) beside the
best peer of RESULTS.md in each row, as a table; exit code 1 where a peer is better.

Counted are peers that keep the row's targets for attempts and wrong hosts. The latter were measured
on another machine, so p99 is compared as a multiple of the same machine's oracle (in `healthy`, of
`none`). Slack is the spread that RESULTS.md names: 0.3 points of success, 6 % of p99, or 30 % where
the fault makes up the last percents: in the rows where hosts are slow."""
import collections
import json
import pathlib
import re
import statistics
import sys

SUCCESS_SLACK = 0.3
P99_SLACK, P99_SLACK_SLOW = 1.06, 1.30
ISOLATE_SLACK = 0.15  # it is given to a tenth
TARGETS_ALONE = {"fleet-err30"}
NEVER = float("inf")


def number(text):
    found = re.match(r"-?[\d.]+", text.strip())
    return NEVER if text.strip().startswith("never") else float(found[0]) if found else None


def tables(text):
    """{row: {column: [cell part]}} of each table, in order."""
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        head, _, *rows = [[c.strip() for c in line.strip("|\n ").split("|")] for line in block.splitlines()]
        yield {re.sub(r" \(\d+\)$", "", r[0]): dict(zip(head[1:], ([number(p) for p in c.strip("()").split(" / ")]
                                                                   for c in r[1:]))) for r in rows}


def medians(results, name):
    rows = collections.defaultdict(list)
    for line in results.read_text().splitlines():
        row = json.loads(line)
        if row["profile"] == name:
            rows[row["scenario"]].append(row)

    def median(runs, field):
        return statistics.median(NEVER if field == "isolate" and r[field] == -1 else r[field] for r in runs)
    return {s: {f: median(runs, f) for f in ("success", "p99", "isolate")} for s, runs in rows.items()}


def peers_of(row, seen, hosts, goal):
    """Those that keep the targets."""
    for name, cell in seen[row].items():
        if name in ("none", "oracle"):
            continue
        _, attempts, wrong, _ = hosts[row][name]
        if attempts is not None and attempts > goal.get("attempts", NEVER) + 0.005:
            continue
        if wrong is not None and wrong > goal.get("wrong", NEVER):
            continue
        yield name, cell


def best(peers, part, pick, scale=1):
    known = [(cell[part] / scale, name) for name, cell in peers if len(cell) > part and cell[part] is not None]
    return pick(known) if known else (None, "-")


def compare(row, ours, base, seen, hosts, goal):
    peers = list(peers_of(row, seen, hosts, goal))
    reference = "none" if row == "healthy" else "oracle"
    scale = seen[row][reference][1] if reference in seen[row] and len(seen[row][reference]) > 1 else None
    success = best(peers, 0, max)
    p99 = best(peers, 1, min, scale or 1)
    isolate = best(peers, 2, min)
    slack = P99_SLACK_SLOW if re.search("slow|stall|read-only", row) else P99_SLACK
    mine = ours["p99"] / base[reference]["p99"]
    short = []
    if success[0] is not None and ours["success"] < success[0] - SUCCESS_SLACK:
        short.append("success")
    if p99[0] is not None and mine > p99[0] * slack:
        short.append("p99")
    if isolate[0] is not None and ours["isolate"] >= 0 and ours["isolate"] > isolate[0] + ISOLATE_SLACK:
        short.append("isolate")

    def show(value, form):
        return "-" if value is None or value < 0 else "never" if value == NEVER else format(value, form)
    print(f"| {row} | {ours['success']:.2f} / {mine:.2f} / {show(ours['isolate'], '.1f')} "
          f"| {show(success[0], '.2f')} {success[1]} | {show(p99[0], '.2f')} {p99[1]} "
          f"| {show(isolate[0], '.1f')} {isolate[1]} | {'worse: ' + ', '.join(short) if short else 'no worse'} |")
    return not short


def main():
    results, peers, targets = (pathlib.Path(p) for p in sys.argv[1:4])
    name = sys.argv[4] if len(sys.argv) > 4 else "firebreak"
    seen, hosts, *_ = tables(peers.read_text())
    goals = json.loads(targets.read_text())
    all_of = {who: medians(results, who) for who in (name, "none", "oracle")}
    print("| row | Firebreak: success % / p99 to the oracle's / isolated after s | best success | best p99 "
          "| first to isolate | |\n|---|---|---|---|---|---|")
    good = True
    for row, ours in all_of[name].items():
        if row not in seen or row in TARGETS_ALONE:
            continue
        base = {who: all_of[who].get(row) for who in ("none", "oracle")}
        good &= compare(row, ours, base, seen, hosts, goals[row])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
