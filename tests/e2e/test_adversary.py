# SPDX-License-Identifier: Apache-2.0
"""Peers that do the unlikely thing at the worst moment."""

import contextlib
import os
import threading

import pytest

from rawpeers import OK, Proxy, Upstream, answers, config, parse_fields, proxied, status_of, wait_for

WEBSOCKET = (b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"


# --- tunnels ---

@pytest.mark.parametrize("size", [1, 3000, 16_384, 300_000])
@pytest.mark.parametrize("ends", [False, True])
def test_what_a_client_sends_behind_an_upgrade_it_did_not_wait_for_reaches_the_host(size, ends):
    data = os.urandom(size)
    go = threading.Event()

    def script(peer):
        peer.read_head()
        go.wait(20)  # the bytes and the FIN are at the proxy before the 101
        peer.send(SWITCH)
        peer.send(peer.read_exactly(size))
        if ends:
            peer.send(b"fin" if peer.conn.recv(1) == b"" else b"no!")
        peer.conn.recv(1)
    with proxied(script) as (proxy, _):
        client = proxy.client()
        sender = threading.Thread(target=lambda: (client.send(WEBSOCKET + data), ends and client.finish()))
        sender.start()
        wait_for(lambda: proxy.stat("cluster.backend.upstream_rq_active") == 1, "the request")
        if size < 16_384:
            wait_for(lambda: proxy.stat("http.web.downstream_cx_rx_bytes_total") == len(WEBSOCKET) + size,
                     "the bytes behind it")
        go.set()
        assert status_of(client.read_head()) == 101
        assert client.read_exactly(size) == data
        if ends:
            assert client.read_exactly(3) == b"fin"
        sender.join()


@pytest.mark.parametrize("who", ["client", "host"])
def test_a_tunnel_that_one_side_resets_is_reset_for_the_other(who):
    go = threading.Event()

    def script(peer):
        peer.read_head()
        peer.send(SWITCH + b"x")
        if who == "host":
            go.wait(20)
            peer.reset()
            return
        try:
            script.end = "fin" if peer.conn.recv(1) == b"" else "data"
        except ConnectionResetError:
            script.end = "reset"
    with proxied(script) as (proxy, _):
        client = proxy.client()
        client.send(WEBSOCKET)
        client.read_head()
        assert client.read_exactly(1) == b"x"
        if who == "client":
            client.reset()
            wait_for(lambda: getattr(script, "end", None), "the end to reach the host")
            assert script.end == "reset"
        else:
            go.set()
            with pytest.raises(ConnectionResetError):
                client.read_to_end()


# --- a FIN at the wrong place ---

@pytest.mark.parametrize("sent", [
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" + POST + b"Content-Length: 9\r\n\r\nabc",
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" + POST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nab",
    POST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Trailer: ha",
], ids=["length", "chunked", "trailer"])
def test_a_fin_within_a_request_is_known_at_once(sent):
    """Not only when its body's time is over."""
    release = threading.Event()

    def script(peer):
        while head := peer.read_head():
            release.wait(20)
            peer.read_body(head)
            peer.send(OK)
    with proxied(script) as (proxy, _):
        client = proxy.client()
        client.send(sent)
        wait_for(lambda: proxy.stat("cluster.backend.upstream_rq_active") == 1, "the request")
        client.finish()
        release.set()
        last = proxy.records(2 if b"GET" in sent else 1)[-1]
        assert last["method"] == "POST" and last["response_flags"] == "DC" and last["duration"] < 10_000
        assert proxy.stat("http.web.downstream_rq_active") == 0


def test_a_cut_answer_without_length_is_reset_also_for_a_client_that_has_sent_its_fin():
    """An HTTP/1.0 client takes a FIN for the end of such an answer."""
    go = threading.Event()

    def script(peer):
        peer.read_head()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        go.wait(20)
    with proxied(script) as (proxy, _):
        client = proxy.client()
        client.send(b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
        head = client.read_head()
        assert b"content-length" not in parse_fields(head)
        client.read_exactly(3)
        client.finish()
        with pytest.raises(ConnectionResetError):
            client.read_to_end()
        go.set()


# --- the pool ---

def test_a_connection_opened_for_a_client_that_left_may_die_unseen():
    """It was never used, but it was idle: the race of keep-alive is the same."""
    seen = []

    def script(peer):
        seen.append(peer)
        first = len(seen) == 1
        while head := peer.read_head():
            if first:
                peer.reset()
                return
            peer.read_body(head)
            peer.send(OK)
    with proxied(script) as (proxy, _):
        client = proxy.client()
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        client.finish()
        proxy.records(1)
        wait_for(lambda: len(seen) == 1, "the connection")
        if proxy.stat("cluster.backend.upstream_rq_total") > 0:
            pytest.skip("it was faster than the FIN")
        head, _ = proxy.client().get()
        assert status_of(head) == 200
        assert len(proxy.records(2)[1]["attempts"]) == 2


# --- clients that do not read ---

def test_a_client_that_pipelines_what_is_refused_and_never_reads_is_let_go():
    upstream = Upstream(answers(OK))
    text = config([upstream], listener="idleTimeout: 500ms").replace("pathPrefix: /", "path: /only")
    with Proxy(config=text) as proxy:
        client = proxy.client(receive_buffer=4096)
        client.conn.settimeout(0.5)
        with contextlib.suppress(OSError):
            while True:
                client.send(b"GET /none HTTP/1.1\r\nHost: a\r\n\r\n" * 1000)
        wait_for(lambda: proxy.stat("http.web.downstream_cx_active") == 0, "the client to be let go")
    upstream.close()


# --- what is counted ---

@pytest.mark.parametrize("how", ["fin", "reset", "host"])
def test_a_connection_that_ends_under_a_request_is_counted_as_such(how):
    go = threading.Event()

    def script(peer):
        peer.read_head()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        go.wait(20)
        peer.close()
    with proxied(script) as (proxy, _):
        client = proxy.client()
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        client.read_head()
        client.read_exactly(3)
        if how == "fin":
            client.finish()
        elif how == "reset":
            client.reset()
        else:
            go.set()
        wait_for(lambda: proxy.stat("http.web.downstream_cx_active") == 0, "the end")
        # As Envoy: a request whose answer is broken off has ended before its connection does.
        under_way = 0 if how == "host" else 1
        assert proxy.stat("http.web.downstream_cx_destroy_active_rq") == under_way
        assert proxy.stat("http.web.downstream_cx_destroy_remote_active_rq") == under_way
        go.set()


# --- answers nobody waited for ---

def test_an_answer_before_the_request_is_read_reaches_the_client():
    def script(peer):
        peer.send(b"HTTP/1.1 503 Full\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfull")
        peer.conn.recv(65536)
        peer.close()
    with proxied(script) as (proxy, _):
        head, body = proxy.client().get()
        assert (status_of(head), body) == (503, b"full")


def test_bytes_behind_an_answer_never_answer_the_next_request():
    def script(peer):
        while peer.read_head():
            peer.send(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
    with proxied(script) as (proxy, _):
        client = proxy.client()
        for _ in range(20):
            assert client.get()[1] == b"ok"
