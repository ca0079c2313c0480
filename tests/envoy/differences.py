# SPDX-License-Identifier: Apache-2.0
"""Why Firebreak is not as Envoy 1.40 where it is not. The values on both sides are in
differences.json, by scenario; scripts/envoy-comparison writes them, and a change there is to be reviewed
like code. What is found must be what is written, no more and no less, and each must have a reason here."""
import dataclasses
import json
import pathlib
import re

VALUES = pathlib.Path(__file__).with_name("differences.json")


@dataclasses.dataclass(frozen=True)
class Reason:
    key: str  # its row in docs/differences.md
    scenario: str  # names; a regular expression
    what: str  # counters and observations; a regular expression
    why: str

    def covers(self, scenario, what):
        return re.fullmatch(self.scenario, scenario) and re.fullmatch(self.what, what)


REASONS = [
    Reason("delayedClose", ".*", r"http\.downstream_cx_delayed_close_timeout",
           "An answer that cannot be finished: Envoy leaves the client waiting for a second before it closes the connection. "
           "Firebreak closes it at once."),
    Reason("interimKept", "continue-.*|interim.*", r"call \d+ (interim|details)|(http\.down|(external\.)?up)stream_rq_(\d..|completed)|hosts rq_error",
           "Envoy keeps 1xx of the host to itself, counts the first as an answer, and takes it for the begin of the answer. Firebreak "
           "passes them on (RFC 9110 15.2); the answer begins with its final head."),
    Reason("resetIsEnd", "until-close-reset", r".*",
           "A body that ends with the connection, which is reset: Envoy calls it whole. It is cut (RFC 9112 8)."),
    Reason("malformedPasses", "bad-(version|field-folded|bare-lf|switch|chunk-end)", r".*",
           "Firebreak takes no answer that RFC 9112 does not allow: a foreign version, folded lines, bare LF, 101 to nothing, "
           "chunks that are too long."),
    Reason("status999", "bad-status-999", r".*", "A status that is none is as a 5xx (RFC 9110 15); Envoy counts it as unknown."),
    Reason("bodyOf204", "bad-body-of-204", r".*",
           "A 204 has no body, whatever length it claims (RFC 9112 6.3): it is passed on, and its connection closed. To Envoy it "
           "is malformed."),
]


def load():
    """{scenario: {what: [Envoy's value, Firebreak's]}}, values as they are written."""
    return json.loads(VALUES.read_text()) if VALUES.exists() else {}


def written(value):
    """|value| as it comes back from the file."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return json.loads(json.dumps(value))


def reason_for(scenario, what):
    for reason in REASONS:
        if reason.covers(scenario, what):
            return reason
    return None


def sort_out(scenario, found, values):
    """(reasons of those that are written down, differences that are not, names of those written
    that do not occur). Scenarios by seed need only a reason."""
    expected = None if scenario.by_seed else values.get(scenario.name, {})
    reasons, unlisted = [], []
    for one in found:
        reason = reason_for(scenario.name, one.what)
        pair = [written(one.envoy), written(one.firebreak)]
        if reason is None or expected is not None and expected.get(one.what) != pair:
            unlisted.append(one)
        elif reason not in reasons:
            reasons.append(reason)
    names = {one.what for one in found}
    return reasons, unlisted, [what for what in expected or {} if what not in names]


def save(outcomes):
    """Writes what was found, of all scenarios that have a name of their own."""
    values = {n: {d.what: [written(d.envoy), written(d.firebreak)] for d in o.found}
              for n, o in outcomes.items() if o.found and not o.scenario.by_seed}
    VALUES.write_text(json.dumps(values, indent=1, sort_keys=True) + "\n")
