# SPDX-License-Identifier: Apache-2.0
"""The reviewed list of what is not as with Envoy 1.40. Whatever else differs fails the test, and so
does an entry that no longer occurs."""
import dataclasses
import re

ANY = object()


@dataclasses.dataclass(frozen=True)
class Listed:
    scenario: str  # name; a regular expression
    what: str  # counter or observation; a regular expression
    envoy: object  # its value, or ANY where it depends on the scenario
    firebreak: object
    why: str
    everywhere: bool = False  # in nearly all scenarios: said once, not beside each of them

    def fits(self, scenario, found):
        return (re.fullmatch(self.scenario, scenario) and re.fullmatch(self.what, found.what)
                and self.envoy in (ANY, found.envoy) and self.firebreak in (ANY, found.firebreak))


LISTED = [
    Listed(".*", r"events", ANY, None, "TODO event log"),
    Listed(".*", r"circuit_breakers\.default\.remaining_(cx_pools|retries)", ANY, None, "TODO"),
    Listed(".*", r"external\..*", ANY, None, "TODO"),
    Listed(".*", r"membership_change", 1, None, "TODO"),
]


def sort_out(scenario, found):
    """(the entries that occur, the differences that fit none)."""
    occurring, unlisted = [], []
    for difference in found:
        fitting = [e for e in LISTED if e.fits(scenario, difference)]
        occurring += [e for e in fitting if e not in occurring]
        if not fitting:
            unlisted.append(difference)
    return occurring, unlisted
