# SPDX-License-Identifier: Apache-2.0
"""What a client and a host see of the proxy between them, byte by byte, with raw sockets."""

import hashlib
import os
import re
import socket
import threading
import time

import pytest

from rawpeers import (FIREBREAK, OK, PATIENCE, Proxy, Upstream, answers, config, parse_fields, proxied,
                      status_of, wait_for)


def echo(peer):
    """Answers each request with its head, as a body."""
    while True:
        head = peer.read_head()
        if not head:
            return
        peer.read_body(head)
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(head), head))


# --- heads ---

def test_what_is_added_and_what_is_dropped_on_the_way_to_the_host():
    with proxied(echo) as (proxy, _):
        client = proxy.client()
        client.send(b"GET /a?b=c HTTP/1.1\r\nHost: example.test:8080\r\nX-One: 1\r\nConnection: close, x-drop\r\n"
                    b"X-Drop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nX-Forwarded-For: 6.6.6.6\r\n"
                    b"X-Forwarded-Proto: https\r\nProxy-Connection: x\r\n\r\n")
        head, seen = client.answer()
    fields = parse_fields(seen)
    assert seen.startswith(b"GET /a?b=c HTTP/1.1\r\n")
    assert fields[b"host"] == b"example.test:8080" and fields[b"x-one"] == b"1"
    assert fields[b"x-forwarded-for"] == b"127.0.0.1"
    assert fields[b"x-forwarded-proto"] == b"http"
    assert re.fullmatch(rb"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
                        fields[b"x-request-id"])
    for gone in (b"x-drop", b"keep-alive", b"te", b"proxy-connection", b"connection", b"via"):
        assert gone not in fields
    assert parse_fields(head)[b"connection"] == b"close"


@pytest.mark.parametrize("hops,came,goes", [
    (1, b"9.9.9.9", b"9.9.9.9, 127.0.0.1"),
    (1, b"6.6.6.6, 9.9.9.9", b"9.9.9.9, 127.0.0.1"),
    (2, b"6.6.6.6, 8.8.8.8, 9.9.9.9", b"8.8.8.8, 9.9.9.9, 127.0.0.1"),
    (2, b"9.9.9.9", b"9.9.9.9, 127.0.0.1"),
])
def test_forwarded_for_of_trusted_hops_is_kept(hops, came, goes):
    upstream = Upstream(echo)
    with Proxy(config=config([upstream], listener=f"trustedHops: {hops}\nvia: true")) as proxy:
        _, seen = proxy.client().get(extra=b"X-Forwarded-For: " + came + b"\r\nX-Forwarded-Proto: https\r\n"
                                           b"X-Request-Id: mine\r\n")
    fields = parse_fields(seen)
    assert fields[b"x-forwarded-for"] == goes
    assert fields[b"x-forwarded-proto"] == b"https"
    assert fields[b"x-request-id"] == b"mine"
    assert fields[b"via"] == b"1.1 firebreak"
    upstream.close()


def test_absolute_form_becomes_origin_form_and_its_authority_wins():
    with proxied(echo) as (proxy, _):
        client = proxy.client()
        client.send(b"GET http://right.test/p?q HTTP/1.1\r\nHost: wrong.test\r\n\r\n")
        _, seen = client.answer()
    assert seen.startswith(b"GET /p?q HTTP/1.1\r\n")
    assert parse_fields(seen)[b"host"] == b"right.test"


ROUTES = """
accessLog: {{ to: off }}
workers: 1
listeners:
  - name: web
    listen: 127.0.0.1:0
    {extra}
    routes:
      - {{ name: admin, match: {{ pathPrefix: /admin }}, cluster: one }}
      - {{ name: host, match: {{ hosts: ["*.example.test"] }}, cluster: one }}
      - {{ name: write, match: {{ pathPrefix: /w, methods: [POST] }}, cluster: one }}
      - {{ name: rest, match: {{ pathPrefix: /open }}, cluster: two }}
clusters:
  - {{ name: one, endpoints: [ {{ address: {one} }} ] }}
  - {{ name: two, endpoints: [ {{ address: {two} }} ] }}
"""


@pytest.mark.parametrize("extra,forwarded", [("forwardNormalized: false", "as sent"),
                                             ("forwardNormalized: true", "normalised")])
def test_paths_are_normalised_before_matching(extra, forwarded):
    one, two = Upstream(echo), Upstream(echo)
    with Proxy(config=ROUTES.format(one=one.address, two=two.address, extra=extra)) as proxy:
        client = proxy.client()
        for path in ("/%61dmin", "/open/../admin", "//admin", "/open/%2e%2e/admin/x"):
            before = len(one.all_bytes())
            head, seen = client.get(path)
            assert status_of(head) == 200 and len(one.all_bytes()) > before, path
            sent = seen.split(b" ")[1].decode()
            assert (sent == path) == (forwarded == "as sent"), (path, sent)
        assert status_of(client.get("/elsewhere")[0]) == 404
        assert status_of(client.get("/open")[0]) == 200
        assert len(two.all_bytes()) > 0
        assert status_of(client.get("/", host="a.example.test:8080")[0]) == 200
        assert status_of(client.get("/w")[0]) == 404
        client.send(b"POST /w HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        assert status_of(client.answer()[0]) == 200
        for path in ("/..", "/%zz", "/%00"):
            bad = proxy.client()
            assert status_of(bad.get(path)[0]) == 400, path
        flags = {r["path"]: r["response_flags"] for r in proxy.records(10) if r["path"]}
        assert flags["/elsewhere"] == "NR"
    one.close()
    two.close()


def test_connect_is_refused():
    with proxied(echo) as (proxy, upstream):
        client = proxy.client()
        client.send(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n")
        assert status_of(client.answer()[0]) == 501
        assert upstream.all_bytes() == b""


@pytest.mark.parametrize("data,status", [
    (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
    (b"\x16\x03\x01\x02\x00\x01", 400),
    (b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
])
def test_malformed_requests_get_their_status_and_a_record(data, status):
    with proxied(echo) as (proxy, upstream):
        client = proxy.client()
        client.send(data)
        head, _ = client.answer()
        assert status_of(head) == status
        assert parse_fields(head)[b"connection"] == b"close"
        client.finish()
        assert client.read_to_end() == b""
        assert proxy.records(1)[0]["response_code"] == status
        assert upstream.all_bytes() == b""


# --- connections ---

def test_pipelined_requests_are_answered_in_order():
    with proxied(echo) as (proxy, _):
        client = proxy.client()
        client.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % i for i in range(50)))
        for i in range(50):
            assert client.answer()[1].startswith(b"GET /%d " % i)


def test_pipelined_requests_before_a_fin_are_all_answered():
    with proxied(echo) as (proxy, _):
        client = proxy.client()
        client.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % i for i in range(5))
                    + b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        client.finish()
        for i in range(5):
            assert client.answer()[1].startswith(b"GET /%d " % i)
        assert client.answer()[1].startswith(b"GET /last ")
        assert client.read_to_end() == b""


def test_every_cut_of_a_request_gives_the_same():
    whole = (b"POST /cut HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
             b"3\r\nabc\r\n1;x=y\r\nd\r\n0\r\nX-T: 1\r\n\r\n")

    def script(peer):
        while True:
            head = peer.read_head()
            if not head:
                return
            body, trailers = peer.read_chunked()
            text = body + b"|" + b",".join(trailers).lower()
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
    with proxied(script) as (proxy, _):
        client = proxy.client()
        for cut in range(1, len(whole)):
            client.send(whole[:cut])
            time.sleep(0.001)  # lets the parts arrive apart mostly; whether or not, it must hold
            client.send(whole[cut:])
            assert client.answer()[1] == b"abcd|x-t: 1", cut


def test_http10_clients():
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    with proxied(answers(OK, OK, chunked)) as (proxy, upstream):
        client = proxy.client()
        client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\nHost: a\r\n\r\n")
        head, body = client.answer()
        assert parse_fields(head)[b"connection"] == b"keep-alive" and body == b"ok"
        client.send(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n")
        head, body = client.answer()
        assert body == b"ok" and client.read_to_end() == b""
        client = proxy.client()
        client.send(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n")
        head = client.read_head()
        assert b"transfer-encoding" not in parse_fields(head)
        assert client.read_to_end() == b"abc"


def test_a_host_that_speaks_http10():
    def script(peer):
        peer.read_head()
        peer.send(b"HTTP/1.0 200 OK\r\n\r\nuntil the end")
        peer.close()
    with proxied(script) as (proxy, upstream):
        client = proxy.client()
        assert client.get()[1] == b"until the end"
        assert client.get()[1] == b"until the end"
        assert len(upstream.received) == 2


def test_connections_to_hosts_are_reused():
    with proxied(echo) as (proxy, upstream):
        for _ in range(20):
            client = proxy.client()
            client.get()
            client.close()
        assert len(upstream.received) == 1


def test_connection_close_of_the_host_is_obeyed():
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    with proxied(answers(reply)) as (proxy, upstream):
        client = proxy.client()
        for _ in range(3):
            head, body = client.get()
            assert body == b"ok" and b"connection" not in parse_fields(head)
        assert len(upstream.received) == 3


def test_expect_100_continue_goes_to_the_host_and_back():
    def script(peer):
        head = peer.read_head()
        script.head = head
        peer.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = peer.read_exactly(5)
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + body)
    with proxied(script) as (proxy, _):
        client = proxy.client()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        assert status_of(client.read_head()) == 100
        client.send(b"hello")
        assert client.answer()[1] == b"hello"
    assert parse_fields(script.head)[b"expect"] == b"100-continue"


WEBSOCKET = (b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
SWITCH = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")


def test_a_websocket_is_a_tunnel_both_ways_until_either_ends_it():
    size = 3 << 20

    def script(peer):
        peer.read_head()
        peer.send(SWITCH + b"hello")
        data = peer.read_exactly(size)
        peer.send(data)
        script.ended = peer.conn.recv(1) == b""
        peer.close()
    data = os.urandom(size)
    with proxied(script) as (proxy, _):
        client = proxy.client()
        client.send(WEBSOCKET)
        head = client.read_head()
        assert status_of(head) == 101 and parse_fields(head)[b"upgrade"] == b"websocket"
        assert client.read_exactly(5) == b"hello"
        sender = threading.Thread(target=client.send, args=(data,))
        sender.start()
        assert client.read_exactly(size) == data
        sender.join()
        client.finish()
        assert client.read_to_end() == b""
        wait_for(lambda: getattr(script, "ended", False), "the FIN to reach the host")
        record = proxy.records(1)[0]
        assert record["response_code"] == 101


# --- bodies ---

def test_large_bodies_both_ways_are_the_same_bytes():
    size = 20 << 20

    def script(peer):
        head = peer.read_head()
        fields = parse_fields(head)
        body = peer.read_body(head)
        digest = hashlib.sha256(body).hexdigest().encode()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Sum: %s\r\n\r\n" % digest)
        for i in range(0, len(body), 100_000):
            part = body[i:i + 100_000]
            peer.send(b"%x\r\n%s\r\n" % (len(part), part))
        peer.send(b"0\r\n\r\n")
    with proxied(script) as (proxy, _):
        data = os.urandom(size)
        client = proxy.client()
        sender = threading.Thread(target=client.send, args=(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size + data,))
        sender.start()
        head, body = client.answer()
        sender.join()
        assert parse_fields(head)[b"x-sum"].decode() == hashlib.sha256(data).hexdigest()
        assert body == data
        assert proxy.rss() < 64 << 20


def test_a_slow_reader_costs_one_buffer():
    size = 64 << 20

    def script(peer):
        peer.read_head()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        block = b"z" * 65536
        for _ in range(size // len(block)):
            peer.send(block)
            script.sent = getattr(script, "sent", 0) + len(block)
    with proxied(script) as (proxy, _):
        before = proxy.rss()
        slow = proxy.client(receive_buffer=4096)
        slow.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: getattr(script, "sent", 0) > 0, "the host to start")
        sent = -1
        while sent != script.sent:  # until nothing moves any more
            sent = script.sent
            time.sleep(0.3)
        assert script.sent < size
        assert proxy.rss() - before < 4 << 20 or "Sanitizer" in os.environ.get("FIREBREAK", "")
        head = slow.read_head()
        got = len(slow.buffer)
        while got < size:
            got += len(slow.conn.recv(1 << 20))
        assert got == size


class Echo:
    """Sends each byte of a body back as it comes. |gate|: waits for it once it has read |pause| bytes."""

    def __init__(self, size, gate, pause):
        self.size, self.gate, self.pause = size, gate, pause
        self.moved = 0

    def __call__(self, peer):
        peer.conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        peer.read_head()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % self.size)
        data = bytes(peer.buffer)
        while True:
            peer.send(data)
            self.moved += len(data)
            if self.moved == self.size:
                return
            if self.moved >= self.pause:
                self.gate.wait(PATIENCE)
            data = peer.conn.recv(65536)
            if not data:
                return


@pytest.mark.parametrize("slow", ["client", "host", "both"])
def test_an_echo_of_100_mb_waits_for_the_slow_side_and_is_held_by_nobody(slow):
    block = os.urandom(1 << 20)
    size = 100 * len(block)
    most = (32 if "asan" in FIREBREAK or "tsan" in FIREBREAK else 4) << 20  # sanitizers hoard
    go = threading.Event()
    echo = Echo(size, go, size if slow == "client" else 3 << 20)
    with proxied(echo) as (proxy, _):
        before = proxy.rss()
        client = proxy.client(receive_buffer=65536)
        sent, got, digest = [0], [0], hashlib.sha256()

        def send():
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size)
            for _ in range(100):
                client.send(block)
                sent[0] += len(block)

        def receive():
            head = client.read_head()
            assert status_of(head) == 200
            data = bytes(client.buffer) or client.conn.recv(65536)
            while data:
                digest.update(data)
                got[0] += len(data)
                if got[0] == size:
                    return
                if slow != "host" and got[0] > 1 << 20:
                    go.wait(PATIENCE)
                data = client.conn.recv(65536)

        threads = [threading.Thread(target=f) for f in (send, receive)]
        for t in threads:
            t.start()
        seen, still = None, 0
        while still < 30:  # until nothing moves any more
            now = (sent[0], got[0], echo.moved, proxy.stat("http.web.downstream_cx_rx_bytes_total"),
                   proxy.stat("http.web.downstream_cx_tx_bytes_total"))
            seen, still = now, still + 1 if now == seen and got[0] > 0 else 0
            time.sleep(0.01)
        assert max(seen) < size // 2
        assert proxy.rss() - before < most
        go.set()
        for t in threads:
            t.join()
        assert got[0] == size
        assert digest.digest() == hashlib.sha256(block * 100).digest()
        assert proxy.rss() - before < most
        record = proxy.records(1)[0]
        assert (record["bytes_received"], record["bytes_sent"], record["response_flags"]) == (size, size, "-")


def test_a_cut_answer_never_looks_whole():
    def cut_length(peer):
        peer.read_head()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        peer.close()

    def cut_chunks(peer):
        peer.read_head()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        peer.close()
    for script in (cut_length, cut_chunks):
        for version in (b"1.1", b"1.0"):
            with proxied(script) as (proxy, _):
                client = proxy.client()
                client.send(b"GET / HTTP/" + version + b"\r\nHost: a\r\n\r\n")
                with pytest.raises((EOFError, ConnectionResetError)):
                    head, body = client.answer()
                    client.read_to_end()
                    raise AssertionError(f"looked whole: {head} {body}")
                assert proxy.records(1)[0]["response_flags"] == "UC"


# --- failures ---

def test_the_reuse_race_is_unseen_for_a_get_and_told_for_a_post():
    """The host closes each connection on its second request, as if it had just timed out."""
    def script(peer):
        head = peer.read_head()
        peer.read_body(head)
        peer.send(OK)
        head = peer.read_head()
        peer.reset()
    with proxied(script) as (proxy, upstream):
        client = proxy.client()
        assert status_of(client.get()[0]) == 200
        assert status_of(client.get()[0]) == 200
        body = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
        client.send(body)
        head, text = client.answer()
        assert status_of(head) == 503 and b"connection termination" in text
        put = b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
        client.send(put)
        assert status_of(client.answer()[0]) == 200
        client.send(put)
        assert status_of(client.answer()[0]) == 200
        flags = [r["response_flags"] for r in proxy.records(5)]
        assert flags == ["-", "-", "UC", "-", "-"]
        assert [len(r["attempts"]) for r in proxy.records(5)] == [1, 2, 1, 1, 2]
        assert b"hi" in upstream.all_bytes()


def free_port():
    """A port that refuses: bound once, then given back."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        return "127.0.0.1:%d" % s.getsockname()[1]


def test_a_dead_host_is_not_seen_by_callers():
    good = Upstream(echo)
    with Proxy(to=[free_port(), good.address]) as proxy:
        client = proxy.client()
        for _ in range(60):
            assert status_of(client.get()[0]) == 200
    good.close()


def test_all_hosts_dead_is_503_uf_and_one_stays_in():
    with Proxy(to=[free_port(), free_port()]) as proxy:
        client = proxy.client()
        for _ in range(10):
            head, body = client.get()
            assert status_of(head) == 503
            assert b"remote connection failure" in body
        assert {r["response_flags"] for r in proxy.records(10)} == {"UF"}


def test_a_host_that_says_nonsense_is_502_upe():
    with proxied(answers(b"SSH-2.0-nonsense\r\n\r\n")) as (proxy, _):
        assert status_of(proxy.client().get()[0]) == 502
        assert proxy.records(1)[0]["response_flags"] == "UPE"


def test_an_endless_head_of_a_host_is_502():
    def script(peer):
        peer.read_head()
        peer.send(b"HTTP/1.1 200 OK\r\n")
        while True:
            peer.send(b"X-Filler: " + b"y" * 1000 + b"\r\n")
    with proxied(script) as (proxy, _):
        assert status_of(proxy.client().get()[0]) == 502


def silent(peer):
    peer.read_head()
    peer.conn.recv(1)


@pytest.mark.parametrize("route,flag,status", [
    ("timeout: 200ms", "UT", 504),
    ("timeout: 5s\nperTryTimeout: 200ms", "UT", 504),
    ("timeout: 5s\nidleTimeout: 200ms", "SI", 504),
])
def test_timeouts_of_a_silent_host(route, flag, status):
    upstream = Upstream(silent)
    with Proxy(config=config([upstream], route=route)) as proxy:
        client = proxy.client()
        assert status_of(client.get()[0]) == status
        record = proxy.records(1)[0]
        assert record["response_flags"] == flag
        assert 190 <= record["duration"] < 2000
    upstream.close()


@pytest.mark.parametrize("listener,sent,status", [
    ("headTimeout: 200ms", b"GET / HTTP/1.1\r\nHost", 408),
    ("bodyTimeout: 200ms", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc", 408),
])
def test_timeouts_of_a_slow_client(listener, sent, status):
    upstream = Upstream(silent)
    with Proxy(config=config([upstream], listener=listener)) as proxy:
        client = proxy.client()
        client.send(sent)
        assert status_of(client.answer()[0]) == status
        assert proxy.records(1)[0]["response_code"] == status
    upstream.close()


def test_an_idle_client_is_closed_without_a_word():
    upstream = Upstream(echo)
    with Proxy(config=config([upstream], listener="idleTimeout: 200ms")) as proxy:
        client = proxy.client()
        assert client.read_to_end() == b""
        client = proxy.client()
        client.get()
        assert client.read_to_end() == b""
    upstream.close()


def test_a_client_that_leaves_takes_its_attempt_with_it():
    gone = threading.Event()

    def script(peer):
        peer.read_head()
        if peer.conn.recv(1) == b"":
            gone.set()
    with proxied(script) as (proxy, _):
        client = proxy.client()
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: proxy.stat("cluster.backend.upstream_rq_active") == 1, "the attempt")
        client.close()
        assert gone.wait(5)
        record = proxy.records(1)[0]
        assert (record["response_flags"], record["response_code"]) == ("DC", 0)


def test_a_client_that_said_close_may_close_its_half_and_wait():
    with proxied(echo) as (proxy, _):
        client = proxy.client()
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        client.finish()
        assert status_of(client.answer()[0]) == 200
        assert client.read_to_end() == b""


def test_a_body_over_the_limit_is_413():
    upstream = Upstream(answers(OK))
    with Proxy(config=config([upstream], listener="limits: { bodyBytes: 10 }")) as proxy:
        client = proxy.client()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n")
        assert status_of(client.answer()[0]) == 413
        client = proxy.client()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n")
        assert status_of(client.answer()[0]) == 413
        client = proxy.client()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789")
        assert status_of(client.answer()[0]) == 200
    upstream.close()


# --- limits and ejection ---

def held(release):
    def script(peer):
        while True:
            head = peer.read_head()
            if not head:
                return
            release.wait(20)
            peer.send(OK)
    return script


def burst(proxy, n):
    clients = [proxy.client() for _ in range(n)]
    for c in clients:
        c.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    return clients


@pytest.mark.multiworker
@pytest.mark.parametrize("workers", [1, 4])
def test_max_connections_makes_requests_wait_and_never_fails_them(workers):
    release = threading.Event()
    upstream = Upstream(held(release))
    limits = "trafficPolicy: { connectionPool: { tcp: { maxConnections: 2 } } }"
    with Proxy(config=config([upstream], cluster=limits, workers=workers)) as proxy:
        clients = burst(proxy, 12)
        wait_for(lambda: proxy.stat("cluster.backend.upstream_rq_pending_active") == 10, "ten to wait")
        assert proxy.stat("cluster.backend.upstream_cx_active") == 2
        assert proxy.stat("cluster.backend.upstream_cx_overflow") >= 10
        release.set()
        assert [status_of(c.answer()[0]) for c in clients] == [200] * 12
    upstream.close()


def test_the_pending_limit_refuses_what_is_beyond_it():
    release = threading.Event()
    upstream = Upstream(held(release))
    limits = ("trafficPolicy: { connectionPool: { tcp: { maxConnections: 2 },"
              " http: { http1MaxPendingRequests: 3 } } }")
    with Proxy(config=config([upstream], cluster=limits)) as proxy:
        first = burst(proxy, 2)
        wait_for(lambda: proxy.stat("cluster.backend.upstream_rq_active") == 2, "two under way")
        rest = burst(proxy, 6)
        wait_for(lambda: proxy.stat("cluster.backend.upstream_rq_pending_overflow") == 3, "three refused")
        release.set()
        results = [c.answer() for c in first + rest]
        assert sorted(status_of(h) for h, _ in results) == [200] * 5 + [503] * 3
        refused = [h for h, _ in results if status_of(h) == 503]
        assert all(parse_fields(h)[b"x-envoy-overloaded"] == b"true" for h in refused)
        assert [r["response_flags"] for r in proxy.records(8)].count("UO") == 3
        assert proxy.stat("cluster.backend.outlier_detection.ejections_detected_consecutive_5xx") == 0
    upstream.close()


def test_the_request_limit_refuses_at_once():
    release = threading.Event()
    upstream = Upstream(held(release))
    limits = "trafficPolicy: { connectionPool: { http: { http2MaxRequests: 8 } } }"
    with Proxy(config=config([upstream], cluster=limits)) as proxy:
        first = burst(proxy, 8)
        wait_for(lambda: proxy.stat("cluster.backend.upstream_rq_active") == 8, "eight under way")
        rest = burst(proxy, 4)
        assert [status_of(c.answer()[0]) for c in rest] == [503] * 4
        assert proxy.stat("cluster.backend.upstream_rq_active_overflow") == 4
        release.set()
        assert [status_of(c.answer()[0]) for c in first] == [200] * 8
    upstream.close()


@pytest.mark.multiworker
@pytest.mark.parametrize("workers", [1, 3])
def test_a_host_that_fails_is_ejected_and_the_others_take_its_share(workers):
    bad = Upstream(answers(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"))
    good = [Upstream(echo) for _ in range(5)]
    with Proxy(config=config([bad, *good], workers=workers)) as proxy:
        def one():
            client = proxy.client()
            status = status_of(client.get()[0])
            client.close()
            return status
        statuses = []
        # who is picked is drawn: go on until the bad one has failed five times in a row
        wait_for(lambda: statuses.append(one()) or
                 proxy.stat("cluster.backend.outlier_detection.ejections_active") == 1, "the ejection")
        assert statuses.count(500) <= 10
        assert [one() for _ in range(60)] == [200] * 60
        assert "/failed_outlier_check" in proxy.admin("/clusters")
        assert proxy.stat("cluster.backend.membership_healthy") == 5
        assert "endpoint.ejected" in proxy.errors()
    for u in [bad, *good]:
        u.close()
