#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""User-space instructions and heap allocations a request: the gate for regressions of speed.

Runs bench_instructions (bench/instructions.c) under callgrind, twice, and compares with the numbers
kept in bench/instructions.txt. Fails where a request takes over 8 % more instructions than there,
where one allocates (a new connection to a host may), or where the two runs differ.

What counts is what the worker executes in its turns, the C library included; what the simulated
links execute meanwhile is told apart by source file and left out. Instructions depend on compiler
and C library: where they are others than those of the kept numbers, instructions are only shown.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
KEPT = ROOT / "bench" / "instructions.txt"
RISE = 0.08
SPREAD = 0.001
LAYERS = ["proxy", "exchange", "policy", "codec", "stats", "model", "io", "base"]
WORLD = {"sim", "bench"}

NAME = re.compile(r"\((\d+)\)(?: (.*))?")


def tools():
    """What the numbers depend on beside our own code."""
    first = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    libc = subprocess.run(["getconf", "GNU_LIBC_VERSION"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{first}, {libc}"


def layer_of(file):
    found = re.search(r"(?:^|/)src/(\w+)/[^/]+$", file)
    if found:
        return found[1]
    return "bench" if file.endswith("bench/instructions.c") else "libc"


class Profile:
    """Sums of one callgrind file: self cost of each (layer, function), and what calls cost."""

    def __init__(self, path):
        self.own = collections.Counter()
        self.calls = collections.Counter()  # (layer, function), (layer, function) -> inclusive cost
        self.names = {"file": {}, "fn": {}}
        self.resolve(*self.read(path))

    def name(self, kind, text):
        number, given = NAME.match(text).groups()
        if given is not None:
            self.names[kind][number] = given
        return self.names[kind][number]

    def read(self, path):
        """Lines of cost: (function, file, cost), and of calls: (function, file, callee, cost)."""
        costs, calls = [], []
        file = callee_file = None
        fn = callee = (None, None)  # file and name: names of static functions occur twice
        is_call = False
        for line in path.read_text().splitlines():
            if line.startswith(("fl=", "fi=", "fe=")):
                file = self.name("file", line[3:])
            elif line.startswith("fn="):
                fn = (file, self.name("fn", line[3:]))
            elif line.startswith(("cfi=", "cfl=")):
                callee_file = self.name("file", line[4:])
            elif line.startswith("cfn="):
                callee = (callee_file or file, self.name("fn", line[4:]))
                callee_file = None
            elif line.startswith("calls="):
                is_call = True
            elif line and line[0] in "0123456789+-*":
                cost = int(line.split()[1])
                if is_call:
                    calls.append((fn, file, callee, cost))
                    is_call = False
                else:
                    costs.append((fn, file, cost))
        return costs, calls

    def resolve(self, costs, calls):
        """What was inlined from a header counts for the source file of the function around it."""
        source = {}
        for fn, file, *_ in costs + calls:
            for name in (fn[0], file):
                if name.endswith(".c"):
                    source.setdefault(fn, name)

        def layer(fn, file):
            return layer_of(file if file.endswith(".c") else source.get(fn, file))

        for fn, file, cost in costs:
            self.own[layer(fn, file), fn[1]] += cost
        for fn, file, callee, cost in calls:
            self.calls[(layer(fn, file), fn[1]), (layer(callee, callee[0]), callee[1])] += cost

    def layers(self):
        """Instructions of each layer; those of the C library count for who called it."""
        sums = collections.Counter()
        for (layer, _), cost in self.own.items():
            if layer != "libc":
                sums[layer] += cost
        for ((layer, _), (to, _)), cost in self.calls.items():
            if layer == "libc":
                continue
            if to == "libc":
                sums[layer] += cost
            elif to == "base" and layer in WORLD:  # the simulator's own use of it
                sums[to] -= cost
                sums[layer] += cost
        return sums

    def uses_heap(self):
        """By cost, as callgrind counts calls while it does not collect, too."""
        for ((layer, _), (to, callee)), cost in self.calls.items():
            if cost == 0 or layer in WORLD | {"libc"}:
                continue
            if to == "base" and callee in ("memory_take", "memory_take_array", "memory_resize"):
                return True
            if to == "libc" and layer != "base" and callee in ("malloc", "calloc", "realloc"):
                return True
        return False

    def top(self, requests, n):
        costs = collections.Counter()
        for (layer, fn), cost in self.own.items():
            if layer not in WORLD | {"libc"}:
                costs[fn] += cost
        for ((layer, _), (to, callee)), cost in self.calls.items():
            if to == "libc" and layer not in WORLD | {"libc"}:
                costs[callee] += cost
        for fn, cost in costs.most_common(n):
            print(f"    {cost / requests:8.1f}  {fn}")


def start(binary, directory):
    return subprocess.Popen(
        ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=measured_turn",
         "--dump-before=row_over", f"--callgrind-out-file={directory}/out", str(binary)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process, directory):
    """[(name, requests, allocations, connections, profile)]"""
    out, err = process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"bench-instructions: {process.args[-1]} failed\n{err}")
    rows = []
    for number, line in enumerate(out.splitlines(), 1):
        name, requests, allocations, connections, _ = line.split("\t")
        rows.append((name, int(requests), int(allocations), int(connections),
                     Profile(pathlib.Path(directory) / f"out.{number}")))
    return rows


def run_twice(binary):
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        running = [(start(binary, d), d) for d in (one, two)]
        return [finish(process, directory) for process, directory in running]


def read_kept():
    kept = {"tools": None, "rows": {}}
    for line in KEPT.read_text().splitlines() if KEPT.exists() else []:
        if line.startswith("tools: "):
            kept["tools"] = line[7:]
        elif line and not line.startswith("#"):
            number, name = line.split(None, 1)
            kept["rows"][name] = int(number)
    return kept


def write_kept(numbers):
    lines = ["# Instructions a request, by scripts/bench-instructions --write. The gate compares with these.",
             f"tools: {tools()}"]
    lines += [f"{number:8} {name}" for name, number in numbers.items()]
    KEPT.write_text("\n".join(lines) + "\n")


def judge(number, again, before, allocates):
    """What is wrong with a row; |before| is what it is compared with, or None."""
    faults = []
    if abs(number - again) > SPREAD * number:
        faults.append("two runs differ")
    if allocates:
        faults.append("allocates")
    if before and number > before * (1 + RISE):
        faults.append(f"over {RISE:.0%} more than kept")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "build" / "bench_instructions"))
    parser.add_argument("--write", action="store_true", help="keep these numbers")
    parser.add_argument("--top", type=int, default=0, metavar="N", help="the N costliest functions of each row")
    args = parser.parse_args()
    kept = read_kept()
    same_tools = kept["tools"] == tools()
    numbers, failed = {}, False

    first, second = run_twice(args.binary)
    print("instructions a request, in the worker's turns, without the simulated links\n")
    print(f"  {'':16} {'run 1':>7} {'run 2':>7} {'kept':>7} {'change':>7} {'heap':>5}   of these in "
          + " ".join(f"{layer:>8}" for layer in LAYERS))
    for (name, requests, allocations, connections, profile), again in zip(first, second):
        layers, layers_again = profile.layers(), again[4].layers()
        number = round(sum(v for k, v in layers.items() if k not in WORLD) / requests)
        repeat = round(sum(v for k, v in layers_again.items() if k not in WORLD) / requests)
        allocates = allocations > connections or (connections == 0 and profile.uses_heap())
        before = kept["rows"].get(name)
        faults = judge(number, repeat, before if same_tools else None, allocates)
        numbers[name] = number
        failed = failed or bool(faults)
        print(f"  {name:16} {number:7} {repeat:7} {before or '-':>7}"
              f" {f'{number / before - 1:+.1%}' if before else '-':>7} {allocations:5}               "
              + " ".join(f"{layers[layer] / requests:8.0f}" for layer in LAYERS)
              + (f"  {connections} connections" if connections else "")
              + (f"  FAILED: {', '.join(faults)}" if faults else ""))
        profile.top(requests, args.top)
    print(f"\n  heap: allocations in all of {first[0][1]} requests, by the worker's counter; callgrind is asked as well")
    if kept["tools"] and not same_tools:
        print(f"  these tools: {tools()}\n  kept with:   {kept['tools']}: instructions are not judged")
    if args.write:
        write_kept(numbers)
    elif failed:
        sys.stdout.flush()
        print("bench-instructions: failed; where the rise is wanted, keep the new numbers with --write", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
