# SPDX-License-Identifier: Apache-2.0
"""Helpers of the end-to-end tests: processes of firebreak on free ports of loopback, conditions
that are waited for with a deadline, and an HTTP client on a raw socket that shows what really came.

The binary is $FIREBREAK, else build/firebreak of this checkout.
"""
import contextlib
import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATIENCE = float(os.environ.get("FIREBREAK_TEST_PATIENCE", "20"))  # seconds; slow machines set more


def binary():
    return os.environ.get("FIREBREAK", os.path.join(ROOT, "build", "firebreak"))


def wait_for(condition, what="the condition", within=None):
    """Calls condition until it is true; its value. AssertionError after |within| seconds."""
    deadline = time.monotonic() + (PATIENCE if within is None else within)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not in time: {what}")
        time.sleep(0.01)


def parse_address(text):
    """ "127.0.0.1:80" or "[::1]:80" as (host, port)."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def show_address(address):
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Process:
    """A firebreak process. What it prints is collected; stop() ends it and checks how."""

    def __init__(self, *args, env=None, descriptors=None, ignore=None):
        def prepare():
            if descriptors is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
            if ignore is not None:
                signal.signal(ignore, signal.SIG_IGN)

        self.args = [binary(), *map(str, args)]
        self.popen = subprocess.Popen(self.args, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})},
                                      preexec_fn=prepare if descriptors or ignore else None)
        self.out = []
        self.err = []
        self._threads = [threading.Thread(target=self._collect, args=(s, lines), daemon=True)
                         for s, lines in ((self.popen.stdout, self.out),
                                          (self.popen.stderr, self.err))]
        for t in self._threads:
            t.start()

    @staticmethod
    def _collect(stream, lines):
        for line in stream:
            lines.append(line.decode(errors="replace").rstrip("\n"))

    def __str__(self):
        said = "\n".join(["  stdout:"] + self.out[-20:] + ["  stderr:"] + self.err[-40:])
        return f"{' '.join(self.args[1:])} (exit {self.popen.poll()})\n{said}"

    @property
    def pid(self):
        return self.popen.pid

    def running(self):
        return self.popen.poll() is None

    def wait_line(self, pattern, lines=None, within=None):
        """The match of the first line of stdout (or |lines|) that fits."""
        lines = self.out if lines is None else lines

        def found():
            for line in list(lines):
                m = re.search(pattern, line)
                if m:
                    return m
            if not self.running():
                for t in self._threads:
                    t.join(1)
                for line in list(lines):
                    m = re.search(pattern, line)
                    if m:
                        return m
                raise AssertionError(f"it ended without saying {pattern!r}: {self}")
            return None

        return wait_for(found, f"{pattern!r} from {self}", within)

    def signal(self, number):
        self.popen.send_signal(number)

    def wait(self, within=None):
        """Its exit code."""
        try:
            code = self.popen.wait(PATIENCE if within is None else within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end: {self}") from None
        for t in self._threads:
            t.join(5)
        return code

    def kill(self):
        if self.running():
            self.popen.kill()
        self.popen.wait()

    def stop(self, within=None):
        """TERM; its exit code, which for all our processes should be 0."""
        if self.running():
            self.signal(signal.SIGTERM)
        return self.wait(within)

    def hurry(self):
        """What makes stop() quick."""

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.kill()
            return
        running = self.running()
        if running:
            self.hurry()
        code = self.stop()
        if running:
            assert code == 0, f"exit code {code} after TERM: {self}"
        assert not self.sanitizer_report(), str(self)

    def sanitizer_report(self):
        return any("Sanitizer" in l or "runtime error" in l for l in self.err)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def memory(self):
        """Resident bytes."""
        with open(f"/proc/{self.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Backend(Process):
    """firebreak backend with |count| servers at free ports and a control address."""

    def __init__(self, count=1, *args, **keys):
        super().__init__("backend", "--listen", "127.0.0.1:0", "--count", count,
                         "--control", "127.0.0.1:0", *args, **keys)
        self.control = parse_address(self.wait_line(r"^control (.*)$").group(1))
        self.servers = [parse_address(l.split()[1]) for l in self.out
                        if l.startswith("listening ")]
        assert len(self.servers) == count, str(self)

    @property
    def address(self):
        return self.servers[0]

    def to(self):
        """For --to."""
        return ",".join(show_address(a) for a in self.servers)

    def fault(self, fault, **keys):
        keys = {k.rstrip("_"): v for k, v in keys.items()}
        answer = request(self.control, "POST", "/fault", body=json.dumps({"fault": fault, **keys}))
        assert answer.status == 200, answer
        return answer.json()

    def clear(self):
        answer = request(self.control, "DELETE", "/fault")
        assert answer.status == 200, answer

    def stats(self, server=0):
        return request(self.control, "GET", "/stats").json()["servers"][server]


class Proxy(Process):
    """firebreak run, at free ports. proxy.address is where clients go, proxy.admin the pages."""

    def __init__(self, *args, env=None):
        super().__init__("run", *args, env=env)
        self.listeners = {}
        self.admin = None
        if not ("--admin" in args and "off" in args):
            self.admin = parse_address(self.wait_line(r"^admin (\S+)$").group(1))
        else:
            self.wait_line(r"^listening \S+ (\S+)$")
        for line in self.out:
            m = re.match(r"listening (\S+) (\S+)$", line)
            if m:
                self.listeners[m.group(1)] = parse_address(m.group(2))

    @classmethod
    def to(cls, addresses, *args):
        """firebreak run --to for a list of (host, port)."""
        return cls("--to", ",".join(show_address(a) for a in addresses),
                   "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", *args)

    def hurry(self):
        """The first INT drains, the next ends it at once."""
        deadline = time.monotonic() + PATIENCE
        while self.running() and time.monotonic() < deadline:
            self.signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(0.02)

    @property
    def address(self):
        return next(iter(self.listeners.values()))

    def page(self, target):
        """An admin page, which must answer 200."""
        answer = request(self.admin, "GET", target)
        assert answer.status == 200, answer
        return answer

    def stat(self, name):
        """The value of one counter or gauge of /stats."""
        for line in self.page("/stats").text().splitlines():
            key, _, value = line.partition(": ")
            if key == name:
                return int(value)
        raise KeyError(name)

    def hosts(self, cluster=None):
        """host_statuses of a cluster (the first one) by "host:port"."""
        clusters = self.page("/clusters?format=json").json()["cluster_statuses"]
        chosen = [c for c in clusters if cluster in (None, c["name"])][0]
        hosts = {}
        for h in chosen["host_statuses"]:
            s = h["address"]["socket_address"]
            hosts[f"{s['address']}:{s['port_value']}"] = h
        return hosts


def firebreak(*args, input=None, within=None):
    """Runs to its end: (exit code, stdout, stderr)."""
    done = subprocess.run([binary(), *map(str, args)], capture_output=True, input=input,
                          timeout=PATIENCE if within is None else within)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Sanitizer" not in err, err
    return done.returncode, out, err


class Answer:
    """An HTTP answer as it came. |complete| tells whether it was whole by its own framing."""

    def __init__(self, status, reason, fields, body, complete, raw, interim=()):
        self.status = status
        self.reason = reason
        self.fields = fields  # [(name in lower case, value)]
        self.body = body
        self.complete = complete
        self.raw = raw
        self.interim = list(interim)  # statuses of 1xx before it

    def field(self, name, default=None):
        for n, v in self.fields:
            if n == name.lower():
                return v
        return default

    def text(self):
        return self.body.decode()

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.fields} {self.body[:200]!r} complete={self.complete}>"


class Closed(Exception):
    """The peer closed or reset before an answer was whole; |data| is what came."""

    def __init__(self, data, reset):
        super().__init__(f"{'reset' if reset else 'closed'} after {data!r}")
        self.data = data
        self.reset = reset


class Connection:
    """A TCP connection that shows bytes."""

    def __init__(self, address, timeout=None, source=None):
        self.timeout = PATIENCE if timeout is None else timeout
        self.sock = socket.create_connection(address, self.timeout, source)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes with a RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def send(self, data):
        self.sock.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))

    def more(self):
        """Reads once into the buffer. False at the peer's FIN. ConnectionResetError passes."""
        data = self.sock.recv(65536)
        self.buffer += data
        return data != b""

    def read_all(self):
        """Everything up to FIN, or up to a reset."""
        try:
            while self.more():
                pass
        except ConnectionResetError:
            pass
        data, self.buffer = self.buffer, b""
        return data

    def closed_by_peer(self, within=None):
        """Waits for FIN ("fin") or RST ("reset"); "open" if neither comes |within| seconds."""
        self.sock.settimeout(PATIENCE if within is None else within)
        try:
            while self.more():
                pass
            return "fin"
        except ConnectionResetError:
            return "reset"
        except TimeoutError:
            return "open"
        finally:
            self.sock.settimeout(self.timeout)

    def _need(self, n=None, until=None):
        while (n is not None and len(self.buffer) < n) or (until and until not in self.buffer):
            try:
                if not self.more():
                    raise Closed(self.buffer, False)
            except ConnectionResetError:
                raise Closed(self.buffer, True) from None

    def _take(self, n):
        self._need(n)
        data, self.buffer = self.buffer[:n], self.buffer[n:]
        return data

    def _line(self):
        self._need(until=b"\r\n")
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def _head(self):
        self._need(until=b"\r\n\r\n")
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.split(b"\r\n")
        version, status, *reason = lines[0].split(b" ", 2)
        assert version.startswith(b"HTTP/1."), lines[0]
        fields = []
        for line in lines[1:]:
            name, _, value = line.partition(b":")
            fields.append((name.decode("latin-1").lower(), value.strip().decode("latin-1")))
        return int(status), b"".join(reason).decode("latin-1"), fields, head

    def _chunks(self):
        body = b""
        while True:
            size = int(self._line().split(b";")[0], 16)
            if size == 0:
                while self._line():
                    pass
                return body
            body += self._take(size)
            assert self._take(2) == b"\r\n"

    def read_answer(self, method="GET"):
        """The next final answer. Closed where it is cut; for one that ends with the connection,
        FIN is its end and a reset is not."""
        interim = []
        while True:
            status, reason, fields, raw = self._head()
            if status >= 200 or status == 101:
                break
            interim.append(status)
        get = dict(fields).get
        complete = True
        if method == "HEAD" or status in (101, 204, 304):
            body = b""
        elif "chunked" in get("transfer-encoding", ""):
            body = self._chunks()
        elif get("content-length") is not None:
            body = self._take(int(get("content-length")))
        else:
            try:
                while self.more():
                    pass
            except ConnectionResetError:
                complete = False
            body, self.buffer = self.buffer, b""
        return Answer(status, reason, fields, body, complete, raw, interim)

    def request(self, method, target, fields=(), body=None):
        """Sends a request and reads its answer."""
        self.send(compose(method, target, fields, body))
        return self.read_answer(method)


def compose(method, target, fields=(), body=None, version="HTTP/1.1"):
    """The bytes of a request. |fields|: a dict or a list of pairs; Host and Content-Length are
    added where they are missing."""
    pairs = list(fields.items()) if isinstance(fields, dict) else list(fields)
    names = {n.lower() for n, _ in pairs}
    if "host" not in names:
        pairs.insert(0, ("host", "test"))
    if body is not None and not names & {"content-length", "transfer-encoding"}:
        body = body if isinstance(body, bytes) else body.encode()
        pairs.append(("content-length", str(len(body))))
    lines = [f"{method} {target} {version}"] + [f"{n}: {v}" for n, v in pairs]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    return head + (b"" if body is None else body if isinstance(body, bytes) else body.encode())


def request(address, method, target, fields=(), body=None, timeout=None):
    """One request on a connection of its own."""
    with Connection(address, timeout) as c:
        return c.request(method, target, fields, body)


def refuses(address):
    """Whether nobody listens there."""
    try:
        socket.create_connection(address, PATIENCE).close()
        return False
    except ConnectionRefusedError:
        return True


def needs_terminal():
    """Skips the test where there are no pseudo terminals: a bare chroot has no /dev/pts."""
    try:
        for end in os.openpty():
            os.close(end)
    except OSError:
        pytest.skip("no pseudo terminals here")
