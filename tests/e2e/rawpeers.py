# SPDX-License-Identifier: Apache-2.0
"""Raw-socket peers for the end-to-end tests: an upstream that does exactly what a test says, and a
client that sees exactly what came. Loopback, ports chosen by the kernel."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "cases"
FIREBREAK = os.environ.get("FIREBREAK", str(ROOT / "build" / "firebreak"))
PATIENCE = float(os.environ.get("FIREBREAK_TEST_PATIENCE", "20"))


def wait_for(condition, what, patience=PATIENCE):
    """Waits until |condition()| is true; its value is returned."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"waited {patience} s in vain for {what}")


class Upstream:
    """Accepts connections and runs |script(conn, request_bytes_reader)| on each in a thread."""

    def __init__(self, script):
        self.script = script
        self.received = []  # all bytes, a bytearray a connection
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.connections = []
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                conn, _ = self.socket.accept()
            except OSError:
                return
            log = bytearray()
            self.received.append(log)
            self.connections.append(conn)
            threading.Thread(target=self._serve, args=(conn, log), daemon=True).start()

    def _serve(self, conn, log):
        with contextlib.suppress(OSError, EOFError):  # the proxy hung up: the test will say if it may
            self.script(Peer(conn, log))

    def all_bytes(self):
        return b"".join(bytes(r) for r in self.received)

    def close(self):
        # shutdown first: close alone does not wake accept
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for conn in self.connections:
            with contextlib.suppress(OSError):
                conn.close()


class Peer:
    """One side of a connection: buffered reads, exact writes."""

    def __init__(self, conn, log=None):
        self.conn = conn
        self.log = log if log is not None else bytearray()
        self.buffer = bytearray()
        conn.settimeout(PATIENCE)

    def _more(self):
        data = self.conn.recv(65536)
        self.log += data
        self.buffer += data
        return data

    def read_head(self):
        """Up to and with the empty line; b'' at the end of the stream."""
        while b"\r\n\r\n" not in self.buffer:
            if not self._more():
                return b""
        return self._take(self.buffer.index(b"\r\n\r\n") + 4)

    def read_exactly(self, n):
        while len(self.buffer) < n:
            if not self._more():
                raise EOFError(self.buffer)
        return self._take(n)

    def _take(self, n):
        data = bytes(self.buffer[:n])
        del self.buffer[:n]
        return data

    def read_line(self):
        while b"\r\n" not in self.buffer:
            if not self._more():
                raise EOFError(self.buffer)
        return self._take(self.buffer.index(b"\r\n") + 2)[:-2]

    def read_chunked(self):
        """The body and the trailer lines."""
        body = bytearray()
        while True:
            size = int(self.read_line(), 16)
            if size == 0:
                break
            body += self.read_exactly(size)
            assert self.read_exactly(2) == b"\r\n"
        trailers = []
        while True:
            line = self.read_line()
            if not line:
                return bytes(body), trailers
            trailers.append(line)

    def read_body(self, head, no_body=False):
        fields = parse_fields(head)
        status = int(head.split(b" ", 2)[1]) if head.startswith(b"HTTP/") else 0
        if no_body or status in (204, 304) or 100 <= status < 200:
            return b""
        if b"chunked" in fields.get(b"transfer-encoding", b""):
            return self.read_chunked()[0]
        if b"content-length" in fields:
            return self.read_exactly(int(fields[b"content-length"]))
        return b"" if not head.startswith(b"HTTP/") else self.read_to_end()

    def read_to_end(self):
        """Until FIN; a reset raises ConnectionResetError."""
        while self._more():
            pass
        return self._take(len(self.buffer))

    def send(self, data):
        self.conn.sendall(data)

    def finish(self):
        self.conn.shutdown(socket.SHUT_WR)

    def reset(self):
        self.conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.conn.close()

    def close(self):
        self.conn.close()

    def get(self, path="/", host="a", extra=b""):
        """Sends a GET and reads its whole answer."""
        self.send(b"GET " + path.encode() + b" HTTP/1.1\r\nHost: " + host.encode() + b"\r\n" + extra + b"\r\n")
        return self.answer()

    def answer(self, no_body=False):
        head = self.read_head()
        return head, self.read_body(head, no_body)


def status_of(head):
    return int(head.split(b" ", 2)[1])


def parse_fields(head):
    """Lower-case names to values; a repeated one is joined with commas."""
    fields = {}
    for line in head.split(b"\r\n")[1:]:
        if b":" in line:
            name, value = line.split(b":", 1)
            name, value = name.strip().lower(), value.strip()
            fields[name] = fields[name] + b", " + value if name in fields else value
    return fields


def answers(*replies):
    """A script: each request, its body read, gets the next of |replies|; the last one repeats."""
    lock = threading.Lock()
    left = list(replies)

    def script(peer):
        while True:
            head = peer.read_head()
            if not head:
                return
            peer.read_body(head)
            with lock:
                reply = left.pop(0) if len(left) > 1 else left[0]
            peer.send(reply)
            if b"onnection: close" in reply:
                peer.close()
                return

    return script


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Proxy:
    """A `firebreak run` of its own. |config| is YAML text with LISTEN in it, or |to| a list."""

    def __init__(self, to=None, config=None, args=(), preexec=None):
        self.directory = tempfile.TemporaryDirectory(prefix="firebreak-test-")
        self.log_path = pathlib.Path(self.directory.name) / "access.log"
        self.stderr = open(pathlib.Path(self.directory.name) / "stderr", "w+b")
        command = [FIREBREAK, "run"]
        if to is not None:
            command += ["--to", ",".join(to), "--listen", "127.0.0.1:0", "--workers", "1"]
        else:
            path = pathlib.Path(self.directory.name) / "firebreak.yaml"
            path.write_text(config)
            command += ["-c", str(path)]
        command += ["--admin", "127.0.0.1:0", "--access-log", str(self.log_path), *args]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.stderr, preexec_fn=preexec)
        self.ports = {}
        self.admin_port = None
        self._read_where()

    def _read_where(self):
        while self.admin_port is None:
            line = self.process.stdout.readline().decode()
            if not line:
                raise AssertionError("firebreak did not start: " + self.errors())
            words = line.split()
            if words[0] == "listening":
                where = words[2].rsplit(":", 1)[1]
                self.ports[words[1]] = int(where) if where.isdigit() else where  # a unix path
            elif words[0] == "admin":
                self.admin_port = int(words[1].rsplit(":", 1)[1])
        self.port = next(iter(self.ports.values()))

    def errors(self):
        self.stderr.flush()
        self.stderr.seek(0)
        return self.stderr.read().decode(errors="replace")

    def client(self, receive_buffer=None):
        s = socket.socket()
        if receive_buffer:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        s.settimeout(PATIENCE)
        s.connect(("127.0.0.1", self.port))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Peer(s)

    def admin(self, path, method="GET"):
        with socket.create_connection(("127.0.0.1", self.admin_port), timeout=PATIENCE) as s:
            peer = Peer(s)
            peer.send(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            return peer.answer()[1].decode()

    def stats(self):
        lines = self.admin("/stats").splitlines()
        return {n: v for n, v in (line.split(": ", 1) for line in lines if ": " in line)}

    def stat(self, name):
        return int(self.stats().get(name, "0"))

    def records(self, n):
        """The first |n| access log lines, once they are there."""
        def enough():
            if not self.log_path.exists():
                return None
            lines = self.log_path.read_text().splitlines()
            return [json.loads(x) for x in lines] if len(lines) >= n else None
        return wait_for(enough, f"{n} access log lines")

    def rss(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def cpu_seconds(self):
        parts = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        """Ends it and insists that it ended well: no crash, no sanitizer report."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.3)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = "did not stop"
        errors = self.errors()
        self.process.stdout.close()
        self.stderr.close()
        self.directory.cleanup()
        assert code == 0, f"firebreak ended with {code}: {errors}"
        assert "Sanitizer" not in errors and "runtime error" not in errors, errors

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop()


@contextlib.contextmanager
def proxied(*scripts, **kwargs):
    """A proxy in front of one upstream a script."""
    upstreams = [Upstream(s) for s in scripts]
    try:
        with Proxy(to=[u.address for u in upstreams], **kwargs) as proxy:
            yield (proxy, *upstreams)
    finally:
        for u in upstreams:
            u.close()


CONFIG = """
accessLog: {{ to: off }}
workers: {workers}
listeners:
  - name: web
    listen: 127.0.0.1:0
{listener}
    routes:
      - match: {{ pathPrefix: / }}
        cluster: backend
{route}
clusters:
  - name: backend
{cluster}
    endpoints:
{endpoints}
"""


def config(upstreams, listener="", route="", cluster="", workers=1):
    """The native form, with lines to go into its parts (each given without indentation)."""
    def indent(text, n):
        return "\n".join(" " * n + line for line in text.splitlines() if line.strip())
    return CONFIG.format(
        workers=workers, listener=indent(listener, 4), route=indent(route, 8),
        cluster=indent(cluster, 4),
        endpoints="\n".join(f"      - {{ address: {u.address} }}" for u in upstreams))
