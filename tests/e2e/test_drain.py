# SPDX-License-Identifier: Apache-2.0
"""Connections and processes that end, with real sockets: nothing that had begun is cut."""

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
