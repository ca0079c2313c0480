# SPDX-License-Identifier: Apache-2.0
"""Cases C065 and C067 (tests/cases/README.md): who leaves is let go without a failed request. In
virtual time, with the cases' own numbers: tests/sim/cases_leaving_test.c."""
import asyncio
import contextlib
import json
import pathlib
import re
import signal
import threading
import time

import pytest

import harness
import rawpeers
from harness import request, show_address, wait_for

pytestmark = pytest.mark.multiworker

# --- C065: SIGTERM comes before the endpoint is gone ---

WAIT = 4  # seconds of drainWait
LAG = 1.5  # how late the balancer acts on what it sees


class Balancer:
    """TCP, round robin over those whose /ready it believes in, |LAG| seconds late."""

    def __init__(self, proxies):
        self.proxies = proxies
        self.listed = list(proxies)
        self.turn = 0
        self.failures = []  # connects that a listed proxy refused
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self.ready.wait(harness.PATIENCE)

    def _run(self):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512))
        self.address = server.sockets[0].getsockname()
        self.probing = self.loop.create_task(self._probe())
        self.ready.set()
        with contextlib.suppress(asyncio.CancelledError):
            self.loop.run_until_complete(self.probing)

    async def _is_ready(self, proxy):
        reader, writer = await asyncio.open_connection(*proxy.admin)
        writer.write(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        said = await reader.read()
        writer.close()
        return b" 200 " in said.split(b"\r\n")[0]

    async def _probe(self):
        while True:
            for proxy in list(self.listed):
                if not await self._is_ready(proxy):
                    await asyncio.sleep(LAG)
                    self.listed.remove(proxy)
            await asyncio.sleep(0.05)

    async def _serve(self, reader, writer):
        self.turn += 1
        proxy = self.listed[self.turn % len(self.listed)]
        try:
            to_reader, to_writer = await asyncio.open_connection(*proxy.address)
        except OSError as error:
            self.failures.append(error)
            writer.close()
            return
        await asyncio.gather(self._pump(reader, to_writer), self._pump(to_reader, writer))

    @staticmethod
    async def _pump(reader, writer):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    def close(self):
        self.loop.call_soon_threadsafe(self.probing.cancel)
        self.thread.join()


def draining_config(servers, label):
    ends = ", ".join(f"{{ address: {show_address(a)}, labels: {{ track: {label} }} }}" for a in servers)
    return (f"admin: {{ listen: 127.0.0.1:0 }}\nworkers: 2\n"
            f"drainWait: {WAIT}s\ndrainTimeout: 30s\n"
            "listeners:\n  - name: web\n    listen: 127.0.0.1:0\n"
            "    routes: [ { match: { pathPrefix: / }, cluster: c } ]\n"
            f"clusters:\n  - name: c\n    endpoints: [ {ends} ]\n")


def test_c065_listeners_stay_open_until_the_balancer_has_noticed(start, tmp_path):
    backend = start(harness.Backend, 1, "--service", "const:200ms", "--workers", "256")
    files = [tmp_path / f"{i}.yaml" for i in range(3)]
    for file in files:
        file.write_text(draining_config(backend.servers, "one"))
    proxies = [start(harness.Proxy, "-c", file) for file in files]
    leaving = proxies[0]
    balancer = Balancer(proxies)
    url = f"http://{show_address(balancer.address)}/"
    loads = [start(harness.Process, "load", "--url", url, "--rate", "75", "--duration", "9s",
                   "--json", *more) for more in ([], ["-H", "connection: close"])]
    wait_for(lambda: backend.stats()["requests"] > 200, "traffic")
    leaving.signal(signal.SIGTERM)
    told = time.monotonic()
    wait_for(lambda: request(leaving.admin, "GET", "/ready").status == 503, "/ready to say so")
    assert time.monotonic() - told < LAG
    answer = request(leaving.address, "GET", "/")
    assert (answer.status, answer.field("connection")) == (200, "close")
    leaving.signal(signal.SIGTERM)  # again: nothing changes
    files[0].write_text(draining_config(backend.servers, "two"))
    answer = request(leaving.admin, "POST", "/reload", {"host": "localhost"})
    assert (answer.status, answer.text()) == (200, "OK\n")
    wait_for(lambda: leaving not in balancer.listed, "the balancer to look elsewhere")
    assert request(leaving.address, "GET", "/").status == 200
    leaving.wait_line("process.closing", leaving.err)
    assert time.monotonic() - told > WAIT - 0.1
    assert leaving.wait() == 0
    assert WAIT <= time.monotonic() - told < 30
    for load in loads:
        assert load.wait(harness.PATIENCE + 20) == 0
        said = json.loads(load.out[-1])
        assert said["due"] > 500
        assert (said["succeeded"], said["dropped"]) == (said["due"], 0), said
    assert balancer.failures == []
    balancer.close()
    for proxy in proxies[1:]:
        proxy.hurry()


def test_c065_an_interrupt_ends_the_wait(start, tmp_path):
    """Who sits at a terminal and presses ^C twice does not want to wait."""
    file = tmp_path / "firebreak.yaml"
    backend = start(harness.Backend)
    file.write_text(draining_config(backend.servers, "one"))
    proxy = start(harness.Proxy, "-c", file)
    proxy.signal(signal.SIGINT)
    proxy.wait_line("process.draining", proxy.err)
    began = time.monotonic()
    proxy.signal(signal.SIGINT)
    assert proxy.wait() == 0
    assert time.monotonic() - began < WAIT


# --- C067: a host is removed while it has streams; tunnels across reloads ---

WEBSOCKET = (b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


class Host(rawpeers.Upstream):
    """Echoes in tunnels and says its name to all else; |open|: its connections, |requests|: others
    than tunnels."""

    def __init__(self, name):
        self.name = name
        self.open = 0
        self.requests = 0
        self.lock = threading.Lock()
        super().__init__(self._script)

    def _count(self, n):
        with self.lock:
            self.open += n

    def _script(self, peer):
        self._count(1)
        try:
            while b"pgrade: websocket" not in peer.read_head():
                self.requests += 1
                peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + self.name)
            peer.send(SWITCH + self.name)
            peer.conn.settimeout(None)  # a tunnel may be silent for long
            while data := peer.conn.recv(4096):
                peer.conn.sendall(data)
        finally:
            self._count(-1)
            peer.conn.close()


class Tunnel:
    def __init__(self, proxy):
        self.peer = proxy.client()
        self.peer.send(WEBSOCKET)
        assert rawpeers.status_of(self.peer.read_head()) == 101
        self.host = self.peer.read_exactly(1)

    def echoes(self):
        self.peer.send(b"ping")
        return self.peer.read_exactly(4) == b"ping"

    def is_cut(self):
        with contextlib.suppress(ConnectionResetError):
            return self.peer.conn.recv(1) == b""
        return True

    def close(self):
        self.peer.conn.close()


def c067_config(hosts, extra="", label="one"):
    text = rawpeers.config(hosts, listener="idleTimeout: 300s",
                           cluster=f"loadBalancer: round_robin\n{extra}")
    return re.sub(r"(address: [0-9.:]+) ", rf"\1, labels: {{ track: {label} }} ", text)


def reload(proxy, text):
    pathlib.Path(proxy.directory.name, "firebreak.yaml").write_text(text)
    assert proxy.admin("/reload", "POST") == "OK\n"


def ask(proxy, times):
    """Who answered."""
    client = proxy.client()
    said = b""
    for _ in range(times):
        said += client.get()[1]
    client.close()
    return said


@contextlib.contextmanager
def three_hosts(extra=""):
    hosts = [Host(name) for name in (b"A", b"B", b"C")]
    with rawpeers.Proxy(config=c067_config(hosts, extra)) as proxy:
        yield proxy, hosts
    for host in hosts:
        host.close()


def test_c067_tunnels_stay_when_their_host_is_removed_and_when_it_comes_back():
    with three_hosts() as (proxy, hosts):
        tunnels = [Tunnel(proxy) for _ in range(60)]
        assert sum(t.host == b"A" for t in tunnels) == 20
        assert ask(proxy, 30).count(b"A") == 10
        assert hosts[0].open == 21  # one of them idle
        reload(proxy, c067_config(hosts[1:]))
        wait_for(lambda: hosts[0].open == 20, "the idle connection to go without a request")
        before = hosts[0].requests
        assert ask(proxy, 30).count(b"A") == 0
        assert hosts[0].requests == before
        assert all(t.echoes() for t in tunnels)
        reload(proxy, c067_config(hosts))
        assert ask(proxy, 30).count(b"A") == 10
        assert all(t.echoes() for t in tunnels)
        opened = proxy.stat("cluster.backend.upstream_cx_total")
        reload(proxy, c067_config(hosts, label="two"))  # nothing else; there are no weights yet
        assert ask(proxy, 30).count(b"A") == 10
        assert all(t.echoes() for t in tunnels)
        assert proxy.stat("cluster.backend.upstream_cx_total") == opened
        assert hosts[0].open == 21
        for t in tunnels:
            t.close()


def test_c067_with_a_bound_tunnels_of_a_removed_host_end():
    with three_hosts("hostDrainTimeout: 1s") as (proxy, hosts):
        tunnels = [Tunnel(proxy) for _ in range(12)]
        reload(proxy, c067_config(hosts[1:], "hostDrainTimeout: 1s"))
        assert all(t.echoes() for t in tunnels)
        assert all(t.is_cut() for t in tunnels if t.host == b"A")
        wait_for(lambda: hosts[0].open == 0, "the host to see it")
        assert all(t.echoes() for t in tunnels if t.host != b"A")
        for record in proxy.records(4):
            assert record["response_flags"] == "LR"
            assert record["response_code_details"] == "host_drain_timeout"
        assert proxy.stat("cluster.backend.outlier_detection.ejections_enforced_total") == 0
        for t in tunnels:
            t.close()


def test_c067_a_host_drained_by_hand_has_the_same_bound():
    with three_hosts("hostDrainTimeout: 1s") as (proxy, hosts):
        tunnels = [Tunnel(proxy) for _ in range(3)]
        proxy.admin(f"/clusters/backend/hosts/{hosts[0].address}/drain", "POST")
        assert [t.is_cut() for t in tunnels if t.host == b"A"] == [True]
        assert all(t.echoes() for t in tunnels if t.host != b"A")
        for t in tunnels:
            t.close()


def test_c067_a_cluster_that_a_reload_takes_away_has_the_same_bound():
    with three_hosts("hostDrainTimeout: 1s") as (proxy, hosts):
        tunnels = [Tunnel(proxy) for _ in range(3)]
        reload(proxy, c067_config(hosts).replace("name: backend", "name: other")
               .replace("cluster: backend", "cluster: other"))
        assert all(t.is_cut() for t in tunnels)
        assert ask(proxy, 3) in (b"ABC", b"BCA", b"CAB")


def threads_of(proxy):
    status = pathlib.Path(f"/proc/{proxy.process.pid}/status").read_text()
    return next(line for line in status.splitlines() if line.startswith("Threads:"))


def large(hosts, turn):
    """A configuration that would be missed: some 300 KiB once it is loaded."""
    many = "".join(f"  - name: unused-{turn % 2}-{i}\n    endpoints: [ {{ address: 127.0.0.1:9 }} ]\n"
                   for i in range(150))
    return c067_config(hosts) + many


def test_c067_reloads_under_open_tunnels_cost_no_memory():
    with three_hosts() as (proxy, hosts):
        tunnels = [Tunnel(proxy) for _ in range(20)]
        for turn in range(20):
            reload(proxy, large(hosts, turn))
        threads, before = threads_of(proxy), proxy.rss()
        for turn in range(180):  # a tunnel of each configuration that there was
            if turn % 2 == 0 and len(tunnels) < 100:
                tunnels.append(Tunnel(proxy))
            reload(proxy, large(hosts, turn))
        assert threads_of(proxy) == threads
        if "san" not in harness.binary():
            assert proxy.rss() - before < 12 << 20
        assert len(tunnels) == 100 and all(t.echoes() for t in tunnels)
        for t in tunnels:
            t.close()
