# SPDX-License-Identifier: Apache-2.0
"""The scripted upstream, the same for both proxies: hosts that accept, refuse or swallow connections,
and answers that are exactly what the script of a request says.

A request is found by its path, /SCENARIO/NUMBER; its script is one action an attempt, the last one
for all further attempts.
"""
import contextlib
import select
import socket
import struct
import threading


def readable(sock, milliseconds):
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(milliseconds))


class Gone(Exception):
    """The proxy closed the connection."""


class Wire:
    """One accepted connection: buffered reads, exact writes."""

    def __init__(self, sock, number):
        self.sock = sock
        self.number = number  # of the host's connections, from 0
        self.served = 0
        self.buffer = b""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _more(self):
        data = self.sock.recv(65536)
        if not data:
            raise Gone
        self.buffer += data

    def _until(self, mark):
        while mark not in self.buffer:
            self._more()
        part, self.buffer = self.buffer.split(mark, 1)
        return part

    def read_head(self):
        """(request line, {name: value}) of the next request."""
        first, *rest = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        fields = {}
        for line in rest:
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        return first, fields

    def read_body(self, fields):
        if "chunked" in fields.get("transfer-encoding", ""):
            body = b""
            while True:
                size = int(self._until(b"\r\n"), 16)
                if size == 0:
                    while self._until(b"\r\n"):
                        pass
                    return body
                while len(self.buffer) < size + 2:
                    self._more()
                body += self.buffer[:size]
                self.buffer = self.buffer[size + 2:]
        size = int(fields.get("content-length", 0))
        while len(self.buffer) < size:
            self._more()
        body, self.buffer = self.buffer[:size], self.buffer[size:]
        return body

    def send(self, data):
        self.sock.sendall(data)

    def finish(self):
        """FIN."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def reset(self):
        """RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def wait(self, event):
        """Until |event| is set; Gone if the proxy closes first."""
        while not event.is_set():
            if readable(self.sock, 10) and not self.sock.recv(1, socket.MSG_PEEK):
                raise Gone


REASONS = {200: "OK", 204: "No Content", 304: "Not Modified", 404: "Not Found", 409: "Conflict", 500: "Internal Server Error",
           502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}


def compose(status, fields=(), body=b"body\n", length=True, version="HTTP/1.1"):
    lines = [f"{version} {status} {REASONS.get(status, 'Status')}"] + [f"{n}: {v}" for n, v in fields]
    if length:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Script:
    """What happens to one request, attempt by attempt, and what was seen of it."""

    def __init__(self, actions):
        self.actions = actions
        self.release = threading.Event()
        self.seen = []  # (host, number of its connection, how many requests that had served)
        self.fields = []  # header fields of each attempt
        self.bodies = []  # of the attempts whose body was read
        self.gone = threading.Event()  # the proxy closed the connection under it

    def next(self, host, wire, fields):
        action = self.actions[min(len(self.seen), len(self.actions) - 1)]
        self.fields.append(fields)
        self.seen.append((host, wire.number, wire.served))
        return action


class Host:
    """One listening address. |scripts|: by path."""

    def __init__(self, index, scripts):
        self.index = index
        self.scripts = scripts
        self.wires = []
        self.fillers = []
        self.greeting = None  # called with each accepted wire; True: it took it over
        # Never listens: it keeps the port while the host refuses.
        self.guard = socket.socket()
        self.guard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.guard.bind(("127.0.0.1", 0))
        self.address = self.guard.getsockname()
        self.listener = None
        self.listen()

    def _bound(self, backlog):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(self.address)
        listener.listen(backlog)
        return listener

    def listen(self):
        self._stop()
        self.listener = self._bound(512)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def refuse(self):
        """Further connects are refused."""
        self._stop()

    def swallow(self):
        """Further connects hang: the queue of accepted connections is full."""
        self._stop()
        self.listener = self._bound(0)
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(self.address)
            self.fillers.append(filler)

    def _stop(self):
        for sock in self.fillers:
            sock.close()
        self.fillers = []
        if self.listener:
            with contextlib.suppress(OSError):
                self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            self.listener = None

    def close(self):
        self._stop()
        self.guard.close()
        for wire in self.wires:
            with contextlib.suppress(OSError):
                wire.sock.shutdown(socket.SHUT_RDWR)

    def drop_idle(self):
        """FIN on every connection."""
        for wire in self.wires:
            wire.finish()

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            wire = Wire(sock, len(self.wires))
            self.wires.append(wire)
            if self.greeting and self.greeting(wire):
                continue
            threading.Thread(target=self._serve, args=(wire,), daemon=True).start()

    def _serve(self, wire):
        script = None
        try:
            while True:
                script = None
                first, fields = wire.read_head()
                script = self.scripts[first.split(" ")[1]]
                action = script.next(self.index, wire, fields)
                if not getattr(action, "early", False):
                    script.bodies.append(wire.read_body(fields))
                action(wire, script)
                wire.served += 1
        except (Gone, OSError, ValueError):  # ValueError: its socket was closed beside it
            if script:
                script.gone.set()
            wire.finish()


# What an attempt does.


def answer(status=200, fields=(), body=b"body\n", length=True):
    if status in (204, 304):
        body, length = b"", False
    data = compose(status, fields, body, length)
    return lambda wire, script: wire.send(data)


def raw(data, then=None):
    """Bytes as they are, then nothing, "finish" (FIN), "reset" (RST), "hold" or "quiet"."""
    def act(wire, script):
        wire.send(data)
        ending(then)(wire, script)
    return act


def ending(then):
    def act(wire, script):
        if then == "finish":
            wire.finish()
            raise OSError
        if then == "reset":
            wire.reset()
            raise OSError
        if then == "hold":
            wire.wait(script.release)
        elif then == "quiet":
            wire.wait(threading.Event())
        elif then:
            raise ValueError(then)
    return act


def held(then):
    """|then| once the scenario says so."""
    def act(wire, script):
        wire.wait(script.release)
        then(wire, script)
    return act


def silent():
    return ending("quiet")


def early(then):
    """|then| before the body of the request is read."""
    def act(wire, script):
        then(wire, script)
    act.early = True
    return act
