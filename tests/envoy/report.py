# SPDX-License-Identifier: Apache-2.0
"""The table of what is equal and what is not: at the end of a run, and as docs/envoy-comparison.md."""
import pathlib

import differences
import harness
import section12

WRITTEN = pathlib.Path(harness.ROOT) / "docs" / "envoy-comparison.md"

HEAD = """\
# Firebreak beside Envoy 1.40

Written by `scripts/envoy-comparison`; not to be edited. Both get the same cluster, the same scripted hosts
and the same requests, with one worker each (`tests/envoy/`); Firebreak with `semantics: envoy`. Compared are what the
client sees (status, body, `x-envoy-overloaded`, interim answers, whole or cut, closed or kept), what the host sees
(attempts, hosts), the access log (code, flags, details, bytes), ejections and returns in their order, and every counter
and gauge of `cluster.*`, of `http.*` and of the hosts. *Equal* means all of it. Where something differs, it is by one of
the reasons below (`tests/envoy/differences.py`); the values on both sides are in `tests/envoy/differences.json`. Any
other difference fails the test, and so does one that no longer occurs.
"""

DIFFERENT = """\
Each is a row of [differences.md](differences.md), under *Not switchable*: what `semantics: envoy` switches is equal here."""

EXAMPLES = """\
Of `reference/envoy-semantics.md`, section 12, with the names it gives them: where each is played. Files are below `tests/`."""

FOOT = """
Left out: numbers of bytes on the wire (the names of the fields that each adds differ), histograms, and what belongs to
Envoy's discovery (`update_*`, `version`, `assignment_*`, `max_host_weight`, `default.total_match_count`).
"""


def verdict(outcome):
    if outcome.unlisted or outcome.gone:
        return "NOT AS LISTED"
    named = [reason.key for reason in outcome.reasons]
    return ", ".join(named) if named else "equal"


def table(outcomes):
    """For the terminal."""
    lines = [f"{verdict(o):<16} {n}: {o.scenario.says}" for n, o in outcomes.items()]
    equal = sum(verdict(o) == "equal" for o in outcomes.values())
    given = [r for r in differences.REASONS if any(r in o.reasons for o in outcomes.values())]
    return "\n".join(lines + [""] + [f"{r.key}: {r.why}" for r in given]
                     + ["", f"{equal} of {len(outcomes)} scenarios equal"])


def document(outcomes):
    named = {n: o for n, o in outcomes.items() if not o.scenario.by_seed}
    equal = sum(verdict(o) == "equal" for o in named.values())
    lines = [HEAD, f"{equal} of {len(named)} scenarios are equal.", ""]
    for area in dict.fromkeys(o.scenario.area for o in named.values()):
        lines += [f"## {area[0].upper()}{area[1:]}", "", "| scenario | | |", "|---|---|---|"]
        lines += [f"| `{n}` | {o.scenario.says} | {verdict(o)} |"
                  for n, o in named.items() if o.scenario.area == area]
        lines.append("")
    lines += ["## What differs, and why", "", DIFFERENT, "", "| | why |", "|---|---|"]
    given = [r for r in differences.REASONS if any(r in o.reasons for o in named.values())]
    lines += [f"| `{r.key}` | {r.why} |" for r in given]
    lines += ["", "## The worked examples", "", EXAMPLES, "", *section12.table()]
    return "\n".join(lines) + "\n" + FOOT
