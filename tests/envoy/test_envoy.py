# SPDX-License-Identifier: Apache-2.0
"""Envoy 1.40 as second opinion: the same cluster, upstream and requests for both."""
import os

import differences
import report


def test_as_with_envoy(outcomes, scenario):
    outcome = outcomes[scenario]
    wrong = [f"{d.what}: Envoy {d.envoy!r}, Firebreak {d.firebreak!r}" for d in outcome.unlisted]
    assert not wrong, "not in differences.py:\n" + "\n".join(wrong)


def test_every_listed_difference_still_occurs(whole, outcomes):
    occurring = [entry for outcome in outcomes.values() for entry in outcome.listed]
    gone = [entry for entry in differences.LISTED if entry not in occurring]
    assert not gone, "take these out of differences.py:\n" + "\n".join(map(str, gone))


def test_the_written_table_is_current(whole, outcomes):
    if os.environ.get("FIREBREAK_ENVOY_WRITE"):
        report.WRITTEN.write_text(report.document(outcomes))
    assert report.WRITTEN.read_text() == report.document(outcomes), "run scripts/envoy-comparison"
