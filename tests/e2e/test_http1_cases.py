# SPDX-License-Identifier: Apache-2.0
"""The cases of area HTTP/1.1 (tests/cases/README.md) through the whole proxy."""

import time

import pytest

from rawpeers import CASES, OK, Proxy, Upstream, answers, config, parse_fields, proxied, status_of


def case(name):
    return (CASES / f"{name}.bin").read_bytes()


@pytest.fixture(scope="module")
def echoing():
    """One proxy for all the requests that must never get anywhere, or just pass."""
    with proxied(answers(OK)) as (proxy, upstream):
        yield proxy, upstream


def refused(echoing, data, *statuses):
    """|data| is answered with one of |statuses| and the connection closed; nothing goes upstream."""
    proxy, upstream = echoing
    before = len(upstream.all_bytes())
    client = proxy.client()
    client.send(data)
    head, _ = client.answer()
    assert status_of(head) in statuses
    assert parse_fields(head)[b"connection"] == b"close"
    client.finish()
    assert client.read_to_end() == b""
    assert len(upstream.all_bytes()) == before


@pytest.mark.parametrize("name", ["C001-client1", "C001-client2"])
def test_c001_two_framings_are_refused(echoing, name):
    refused(echoing, case(name), 400)


def test_c001_an_answer_with_both_is_502():
    with proxied(answers(case("C001-upstream1"))) as (proxy, _):
        head, body = proxy.client().get()
        assert status_of(head) == 502 and b"hello" not in body
        assert proxy.records(1)[0]["response_flags"] == "UPE"


def bad_body(data):
    """The head is fine, its body is not: 400, and no request upstream is ever completed."""
    with proxied(answers(OK)) as (proxy, upstream):
        client = proxy.client()
        client.send(data)
        head, _ = client.answer()
        assert status_of(head) in (400, 413)
        client.finish()
        client.read_to_end()
        assert b"/admin" not in upstream.all_bytes()
        assert b"0\r\n\r\n" not in upstream.all_bytes()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7])
def test_c003_odd_chunk_lines_are_refused(n):
    bad_body(case(f"C003-client{n}"))


def test_c003_a_legal_extension_passes_and_is_dropped():
    with proxied(answers(OK)) as (proxy, upstream):
        client = proxy.client()
        client.send(case("C003-client6"))
        head, body = client.answer()
        assert status_of(head) == 200 and body == b"ok"
        assert b"sig" not in upstream.all_bytes()
        assert b"5\r\nhello\r\n0\r\n\r\n" in upstream.all_bytes()


@pytest.mark.parametrize("n", range(1, 12))
def test_c005_odd_lengths_are_refused(echoing, n):
    refused(echoing, case(f"C005-client{n}"), 400)


def test_c005_an_answer_with_two_lengths_is_502():
    with proxied(answers(case("C005-upstream1"))) as (proxy, _):
        head, body = proxy.client().get()
        assert status_of(head) == 502 and b"hello" not in body
        assert proxy.records(1)[0]["response_flags"] == "UPE"


@pytest.mark.parametrize("n", [1, 2, 3])
def test_c007_folded_lines_are_refused(echoing, n):
    refused(echoing, case(f"C007-client{n}"), 400)


def test_c007_odd_bytes_are_no_line_ends():
    with proxied(answers(OK)) as (proxy, upstream):
        client = proxy.client()
        client.send(case("C007-client4"))
        head, _ = client.answer()
        assert status_of(head) in (200, 400)


def test_c007_a_folded_answer_is_502():
    with proxied(answers(case("C007-upstream1"))) as (proxy, _):
        assert status_of(proxy.client().get()[0]) == 502


def interim_then(name, client_name):
    """The heads of all interim answers, and the final answer, and a second one."""
    with proxied(answers(case(name), b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond")) as (proxy, _):
        client = proxy.client()
        client.send(case(client_name))
        interim = []
        while True:
            head = client.read_head()
            if status_of(head) >= 200:
                break
            interim.append(status_of(head))
        body = client.read_body(head)
        keeps = parse_fields(head).get(b"connection") != b"close" and client_name == "C009-client1"
        second = client.get()[1] if keeps else b"second"
        return interim, status_of(head), body, second


def test_c009_interim_answers_have_no_body():
    assert interim_then("C009-upstream1", "C009-client1") == ([100], 200, b"ok", b"second")


def test_c009_all_interim_answers_pass():
    assert interim_then("C009-upstream2", "C009-client1")[:3] == ([103, 103], 200, b"ok")
    assert interim_then("C009-upstream3", "C009-client1")[:3] == ([102, 100, 199], 200, b"ok")


def test_c009_http10_clients_see_none():
    assert interim_then("C009-upstream2", "C009-client2")[:3] == ([], 200, b"ok")


def test_c009_a_101_nobody_asked_for_is_502():
    with proxied(answers(case("C009-upstream4"))) as (proxy, _):
        head, _ = proxy.client().get()
        assert status_of(head) == 502


@pytest.mark.parametrize("name", ["C011-upstream1", "C011-upstream4"])
def test_c011_a_204_has_no_body_and_its_connection_is_not_reused(name):
    second = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond"
    with proxied(answers(case(name), second)) as (proxy, upstream):
        client = proxy.client()
        head, _ = client.get()
        assert status_of(head) == 204
        assert b"content-length" not in parse_fields(head)
        assert b"transfer-encoding" not in parse_fields(head)
        head, body = client.get()
        assert (status_of(head), body) == (200, b"second")
        assert len(upstream.received) == 2


def test_c011_a_304_is_whole_without_a_body():
    with proxied(answers(case("C011-upstream2"), OK)) as (proxy, upstream):
        client = proxy.client()
        head, _ = client.get()
        assert status_of(head) == 304
        assert client.get()[1] == b"ok"
        assert len(upstream.received) == 1


def test_c011_a_205_runs_until_close_and_is_framed_anew():
    def script(peer):
        peer.read_head()
        peer.send(case("C011-upstream3"))
        peer.close()
    with proxied(script) as (proxy, _):
        head, body = proxy.client().get()
    assert status_of(head) == 205 and body == b""
    fields = parse_fields(head)
    assert b"transfer-encoding" in fields or b"content-length" in fields


def early_413(finish):
    def script(peer):
        peer.read_head()
        peer.read_exactly(65536)
        peer.send(case("C013-upstream1"))
        finish(peer)
    return script


@pytest.mark.parametrize("finish", ["close", "reset_later", "half"])
def test_c013_the_early_answer_reaches_the_client(finish):
    ends = {"close": lambda p: p.close(),            # unread data: the kernel sends a RST
            "half": lambda p: p.finish(),
            "reset_later": lambda p: (p.read_exactly(65536), p.reset())}
    upstream = Upstream(early_413(ends[finish]))
    with Proxy(to=[upstream.address]) as proxy:
        for _ in range(20):
            client = proxy.client()
            client.send(b"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: 52428800\r\n\r\n")
            block = b"x" * 65536
            sent = 0
            try:
                while sent < 4 << 20:
                    client.send(block)
                    sent += len(block)
            except OSError:
                pass
            head, body = client.answer()
            assert status_of(head) == 413 and len(body) == 9
            client.close()
        assert proxy.stat("cluster.backend.outlier_detection.ejections_active") == 0
    upstream.close()


def test_c015_trailers_pass_but_for_those_that_frame_or_route():
    def script(peer):
        head = peer.read_head()
        script.body, script.trailers = peer.read_chunked()
        peer.send(case("C015-upstream1"))
    with proxied(script) as (proxy, _):
        client = proxy.client()
        client.send(case("C015-client1"))
        head = client.read_head()
        body, trailers = client.read_chunked()
    assert [t.lower() for t in script.trailers] == [b"x-checksum: abc"]
    assert [t.lower() for t in trailers] == [b"server-timing: db;dur=5"]


def test_c015_a_huge_trailer_section_is_refused():
    with proxied(answers(OK)) as (proxy, _):
        client = proxy.client()
        client.send(case("C015-client2"))
        assert status_of(client.answer()[0]) in (400, 431)


def test_c015_a_trailer_without_colon_is_refused():
    bad_body(case("C015-client3"))


def test_c017_h2c_is_not_passed_on():
    with proxied(answers(OK)) as (proxy, upstream):
        client = proxy.client()
        client.send(case("C017-client1"))
        head, body = client.answer()
        assert (status_of(head), body) == (200, b"ok")
        seen = upstream.all_bytes().lower()
        assert b"upgrade" not in seen and b"http2-settings" not in seen
        client.send(case("C017-client2"))
        assert status_of(client.answer()[0]) in (400, 505)


def test_c017_a_101_to_it_is_502():
    with proxied(answers(case("C017-upstream1"))) as (proxy, _):
        client = proxy.client()
        client.send(case("C017-client1"))
        assert status_of(client.answer()[0]) == 502


def test_c017_only_websocket_may_be_forwarded_of_a_list():
    with proxied(answers(OK)) as (proxy, upstream):
        client = proxy.client()
        client.send(case("C017-client3"))
        client.answer()
        assert b"h2c" not in upstream.all_bytes()


def test_c019_limits_have_their_statuses(echoing):
    refused(echoing, case("C019-client1"), 431)
    refused(echoing, case("C019-client2"), 431)
    refused(echoing, case("C019-client3"), 414, 431)


# C045: when the clock starts

def test_c045_a_steady_upload_is_not_timed_out():
    upstream = Upstream(answers(OK))
    with Proxy(config=config([upstream], route="timeout: 300ms")) as proxy:
        client = proxy.client()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n")
        for _ in range(8):
            time.sleep(0.1)  # the upload's own pace: longer in all than the timeout
            client.send(b"x")
        assert status_of(client.answer()[0]) == 200
    upstream.close()


WEBSOCKET = (b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
SWITCH = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")


def test_c045_a_tunnel_outlives_the_total_timeout():
    def script(peer):
        peer.read_head()
        peer.send(SWITCH)
        while True:
            data = peer.read_exactly(4)
            peer.send(data[::-1])
    upstream = Upstream(script)
    with Proxy(config=config([upstream], route="timeout: 200ms\nidleTimeout: 5s")) as proxy:
        client = proxy.client()
        client.send(WEBSOCKET)
        assert status_of(client.read_head()) == 101

        time.sleep(0.5)  # beyond the total timeout
        client.send(b"abcd")
        assert client.read_exactly(4) == b"dcba"
        client.close()
    upstream.close()


# C057: a late answer on a timed-out connection must not answer the next request

def late(delay_answer):
    """Answers /slow only when told to; every other request at once, with its own path."""
    def script(peer):
        while True:
            head = peer.read_head()
            if not head:
                return
            path = head.split(b" ")[1]
            if path.startswith(b"/slow"):
                delay_answer(peer)
                continue
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(path), path))
    return script


ONE_CONNECTION = "trafficPolicy: { connectionPool: { tcp: { maxConnections: 1 } } }"


@pytest.mark.parametrize("half", [False, True])
def test_c057_after_a_timeout(half):


    def answer_late(peer):
        if half:
            peer.send(case("C057-upstream1"))
        time.sleep(0.6)
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n/slow")
    upstream = Upstream(late(answer_late))
    with Proxy(config=config([upstream], route="timeout: 200ms", cluster=ONE_CONNECTION)) as proxy:
        client = proxy.client()
        client.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        if half:
            with pytest.raises((ConnectionResetError, EOFError)):
                client.answer()
                client.read_exactly(1)
        else:
            assert status_of(client.answer()[0]) == 504
        client = proxy.client()
        for i in range(5):
            assert client.get(f"/fast{i}")[1] == b"/fast%d" % i
    upstream.close()


def test_c057_after_a_cancel():


    def answer_late(peer):
        time.sleep(0.4)
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n/slow")
    upstream = Upstream(late(answer_late))
    with Proxy(config=config([upstream], cluster=ONE_CONNECTION)) as proxy:
        gone = proxy.client()
        gone.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        time.sleep(0.1)
        gone.close()
        client = proxy.client()
        for i in range(5):
            assert client.get(f"/fast{i}")[1] == b"/fast%d" % i
    upstream.close()


def test_c057_after_half_a_request_body():
    def script(peer):
        while True:
            head = peer.read_head()
            if not head:
                return
            peer.read_body(head)
            path = head.split(b" ")[1]
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(path), path))
    upstream = Upstream(script)
    with Proxy(config=config([upstream], cluster=ONE_CONNECTION)) as proxy:
        gone = proxy.client()
        gone.send(b"POST /half HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")
        gone.close()
        client = proxy.client()
        assert client.get("/fast")[1] == b"/fast"
        assert client.get("/fast2")[1] == b"/fast2"
    upstream.close()


def test_c057_after_head():
    upstream = Upstream(answers(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", OK))
    with Proxy(config=config([upstream], cluster=ONE_CONNECTION)) as proxy:
        client = proxy.client()
        client.send(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
        head, _ = client.answer(no_body=True)
        assert parse_fields(head)[b"content-length"] == b"5"
        assert client.get()[1] == b"ok"
    upstream.close()
