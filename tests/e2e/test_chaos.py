# SPDX-License-Identifier: Apache-2.0
"""Random clients and random hosts that misbehave, at once; then everything must be given back: all
gauges at zero, one access log line a request, a clean end."""

import contextlib
import random
import socket
import threading
import time

import pytest

from rawpeers import OK, PATIENCE, Peer, Proxy, Upstream, config, status_of, wait_for

LASTS = 8  # seconds of chaos

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

LIMITS = """
trafficPolicy:
  connectionPool:
    tcp: { maxConnections: 12, connectTimeout: 500ms }
    http: { http1MaxPendingRequests: 20, http2MaxRequests: 30, idleTimeout: 1s, maxRequestsPerConnection: 7 }
  outlierDetection: { consecutive5xxErrors: 5, interval: 200ms, baseEjectionTime: 300ms, maxEjectionPercent: 50 }
"""
ROUTE = "timeout: 900ms\nperTryTimeout: 700ms\nidleTimeout: 800ms"
LISTENER = "headTimeout: 1s\nbodyTimeout: 1s\nidleTimeout: 2s\nlimits: { bodyBytes: 3MiB }"


# --- hosts ---

def whole(rng):
    """An answer, in one of the framings."""
    body = rng.randbytes(rng.choice([0, 1, 10, 1000, 100_000, 1_000_000]))
    kind = rng.randrange(4)
    if kind == 0:
        return b"HTTP/1.1 200 OK\r\n\r\n" + body, True
    if kind == 1:
        parts, at = [], 0
        while at < len(body):
            n = rng.choice([1, 7, 5000, 70_000])
            parts.append(b"%x;x=y\r\n%s\r\n" % (len(body[at:at + n]), body[at:at + n]))
            at += n
        return (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(parts)
                + b"0\r\nX-T: 1\r\n\r\n"), False
    status = rng.choice([b"200 OK", b"404 Not Found", b"500 Oh", b"503 Full"])
    close = rng.random() < 0.2
    return (b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s" %
            (status, len(body), b"Connection: close\r\n" if close else b"", body)), close


def misbehave(rng, peer, head):
    """Answers one request, more or less. False: the connection is over."""
    reply, ends = whole(rng)
    kind = rng.randrange(16)
    if kind < 6:
        with contextlib.suppress(ValueError):
            peer.read_body(head)
        if b"pgrade: websocket" in head and rng.random() < 0.8:
            peer.send(SWITCH + rng.randbytes(100))
            peer.conn.settimeout(0.5)
            with contextlib.suppress(OSError):
                for _ in range(rng.randrange(20)):
                    peer.send(peer.conn.recv(65536) or b"bye")
            ends = True
        elif b"HEAD " in head[:5]:
            peer.send(reply[:reply.index(b"\r\n\r\n") + 4])
        else:
            peer.send(reply)
    elif kind == 6:  # cut anywhere, softly or not
        peer.send(reply[:rng.randrange(len(reply))])
        ends = True
    elif kind == 7:  # before the request was read
        peer.send(reply)
    elif kind == 8:
        for _ in range(rng.randrange(1, 300)):
            peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n")
        peer.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        peer.send(reply)
    elif kind == 9:  # silence
        peer.conn.settimeout(rng.uniform(0.1, 1.5))
        peer.conn.recv(1)
        ends = True
    elif kind == 10:
        peer.send(rng.choice([b"\0" * 100, b"HTTP/1.1 banana\r\n\r\n", b"HTTP/1.1 101 No\r\n\r\n",
                              b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                              b"HTTP/1.1 200 OK\r\n" + b"a: " + b"b" * 100_000 + b"\r\n"]))
    elif kind == 11:  # more than was asked for
        peer.send(reply + OK)
    elif kind == 12:  # slowly
        for i in range(0, min(len(reply), 300), 10):
            peer.send(reply[i:i + 10])
            time.sleep(0.005)
        peer.send(reply[300:])
    elif kind == 13:
        peer.send(b"HTTP/1.1 %s\r\nContent-Length: 5\r\n\r\n" % rng.choice([b"204 No", b"304 Not", b"205 Reset"]))
    else:
        with contextlib.suppress(ValueError):
            peer.read_body(head)
        peer.send(OK)
        ends = rng.random() < 0.5  # says nothing of it
    return not ends


def bad_host(seed):
    lock, seeds = threading.Lock(), random.Random(seed)

    def script(peer):
        with lock:
            rng = random.Random(seeds.random())
        peer.conn.settimeout(2)
        if rng.random() < 0.05:
            peer.reset()
            return
        while (head := peer.read_head()) and misbehave(rng, peer, head):
            pass
        if rng.random() < 0.3:
            peer.reset()
        else:
            peer.close()
    return script


# --- clients ---

def request(rng):
    method = rng.choice([b"GET", b"GET", b"HEAD", b"POST", b"PUT", b"DELETE"])
    head = b"%s /%d HTTP/1.%d\r\nHost: a\r\n" % (method, rng.randrange(9), rng.random() < 0.85)
    if rng.random() < 0.1:
        return (b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + KEY + b"\r\n\r\n"
                + rng.randbytes(rng.choice([0, 0, 10, 100_000])))
    if rng.random() < 0.2:
        head += b"Connection: close\r\n"
    if rng.random() < 0.1:
        head += b"Connection: keep-alive\r\n"
    if method in (b"GET", b"HEAD", b"DELETE"):
        return head + b"\r\n"
    body = rng.randbytes(rng.choice([0, 1, 100, 20_000, 500_000, 4_000_000]))
    if rng.random() < 0.3:
        head += b"Expect: 100-continue\r\n"
    if rng.random() < 0.5 or b"HTTP/1.0" in head:
        return head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    step = rng.choice([1000, 60_000]) if len(body) > 100 else 1
    parts = [b"%x\r\n%s\r\n" % (len(body[i:i + step]), body[i:i + step]) for i in range(0, len(body), step)]
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(parts) + b"0\r\nX-T: 1\r\n\r\n"


def talk(rng, peer):
    """One connection's worth of what clients do."""
    for _ in range(rng.randrange(1, 6)):
        sent = b"".join(request(rng) for _ in range(rng.choice([1, 1, 1, 3])))
        kind = rng.randrange(10)
        if kind == 0:
            sent = sent[:rng.randrange(len(sent))]  # gives up at any byte
        if kind == 1:
            sent = rng.choice([b"\0\1\2\3\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
                               b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"]) + sent
        peer.send(sent)
        if kind in (0, 2):
            break
        if kind == 3:
            peer.finish()
        end = time.monotonic() + rng.uniform(0, 0.6)
        while (left := end - time.monotonic()) > 0:
            peer.conn.settimeout(left)
            if not peer.conn.recv(rng.choice([1, 100, 65536])):
                return
        if kind == 3:
            break


def mad_client(proxy, seed, until):
    rng = random.Random(seed)
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            peer = proxy.client(receive_buffer=rng.choice([None, None, 4096]))
            peer.conn.settimeout(2)
            with contextlib.suppress(TimeoutError):
                talk(rng, peer)
            if rng.random() < 0.3:
                peer.reset()
            else:
                peer.close()


# --- what must hold afterwards ---

def not_zero(proxy):
    return {n: v for n, v in proxy.stats().items()
            if n.endswith("_active") and "ejections" not in n and v != "0"}


def host_gauges(proxy):
    return [line for line in proxy.admin("/clusters").splitlines()
            if "_active::" in line and not line.endswith("::0")]


def lines_of(proxy):
    return len(proxy.log_path.read_text().splitlines()) if proxy.log_path.exists() else 0


@pytest.mark.multiworker
@pytest.mark.parametrize("seed", [1, 2])
def test_after_chaos_everything_is_given_back(seed):
    hosts = [Upstream(bad_host(seed * 100 + i)) for i in range(4)]
    hosts.append(Upstream(lambda peer: peer.reset()))
    text = config(hosts, listener=LISTENER, route=ROUTE, cluster=LIMITS, workers=2)
    with Proxy(config=text) as proxy:
        until = time.monotonic() + LASTS
        clients = [threading.Thread(target=mad_client, args=(proxy, seed * 1000 + i, until)) for i in range(24)]
        for c in clients:
            c.start()
        for c in clients:
            c.join(LASTS + PATIENCE)
            assert not c.is_alive()
        try:
            wait_for(lambda: not not_zero(proxy) and not host_gauges(proxy), "all gauges to be zero")
        except AssertionError:
            raise AssertionError(f"left: {not_zero(proxy)} {host_gauges(proxy)}") from None
        total = proxy.stat("http.web.downstream_rq_total")
        assert total > 200
        assert proxy.stat("firebreak.access_log_dropped") == 0
        wait_for(lambda: lines_of(proxy) >= total, f"{total} access log lines, not {lines_of(proxy)}")
        assert lines_of(proxy) == total
        records = proxy.records(total)
        answered = sum(r["response_code"] != 0 for r in records)
        assert proxy.stat("http.web.downstream_rq_completed") == answered
        assert {r["response_code"] for r in records} > {0, 200, 502, 503, 504}
        # and it still works
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE) as s:
            s.sendall(b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n")
            assert status_of(Peer(s).answer()[0]) == 501
    for h in hosts:
        h.close()
