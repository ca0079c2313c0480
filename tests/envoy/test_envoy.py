# SPDX-License-Identifier: Apache-2.0
"""Envoy 1.40 as second opinion: the same cluster, upstream and requests for both."""
import pathlib
import re

import catalogue
import differences
import harness
import report
import section12

PAGE = pathlib.Path(harness.ROOT) / "docs" / "differences.md"


def test_as_with_envoy(outcomes, scenario):
    outcome = outcomes[scenario]
    wrong = [f"{d.what}: Envoy {d.envoy!r}, Firebreak {d.firebreak!r}" for d in outcome.unlisted]
    wrong += [f"{what}: differs no more" for what in outcome.gone]
    assert not wrong, "not as in differences.json, or without a reason:\n" + "\n".join(wrong)


def test_every_reason_is_needed(whole, outcomes):
    given = {reason for outcome in outcomes.values() for reason in outcome.reasons}
    idle = [reason.key for reason in differences.REASONS
            if reason not in given and reason.scenario != "seed-.*"]  # those depend on the number of seeds
    assert not idle, "differences.py gives reasons for what does not occur: " + ", ".join(idle)


def test_each_reason_has_its_row_among_what_is_not_switchable():
    """Firebreak plays with `semantics: envoy`: what that switches cannot be a reason."""
    _, _, rest = PAGE.read_text().partition("\n## Not switchable\n")
    rows = re.findall(r"^\| `(\w+)` \| .+ \| .+ \| .+ \|$", rest.partition("\n## ")[0], re.M)
    assert len(rows) == len(set(rows))
    lacking = {reason.key for reason in differences.REASONS} - set(rows)
    assert not lacking, "docs/differences.md has no row for " + ", ".join(sorted(lacking))


def test_each_worked_example_is_played_where_the_table_says():
    assert [e.name for e in section12.EXAMPLES] == section12.EXPECTED
    wrong = [(e.name, name) for e in section12.EXAMPLES for name in e.envoy if name not in catalogue.SCENARIOS]
    wrong += [(e.name, *test) for e in section12.EXAMPLES for test in e.pure + e.plane if not section12.exists(*test)]
    wrong += [e.name for e in section12.EXAMPLES if not (e.envoy and e.pure + e.plane) and not e.lacks]
    assert not wrong


def test_the_written_table_is_current(whole, outcomes):
    assert report.WRITTEN.read_text() == report.document(outcomes), "run scripts/envoy-comparison"
