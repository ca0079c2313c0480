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
