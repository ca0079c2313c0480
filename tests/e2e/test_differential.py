# SPDX-License-Identifier: Apache-2.0
"""What the proxy forwards is read alike by Node's HTTP parser.

Random requests, odd but perhaps valid, go through `firebreak run --to` to a Node server, and
straight to that server. Law 1: through the proxy Node sees just the requests that a second strict
reader (reading.py) finds in the bytes, neither more nor fewer nor others. Law 2: where Node takes
the same bytes directly, it reads the same. FIREBREAK_DIFFERENTIAL_SEEDS=first:count looks further."""

import base64
import json
import os
import pathlib
import queue
import random
import re
import shutil
import socket
import subprocess
import threading

import pytest

import reading
from rawpeers import CASES, PATIENCE, Proxy

PEER = pathlib.Path(__file__).parent / "peers" / "echo_server.js"
FIRST, COUNT = map(int, os.environ.get("FIREBREAK_DIFFERENTIAL_SEEDS", "1:600").split(":"))

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


class Node:
    """The Node server; what it saw is read off its stdout."""

    def __init__(self):
        self.process = subprocess.Popen(["node", "--no-warnings", str(PEER)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        hello = json.loads(self.process.stdout.readline())
        self.port = hello["port"]
        self.methods = {m.encode() for m in hello["methods"]}  # it refuses all others
        self.lines = queue.Queue()
        self.marks = 0
        threading.Thread(target=self._collect, daemon=True).start()

    def _collect(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def seen(self):
        """All requests since the last call: a marked one, sent last, shows that no more is to come."""
        self.marks += 1
        mark = f"/mark-{self.marks}"
        exchange(self.port, f"GET {mark} HTTP/1.1\r\nHost: mark\r\nConnection: close\r\n\r\n".encode())
        requests = []
        while True:
            request = self.lines.get(timeout=PATIENCE)
            if request["url"] == mark:
                return requests
            requests.append(request)

    def close(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


# Ends any head that is cut, and can start none: who took all before it refuses this and hangs up.
JUNK = b"\r\n\r\n\x00\r\n\r\n"


def exchange(port, data, answers=0):
    """Sends |data|; all that comes back until the peer hangs up. After |answers| of 200 a FIN is sent (a
    FIN before may be taken for a client that went away); None: never."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as s:
        got = b""
        try:
            s.sendall(data)
            open_half = answers is not None
            while True:
                if open_half and got.count(b"HTTP/1.1 200 OK\r\n") >= answers:
                    s.shutdown(socket.SHUT_WR)
                    open_half = False
                part = s.recv(65536)
                if not part:
                    return got
                got += part
        except (ConnectionResetError, BrokenPipeError):
            return got  # refused in the middle of what was sent


@pytest.fixture(scope="module")
def node():
    node = Node()
    yield node
    node.close()


@pytest.fixture(scope="module")
def proxy(node):
    with Proxy(to=[f"127.0.0.1:{node.port}"]) as proxy:
        yield proxy


# --- how Node's reading compares ---

def pairs(raw):
    raw = [text.encode("latin-1") for text in raw]
    return list(zip(raw[::2], raw[1::2]))


def told(request):
    """What Node saw through the proxy, without what the proxy writes itself."""
    fields = pairs(request["rawHeaders"])
    return reading.Request(
        method=request["method"].encode(), target=request["url"].encode("latin-1"),
        host=b"".join(v for n, v in fields if n.lower() == b"host"),
        fields=[(n, v) for n, v in fields if n.lower() not in reading.HOP_BY_HOP | reading.WRITTEN],
        body=base64.b64decode(request["body"]), trailers=pairs(request["rawTrailers"]), keep_alive=True)


def same(a, b, what):
    for name in ("method", "target", "host", "fields", "body", "trailers"):
        assert getattr(a, name) == getattr(b, name), what


def as_forwarded(request):
    """A request that Node read directly, as it would be forwarded."""
    fields = pairs(request["rawHeaders"])
    options = reading.elements(reading.values_of(fields, b"connection"))
    target, host = reading.target_of(request["method"].encode(), request["url"].encode("latin-1"),
                                     reading.values_of(fields, b"host"))
    trailers = [(n, v) for n, v in pairs(request["rawTrailers"]) if n.lower() not in reading.NO_TRAILERS]
    return reading.Request(request["method"].encode(), target, host, reading.forwarded(fields, options),
                           base64.b64decode(request["body"]), trailers, True)


def check(node, proxy, data):
    """Both laws on |data|; how many requests passed, and how many Node took directly."""
    data += JUNK
    requests, end = reading.read_requests(data)
    expected = [r for r in requests if r.method in node.methods]
    if any(r.target == b"*" for r in requests):
        return 0, 0  # about no route: the proxy answers that itself, and may hang up
    answer = exchange(proxy.port, data, len(expected) if end == "cut" else None)
    through = [told(r) for r in node.seen()]
    what = f"input {data!r}\nthrough {through}\nexpected {expected}\nanswer {answer!r}"
    assert len(through) == len(expected), what
    for got, wanted in zip(through, expected):
        same(got, wanted, what)
    assert len(re.findall(rb"HTTP/1\.1 200 OK\r\n", answer)) == len(expected), what

    exchange(node.port, data)
    direct = node.seen()
    for wanted, request in zip(requests, direct):  # what came through is as wanted, see above
        same(as_forwarded(request), wanted, f"{what}\ndirect {request}")
    return len(through), len(direct)


# --- requests, odd but perhaps valid ---

METHODS = [b"GET", b"GET", b"POST", b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"PATCH", b"PROPFIND",
           b"M-SEARCH"]
TARGETS = [b"/", b"/a", b"/a/b?c=d", b"/%41%2f%7e", b"/a/./b/../c", b"//a///b", b"/a?b=/../c", b"/?", b"/a;b=c",
           b"/%zz", b"/..", b"http://o.test/x?y", b"HTTP://o.test:81", b"https://[::1]:8/", b"a", b"/a#b",
           b"http://u@o.test/", b"/\"<>\\^`{|}"]
HOSTS = [b"h.test", b"h.test:80", b"[::1]:8080", b"H", b"", b"a b", b"u@h", b"h:99999", b"h/x", b"a_b"]
VALUES = [b"v", b"", b"a b\tc", b"\xc3\xa9\xff", b'"q, q"', b"x" * 300, b"a\x0bb", b"a: b", b"close"]
NAMES = [b"X-One", b"x-two", b"X-One", b"Accept", b"Cookie", b"X_Under", b"!odd~", b"Range", b"Via"]
ODD_LINES = [
    b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Connection: x-one, X-TWO\r\n",
    b"Connection: host, content-length, via\r\n", b"Connection: upgrade\r\nUpgrade: h2c\r\n",
    b"TE: trailers\r\n", b"Keep-Alive: 5\r\n", b"Expect: 100-continue\r\n", b"Host: second\r\n",
    b"Content-Length: 0\r\n", b"Content-Length: 3\r\n", b"Content-Length: +3\r\n", b"Content-Length: 3, 3\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding : chunked\r\n",
    b"Transfer-Encoding: chunked, chunked\r\n", b"X-Fold: a\r\n b\r\n", b"X-Bare: a\n", b"No colon\r\n",
    b": no name\r\n", b"Bad Name: x\r\n", b"X-Cr: a\rb\r\n", b"Proxy-Connection: close\r\n",
    b"Content-Length : 3\r\n", b"\tX: y\r\n", b"X-Nul: a\x00b\r\n"]
SIZES = [b"%x", b"%X", b"0%x", b"000000%x", b"%x;a", b'%x;a="b;c"', b"%x ; a = b", b"0x%x", b"%x ", b"%x;", b"+%x",
         b"%x;a\x00"]
MUTANTS = [b"\r", b"\n", b"\r\n", b" ", b"\t", b"\x00", b":", b",", b"0", b"\x80", b"\x7f", b"\r\n\r\n", b"#", b";"]


def chunked(rng, body):
    out = b""
    while body:
        n = rng.randint(1, len(body))
        size = rng.choice(SIZES[:7] if rng.random() < 0.93 else SIZES)
        out += size % n + b"\r\n" + body[:n] + b"\r\n"
        body = body[n:]
    trailers = rng.choice([b"", b"", b"X-T: 1\r\n", b"X-T:\t1 \r\nHost: evil\r\nContent-Length: 9\r\n", b"bad\r\n"])
    return out + rng.choice([b"0", b"0", b"000", b"0;x=y"]) + b"\r\n" + trailers + b"\r\n"


def framed(rng, fields):
    """Framing fields and a body that goes with them; mostly."""
    body = bytes(rng.choice(b"abc\r\n 0GET/\x00\xff") for _ in range(rng.randint(0, 40)))
    kind = rng.random()
    if kind < 0.45:
        return fields, b""
    if kind < 0.7:
        off = rng.choice([0] * 12 + [1, -1])
        fields.append(b"Content-Length: %d\r\n" % max(0, len(body) + off))
        return fields, body
    fields.append(rng.choice([b"Transfer-Encoding: chunked\r\n", b"transfer-encoding:CHUNKED \r\n"]))
    return fields, chunked(rng, body)


def request(rng):
    usual = rng.random() < 0.75
    fields = [b"Host: " + rng.choice(HOSTS[:4] if rng.random() < 0.95 else HOSTS) + b"\r\n"]
    for _ in range(rng.randint(0, 4)):
        value = rng.choice(VALUES[:6] if usual else VALUES)
        fields.append(rng.choice(NAMES) + b":" + rng.choice([b" ", b"", b"  \t"]) + value + rng.choice([b"", b" \t"]) + b"\r\n")
    fields, body = framed(rng, fields)
    if not usual:
        fields.insert(rng.randint(0, len(fields)), rng.choice(ODD_LINES))
    rng.shuffle(fields)
    target = rng.choice(TARGETS[:9] if rng.random() < 0.88 else TARGETS)
    version = rng.choice([b"HTTP/1.1"] * 18 + [b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"http/1.1"])
    lead = rng.choice([b""] * 12 + [b"\r\n", b"\r\n\r\n", b"\r\n\r\n\r\n"])
    return lead + rng.choice(METHODS) + b" " + target + b" " + version + b"\r\n" + b"".join(fields) + b"\r\n" + body


def mutated(rng, data):
    at = rng.randrange(len(data))
    kind = rng.random()
    if kind < 0.4:
        return data[:at] + rng.choice(MUTANTS) + data[at:]
    if kind < 0.7:
        return data[:at] + data[at + rng.randint(1, 4):]
    if kind < 0.9:
        return data[:at] + rng.choice(MUTANTS) + data[at + 1:]
    return data[:at]


def make_input(seed):
    rng = random.Random(seed)
    data = b"".join(request(rng) for _ in range(rng.randint(1, 4)))
    for _ in range(rng.choice([0, 0, 0, 0, 1, 2])):
        data = mutated(rng, data) or b"GET"
    return data


def test_random_requests_are_read_alike(node, proxy):
    passed = taken = refused = 0
    for seed in range(FIRST, FIRST + COUNT):
        data = make_input(seed)
        try:
            through, direct = check(node, proxy, data)
        except AssertionError as e:
            raise AssertionError(f"seed {seed}: {e}") from e
        passed, taken, refused = passed + through, taken + direct, refused + (through == 0)
    print(f"{COUNT} inputs: {passed} requests through, {taken} direct, {refused} inputs refused whole")
    # Neither all good nor all bad, or nothing was tried.
    assert passed > COUNT // 2 and taken > COUNT // 2 and refused > COUNT // 20


@pytest.mark.parametrize("path", sorted(CASES.glob("C0[01]*-client*.bin")), ids=lambda p: p.stem)
def test_the_cases_are_read_alike(node, proxy, path):
    data = path.read_bytes()
    if data.startswith(b"PRI "):
        pytest.skip("HTTP/2")
    check(node, proxy, data)


def test_the_second_reader_reads_what_it_should():
    """The judge is judged: known bytes, known readings."""
    (one, two), end = reading.read_requests(
        b"POST http://o/a/../b%7e?q HTTP/1.1\r\nHost: h\r\nX: 1\r\nConnection: x\r\nContent-Length: 2\r\n\r\nab"
        b"PUT //c HTTP/1.0\r\nhost: k\r\nY:  2 \r\n\r\n")
    assert (one.method, one.target, one.host, one.fields, one.body) == (b"POST", b"/b~?q", b"o", [], b"ab")
    assert (two.method, two.target, two.host, two.fields, two.keep_alive) == (b"PUT", b"/c", b"k", [(b"Y", b"2")], False)
    assert end == "closed"
    chunks = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2;a=\"b\"\r\nab\r\n0\r\nT: 1\r\nHost: x\r\n\r\n"
    (three,), end = reading.read_requests(chunks)
    assert (three.body, three.trailers) == (b"ab", [(b"T", b"1")])
    assert end == "cut" and reading.read_requests(chunks[:-1]) == ([], "cut")
    for bad in (b"GET / HTTP/1.1\r\n\r\n", b"GET /.. HTTP/1.1\r\nHost: h\r\n\r\n", b"GET / HTTP/1.1\nHost: h\n\n",
                chunks.replace(b"\r\n2;", b"\r\n2 "), b"GET / HTTP/1.1\r\nHost: h\r\nA : b\r\n\r\n"):
        assert reading.read_requests(bad) == ([], "refused")
