# SPDX-License-Identifier: Apache-2.0
"""One scenario on one proxy: its upstream, its requests, its observations."""
import dataclasses
import datetime
import socket
import time

import harness
import upstream


@dataclasses.dataclass
class Call:
    """A request under way, and then what came of it."""
    path: str
    method: str
    script: upstream.Script
    conn: harness.Connection
    record: dict
    group: str | None = None  # calls of a group are compared as a bag: which came first is chance


class Run:
    """What a scenario function is given; it plays on one side (sides.Side)."""

    def __init__(self, name, setup, hosts, scripts):
        self.name = name
        self.setup = setup
        self.hosts = hosts
        self.scripts = scripts
        self.side = None
        self.calls = []
        self.seen = {}  # further observations, by name
        self.main = None
        self.group = None
        self.in_step = True  # wait after each request for the thread that ejects
        self.extra = []
        self.trouble = None  # why the scenario could not be played to its end

    def stat(self, name):
        return self.side.stats(self.name).get(name, 0)

    def await_stat(self, within=10, **wanted):
        """Until each named counter or gauge (__ for a dot) has its value."""
        for name, value in wanted.items():
            name = name.replace("__", ".")
            harness.wait_for(lambda n=name, v=value: self.stat(n) == v,
                             f"{name} == {value}, now {self.stat(name)}", within)

    def await_true(self, condition, what, within=10):
        harness.wait_for(condition, what, within)

    def gauges(self):
        """The circuit breakers' gauges and how many wait."""
        return {k: v for k, v in self.side.stats(self.name).items()
                if v and (k.startswith("circuit_breakers.default.") and "cx_pool" not in k
                          or k.endswith("pending_active") or k == "upstream_rq_active")}

    def quiet(self):
        """Until the counters stand still."""
        before = None
        while True:
            now = self.side.stats(self.name)
            if now == before:
                return
            before = now
            time.sleep(0.01)

    def pause(self, duration):
        """For what must not happen, and for sweeps; nothing waits for a condition this way."""
        time.sleep(duration)

    def actions(self, action):
        """The times of the event log's entries that were carried out."""
        return [datetime.datetime.fromisoformat(e["timestamp"].replace("Z", "+00:00"))
                for e in self.side.events(self.name)
                if e["action"] == action and (e["enforced"] or action == "UNEJECT")]

    def time_out(self, provoke, unit):
        """How long the host is out after |provoke|, by the event log, in |unit|s."""
        before = len(self.actions("UNEJECT"))
        provoke()
        self.await_true(lambda: len(self.actions("UNEJECT")) > before, "the return")
        return round((self.actions("UNEJECT")[-1] - self.actions("EJECT")[-1]).total_seconds() / unit)

    def observe(self, name, value):
        self.seen[name] = value

    # Requests

    def connect(self):
        conn = harness.Connection(self.side.addresses[self.name], timeout=60)
        self.extra.append(conn)
        return conn

    def start(self, *actions, method="GET", body=None, fields=(), conn=None, send=True):
        """Sends a request on |conn| (None: one of its own). |actions|: what its attempts meet, one
        after the other, also as one list; a number is an answer with that status."""
        path = f"/{self.name}/{len(self.calls)}"
        actions = actions[0] if actions and isinstance(actions[0], list) else actions
        actions = [upstream.answer(a) if isinstance(a, int) else a for a in actions]
        script = self.scripts[path] = upstream.Script(actions or [upstream.answer()])
        call = Call(path, method, script, conn or self.connect(), {},
                    self.group)
        self.calls.append(call)
        if send:
            call.conn.send(harness.compose(method, path, fields, body))
        return call

    def finish(self, call):
        """Waits for the answer."""
        try:
            answer = call.conn.read_answer(call.method)
            call.record = {
                "status": answer.status, "whole": answer.complete, "body": answer.body,
                "overloaded": answer.field("x-envoy-overloaded"),
                "close": answer.field("connection") == "close", "interim": answer.interim}
        except harness.Closed as cut:
            head = cut.data.split(b"\r\n")[0].decode("latin-1")
            call.record = {"status": head, "whole": False, "reset": cut.reset}
        return call.record.get("status")

    def get(self, *actions, **keys):
        """A request on the scenario's connection, from begin to end. Its status."""
        if self.main is None:
            self.main = self.connect()
        call = self.start(*actions, conn=self.main, **keys)
        status = self.finish(call)
        if not call.record["whole"] or call.record["close"]:
            self.main.close()
            self.main = None
        if self.setup.outlier is not None and self.in_step:
            self.side.page("/ready")  # answered by the thread that ejects, after what it was told before
        return status

    def get_each(self, *actions):
        return [self.get(a) for a in actions]

    def release(self, call):
        call.script.release.set()
        return self.finish(call)

    @staticmethod
    def answered(call):
        """Whether there is something to read for the client."""
        return upstream.readable(call.conn.sock, 0)

    def reached(self, call, attempts=1):
        """Waits until the upstream has seen the request."""
        harness.wait_for(lambda: len(call.script.seen) >= attempts, f"{call.path} upstream", 10)

    def leave(self, call):
        """The client goes away."""
        call.conn.sock.shutdown(socket.SHUT_RDWR)
        call.conn.close()
        call.record = {"status": "left", "whole": False}

    def close(self):
        for conn in self.extra:
            conn.close()
