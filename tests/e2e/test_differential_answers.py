# SPDX-License-Identifier: Apache-2.0
"""Answers that the proxy forwards are read by Node as they would be without the proxy.

A host gives random answers, odd but perhaps valid. Law 1: what Node reads through the proxy is what it
reads directly, or the proxy's own 502 or 503, or an error; a cut answer never looks whole. (Blanks before
a chunk extension, or bytes after the end: Node refuses them, and takes what the proxy makes of them.)
Law 2: an answer that nothing was done to, and that Node takes directly, is not refused."""

import base64
import json
import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest

import reading
from rawpeers import PATIENCE, Proxy, Upstream, config

PEER = pathlib.Path(__file__).parent / "peers" / "fetch_client.js"
FIRST, COUNT = map(int, os.environ.get("FIREBREAK_DIFFERENTIAL_SEEDS", "1:400").split(":"))

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


class Client:
    def __init__(self):
        self.process = subprocess.Popen(["node", "--no-warnings", str(PEER)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def fetch(self, port, method):
        self.process.stdin.write(json.dumps({"port": port, "method": method}).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


class Host:
    """Gives |reply| to each request and hangs up, so that every answer has an end."""

    def __init__(self):
        self.reply = b""
        self.upstream = Upstream(self._serve)
        self.port = int(self.upstream.address.rsplit(":", 1)[1])

    def _serve(self, peer):
        if peer.read_head():
            peer.send(self.reply)
            peer.finish()
            peer.read_to_end()
        peer.close()


@pytest.fixture(scope="module")
def client():
    client = Client()
    yield client
    client.close()


@pytest.fixture(scope="module")
def host():
    host = Host()
    yield host
    host.upstream.close()


@pytest.fixture(scope="module")
def proxy(host):
    # Never ejected, whatever it says: this is about bytes.
    calm = "trafficPolicy: { outlierDetection: { consecutive5xxErrors: 0, maxEjectionPercent: 0 } }"
    with Proxy(config=config([host.upstream], cluster=calm)) as proxy:
        yield proxy


DROPPED = reading.HOP_BY_HOP | {b"content-length", b"date"}


def pairs(raw):
    raw = [text.encode("latin-1") for text in raw]
    return list(zip(raw[::2], raw[1::2]))


def told(seen):
    """What counts of an answer: its end-to-end part."""
    fields = pairs(seen["rawHeaders"])
    nominated = set(reading.elements(reading.values_of(fields, b"connection"))) - reading.NOT_NOMINABLE
    return (seen["status"], seen["reason"].strip(" \t"),
            [(n, v) for n, v in fields if n.lower() not in DROPPED and n.lower() not in nominated],
            base64.b64decode(seen["body"]),
            [(n, v) for n, v in pairs(seen["rawTrailers"]) if n.lower() not in reading.NO_TRAILERS])


def is_refusal(seen):
    return seen.get("status") in (502, 503) and ("server", "firebreak") in list(
        zip(seen["rawHeaders"][::2], seen["rawHeaders"][1::2]))


def claims_a_body_it_cannot_have(reply):
    """A 1xx or 204 with a length or a coding: it has no body, whatever it says (RFC 9112 6.3)."""
    return any(re.match(rb"HTTP/1\.[01] (1\d\d|204)\b", head) and
               re.search(rb"\n(content-length|transfer-encoding)[ \t]*:", head.lower())
               for head in reply.split(b"\r\n\r\n"))


def check(client, host, proxy, reply, method):
    """Law 1 for |reply|; how it came out: "same", "repaired", "refused" or "failed"; whether
    Node takes it directly; a text."""
    host.reply = reply
    direct = client.fetch(host.port, method)
    through = client.fetch(proxy.port, method)
    what = f"{method} answered by {reply!r}\ndirect {direct}\nthrough {through}"
    if "failed" in through:
        return "failed", "failed" not in direct, what
    if is_refusal(through):
        return "refused", "failed" not in direct, what
    if direct.get("failed", "").startswith("HPE_"):
        return "repaired", False, what  # Node would not take it as it was; it takes what we make of it
    if "failed" in direct and claims_a_body_it_cannot_have(reply):
        return "repaired", False, what  # Node 18 waits for it all the same
    assert "failed" not in direct, what
    assert told(through) == told(direct), what
    return "same", True, what


STATUS = [b"200 OK", b"200 OK", b"404 Not Found", b"204 No Content", b"304 Not Modified", b"205 Reset", b"299 ",
          b"500 O\xc3\xa9", b"206 a  b", b"302 Found"]
FIELDS = [b"X-A: 1\r\n", b"Set-Cookie: a\r\n", b"Set-Cookie: b\r\n", b"x-b:2 \t\r\n", b"Server: s\r\n", b"Date: d\r\n",
          b"Connection: close\r\n", b"Connection: x-a\r\n", b"Keep-Alive: 1\r\n", b"X-Utf: \xc3\xa9\r\n"]
ODD_FIELDS = [b"Content-Length: 5, 5\r\n", b"Content-Length: 5\r\nContent-Length: 6\r\n", b"Content-Length: -1\r\n",
              b"Transfer-Encoding: gzip\r\n", b"X: a\r\n b\r\n", b"X : a\r\n", b"X: a\nY: b\r\n", b"X: a\rb\r\n",
              b"X: \x01\r\n", b"nocolon\r\n", b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"]
INTERIM = [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
           b"HTTP/1.1 102 P\r\nContent-Length: 9\r\n\r\n"]
MUTANTS = [b"\r", b"\n", b" ", b"\x00", b":", b"\r\n", b"0", b"\x80", b"\x7f"]


def chunks(rng, body):
    out = b""
    while body:
        n = rng.randint(1, len(body))
        out += rng.choice([b"%x", b"%X", b"00%x", b'%x;a="b"', b"%x ; c"]) % n + b"\r\n" + body[:n] + b"\r\n"
        body = body[n:]
    return out + b"0\r\n" + rng.choice([b"", b"", b"X-T: 1\r\n", b"X-T: 1\r\nContent-Length: 3\r\n"]) + b"\r\n"


def make_reply(rng, method):
    """The bytes, and whether anything was made wrong on purpose."""
    odd = rng.random() < 0.4
    fields = rng.sample(FIELDS, rng.randint(0, 4))
    body = bytes(rng.choice(b"ab\r\n0:\x00\xff") for _ in range(rng.randint(0, 60)))
    kind = rng.random()
    if kind < 0.4:
        fields.append(b"Content-Length: %d\r\n" % len(body))
    elif kind < 0.8:
        fields.append(b"Transfer-Encoding: chunked\r\n")
        body = chunks(rng, body)
    rng.shuffle(fields)
    if odd and rng.random() < 0.5:
        fields.insert(rng.randint(0, len(fields)), rng.choice(ODD_FIELDS))
    status = rng.choice(STATUS)
    if status[:3] in (b"204", b"304") or method == "HEAD":
        body = b""
    data = rng.choice([b"HTTP/1.1 "] * 9 + [b"HTTP/1.0 "]) + status + b"\r\n" + b"".join(fields) + b"\r\n" + body
    if b"HTTP/1.0" in data and b"ransfer-" in data:
        odd = True
    for _ in range(rng.choice([0] * 6 + [1, 2])):
        data = rng.choice(INTERIM) + data
    if odd:
        at = rng.randrange(len(data))
        data = rng.choice([data[:at] + rng.choice(MUTANTS) + data[at:], data[:at], data[:at] + data[at + 1:],
                           data[:at] + rng.choice(MUTANTS) + data[at + 1:]])
    return data, odd


def test_random_answers_are_read_alike(client, host, proxy):
    outcomes = {"same": 0, "repaired": 0, "refused": 0, "failed": 0}
    for seed in range(FIRST, FIRST + COUNT):
        rng = random.Random(seed)
        method = "HEAD" if rng.random() < 0.1 else "GET"
        reply, odd = make_reply(rng, method)
        try:
            outcome, good, what = check(client, host, proxy, reply, method)
            assert outcome == "same" or odd or not good, f"refused without need: {what}"
        except AssertionError as e:
            raise AssertionError(f"seed {seed}: {e}") from e
        outcomes[outcome] += 1
    print(f"{COUNT} answers: {outcomes}")
    assert outcomes["same"] > COUNT // 3 and outcomes["refused"] > COUNT // 20
