# SPDX-License-Identifier: Apache-2.0
"""Bad input and bad days: a clear error or a bounded degradation, never a crash, a spin or a leak."""

import os
import resource
import signal
import socket
import subprocess
import threading
import time

import pytest

from rawpeers import (FIREBREAK, OK, Peer, Proxy, Upstream, answers, config, parse_fields, proxied,
                      status_of, wait_for)


def run(*args):
    return subprocess.run([FIREBREAK, *args], capture_output=True, text=True, timeout=20)


# --- starting ---

@pytest.mark.parametrize("text,where", [
    ("", ""), ("listeners: [", ":1:"), ("lisseners: []\n", "did you mean 'listeners'"),
    ("\tlisteners: []\n", ":1:"), ("listeners: \xff\n", ""), ("- a\n- b\n", ":1:1"),
])
def test_a_broken_file_is_exit_2_and_says_where(tmp_path, text, where):
    path = tmp_path / "broken.yaml"
    path.write_bytes(text.encode("latin-1"))
    result = run("run", "-c", str(path))
    assert result.returncode == 2
    assert "broken.yaml" in result.stderr and where in result.stderr


def test_missing_and_unreadable_files_are_exit_2(tmp_path):
    for path in (tmp_path / "none.yaml", tmp_path):
        result = run("run", "-c", str(path))
        assert result.returncode == 2 and str(path) in result.stderr


def test_every_truncation_of_a_file_is_an_error_or_a_whole_configuration(tmp_path):
    upstream = Upstream(answers(OK))
    whole = config([upstream])
    path = tmp_path / "cut.yaml"
    for cut in range(0, len(whole), 37):
        path.write_text(whole[:cut].replace("web", "web"))
        process = subprocess.Popen([FIREBREAK, "run", "-c", str(path), "--admin", "127.0.0.1:0"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        code = process.wait(20)
        process.stdout.close()
        process.stderr.close()
        assert code == (0 if line else 2), cut
    upstream.close()


def test_a_port_in_use_is_exit_1_and_named():
    # SO_REUSEPORT would share it with our like, not with a listener that did not ask for it
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = "127.0.0.1:%d" % taken.getsockname()[1]
        result = run("run", "--to", "127.0.0.1:9", "--listen", at, "--admin", "127.0.0.1:0")
        assert result.returncode == 1 and at in result.stderr and "in use" in result.stderr
        result = run("run", "--to", "127.0.0.1:9", "--listen", "127.0.0.1:0", "--admin", at)
        assert result.returncode == 1 and at in result.stderr and "in use" in result.stderr


# --- ending ---

def held(release):
    def script(peer):
        while peer.read_head():
            release.wait(20)
            peer.send(OK)
    return script


@pytest.mark.multiworker
@pytest.mark.parametrize("workers", [1, 2])
def test_term_finishes_what_is_under_way_then_exits(workers):
    release = threading.Event()
    upstream = Upstream(held(release))
    with Proxy(config=config([upstream], workers=workers)) as proxy:
        busy, idle = proxy.client(), proxy.client()
        busy.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: proxy.stat("cluster.backend.upstream_rq_active") == 1, "the request")
        proxy.process.send_signal(signal.SIGTERM)
        wait_for(lambda: refuses(proxy.port), "the listener to close")
        assert proxy.process.poll() is None
        release.set()
        head, body = busy.answer()
        assert (status_of(head), body) == (200, b"ok")
        assert parse_fields(head)[b"connection"] == b"close"
        assert idle.read_to_end() == b""
        assert proxy.process.wait(20) == 0
    upstream.close()


@pytest.mark.multiworker
def test_workers_share_a_unix_listener_and_drain_it(tmp_path):
    release = threading.Event()
    upstream = Upstream(held(release))
    path = tmp_path / "web.sock"
    text = config([upstream], workers=2).replace("listen: 127.0.0.1:0", f"listen: unix:{path}")
    with Proxy(config=text) as proxy:
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(path))
        busy = Peer(s)
        busy.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: proxy.stat("cluster.backend.upstream_rq_active") == 1, "the request")
        proxy.process.send_signal(signal.SIGTERM)
        wait_for(lambda: not path.exists(), "the listener to close")
        release.set()
        assert status_of(busy.answer()[0]) == 200
        assert proxy.process.wait(20) == 0
        assert proxy.records(1)[0]["downstream_local_address"] == f"unix:{path}"
    upstream.close()


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return False
    except ConnectionRefusedError:
        return True


def test_a_second_term_exits_at_once_and_hup_is_harmless():
    release = threading.Event()
    upstream = Upstream(held(release))
    with Proxy(to=[upstream.address]) as proxy:
        busy = proxy.client()
        proxy.process.send_signal(signal.SIGHUP)
        busy.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: proxy.stat("cluster.backend.upstream_rq_active") == 1, "the request")
        wait_for(lambda: "config.reload" in proxy.errors(), "the word about reload")
        proxy.process.send_signal(signal.SIGTERM)
        wait_for(lambda: refuses(proxy.port), "the listener to close")
        proxy.process.send_signal(signal.SIGINT)
        assert proxy.process.wait(5) == 0
    release.set()
    upstream.close()


# --- descriptors (C075) ---

def test_c075_out_of_descriptors_pauses_accepting_and_recovers():
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    with proxied(answers(OK), preexec=limit) as (proxy, _):
        early = [proxy.client() for _ in range(20)]
        for c in early:
            assert status_of(c.get()[0]) == 200
        storm = [socket.create_connection(("127.0.0.1", proxy.port)) for _ in range(400)]
        wait_for(lambda: "accept.paused" in proxy.errors(), "accepting to pause")
        before, started = proxy.cpu_seconds(), time.monotonic()
        for _ in range(5):
            for c in early:
                assert status_of(c.get()[0]) == 200
            time.sleep(0.2)  # the storm lasts a second: time enough to see a spin
        assert (proxy.cpu_seconds() - before) / (time.monotonic() - started) < 0.5
        proxy.process.send_signal(signal.SIGUSR1)
        proxy.process.send_signal(signal.SIGHUP)
        for s in storm:
            s.close()
        wait_for(lambda: "accept.resumed" in proxy.errors(), "accepting to go on")
        fresh = proxy.client()
        assert status_of(fresh.get()[0]) == 200
        lines = [x for x in proxy.errors().splitlines() if "accept.paused" in x]
        assert len(lines) <= 20


@pytest.mark.multiworker
@pytest.mark.parametrize("workers", [1, 3])
def test_without_descriptors_for_more_connections_requests_wait_for_one(workers):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    release = threading.Event()
    upstream = Upstream(held(release))
    with Proxy(config=config([upstream], workers=workers), preexec=limit) as proxy:
        clients = [proxy.client() for _ in range(170)]
        for c in clients:
            c.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: proxy.stat("cluster.backend.upstream_rq_pending_active") > 50, "many to wait")
        release.set()
        assert {status_of(c.answer()[0]) for c in clients} == {200}
        assert proxy.stat("cluster.backend.outlier_detection.ejections_enforced_total") == 0
    upstream.close()


# --- the access log ---

def test_a_full_disk_under_the_access_log_costs_lines_not_requests():
    upstream = Upstream(answers(OK))
    with Proxy(to=[upstream.address], args=["--access-log", "/dev/full"]) as proxy:
        client = proxy.client()
        for _ in range(50):
            assert status_of(client.get()[0]) == 200
        wait_for(lambda: proxy.stat("firebreak.access_log_dropped") >= 50, "the drops to be counted")
        told = [x for x in proxy.errors().splitlines() if "access_log" in x or "accessLog" in x]
        assert len(told) == 1, proxy.errors()
    upstream.close()


def test_the_access_log_is_opened_anew_on_usr1():
    with proxied(answers(OK)) as (proxy, _):
        client = proxy.client()
        client.get("/one")
        proxy.records(1)
        moved = proxy.log_path.with_suffix(".1")
        proxy.log_path.rename(moved)
        proxy.process.send_signal(signal.SIGUSR1)
        wait_for(lambda: proxy.log_path.exists() or client.get("/x") is None, "a new file")
        client.get("/two")
        wait_for(lambda: any(r["path"] == "/two" for r in proxy.records(1)), "the line in it")


# --- slow and silent peers ---

def test_slowloris_clients_are_cut_off_and_cost_little():
    upstream = Upstream(answers(OK))
    with Proxy(config=config([upstream], listener="headTimeout: 1s")) as proxy:
        slow = [proxy.client() for _ in range(50)]
        for i in range(6):
            for s in slow:
                try:
                    s.send(b"GET / HTTP/1.1\r\nX-A: " if i == 0 else b"a")
                except OSError:
                    pass
            good = proxy.client()
            assert status_of(good.get()[0]) == 200
            time.sleep(0.25)  # drips on beyond the limit
        assert {status_of(s.answer()[0]) for s in slow} == {408}
        assert proxy.stat("http.web.downstream_rq_header_timeout") == 50
    upstream.close()


def test_readers_that_stop_cost_a_buffer_each_and_nobody_else():
    size = 8 << 20

    def script(peer):
        while True:
            head = peer.read_head()
            if not head:
                return
            if b" /big " not in head:
                peer.send(OK)
                continue
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            for _ in range(size >> 16):
                peer.send(b"z" * 65536)
    with proxied(script) as (proxy, _):
        before = proxy.rss()
        stuck = [proxy.client(receive_buffer=4096) for _ in range(50)]
        for s in stuck:
            s.send(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: proxy.stat("cluster.backend.upstream_flow_control_paused_reading_total") >= 50,
                 "all to be stuck")
        good = proxy.client()
        for _ in range(100):
            assert status_of(good.get()[0]) == 200
        if "asan" not in FIREBREAK and "tsan" not in FIREBREAK:
            assert proxy.rss() - before < 50 * (160 << 10)


def test_many_idle_connections():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    count = 2000
    with proxied(answers(OK)) as (proxy, _):
        before = proxy.rss()
        held_open = [proxy.client() for _ in range(count)]
        for c in held_open[:: count // 50]:
            assert status_of(c.get()[0]) == 200
        wait_for(lambda: proxy.stat("http.web.downstream_cx_active") == count, "all to be accepted")
        if "asan" not in FIREBREAK and "tsan" not in FIREBREAK:
            assert proxy.rss() - before < count * 1024 + (2 << 20)
        for c in held_open:
            c.close()
        wait_for(lambda: proxy.stat("http.web.downstream_cx_active") == 0, "all to be gone")


# --- a backend that is killed ---

class Backend:
    """`firebreak backend` as a process, so that kill -9 is a kill -9."""

    def __init__(self, address="127.0.0.1:0"):
        self.process = subprocess.Popen([FIREBREAK, "backend", "--listen", address],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.address = self.process.stdout.readline().decode().split()[-1]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


@pytest.mark.multiworker
@pytest.mark.parametrize("workers", [1, 2])
def test_kill_9_of_a_backend_loses_only_what_is_in_flight_on_it(workers):
    backends = [Backend() for _ in range(4)]
    stop = threading.Event()
    bad, total = [], [0]

    def call(proxy):
        client = proxy.client()
        while not stop.is_set():
            head, _ = client.get("/delay/2")
            total[0] += 1
            if status_of(head) != 200:
                bad.append(head)

    addresses = "\n".join(f"      - {{ address: {b.address} }}" for b in backends)
    text = config([], workers=workers).rstrip() + "\n" + addresses + "\n"
    with Proxy(config=text) as proxy:
        threads = [threading.Thread(target=call, args=(proxy,)) for _ in range(8)]
        for t in threads:
            t.start()
        for _ in range(3):
            wait_for(lambda n=total[0]: total[0] > n + 200, "traffic")
            victim = backends.pop(0)
            victim.kill()
            wait_for(lambda n=total[0]: total[0] > n + 200, "traffic without it")
            backends.append(Backend(victim.address))
        stop.set()
        for t in threads:
            t.join()
        assert len(bad) <= 3 * 8  # at most those in flight: eight callers, three kills
        assert all(b"503" in h.split(b"\r\n")[0] for h in bad)
        flags = {r["response_flags"] for r in proxy.records(total[0]) if r["response_code"] == 503}
        assert flags <= {"UC"}
    for b in backends:
        b.kill()
