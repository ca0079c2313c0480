# SPDX-License-Identifier: Apache-2.0
"""Retries end to end: bodies sent again byte for byte, what is never sent twice, the budget."""
import os
import threading
import time

import pytest

from rawpeers import OK, Proxy, Upstream, answers, config, status_of, wait_for

BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"
NO_EJECTION = ("trafficPolicy: { outlierDetection: { consecutive5xxErrors: 0 } }")


class Cluster:
    """A proxy with a `retry` in front of one upstream a script."""

    def __init__(self, retry, *scripts, route="", cluster=NO_EJECTION, listener="", workers=1):
        self.upstreams = [Upstream(s) for s in scripts]
        self.proxy = Proxy(config=config(self.upstreams, listener=listener, workers=workers,
                                         route=f"retry: {retry}\n{route}",
                                         cluster="loadBalancer: round_robin\n" + cluster))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        try:
            self.proxy.stop()
        finally:
            for u in self.upstreams:
                u.close()

    def ask(self, data):
        peer = self.proxy.client()
        peer.send(data)
        try:
            return peer.answer()
        finally:
            peer.close()

    def stat(self, name):
        return self.proxy.stat("cluster.backend." + name)


def once(first, then=OK):
    """A script for several upstreams together: the very first request gets |first|."""
    lock = threading.Lock()
    left = [first]
    bodies = []

    def script(peer):
        while True:
            head = peer.read_head()
            if not head:
                return
            body = peer.read_body(head)
            with lock:
                bodies.append((head, body))
                reply = left.pop() if left else then
            if reply is None:
                peer.reset()
                return
            peer.send(reply)

    script.bodies = bodies
    return script


GET = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"


def post(body, method=b"POST"):
    return b"%s /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (method, len(body), body)


def test_an_answer_that_is_retried_is_never_seen_and_each_attempt_is_in_the_log():
    script = once(BUSY)
    with Cluster("{ on: [5xx], attemptCount: on }", script, script) as c:
        head, body = c.ask(GET)
        assert status_of(head) == 200 and body == b"ok"
        assert b"\r\nx-envoy-attempt-count: 2\r\n" in head
        assert [b"x-envoy-attempt-count: 1\r\n" in script.bodies[0][0],
                b"x-envoy-attempt-count: 2\r\n" in script.bodies[1][0]] == [True, True]
        record = c.proxy.records(1)[0]
        assert record["response_flags"] == "-"
        first, second = record["attempts"]
        assert (first["outcome"], first["status"], second["status"]) == ("answered", 503, 200)
        assert first["endpoint"] != second["endpoint"] and second["backoff"] == 0
        stats = c.proxy.stats()
        assert stats["cluster.backend.upstream_rq_retry"] == "1"
        assert stats["cluster.backend.upstream_rq_retry_success"] == "1"
        assert stats["cluster.backend.retry.upstream_rq_503"] == "1"
        assert stats["cluster.backend.retry.upstream_rq_5xx"] == "1"
        assert stats["cluster.backend.upstream_rq_200"] == "1"
        assert "cluster.backend.upstream_rq_503" not in stats
        assert stats["cluster.backend.amplification"].startswith("2")


def test_a_whole_answer_that_is_thrown_away_leaves_its_connection():
    with Cluster("{ on: [5xx], attempts: 1 }", answers(BUSY), answers(BUSY)) as c:
        peer = c.proxy.client()
        for _ in range(4):
            peer.send(GET)
            head, body = peer.answer()
            assert status_of(head) == 503 and body == b"busy"
        assert sum(len(u.received) for u in c.upstreams) == 2
        assert c.proxy.records(1)[0]["response_flags"] == "URX"


def test_as_envoy_it_costs_its_connection_unless_it_has_no_body():
    for answer, connections in ((BUSY, 4), (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", 2)):
        with Cluster("{ on: [5xx], attempts: 1, backoff: {base: 1ms, max: 1ms} }", answers(answer), answers(answer),
                     cluster=f"{NO_EJECTION}\nresilience: {{ differences: {{ thrownAwayCloses: envoy }} }}") as c:
            peer = c.proxy.client()
            for _ in range(3):
                peer.send(GET)
                assert status_of(peer.answer()[0]) == 503
            assert c.stat("upstream_cx_total") == connections


def test_used_up_retries_of_refused_connects_are_urx_uf():
    with Cluster("{ on: [connect-failure], attempts: 1 }", answers(OK), answers(OK)) as c:
        for u in c.upstreams:
            u.close()
        head, body = c.ask(GET)
        assert status_of(head) == 503
        assert body == (b"upstream connect error or disconnect/reset before headers. retried and "
                        b"the latest reset reason: remote connection failure")
        record = c.proxy.records(1)[0]
        assert record["response_flags"] == "URX,UF"
        assert len(record["attempts"]) == 2


@pytest.mark.parametrize("size", [1, 20_000, 65_536, 300_000, 1_048_576])
def test_a_named_post_is_sent_again_byte_for_byte(size):
    body = os.urandom(size)
    script = once(BUSY)
    with Cluster("{ on: [5xx], methods: [POST] }", script, script) as c:
        head, _ = c.ask(post(body))
        assert status_of(head) == 200
        assert [b for _, b in script.bodies] == [body, body]
        assert c.stat("retry_or_shadow_abandoned") == 0


def test_a_post_that_is_not_named_is_sent_once():
    script = once(BUSY)
    with Cluster("{ on: [5xx] }", script, script) as c:
        head, body = c.ask(post(b"pay"))
        assert status_of(head) == 503 and body == b"busy"
        assert len(script.bodies) == 1
        assert c.stat("upstream_rq_retry") == 0


@pytest.mark.parametrize("size, again", [(65_535, True), (65_536, True), (65_537, False),
                                         (1_000_000, False)])
def test_a_body_beyond_the_buffer_is_sent_once_and_whole(size, again):
    """C061: at the buffer's size exactly it is still retried; beyond, the host's own answer."""
    body = os.urandom(size)
    script = once(BUSY)
    with Cluster("{ on: [5xx], bufferBytes: 64KiB }", script, script) as c:
        head, _ = c.ask(post(body, b"PUT"))
        assert status_of(head) == (200 if again else 503)
        assert [b for _, b in script.bodies] == [body] * (2 if again else 1)
        assert c.stat("retry_or_shadow_abandoned") == (0 if again else 1)


def refusing_early():
    """The very first request is answered 503 by its head and the first bytes; later ones are read whole."""
    first = threading.Event()
    bodies = []

    def script(peer):
        head = peer.read_head()
        if not head:
            return
        if not first.is_set():
            first.set()
            peer.read_exactly(1000)
            peer.send(BUSY)
            peer.read_to_end()
            return
        bodies.append(peer.read_body(head))
        peer.send(OK)

    script.bodies = bodies
    return script


@pytest.mark.parametrize("size, refuses, status", [
    (65_536, "envoy", 200), (65_537, "envoy", 507), (1_000_000, "envoy", 507),
    (65_537, "firebreak", 200), (1_000_000, "firebreak", 200)])
def test_a_body_that_passes_the_buffer_during_a_back_off(size, refuses, status):
    """C061, its other mode: 507 only where Envoy is followed in that, and only beyond the buffer."""
    wait = "1h" if status == 507 else "500ms"
    cluster = NO_EJECTION + ("\nresilience: { semantics: envoy, differences: { retryBufferRefuses: %s } }" % refuses)
    body = os.urandom(size)
    script = refusing_early()
    with Cluster("{ on: [5xx], bufferBytes: 64KiB, backoff: { base: %s, max: %s } }" % (wait, wait), script,
                 cluster=cluster) as c:
        peer = c.proxy.client()
        request = post(body, b"PUT")
        at = len(request) - size + 1000
        peer.send(request[:at])
        wait_for(lambda: c.stat("retry.upstream_rq_503") == 1, "the back-off")
        try:
            peer.send(request[at:])
        except (BrokenPipeError, ConnectionResetError):
            assert status == 507  # refused while it still sends
        head, text = peer.answer()
        assert status_of(head) == status
        assert script.bodies == ([body] if status == 200 else [])
        peer.close()
        record = c.proxy.records(1)[0]
        if status == 507:
            assert text and b"connection: close" in head.lower()
            assert record["response_code_details"] == "request_payload_exceeded_retry_buffer_limit"
            assert c.stat("retry_or_shadow_abandoned") == 1
        assert len(record["attempts"]) == (1 if status == 507 else 2)


def test_a_slow_chunked_upload_is_sent_again():
    pieces = [os.urandom(4096) for _ in range(10)]
    script = once(BUSY)
    with Cluster("{ on: [5xx] }", script, script) as c:
        peer = c.proxy.client()
        peer.send(b"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in pieces:
            peer.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            time.sleep(0.005)  # so that they come in several loans
        peer.send(b"0\r\n\r\n")
        assert status_of(peer.answer()[0]) == 200
        assert [b for _, b in script.bodies] == [b"".join(pieces)] * 2


def test_an_upload_still_under_way_moves_to_another_host_with_what_was_sent():
    """A host that resets in the midst of an upload: the rest goes with the beginning to another."""
    body = os.urandom(200_000)
    first = threading.Event()
    whole = []

    def script(peer):
        head = peer.read_head()
        if not head:
            return
        if not first.is_set():
            peer.read_exactly(50_000)
            first.set()
            peer.reset()
            return
        whole.append(peer.read_body(head))
        peer.send(OK)

    with Cluster("{ on: [reset] }", script, script) as c:
        peer = c.proxy.client()
        peer.send(post(body, b"PUT")[:100_000])
        assert first.wait(20)
        peer.send(post(body, b"PUT")[100_000:])
        assert status_of(peer.answer()[0]) == 200
        assert whole == [body]


def test_an_answer_that_breaks_off_is_not_retried():
    script = once(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    def cut(peer):
        head = peer.read_head()
        if head:
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            peer.close()

    with Cluster("{ on: [5xx, reset] }", cut, cut) as c:
        peer = c.proxy.client()
        peer.send(GET)
        head = peer.read_head()
        assert status_of(head) == 200
        with pytest.raises((EOFError, ConnectionResetError)):
            peer.read_exactly(100)
        peer.close()
        record = c.proxy.records(1)[0]
        assert record["response_flags"] == "UC" and len(record["attempts"]) == 1
    assert script.bodies == []


def test_a_silent_host_is_left_after_the_per_try_timeout():
    quiet = threading.Event()

    def silent(peer):
        if peer.read_head():
            quiet.wait(20)

    with Cluster("{ on: [5xx] }", silent, answers(OK), route="perTryTimeout: 200ms") as c:
        statuses = [status_of(c.ask(GET)[0]) for _ in range(2)]
        quiet.set()
        assert statuses == [200, 200]
        timeouts = c.stat("upstream_rq_per_try_timeout")
        assert timeouts > 0 and timeouts == c.stat("upstream_rq_retry")


def test_the_budget_bounds_what_a_dead_cluster_gets():
    cluster = NO_EJECTION + "\nresilience: { retryBudget: { ratio: 20%, floor: 0/s, capacity: 5 } }"
    with Cluster("{ on: [5xx], attempts: 3, backoff: { base: 1ms } }",
                 answers(BUSY), answers(BUSY), cluster=cluster) as c:
        peer = c.proxy.client()
        for _ in range(100):
            peer.send(GET)
            assert status_of(peer.answer()[0]) == 503
        # 100 first attempts pay for 20, and 5 were saved up
        assert c.stat("upstream_rq_total") in range(120, 126)
        assert c.stat("upstream_rq_retry") <= 25
        assert c.stat("upstream_rq_retry_overflow") >= 70
        flags = {r["response_flags"] for r in c.proxy.records(100)}
        assert "UO" in flags and flags <= {"UO", "URX"}


def test_retries_at_once_are_bounded_by_max_retries():
    cluster = ("trafficPolicy: { connectionPool: { http: { maxRetries: 1 } },\n"
               "  outlierDetection: { consecutive5xxErrors: 0 } }")
    release = threading.Event()
    seen = []
    lock = threading.Lock()

    def script(peer):
        while True:
            head = peer.read_head()
            if not head:
                return
            with lock:
                again = b"x-envoy-attempt-count: 2" in head
                seen.append(again)
            if again:
                release.wait(20)
                peer.send(OK)
            else:
                peer.send(BUSY)

    with Cluster("{ on: [5xx] }", script, script, cluster=cluster) as c:
        held = c.proxy.client()
        held.send(GET)
        deadline = time.monotonic() + 20
        while True not in seen and time.monotonic() < deadline:
            time.sleep(0.01)
        head, body = c.ask(GET)
        assert status_of(head) == 503 and body == b"busy"
        release.set()
        assert status_of(held.answer()[0]) == 200
        assert c.stat("upstream_rq_retry_overflow") == 1


HOSTILE = (b"x-envoy-retry-on: 5xx\r\nX-Envoy-Max-Retries: 9\r\nx-envoy-upstream-rq-timeout-ms: 1\r\n"
           b"x-envoy-attempt-count: 77\r\nx-envoy-hedge-on-per-try-timeout: true\r\n"
           b"x-envoy-peer: kept\r\n")


def test_what_a_client_says_about_retries_is_dropped_and_not_obeyed():
    script = once(BUSY)
    upstreams = [Upstream(script), Upstream(script)]
    with Proxy(config=config(upstreams, cluster=NO_EJECTION)) as proxy:
        peer = proxy.client()
        peer.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + HOSTILE + b"\r\n")
        assert status_of(peer.answer()[0]) == 503
        head = script.bodies[0][0].lower()
        assert b"x-envoy-peer: kept" in head
        assert head.count(b"x-envoy-") == 1
    for u in upstreams:
        u.close()


def test_what_a_trusted_client_says_about_retries_is_obeyed_and_dropped():
    script = once(BUSY)
    upstreams = [Upstream(script), Upstream(script)]
    with Proxy(config=config(upstreams, cluster=NO_EJECTION,
                             listener="trustRetryHeaders: on")) as proxy:
        peer = proxy.client()
        peer.send(b"GET / HTTP/1.1\r\nHost: a\r\nx-envoy-retry-on: retriable-status-codes\r\n"
                  b"x-envoy-retriable-status-codes: 429, 503\r\n\r\n")
        assert status_of(peer.answer()[0]) == 200
        assert len(script.bodies) == 2
        assert all(b"retry-on" not in head and b"retriable" not in head
                   for head, _ in script.bodies)
        peer.send(b"GET / HTTP/1.1\r\nHost: a\r\nx-envoy-retriable-header-names: x-no\r\n"
                  b"x-envoy-retry-on: retriable-headers\r\n\r\n")
        assert status_of(peer.answer()[0]) == 200
    for u in upstreams:
        u.close()


def test_marked_and_rate_limited_answers():
    marked = b"HTTP/1.1 200 OK\r\nX-Again: 1\r\nContent-Length: 0\r\n\r\n"
    limited = b"HTTP/1.1 503 Busy\r\nx-envoy-ratelimited: true\r\nContent-Length: 0\r\n\r\n"
    script = once(marked)
    with Cluster("{ headers: [x-again] }", script, script) as c:
        assert c.ask(GET)[1] == b"ok"
    script = once(limited)
    with Cluster("{ on: [5xx] }", script, script) as c:
        assert status_of(c.ask(GET)[0]) == 503
    script = once(limited)
    with Cluster("{ on: [5xx, envoy-ratelimited] }", script, script) as c:
        assert status_of(c.ask(GET)[0]) == 200


def test_many_uploads_that_are_retried_leave_nothing_behind():
    """Memory that is kept for retries is given back, and its bound is not reached by a few."""
    body = os.urandom(500_000)

    def script(peer):
        while True:
            head = peer.read_head()
            if not head:
                return
            peer.read_body(head)
            peer.send(BUSY if b"attempt-count: 1\r\n" in head else OK)

    cluster = ("trafficPolicy: { connectionPool: { http: {} },\n"
               "  outlierDetection: { consecutive5xxErrors: 0 } }\n"
               "resilience: { retryBudget: { ratio: 100% } }")
    with Cluster("{ on: [5xx] }", script, script, script, cluster=cluster) as c:
        results = []

        def uploads():
            peer = c.proxy.client()
            for _ in range(5):
                peer.send(post(body, b"PUT"))
                results.append(status_of(peer.answer()[0]))
            peer.close()

        threads = [threading.Thread(target=uploads) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert results == [200] * 40
        assert c.stat("upstream_rq_retry") == 40
        assert c.proxy.rss() < 200 << 20
