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
    key: str
    scenario: str  # names; a regular expression
    what: str  # counters and observations; a regular expression
    why: str
    everywhere: bool = False  # said once, not beside each scenario

    def covers(self, scenario, what):
        return re.fullmatch(self.scenario, scenario) and re.fullmatch(self.what, what)


CUT = "cut-bodies|(fin|reset)-in-.*|not-after-the-head|bad-chunk-size|.*-timeout-in-the-body|until-close-reset|seed-.*"

REASONS = [
    Reason("resets", ".*", r"upstream_rq_[rt]x_reset",
           "Envoy counts resets only where the protocol has streams. Firebreak counts broken attempts over HTTP/1.1 "
           "as well: they tell UC from the rest.", everywhere=True),
    Reason("details", ".*", r"call \d+ details|calls .*",
           "Envoy puts the system's words for a failed connect into the details, Firebreak into "
           "`upstream_transport_failure_reason`.", everywhere=True),
    Reason("cut", "cut-bodies|(fin|reset)-in-.*|not-after-the-head",
           r"call \d+ (flags|details|body|code|status|sent)|upstream_cx_protocol_error|(external\.)?upstream_rq_50[23]",
           "To Envoy's parser an answer that a closed connection cuts is malformed (UPE, 502). To Firebreak the "
           "connection broke (UC, 503): the host died, it did not talk nonsense. Reference, R7."),
    Reason("breaking-off", CUT, r"http\.downstream_(cx_delayed_close_timeout|cx_destroy_(local_)?active_rq|rq_[rt]x_reset)",
           "An answer that cannot be finished: Envoy ends the stream, counts it as reset by both sides, and closes the "
           "connection after a second; Firebreak closes it at once, under the request."),
    Reason("early-answer", "(answer|error)-before-the-request-ended", r"http\.downstream_rq_rx_reset",
           "Envoy counts as reset by the client what it breaks off itself, after an answer that came early."),
    Reason("idle-request", "idle-timeout-in-the-request", r"http\.downstream_rq_rx_reset", "The same."),
    Reason("interim", "continue-.*|interim.*", r"call \d+ (interim|details)|(http\.down|(external\.)?up)stream_rq_(\d..|completed)|hosts rq_error",
           "Envoy keeps 1xx of the host to itself, counts each as an answer, and takes them for the begin of it. Firebreak "
           "passes them on (RFC 9110 15.2); the answer begins with its final head."),
    Reason("panic-connections", "panic|only-host-in-panic", r"hosts cx_total|upstream_cx_(destroy|destroy_local|http1_total|total)|upstream_rq_pending_total",
           "Envoy closes the idle connections of a host that it ejects even where panic goes on using it. Firebreak keeps them."),
    Reason("no-retries", "no-retries", r"call \d+ flags|upstream_rq_retry_limit_exceeded",
           "`attempts: 0`: nothing is used up where nothing was allowed; no URX."),
    Reason("thrown-away", "ratelimited|retriable-.*|several-names|not-covered.*|seed-.*", r"hosts rq_(error|success)",
           "An answer that is thrown away for a retry is an error of the host to Envoy, whatever its status; to Firebreak by its status."),
    Reason("max-requests", "seed-.*", r"upstream_cx_max_requests",
           "Envoy counts it with the last request a connection may have, Firebreak where the connection is closed for it."),
    Reason("until-close", "until-close-reset", r".*",
           "A body that ends with the connection, which is reset: Envoy calls it whole. It is cut (RFC 9112 8)."),
    Reason("strict", "bad-(version|field-folded|bare-lf|switch|chunk-end|status-999)", r".*",
           "Firebreak takes no answer that RFC 9112 does not allow: a foreign version, folded lines, bare LF, 101 to nothing, "
           "chunks that are too long, a status that is none."),
    Reason("lenient", "bad-(same-lengths|length-and-chunks|body-of-204)", r".*",
           "What RFC 9112 says how to read, Firebreak reads, and then closes the connection: the same length twice, "
           "chunks that go before a length, a length that a 204 cannot have."),
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
