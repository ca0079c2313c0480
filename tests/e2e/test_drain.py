# SPDX-License-Identifier: Apache-2.0
"""Connections and processes that end, with real sockets: nothing that had begun is cut."""

import base64
import os
import signal
import threading

import pytest

import rawpeers
from rawpeers import wait_for


def serve(peer):
    while peer.read_head():
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def aged(age):
    up = rawpeers.Upstream(serve)
    return up, rawpeers.Proxy(config=rawpeers.config([up], listener=f"maxConnectionAge: {age}"))


def closing(answer):
    return rawpeers.parse_fields(answer[0]).get(b"connection") == b"close"


def test_a_client_that_comes_again_and_again_is_told_at_its_connections_age():
    up, proxy = aged("500ms")
    with proxy:
        client = proxy.client()

        def told():
            client.send(GET)
            answer = client.answer()
            assert answer[1] == b"ok"
            return closing(answer)

        wait_for(told, "connection: close")
        assert client.read_to_end() == b""
        assert proxy.stat("http.web.downstream_cx_max_duration_reached") == 1
        assert proxy.stat("http.web.downstream_cx_drain_close") == 0
    up.close()


def test_an_idle_client_is_closed_at_its_connections_age():
    up, proxy = aged("500ms")
    with proxy:
        client = proxy.client()
        client.send(GET)
        assert client.answer()[1] == b"ok"
        assert client.read_to_end() == b""
        assert proxy.stat("http.web.downstream_cx_max_duration_reached") == 1
        assert proxy.stat("http.web.downstream_cx_idle_timeout") == 0
    up.close()


def test_skip_exit_drains_connections_and_leaves_the_process_serving():
    up = rawpeers.Upstream(serve)
    with rawpeers.Proxy(config=rawpeers.config([up], workers=2)) as proxy:
        idle, busy = proxy.client(), proxy.client()
        for client in (idle, busy):
            assert not closing(client.get())
        assert proxy.admin("/drain_listeners?skip_exit", "POST") == "skip_exit requires graceful\n"
        assert not closing(busy.get())
        assert proxy.admin("/drain_listeners?graceful&skip_exit", "POST") == "OK\n"
        wait_for(lambda: closing(busy.get()), "connection: close")
        assert busy.read_to_end() == b""
        assert idle.read_to_end() == b""  # it never asked again
        for _ in range(8):  # new ones are served, by both workers, once each
            fresh = proxy.client()
            head, body = fresh.get()
            assert body == b"ok" and closing((head, body))
            assert fresh.read_to_end() == b""
        assert proxy.admin("/ready") == "DRAINING\n"
        wait_for(lambda: proxy.stat("server.total_connections") == 0, "no connection")
        assert proxy.process.poll() is None
        proxy.admin("/drain_listeners", "POST")
        wait_for(lambda: proxy.process.poll() is not None, "the end")
    up.close()


# --- drained in the midst of it ---

class Host:
    """Answers by path; what is to hang hangs until |go|."""

    def __init__(self):
        self.go = threading.Event()
        self.failed = threading.Event()
        self.upstream = rawpeers.Upstream(self.script)

    def script(self, peer):
        while head := peer.read_head():
            getattr(self, head.split(b" ")[1][1:].decode())(peer, head)

    def quick(self, peer, head):
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcdef")

    def slow(self, peer, head):
        self.go.wait(rawpeers.PATIENCE)
        self.quick(peer, head)

    def half(self, peer, head):
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc")
        self.go.wait(rawpeers.PATIENCE)
        peer.send(b"def")

    def upload(self, peer, head):
        assert peer.read_body(head) == b"x" * 50_000
        self.quick(peer, head)

    def fails(self, peer, head):
        if not self.failed.is_set():
            self.failed.set()
            peer.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
        else:
            self.slow(peer, head)

    def tunnel(self, peer, head):
        peer.send(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        while data := bytes(peer.buffer) or peer.conn.recv(65536):
            peer.buffer.clear()
            peer.send(data)
        peer.close()


def terminate(proxy):
    proxy.process.send_signal(signal.SIGTERM)


def shed(proxy):
    assert proxy.admin("/drain_listeners?graceful&skip_exit", "POST") == "OK\n"


def unlist(proxy):
    """The listener is no longer configured; another one is."""
    path = next(a for a in proxy.process.args if str(a).endswith(".yaml"))
    with open(path) as f:
        text = f.read()
    with open(path, "w") as f:
        f.write(text.replace("name: web", "name: another"))
    assert proxy.admin("/reload", "POST") == "OK\n"


class Drained:
    """A proxy with one worker, and a client of it; drain() returns when the worker drains."""

    def __init__(self, how, extra="", cluster=""):
        self.host = Host()
        text = extra + rawpeers.config([self.host.upstream], cluster=cluster,
                                       route="retry: { on: [5xx], backoff: { base: 1s, max: 1s } }")
        self.how = how
        self.proxy = rawpeers.Proxy(config=text)
        self.client = self.proxy.client()
        self.probe = self.proxy.client()
        assert not closing(self.probe.get("/quick"))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.host.go.set()
        self.proxy.stop()
        self.host.upstream.close()

    def drain(self):
        self.how(self.proxy)
        wait_for(lambda: closing(self.probe.get("/quick")), "the worker to drain")
        assert self.probe.read_to_end() == b""

    def ask(self, path, method=b"GET", fields=b""):
        self.client.send(method + b" /" + path + b" HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n")

    def under_way(self, count=1):
        wait_for(lambda: self.proxy.stat("cluster.backend.upstream_rq_active") == count, "the request at the host")

    def last_answer(self):
        head, body = self.client.answer()
        assert rawpeers.status_of(head) == 200 and body == b"abcdef"
        assert closing((head, body))
        self.end()

    def end(self):
        """Nothing more comes; and a process that was to end ends by itself."""
        assert self.client.read_to_end() == b""
        if self.how is terminate:
            assert self.proxy.process.wait(rawpeers.PATIENCE) == 0
        else:
            wait_for(lambda: self.proxy.stat("server.total_connections") == 0, "no connection")
            assert self.proxy.process.poll() is None


EVERY_DRAIN = pytest.mark.parametrize("how", [terminate, shed, unlist], ids=lambda f: f.__name__)


@EVERY_DRAIN
def test_drained_while_idle(how):
    with Drained(how) as d:
        assert not closing(d.client.get("/quick"))
        d.drain()
        d.end()


@EVERY_DRAIN
def test_drained_before_a_first_request(how):
    with Drained(how) as d:
        d.drain()
        d.ask(b"quick")
        d.last_answer()


@EVERY_DRAIN
@pytest.mark.parametrize("cut", [1, 20, -2])
def test_drained_in_the_midst_of_a_head(how, cut):
    head = b"GET /quick HTTP/1.1\r\nHost: x\r\n\r\n"
    with Drained(how) as d:
        d.client.send(head[:cut])
        d.drain()
        d.client.send(head[cut:])
        d.last_answer()


@EVERY_DRAIN
@pytest.mark.parametrize("chunked", [False, True])
def test_drained_in_the_midst_of_an_upload(how, chunked):
    first, second = b"x" * 20_000, b"x" * 30_000
    fields = b"Transfer-Encoding: chunked\r\n" if chunked else b"Content-Length: 50000\r\n"
    if chunked:
        first, second = b"4e20\r\n" + first + b"\r\n", b"7530\r\n" + second + b"\r\n0\r\n\r\n"
    with Drained(how) as d:
        d.ask(b"upload", b"POST", fields)
        d.client.send(first)
        d.under_way()
        d.drain()
        d.client.send(second)
        d.last_answer()


@EVERY_DRAIN
def test_drained_while_the_host_works(how):
    with Drained(how) as d:
        d.ask(b"slow")
        d.under_way()
        d.drain()
        d.host.go.set()
        d.last_answer()


@EVERY_DRAIN
def test_drained_while_waiting_for_a_connection(how):
    cluster = "trafficPolicy: { connectionPool: { tcp: { maxConnections: 2 } } }"
    with Drained(how, cluster=cluster) as d:
        others = [d.proxy.client() for _ in range(2)]
        for other in others:
            other.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        d.under_way(2)
        d.ask(b"quick")
        wait_for(lambda: d.proxy.stat("cluster.backend.upstream_rq_pending_active") == 1, "it to wait")
        d.how(d.proxy)  # the probe would wait, too
        wait_for(lambda: "draining" in d.proxy.errors() or how is not terminate, "the drain")
        assert d.proxy.admin("/ready") == ("LIVE\n" if how is unlist else "DRAINING\n")
        d.host.go.set()
        for peer in (*others, d.client):
            assert peer.answer()[1] == b"abcdef"
        d.probe.close()
        d.end()


@EVERY_DRAIN
def test_drained_in_a_back_off(how):
    with Drained(how) as d:
        d.ask(b"fails")
        assert d.host.failed.wait(rawpeers.PATIENCE)
        d.drain()
        d.host.go.set()
        d.last_answer()


@EVERY_DRAIN
def test_drained_in_the_midst_of_an_answer(how):
    with Drained(how) as d:
        d.ask(b"half")
        head = d.client.read_head()
        assert not closing((head, b""))
        assert d.client.read_exactly(3) == b"abc"
        d.drain()
        d.host.go.set()
        assert d.client.read_exactly(3) == b"def"
        d.end()  # its head had not said so: it is closed as an idle one


@EVERY_DRAIN
def test_drained_in_the_midst_of_an_answer_a_client_may_still_ask_once(how):
    with Drained(how) as d:
        d.ask(b"half")
        d.client.read_head()
        d.drain()
        d.host.go.set()
        assert d.client.read_exactly(6) == b"abcdef"
        d.ask(b"quick")
        d.last_answer()


@EVERY_DRAIN
def test_a_tunnel_goes_on_until_one_side_ends_it(how):
    with Drained(how) as d:
        key = base64.b64encode(os.urandom(16))
        d.ask(b"tunnel", fields=b"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
              b"Sec-WebSocket-Key: " + key + b"\r\n")
        assert rawpeers.status_of(d.client.read_head()) == 101
        d.client.send(b"before")
        assert d.client.read_exactly(6) == b"before"
        d.drain()
        for i in range(10):
            data = os.urandom(10_000)
            d.client.send(data)
            assert d.client.read_exactly(len(data)) == data
        d.client.finish()
        d.end()


def test_what_takes_longer_than_drain_timeout_is_cut():
    with Drained(terminate, extra="drainTimeout: 500ms\n") as d:
        d.ask(b"half")
        assert d.client.read_head() and d.client.read_exactly(3) == b"abc"
        terminate(d.proxy)
        with pytest.raises(ConnectionResetError):
            d.client.read_to_end()
        assert d.proxy.process.wait(rawpeers.PATIENCE) == 0
        record = next(r for r in d.proxy.records(2) if r["path"] == "/half")
        assert (record["response_flags"], record["response_code_details"]) == ("LR", "drain_timeout")
