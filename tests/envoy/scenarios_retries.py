# SPDX-License-Identifier: Apache-2.0
"""Retries: which failures, how many, within which bounds. Names like R1 are those of the reference, section 12.

What is retried has no body here unless a scenario is about that: Envoy decides at the head, and what of the
body came with it is chance.
"""
from catalogue import scenario
from upstream import answer, early, held, raw, silent

AREA = "retries"
RESET = raw(b"", "reset")
FIN = raw(b"", "finish")
GARBAGE = raw(b"garbage\r\n\r\n")
HALF = raw(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", "finish")


def bare(status, *fields):
    return answer(status, fields=fields, body=b"")


def on(tokens, retries=1, **more):
    return {"retry_on": tokens, "num_retries": retries, "base": 0.005, **more}


@scenario(AREA, "5xx, two retries, always 503: URX (R1)", retry=on("5xx", 2))
def used_up(s):
    s.get(bare(503))


@scenario(AREA, "5xx, the second attempt goes well (R2)", retry=on("5xx", 2))
def second_is_good(s):
    s.get(bare(503), 200)
    s.get(bare(503), bare(500), 200)


@scenario(AREA, "the answer that is thrown away has a body: its connection is closed", retry=on("5xx"))
def thrown_away_with_body(s):
    s.get(answer(503, body=b"x" * 300_000), 200)
    s.get()


@scenario(AREA, "so is it where all of the body came with the head", retry=on("5xx", 1))
def thrown_away_whole(s):
    s.get([answer(503), answer()])
    s.get([raw(b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"), answer()])
    s.get([bare(503), answer()])


@scenario(AREA, "an answer to HEAD that is thrown away, with a body all the same", retry=on("5xx", 1))
def thrown_away_with_too_much(s):
    s.get([answer(503), answer(body=b"")], method="HEAD")
    s.get()


@scenario(AREA, "5xx covers resets, FIN, garbage", retry=on("5xx"))
def covered_by_5xx(s):
    s.get_each(*[[first, answer()] for first in (RESET, FIN, GARBAGE)])


@scenario(AREA, "5xx does not cover 404, 409, 429", retry=on("5xx"))
def not_covered_by_5xx(s):
    s.get_each(*[[bare(code), answer()] for code in (404, 409, 429)])


@scenario(AREA, "gateway-error: 502, 503, 504 and resets, not 500", retry=on("gateway-error"))
def gateway_error(s):
    s.get_each(*[[first, answer()] for first in (bare(502), bare(503), bare(504), RESET, bare(500))])


@scenario(AREA, "reset: no status, only what broke", retry=on("reset"))
def reset(s):
    s.get_each(*[[first, answer()] for first in (RESET, FIN, GARBAGE, bare(503))])


@scenario(AREA, "connect-failure, one retry, refused twice: URX,UF (R3)", retry=on("connect-failure"))
def connect_failure(s):
    s.hosts[0].refuse()
    s.get()


@scenario(AREA, "connect-failure does not cover resets and statuses", retry=on("connect-failure"))
def not_covered_by_connect_failure(s):
    s.get_each(*[[first, answer()] for first in (RESET, bare(503))])


@scenario(AREA, "a retry that ends in what is not covered is a success", hosts=2, retry=on("connect-failure"))
def not_covered_after_a_retry(s):
    s.get_each(200, 200)
    first = s.hosts[s.calls[0].script.seen[0][0]]
    first.refuse()
    first.drop_idle()
    s.await_stat(upstream_cx_active=1)
    s.get(RESET)


@scenario(AREA, "connect-failure covers connects that time out", retry=on("connect-failure"), connect_timeout=0.1)
def connect_timeout_retried(s):
    s.hosts[0].swallow()
    s.get()


@scenario(AREA, "5xx covers refused connects", retry=on("5xx"))
def refused_retried_by_5xx(s):
    s.hosts[0].refuse()
    s.get()


@scenario(AREA, "reset-before-request: only while nothing was sent", retry=on("reset-before-request"))
def reset_before_request(s):
    s.get([RESET, answer()])
    s.hosts[0].refuse()
    s.hosts[0].drop_idle()
    s.await_stat(upstream_cx_active=0)
    s.get()


@scenario(AREA, "refused-stream has nothing to do with HTTP/1", retry=on("refused-stream"))
def refused_stream(s):
    s.get_each(*[[first, answer()] for first in (RESET, bare(503))])


@scenario(AREA, "retriable-4xx is 409 and no other", retry=on("retriable-4xx"))
def retriable_4xx(s):
    s.get_each(*[[bare(code), answer()] for code in (409, 404, 429, 503)])


@scenario(AREA, "retriable-status-codes", retry=on("retriable-status-codes", retriable_status_codes=[404, 503]))
def retriable_status_codes(s):
    s.get_each(*[[bare(code), answer()] for code in (404, 503, 500)])


@scenario(AREA, "retriable-headers", retry=on("retriable-headers", retriable_headers=[{"name": "x-again", "present_match": True}]))
def retriable_headers(s):
    s.get_each([bare(200, ("x-again", "1")), answer()], [bare(503), answer()])


@scenario(AREA, "envoy-ratelimited: answers with that header", retry=on("envoy-ratelimited"))
def ratelimited(s):
    s.get_each([bare(429, ("x-envoy-ratelimited", "true")), answer()], [bare(429), answer()])


@scenario(AREA, "an answer with x-envoy-ratelimited is retried by no other name", retry=on("5xx"))
def ratelimited_not_by_5xx(s):
    s.get([bare(503, ("x-envoy-ratelimited", "true")), answer()])


@scenario(AREA, "several names", retry=on("connect-failure,retriable-4xx,gateway-error", 3))
def several_names(s):
    s.get([bare(409), RESET, bare(502), answer()])
    s.get([bare(500), answer()])


@scenario(AREA, "no retries are left: none is made", retry=on("5xx", 0))
def no_retries(s):
    s.get([bare(503), answer()])


@scenario(AREA, "an answer that has begun is not retried", retry=on("5xx"))
def not_after_the_head(s):
    s.get([HALF, answer()])


@scenario(AREA, "a POST with a body is sent again whole", retry=on("5xx"))
def body_again(s):
    s.get([bare(503), answer()], method="POST", body="x" * 5000)
    s.observe("bodies", s.calls[0].script.bodies)


@scenario(AREA, "a body that is still coming when the attempt fails", retry=on("5xx"))
def body_still_coming(s):
    call = s.start([early(bare(503)), answer()], method="POST", fields={"content-length": "10"})
    call.conn.send("01234")
    s.reached(call, 2)
    call.conn.send("56789")
    s.finish(call)


@scenario(AREA, "per-try timeout, the second attempt is in time", timeout=5, retry=on("5xx", per_try_timeout=0.15))
def per_try_timeout(s):
    s.get([silent(), answer()])


@scenario(AREA, "per-try timeouts use the retries up", timeout=5, retry=on("5xx", 2, per_try_timeout=0.1))
def per_try_timeouts(s):
    s.get(silent())


@scenario(AREA, "per-try timeouts within the route's, whichever comes first (R4)", timeout=0.5,
          retry=on("5xx", 5, per_try_timeout=0.2))
def three_tries_in_time(s):
    s.get(silent())


@scenario(AREA, "a per-try timeout is no connect-failure", timeout=5, retry=on("connect-failure", per_try_timeout=0.1))
def per_try_timeout_not_covered(s):
    s.get([silent(), answer()])


@scenario(AREA, "reset covers a per-try timeout", timeout=5, retry=on("reset", per_try_timeout=0.1))
def per_try_timeout_is_reset(s):
    s.get([silent(), answer()])


@scenario(AREA, "the route's timeout ends all attempts", timeout=0.3, retry=on("5xx", 5))
def route_timeout_over_retries(s):
    s.get([bare(503), silent()])


@scenario(AREA, "a per-try timeout as long as the route's does nothing", timeout=0.15, retry=on("5xx", per_try_timeout=0.15))
def per_try_as_long_as_route(s):
    s.get(silent())


@scenario(AREA, "the route's timeout is no failure to retry", timeout=0.15, retry=on("5xx,reset", 3))
def route_timeout_not_retried(s):
    s.get(silent())


@scenario(AREA, "max_retries 1: a second one beside the first is refused, flag UO", retry=on("5xx"), limits={"max_retries": 1})
def retries_refused(s):
    first = s.start([bare(503), held(answer())])
    s.reached(first, 2)
    s.observe("one under way", s.gauges())
    s.get(bare(503))
    s.get(bare(500))
    s.get()
    s.release(first)
    s.get([bare(503), answer()])


@scenario(AREA, "a retry budget of nothing: the failure goes on, flag UO (C3)", retry=on("5xx"),
          limits={"retry_budget": {"budget_percent": 0, "min_retry_concurrency": 0}})
def no_budget(s):
    s.get([bare(500), answer()])


@scenario(AREA, "a retry budget of 20 %, at least one at a time", retry=on("5xx"),
          limits={"retry_budget": {"budget_percent": 20, "min_retry_concurrency": 1}})
def budget_of_one(s):
    first = s.start([bare(503), held(answer())])
    s.reached(first, 2)
    s.observe("one under way", s.gauges())
    s.get(bare(503))
    s.release(first)
    s.get([bare(503), answer()])


def over_budget(s, beside, failing):
    """|beside| requests are held, then |failing| fail, each of whose retries is held too, if it is made."""
    calls = [s.start(held(answer())) for _ in range(beside)]
    for call in calls:
        s.reached(call)
    for _ in range(failing):
        calls.append(s.start([bare(503), held(answer())]))
        s.await_true(lambda: len(calls[-1].script.seen) == 2 or s.answered(calls[-1]), "a retry or a refusal")
        s.quiet()
    s.observe("retried", sum(len(c.script.seen) == 2 for c in calls))
    for call in calls:
        s.release(call)


@scenario(AREA, "a retry budget of 20 %, at least three: of thirty under way six may be retries (C4)", retry=on("5xx"),
          limits={"retry_budget": {"budget_percent": 20, "min_retry_concurrency": 3}})
def budget_of_thirty(s):
    over_budget(s, 24, 8)


@scenario(AREA, "a retry budget of 20 %, at least three: of few under way three may be (C5)", retry=on("5xx"),
          limits={"retry_budget": {"budget_percent": 20, "min_retry_concurrency": 3}})
def budget_of_few(s):
    over_budget(s, 0, 5)


@scenario(AREA, "a retry budget of 50 %: of six under way three may be retries", retry=on("5xx"),
          limits={"retry_budget": {"budget_percent": 50, "min_retry_concurrency": 0}})
def budget_by_requests(s):
    over_budget(s, 3, 5)


@scenario(AREA, "an overflow is not retried", retry=on("5xx,reset,connect-failure", 3), limits={"max_requests": 1})
def overflow_not_retried(s):
    call = s.start(held(answer()))
    s.reached(call)
    s.get()
    s.release(call)


@scenario(AREA, "nobody to go to: not retried", retry=on("gateway-error", 3), panic=0,
          outlier={"consecutive_5xx": 1, "max_ejection_percent": 100, "interval": 60, "base_ejection_time": 60})
def nobody_left(s):
    s.get(bare(500))
    s.await_stat(outlier_detection__ejections_active=1)
    s.get()


@scenario(AREA, "another host: the one tried is not asked again", hosts=2, retry=on("5xx", 1, previous_hosts=True))
def another_host(s):
    s.get([bare(503), answer()])
    s.get([RESET, answer()])


@scenario(AREA, "every attempt counts against its host", retry=on("5xx", 4), panic=0,
          outlier={"consecutive_5xx": 5, "max_ejection_percent": 100, "interval": 60, "base_ejection_time": 60})
def attempts_count(s):
    s.get(bare(503))
    s.await_stat(outlier_detection__ejections_active=1)


@scenario(AREA, "hosts are told which attempt it is", retry=on("5xx", 2))
def attempt_count(s):
    s.get([bare(503), bare(503), answer()])
    s.observe("told", [f.get("x-envoy-attempt-count") for f in s.calls[0].script.fields])
