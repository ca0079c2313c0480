# SPDX-License-Identifier: Apache-2.0
"""Envoy 1.40 as second opinion: the same cluster, upstream and requests for both."""
import differences
import report


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


def test_the_written_table_is_current(whole, outcomes):
    assert report.WRITTEN.read_text() == report.document(outcomes), "run scripts/envoy-comparison"
