# SPDX-License-Identifier: Apache-2.0
"""Law 7: a cut message never looks complete, wherever it is cut, however it was framed, whatever
framing it leaves in."""

import threading

import pytest

from rawpeers import Peer, Proxy, Upstream, config, parse_fields, proxied, status_of, wait_for

ANSWERS = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello world!",
    "length of 1.0": b"HTTP/1.0 200 OK\r\nContent-Length: 12\r\n\r\nhello world!",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7\r\n world!\r\n0\r\n\r\n",
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nc\r\nhello world!\r\n0\r\nX-Sum: 1\r\n\r\n",
    "to close": b"HTTP/1.1 200 OK\r\n\r\nhello world!",
    "after a 103": b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello world!",
}


def end(peer, how):
    if how == "reset":
        peer.reset()
    else:
        peer.close()


def seen(client):
    """What a careful client makes of it: status and body, or None for an answer that is not whole."""
    try:
        head = client.read_head()
        while head.startswith(b"HTTP/1.1 103"):
            head = client.read_head()
        if not head:
            return None
        return status_of(head), client.read_body(head)
    except (EOFError, ConnectionResetError):
        return None


@pytest.mark.parametrize("how", ["fin", "reset"])
@pytest.mark.parametrize("version", [b"1.1", b"1.0", b"1.0 keep-alive"])
@pytest.mark.parametrize("framing", list(ANSWERS))
def test_an_answer_cut_at_any_byte(framing, version, how):
    answer, cuts = ANSWERS[framing], []

    def script(peer):
        peer.read_head()
        peer.send(answer[:cuts[-1]])
        go.wait(20)
        end(peer, how)
    upstream = Upstream(script)
    text = config([upstream], cluster="trafficPolicy: { outlierDetection: { consecutive5xxErrors: 0,"
                                      " consecutiveLocalOriginFailures: 0 } }")
    extra = b"Connection: keep-alive\r\n" if b" " in version else b""
    body_at = answer.rindex(b"OK\r\n") + answer[answer.rindex(b"OK\r\n"):].index(b"\r\n\r\n") + 4
    with Proxy(config=text) as proxy:
        for cut in range(len(answer)):
            go = threading.Event()
            cuts.append(cut)
            client = proxy.client()
            client.send(b"GET / HTTP/" + version[:3] + b"\r\nHost: a\r\n" + extra + b"\r\n")
            while cut >= body_at and b" 200 " not in client.buffer:
                assert client._more()  # the cut comes when the part before it was passed on
            go.set()
            got = seen(client)
            if framing == "to close" and how == "fin" and cut >= body_at:
                assert got == (200, answer[body_at:cut]), cut
            elif cut >= body_at:
                assert got is None, (cut, got)
            else:
                assert got is not None and got[0] in (502, 503), (cut, got)
            client.close()
    upstream.close()


UPLOADS = {
    "length": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\nhello world!",
    "length of 1.0": b"POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 12\r\n\r\nhello world!",
    "chunked": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7\r\n world!\r\n0\r\n\r\n",
    "trailers": b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nc\r\nhello world!\r\n0\r\nX-Sum: 1\r\n\r\n",
}


@pytest.mark.parametrize("how", ["fin", "reset"])
@pytest.mark.parametrize("framing", list(UPLOADS))
def test_a_request_cut_at_any_byte(framing, how):
    upload, whole = UPLOADS[framing], []

    def script(peer: Peer):
        while head := peer.read_head():
            whole.append((head, peer.read_body(head)))
            assert b"chunked" in parse_fields(head).get(b"transfer-encoding", b"chunked")
            peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")
    head_len = upload.index(b"\r\n\r\n") + 4
    with proxied(script) as (proxy, upstream):
        for cut in range(len(upload)):
            client = proxy.client()
            client.send(upload[:cut])
            end(client, how)
        records = proxy.records(len(upload) - head_len)
        wait_for(lambda: proxy.stat("http.web.downstream_cx_active") == 0, "all to be gone")
        wait_for(lambda: proxy.stat("cluster.backend.upstream_rq_active") == 0, "all attempts to be over")
        assert {r["response_flags"] for r in records} == {"DC"}
        client = proxy.client()
        client.send(upload)
        assert status_of(client.read_head()) == 204
        assert [b for _, b in whole] == [b"hello world!"]
