# SPDX-License-Identifier: Apache-2.0
"""The table of what is equal and what is not: at the end of a run, and as docs/envoy-comparison.md."""
import pathlib

import harness

WRITTEN = pathlib.Path(harness.ROOT) / "docs" / "envoy-comparison.md"

HEAD = """\
# Firebreak beside Envoy 1.40

Written by `scripts/envoy-comparison`; not to be edited. Both get the same cluster, the same scripted hosts
and the same requests, with one worker each (`tests/envoy/`). Compared are what the client sees (status, body,
`x-envoy-overloaded`, interim answers, whole or cut, closed or kept), what the host sees (attempts, hosts), the
access log (code, flags, details, bytes), ejections and returns in their order, and every counter and gauge of
`cluster.*` and `http.*` and of the hosts. *Equal* means all of it. What differs is in `tests/envoy/differences.py`
with its reason and has a letter here; anything else fails the test, and so does an entry that no longer occurs.
"""


def letters(outcomes):
    """{entry: its letter}, in the order of the list."""
    import differences
    occurring = {e for o in outcomes.values() for e in o.listed}
    entries = [e for e in differences.LISTED if e in occurring]
    return {e: f"D{n}" for n, e in enumerate(entries, 1)}


def verdict(outcome, names):
    if outcome.not_yet:
        return f"not yet: {outcome.not_yet}"
    if outcome.unlisted:
        return f"DIFFERENT, {len(outcome.unlisted)} not listed"
    kept = [names[e] for e in outcome.listed if not e.everywhere]
    return ", ".join(kept) if kept else "equal"


def table(outcomes):
    names = letters(outcomes)
    lines = [f"{verdict(o, names):<30} {n}: {o.scenario.says}" for n, o in outcomes.items()]
    equal = sum(verdict(o, names) == "equal" for o in outcomes.values())
    return "\n".join(lines + [f"{equal} of {len(outcomes)} equal"]
                     + [f"{name}: {e.why}" for e, name in names.items()])


def document(outcomes):
    names = letters(outcomes)
    named = {n: o for n, o in outcomes.items() if not o.scenario.by_seed}
    lines = [HEAD]
    for area in dict.fromkeys(o.scenario.area for o in named.values()):
        lines += [f"## {area[0].upper()}{area[1:]}", "", "| scenario | | |", "|---|---|---|"]
        lines += [f"| `{n}` | {o.scenario.says} | {verdict(o, names)} |"
                  for n, o in named.items() if o.scenario.area == area]
        lines.append("")
    lines += ["## What differs, and why", "", "| | where | Envoy | Firebreak | why |", "|---|---|---|---|---|"]
    for entry, name in names.items():
        lines.append(f"| {name} | `{escape(entry.what)}` | {shown(entry.envoy)} | {shown(entry.firebreak)} | {entry.why} |")
    return "\n".join(lines) + "\n"


def escape(text):
    return str(text).replace("|", "\\|")


def shown(value):
    import differences
    if value is differences.ANY:
        return "…"
    return "–" if value is None else f"`{escape(value)}`"
