# SPDX-License-Identifier: Apache-2.0
"""The admin pages of a running proxy: names and forms as Envoy's users know them."""

import concurrent.futures
import http.client
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

import examples
from rawpeers import (FIREBREAK, OK, PATIENCE, Peer, Proxy, Upstream, answers, config, parse_fields, proxied, status_of,
                      wait_for)

FAILED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\n\r\nbad"

# Complaints of promtool that stand for what Envoy's names are; nothing else may complain.
ENVOY_COMPLAINTS = [
    r"no help text",
    r'counter metrics should have "_total" suffix',
    r'non-counter metrics should not have "_total" suffix',
    r'non-histogram and non-summary metrics should not have ".*" suffix',
    r"metric names should not contain abbreviated units",
    r"use base unit .* instead of .*",
]


def admin(proxy, data):
    """Sends raw bytes to the admin server and returns all that comes until it closes."""
    with socket.create_connection(("127.0.0.1", proxy.admin_port), timeout=PATIENCE) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        return Peer(s).read_to_end()


def get(proxy, path):
    answer = admin(proxy, b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
    head, body = answer.split(b"\r\n\r\n", 1)
    fields = parse_fields(head)
    if fields.get(b"transfer-encoding") == b"chunked":
        whole = b""
        while True:
            size, body = body.split(b"\r\n", 1)
            chunk, body = body[:int(size, 16)], body[int(size, 16):]
            assert body.startswith(b"\r\n")
            whole, body = whole + chunk, body[2:]
            if not chunk:
                break
        assert body == b""
        body = whole
    else:
        assert int(fields[b"content-length"]) == len(body)
    return status_of(head), fields, body.decode()


def series(proxy, path="/stats/prometheus"):
    """name{labels} to value."""
    lines = get(proxy, path)[2].splitlines()
    return {k: float(v) for k, v in (x.rsplit(" ", 1) for x in lines if not x.startswith("#"))}


def downstream(proxy, metric):
    """The whole name of a listener's metric."""
    return next(k for k in proxy.stats() if k.startswith("http.") and k.endswith(f".downstream_{metric}"))


def test_counters_say_what_happened():
    with proxied(answers(OK, OK, FAILED)) as (proxy, upstream):
        client = proxy.client()
        codes = [status_of(client.get("/x")[0]) for _ in range(3)]
        client.close()
        assert codes == [200, 200, 503]
        wait_for(lambda: proxy.stat(downstream(proxy, "cx_destroy")) == 1, "the closed connection")
        stats = proxy.stats()
        cluster = next(k for k in stats if k.endswith(".upstream_rq_total")).rsplit(".", 1)[0]
        listener = next(k for k in stats if k.endswith(".downstream_rq_2xx") and k.startswith("http.")).rsplit(".", 1)[0]
        for name, value in {
                f"{cluster}.upstream_rq_200": 2, f"{cluster}.upstream_rq_503": 1,
                f"{cluster}.upstream_rq_2xx": 2, f"{cluster}.upstream_rq_5xx": 1,
                f"{cluster}.upstream_rq_total": 3, f"{cluster}.upstream_rq_completed": 3,
                f"{cluster}.external.upstream_rq_200": 2, f"{cluster}.external.upstream_rq_5xx": 1,
                f"{cluster}.upstream_rq_active": 0, f"{cluster}.upstream_cx_total": 1,
                f"{cluster}.membership_total": 1, f"{cluster}.membership_healthy": 1,
                f"{listener}.downstream_rq_total": 3, f"{listener}.downstream_rq_2xx": 2,
                f"{listener}.downstream_rq_5xx": 1, f"{listener}.downstream_cx_total": 1,
                f"{listener}.downstream_cx_active": 0,
                f"listener.127.0.0.1_{proxy.port}.downstream_cx_total": 1,
                "server.live": 1, "server.state": 0, "server.concurrency": 1}.items():
            assert stats.get(name) == str(value), name
        assert re.fullmatch(r"(P[\d.]+\(nan,[\d.]+\) ?){10}", stats[f"{cluster}.upstream_rq_time"])
        assert "server.memory_allocated" in stats  # a sanitizer's heap tells nothing
        assert int(stats["firebreak.resident_memory_bytes"]) > 1 << 20
        assert 3 < int(stats["firebreak.open_descriptors"]) < int(stats["firebreak.descriptors_limit"])


def test_the_three_forms_agree():
    with proxied(answers(OK)) as (proxy, _):
        client = proxy.client()
        client.get("/")
        client.close()
        # A request is counted in several steps, and a page may be read between two of them: what is
        # counted in a later turn of the worker is after all of them.
        wait_for(lambda: proxy.stat(downstream(proxy, "cx_destroy")) == 1, "the closed connection")
        text = {k: v for k, v in proxy.stats().items() if ".upstream_rq" in k and "(" not in v and "No " not in v}
        _, fields, body = get(proxy, "/stats?format=json")
        assert fields[b"content-type"] == b"application/json"
        entries = json.loads(body)["stats"]
        as_json = {e["name"]: str(e["value"]) for e in entries if "name" in e}
        assert {k: as_json[k] for k in text} == text
        prometheus = series(proxy)
        for name, value in text.items():
            _, cluster, metric = name.split(".", 2)
            prefix, _, metric = metric.rpartition(".")  # external., retry.
            prefix = prefix and prefix + "_"
            found = re.fullmatch(r"upstream_rq_(\d)xx", metric)
            code = re.fullmatch(r"upstream_rq_(\d{3})", metric)
            if found:
                key = f'envoy_cluster_{prefix}upstream_rq_xx{{envoy_response_code_class="{found[1]}",envoy_cluster_name="{cluster}"}}'
            elif code:
                key = f'envoy_cluster_{prefix}upstream_rq{{envoy_response_code="{code[1]}",envoy_cluster_name="{cluster}"}}'
            else:
                key = f'envoy_cluster_{prefix}{metric}{{envoy_cluster_name="{cluster}"}}'
            assert prometheus[key] == float(value), key


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_has_nothing_to_say_but_of_envoys_names():
    with proxied(answers(OK, FAILED)) as (proxy, _):
        client = proxy.client()
        client.get("/")
        client.get("/")
        page = get(proxy, "/stats/prometheus")[2]
    assert "\nfirebreak_endpoint_healthy{" in page and "\nfirebreak_worker_turns_total{" in page
    result = subprocess.run(["promtool", "check", "metrics"], input=page, text=True, capture_output=True)
    complaints = [x for x in (result.stdout + result.stderr).splitlines() if x.strip()]
    assert result.returncode in (0, 3), complaints  # 3: lint complaints only
    for line in complaints:
        assert line.startswith("envoy_"), line
        assert any(re.fullmatch(r"envoy_\w+:? " + c, line) for c in ENVOY_COMPLAINTS), line


def test_ejection_is_seen_on_clusters_and_in_stats():
    bad, good = Upstream(answers(FAILED)), [Upstream(answers(OK)) for _ in range(4)]
    with Proxy(config=config([bad, *good], cluster="trafficPolicy:\n  outlierDetection:\n    consecutive5xxErrors: 3\n"
                                                   "    interval: 30s\n    baseEjectionTime: 30s\n"
                                                   "    maxEjectionPercent: 50")) as proxy:
        client = proxy.client()
        line = f"backend::{bad.address}::health_flags::/failed_outlier_check"

        def ejected():
            client.get("/")
            return line in proxy.admin("/clusters").splitlines()

        wait_for(ejected, "the ejection")
        page = proxy.admin("/clusters").splitlines()
        assert f"backend::{bad.address}::firebreak_last_trigger::consecutive_5xx" in page
        assert f"backend::{bad.address}::firebreak_ejections::1" in page
        assert f"backend::{good[0].address}::health_flags::healthy" in page
        assert proxy.stat("cluster.backend.membership_healthy") == 4
        assert proxy.stat("cluster.backend.outlier_detection.ejections_active") == 1
        metrics = series(proxy)
        assert metrics[f'firebreak_endpoint_healthy{{cluster="backend",endpoint="{bad.address}"}}'] == 0
        status = json.loads(proxy.admin("/clusters?format=json"))["cluster_statuses"][0]
        flags = {f"{h['address']['socket_address']['address']}:{h['address']['socket_address']['port_value']}":
                 h["health_status"].get("failed_outlier_check", False) for h in status["host_statuses"]}
        assert flags[bad.address] is True and sum(flags.values()) == 1
    for u in [bad, *good]:
        u.close()


def told_of_the_path(proxy, up):
    lines = (line.rsplit("::", 2) for line in proxy.admin("/clusters").splitlines())
    told = {key: int(value) for host, key, value in lines
            if host.endswith(up.address) and key in ("firebreak_rtt_us", "firebreak_retransmits")}
    return told if len(told) == 2 else None


def test_clusters_shows_the_path_to_each_host():
    up = Upstream(answers(OK))
    with Proxy(config=config([up])) as proxy:
        proxy.client().get("/")
        # The worker asks the kernel when the answer is gone, and may lose its processor in between.
        wait_for(lambda: told_of_the_path(proxy, up), "the path to the host")
        told = told_of_the_path(proxy, up)
        assert 0 < told["firebreak_rtt_us"] < 1_000_000
        # Loopback loses nothing, but a kernel whose peer has no processor sends again all the same.
        status = json.loads(proxy.admin("/clusters?format=json"))["cluster_statuses"][0]
        path = status["host_statuses"][0]["firebreak"]["path"]
        assert 0 <= told["firebreak_retransmits"] <= path["retransmits"] < 10
    up.close()


def test_small_pages():
    with proxied(answers(OK)) as (proxy, _):
        assert get(proxy, "/ready")[::2] == (200, "LIVE\n")
        info = json.loads(get(proxy, "/server_info")[2])
        assert info["state"] == "LIVE" and info["version"].startswith("firebreak/")
        assert re.fullmatch(r"\d+s", info["uptime_current_epoch"])
        assert f"::127.0.0.1:{proxy.port}\n" in get(proxy, "/listeners")[2]
        status, _, body = get(proxy, "/nothing")
        assert status == 404 and body.startswith("invalid path. admin commands are:\n")
        assert get(proxy, "/stats?filter=(")[0] == 400
        assert get(proxy, "/quitquitquit")[0] == 405


@pytest.mark.parametrize("path", ["/drain_listeners", "/quitquitquit"])
def test_post_ends_the_process(path):
    with proxied(answers(OK)) as (proxy, _):
        evil = admin(proxy, b"POST %s HTTP/1.1\r\nHost: rebound.example.test\r\n\r\n" % path.encode())
        assert status_of(evil) == 403
        assert get(proxy, "/ready")[0] == 200
        answer = admin(proxy, b"POST %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and answer.endswith(b"\r\n\r\nOK\n")
        assert proxy.process.wait(PATIENCE) == 0


def test_drain_says_draining_while_a_request_is_under_way():
    def hang(peer):
        peer.read_head()
        peer.read_head()  # until the proxy hangs up

    with proxied(hang) as (proxy, _):
        client = proxy.client()
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: proxy.stat("firebreak.requests") == 1, "the request under way")
        proxy.admin("/drain_listeners", "POST")
        assert get(proxy, "/ready")[::2] == (503, "DRAINING\n")
        assert proxy.stat("server.live") == 0
        proxy.admin("/quitquitquit", "POST")
        assert proxy.process.wait(PATIENCE) == 0


def test_pipelined_and_kept_alive():
    with proxied(answers(OK)) as (proxy, _):
        answer = admin(proxy, b"GET /ready HTTP/1.1\r\nHost: a\r\n\r\n" * 20)
        assert answer.count(b"HTTP/1.1 200 OK") == 20 and answer.count(b"\r\n\r\nLIVE\n") == 20
        with socket.create_connection(("127.0.0.1", proxy.admin_port), timeout=PATIENCE) as s:
            peer = Peer(s)
            for _ in range(20):
                assert peer.get("/ready")[1] == b"LIVE\n"


def test_many_at_once_are_bounded_and_served():
    with proxied(answers(OK)) as (proxy, _):
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            codes = list(pool.map(lambda _: get(proxy, "/stats/prometheus")[0], range(100)))
        assert codes == [200] * 100
        held = [socket.create_connection(("127.0.0.1", proxy.admin_port)) for _ in range(16)]
        for s in held:
            s.sendall(b"GET /")
        wait_for(lambda: status_of(admin(proxy, b"GET /ready HTTP/1.1\r\nHost: a\r\n\r\n") or b"x 0 ") == 503,
                 "a full house")
        for s in held:
            s.close()
        wait_for(lambda: status_of(admin(proxy, b"GET /ready HTTP/1.1\r\nHost: a\r\n\r\n") or b"x 0 ") == 200,
                 "room again")


def test_a_page_of_thousands_of_hosts_read_slowly_or_not_at_all():
    hosts = "\n".join(f"      - {{ address: 127.1.{i // 250}.{i % 250 + 1}:9 }}" for i in range(5000))
    text = ("accessLog: { to: off }\nworkers: 1\nlisteners:\n  - name: web\n    listen: 127.0.0.1:0\n    routes:\n"
            "      - match: { pathPrefix: / }\n        cluster: many\nclusters:\n  - name: many\n    endpoints:\n" + hosts)
    with Proxy(config=text) as proxy:
        gone = [socket.create_connection(("127.0.0.1", proxy.admin_port)) for _ in range(3)]
        for s in gone:  # asks for all of it and leaves
            s.sendall(b"GET /clusters HTTP/1.1\r\nHost: a\r\n\r\n")
            s.recv(100)
            s.close()
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.settimeout(PATIENCE)
            s.connect(("127.0.0.1", proxy.admin_port))
            s.sendall(b"GET /clusters HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            s.recv(1)
            assert get(proxy, "/ready")[0] == 200  # the others need not wait for it
            whole = Peer(s).read_to_end()
        assert whole.endswith(b"\r\n0\r\n\r\n")
        page = get(proxy, "/clusters")[2]
        assert page.count("::health_flags::healthy\n") == 5000
        metrics = series(proxy, "/stats/prometheus?filter=endpoint")
        assert sum(k.startswith("firebreak_endpoint_healthy{") for k in metrics) == 5000


def test_a_page_of_ten_thousand_hosts_does_not_hold_up_the_others():
    """Small pages are answered between the pieces of a large one, however slowly that is read."""
    hosts = "\n".join(f"      - {{ address: 127.1.{i // 250}.{i % 250 + 1}:9 }}" for i in range(10000))
    text = ("accessLog: { to: off }\nworkers: 1\nlisteners:\n  - name: web\n    listen: 127.0.0.1:0\n    routes:\n"
            "      - match: { pathPrefix: / }\n        cluster: many\nclusters:\n  - name: many\n    endpoints:\n" + hosts)
    with Proxy(config=text) as proxy, concurrent.futures.ThreadPoolExecutor(4) as pool:
        before = proxy.rss()
        pages = ["/clusters", "/clusters?format=json", "/stats/prometheus", "/config_dump"]
        whole = [pool.submit(get, proxy, page) for page in pages]
        answered = 0
        while not all(f.done() for f in whole):
            assert get(proxy, "/ready")[0] == 200
            answered += 1
        bodies = [f.result()[2] for f in whole]
        assert answered > 5
        assert bodies[0].count("::health_flags::healthy\n") == 10000
        assert len(json.loads(bodies[1])["cluster_statuses"][0]["host_statuses"]) == 10000
        assert bodies[2].count("\nfirebreak_endpoint_healthy{") == 10000
        assert len(json.loads(bodies[3])["configs"][1]["static_clusters"][0]["cluster"]["endpoints"]) == 10000
        slow = []
        for _ in range(8):  # asked for, but not read
            c = socket.socket()
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            c.connect(("127.0.0.1", proxy.admin_port))
            c.sendall(b"GET /clusters HTTP/1.1\r\nHost: a\r\n\r\n")
            c.recv(1)
            slow.append(c)
        assert get(proxy, "/ready")[0] == 200
        assert proxy.rss() - before < 200 << 20
        for c in slow:
            c.close()


def test_openmetrics_as_a_parser_takes_it():
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    with proxied(answers(OK, FAILED)) as (proxy, _):
        client = proxy.client()
        client.get("/")
        client.get("/")
        asking = http.client.HTTPConnection("127.0.0.1", proxy.admin_port, timeout=PATIENCE)
        asking.request("GET", "/stats/prometheus", headers={
            "Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"})
        answer = asking.getresponse()
        page = answer.read().decode()  # in one piece or in chunks, as it was made
        asking.close()
        assert answer.getheader("content-type") == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        plain = series(proxy)
    families = {f.name: f for f in parser.text_string_to_metric_families(page)}
    assert families["firebreak_worker_turns"].type == "counter"
    assert families["firebreak_worker_turns"].samples[0].name == "firebreak_worker_turns_total"
    assert families["envoy_cluster_upstream_rq_time"].type == "histogram"
    assert families["envoy_cluster_upstream_rq"].type == "unknown"
    names = {s.name for f in families.values() for s in f.samples}
    assert {k.split("{")[0] for k in plain} == names  # the same names in both


def test_healthcheck_fail_ends_connections_but_goes_on_listening():
    with proxied(answers(OK)) as (proxy, _):
        client = proxy.client()
        assert b"connection: close" not in client.get("/")[0]
        assert proxy.admin("/healthcheck/fail", "POST") == "OK\n"
        assert get(proxy, "/ready")[::2] == (503, "DRAINING\n")
        assert b"connection: close" in client.get("/")[0]
        for _ in range(3):
            head = proxy.client().get("/")[0]
            assert status_of(head) == 200 and b"connection: close" in head
        wait_for(lambda: any(k.endswith("downstream_cx_drain_close") and int(v) == 4
                             for k, v in proxy.stats().items() if k.startswith("http.")), "the count")
        assert proxy.admin("/healthcheck/ok", "POST") == "OK\n"
        assert get(proxy, "/ready")[::2] == (200, "LIVE\n")
        assert b"connection: close" not in proxy.client().get("/")[0]


def test_counters_are_reset_under_traffic():
    with proxied(answers(OK)) as (proxy, _):
        cluster = next(k for k in proxy.stats() if k.endswith(".upstream_rq_total")).rsplit(".", 1)[0]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            def some(_):
                client = proxy.client()
                return [status_of(client.get("/")[0]) for _ in range(50)]
            work = [pool.submit(some, i) for i in range(4)]
            for _ in range(20):
                assert proxy.admin("/reset_counters", "POST") == "OK\n"
                value = proxy.stat(f"{cluster}.upstream_rq_total")
                assert 0 <= value <= 200
            assert all(f.result() == [200] * 50 for f in work)
        wait_for(lambda: proxy.stat(f"{cluster}.upstream_rq_active") == 0, "quiet")
        proxy.admin("/reset_counters", "POST")
        proxy.client().get("/")
        wait_for(lambda: proxy.stat(f"{cluster}.upstream_rq_completed") == 1, "the request counted")
        assert proxy.stat(f"{cluster}.upstream_rq_200") == 1 and proxy.stat(f"{cluster}.membership_total") == 1
        line = next(x for x in get(proxy, "/clusters")[2].splitlines() if "::rq_total::" in x)
        assert line.endswith("::rq_total::1")


MUTATING = ["/healthcheck/fail", "/healthcheck/ok", "/logging", "/reset_counters", "/drain_listeners", "/quitquitquit"]


@pytest.mark.parametrize("path", MUTATING)
def test_actions_need_post_from_here(path):
    """Rebinding: a foreign Host. Forgery: a foreign Origin. Both with a browser on this machine."""
    with proxied(answers(OK)) as (proxy, _):
        status, fields, body = get(proxy, path)
        assert (status, fields[b"allow"], body) == (405, b"POST", "Method GET not allowed, POST required.")
        port = proxy.admin_port
        evil = ["Host: evil.example", "Host: 192.0.2.1", f"Host: localhost.evil.example:{port}", "Host: 127.0.0.1.evil",
                "Host: localhost\r\nOrigin: http://evil.example", "Host: localhost\r\nOrigin: null",
                f"Host: localhost:{port}\r\nOrigin: http://localhost", "Host: 127.0.0.1\r\nOrigin: https://127.0.0.1",
                "Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example"]
        for head in evil:
            answer = admin(proxy, f"POST {path} HTTP/1.1\r\n{head}\r\n\r\n".encode())
            assert status_of(answer) == 403, head
        assert get(proxy, "/ready")[0] == 200
        good = admin(proxy, f"POST {path} HTTP/1.1\r\nHost: localhost:{port}\r\nOrigin: http://localhost:{port}\r\n\r\n".encode())
        assert status_of(good) == 200


def test_logging_is_changed_while_it_runs():
    with proxied(answers(OK)) as (proxy, _):
        assert proxy.admin("/logging", "POST") == "active loggers:\n  firebreak: info\n"
        assert proxy.admin("/logging?level=error", "POST") == "active loggers:\n  firebreak: error\n"
        proxy.admin("/healthcheck/fail", "POST")  # a warning
        assert proxy.admin("/logging?level=warning", "POST").endswith(": warning\n")
        proxy.admin("/healthcheck/ok", "POST")
        proxy.admin("/healthcheck/fail", "POST")
        assert proxy.errors().count("process.healthcheck") == 1


def test_admin_on_a_unix_socket(tmp_path):
    path = tmp_path / "admin.sock"
    text = (f"admin: {{ listen: 'unix:{path}' }}\nlisteners: [{{ name: web, listen: 127.0.0.1:0, routes: [{{ cluster: c }}] }}]\n"
            "clusters: [{ name: c, endpoints: [{ address: 127.0.0.1:9 }] }]\n")
    file = tmp_path / "firebreak.yaml"
    file.write_text(text)

    def begin():
        process = subprocess.Popen([FIREBREAK, "run", "-c", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in process.stdout:
            if line.startswith(b"admin "):
                assert line == f"admin unix:{path}\n".encode()
                return process
        raise AssertionError(process.stderr.read())

    def ask(data):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(str(path))
            s.sendall(data)
            return Peer(s).read_to_end()

    killed = begin()
    assert path.stat().st_mode & 0o777 == 0o600
    assert ask(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").endswith(b"LIVE\n")
    second = subprocess.run([FIREBREAK, "run", "-c", str(file)], capture_output=True, timeout=PATIENCE)
    assert second.returncode == 1 and b"in use" in second.stderr
    killed.kill()
    killed.wait()
    killed.stdout.close()
    killed.stderr.close()
    assert path.exists()  # left behind
    again = begin()
    assert ask(b"POST /quitquitquit HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").endswith(b"OK\n")
    assert again.wait(PATIENCE) == 0
    assert not path.exists()
    again.stdout.close()
    again.stderr.close()


def test_a_page_read_slowly_outlives_reloads_that_take_its_hosts_away():
    def text(first):
        hosts = "\n".join(f"      - {{ address: 127.1.{i // 250}.{i % 250 + 1}:9 }}" for i in range(first, first + 2000))
        return ("accessLog: { to: off }\nworkers: 1\nlisteners:\n  - name: web\n    listen: 127.0.0.1:0\n    routes:\n"
                "      - match: { pathPrefix: / }\n        cluster: many\nclusters:\n  - name: many\n    endpoints:\n" + hosts)

    with Proxy(config=text(0)) as proxy, socket.socket() as s:
        file = pathlib.Path(proxy.directory.name) / "firebreak.yaml"
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(PATIENCE)
        s.connect(("127.0.0.1", proxy.admin_port))
        s.sendall(b"GET /clusters HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        s.recv(1)
        for i in range(1, 7):
            file.write_text(text(2000 * (i % 2)))
            assert proxy.admin("/reload", "POST") == "OK\n"
            wait_for(lambda: proxy.stat("cluster.many.membership_total") == 2000, "the new hosts")
        page = Peer(s).read_to_end()
        assert page.endswith(b"\r\n0\r\n\r\n")
        page = b"".join(re.split(rb"\r\n(?:[0-9a-f]{8}\r\n)?", page))
        assert page.count(b"many::127.1.0.1:9::weight::1\n") == 1
        assert page.count(b"::weight::1\n") == 2000
        now = get(proxy, "/clusters")[2]
        assert now.count("::weight::1\n") == 2000


ADMIN_DOC = pathlib.Path(__file__).parents[2] / "docs/admin.md"


def test_the_examples_of_the_documentation_are_true():
    upstream = Upstream(answers(OK))
    text = config([upstream]).replace("backend", "checkout")
    sections = examples.read(ADMIN_DOC)
    with Proxy(config=text) as proxy:
        proxy.client().get("/")
        wait_for(lambda: proxy.stat("cluster.checkout.upstream_rq_200") == 1, "the request counted")
        for title, found in sections.items():
            for example in found:
                if "--unix-socket" not in example[0] and title not in ("drain_listeners", "quitquitquit"):
                    examples.run(example, proxy, upstream.address)
    for title in ("drain_listeners", "quitquitquit"):
        with Proxy(config=text) as proxy:
            for example in sections[title]:
                examples.run(example, proxy, upstream.address)
            assert proxy.process.wait(PATIENCE) == 0
    upstream.close()


def test_the_documentation_names_every_page():
    text = ADMIN_DOC.read_text()
    with proxied(answers(OK)) as (proxy, _):
        pages = re.findall(r"^  (/\S*)(?: \(POST\))?: ", get(proxy, "/help")[2], re.M)
    assert len(pages) > 12
    assert not [p for p in pages if f"`{p}`" not in text and f"`POST {p}`" not in text]


def test_an_admin_port_in_use_is_an_error_that_names_it():
    upstream = Upstream(answers(OK))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = subprocess.run([FIREBREAK, "run", "--to", upstream.address, "--listen", "127.0.0.1:0",
                                 "--admin", f"127.0.0.1:{port}"], capture_output=True, text=True, timeout=PATIENCE)
    upstream.close()
    assert result.returncode == 1
    assert f"127.0.0.1:{port}" in result.stderr and "in use" in result.stderr


def test_every_metric_is_in_the_documentation():
    words = set(re.findall(r"[\w.<>]+", pathlib.Path(__file__).parents[2].joinpath("docs/metrics.md").read_text()))
    words |= {w.rsplit(".", 1)[-1] for w in words}
    with proxied(answers(OK)) as (proxy, _):
        proxy.client().get("/")
        wait_for(lambda: any(k.endswith("upstream_rq_200") for k in proxy.stats()), "the request counted")
        names = list(proxy.stats())
        families = re.findall(r"^# TYPE (firebreak_\w+)", get(proxy, "/stats/prometheus")[2], re.M)
    assert len(names) > 100 and len(families) > 20
    missing = [n for n in names if re.sub(r"_\d{3}$", "_<code>", n.rsplit(".", 1)[1]) not in words]
    missing += [f for f in families if f not in words]
    assert not missing


def test_a_proxy_that_stood_still_says_how_long():
    release = threading.Event()

    def script(peer):
        while peer.read_head():
            release.wait(PATIENCE)

    upstream = Upstream(script)
    with Proxy(config=config([upstream], route="timeout: 500ms")) as proxy:
        def longest():
            return float(proxy.stats()["firebreak.worker.0.loop_lag_max"])

        def stood_still():
            """Stopped over a timeout that was to strike. Too slow to stop it before: once more."""
            client = proxy.client()
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            wait_for(lambda: proxy.stat("cluster.backend.upstream_rq_active") == 1, "the request")
            proxy.process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            wait_for(lambda: time.monotonic() > began + 1, "a second to pass")
            proxy.process.send_signal(signal.SIGCONT)
            assert status_of(client.answer()[0]) == 504
            return longest() > 400

        assert longest() < 400
        wait_for(stood_still, "the lag of a second")
        assert series(proxy)['firebreak_worker_loop_lag_count{worker="0"}'] >= 1
    release.set()
    upstream.close()
