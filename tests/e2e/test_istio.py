# SPDX-License-Identifier: Apache-2.0
"""A DestinationRule beside the native document: its limits cut, and operators see what they know
from Istio (reference/scenarios.md T-004-1, T-004-3)."""

import contextlib
import json
import re
import threading

import pytest

from harness import Connection, Process, Proxy, compose, request
from rawpeers import OK, ROOT, Upstream, wait_for

EXAMPLES = ROOT / "examples"
NAME = "outbound|80||llm-server.mesh-demo.svc.cluster.local"
FILTER = "/stats?filter=upstream_(cx|rq_pending)_overflow"


@pytest.fixture
def upstream():
    """Holds its answers until it is let go."""
    go = threading.Event()

    def script(peer):
        while True:
            peer.read_head()
            go.wait()
            peer.send(OK)

    one = Upstream(script)
    one.go = go
    yield one
    go.set()
    one.close()


def example(tmp_path, upstream, **limits):
    """The two files, as given but for addresses and |limits|."""
    native = (EXAMPLES / "llm-server.yaml").read_text()
    native = native.replace("0.0.0.0:8080", "127.0.0.1:0").replace("127.0.0.1:15000", "127.0.0.1:0")
    native = native.replace("127.0.0.1:9001", upstream.address)
    native = "\n".join(line for line in native.split("\n") if "9002" not in line)
    rule = (EXAMPLES / "llm-server.destinationrule.yaml").read_text()
    for key, value in limits.items():
        rule, n = re.subn(rf"{key}: \S+", f"{key}: {value}", rule)
        assert n == 1, key
    (tmp_path / "native.yaml").write_text(native)
    (tmp_path / "rule.yaml").write_text(rule)
    return "-c", tmp_path / "native.yaml", "-c", tmp_path / "rule.yaml"


def overflows(proxy):
    """{last part of the name: value} of the two lines there must be."""
    lines = request(proxy.admin, "GET", FILTER).body.decode().splitlines()
    assert [line.rsplit(": ", 1)[0] for line in lines] == [
        f"cluster.{NAME}.upstream_cx_overflow", f"cluster.{NAME}.upstream_rq_pending_overflow"], lines
    return [int(line.rsplit(": ", 1)[1]) for line in lines]


def ask(proxy, answers):
    answers.append(request(proxy.address, "GET", "/"))


def test_the_two_overflows_rise_only_while_limits_cut(start, tmp_path, upstream):
    proxy = start(Proxy, *example(tmp_path, upstream, maxConnections=1, http1MaxPendingRequests=1),
                  "--workers", "1")
    upstream.go.set()
    assert request(proxy.address, "GET", "/").status == 200
    assert overflows(proxy) == [0, 0]

    upstream.go.clear()
    answers = []
    clients = [threading.Thread(target=ask, args=(proxy, answers)) for _ in range(6)]
    for client in clients:
        client.start()
    wait_for(lambda: len(answers) == 4, "the four that have no place")
    assert {a.status for a in answers} == {503}
    cx, pending = overflows(proxy)
    assert cx >= 1 and pending == 4

    upstream.go.set()
    for client in clients:
        client.join()
    assert sorted(a.status for a in answers) == [200, 200, 503, 503, 503, 503]
    at_rest = overflows(proxy)
    assert request(proxy.address, "GET", "/").status == 200
    assert overflows(proxy) == at_rest


@pytest.mark.multiworker
def test_T_004_1_the_rule_unchanged_refuses_a_hundred_of_1200(start, tmp_path, upstream):
    files = example(tmp_path, upstream)
    with open(files[1], "a") as native:
        native.write("memoryLimit: 1GiB\n")  # room for 1,200 requests on any machine
    log = tmp_path / "access.log"
    proxy = start(Proxy, *files, "--access-log", log)
    cluster = f"cluster.{NAME}."

    with contextlib.ExitStack() as stack:
        def callers(count):
            for _ in range(count):
                stack.enter_context(caller := Connection(proxy.address))
                caller.send(compose("GET", "/"))
                yield caller

        everybody = list(callers(100))
        wait_for(lambda: proxy.stat(cluster + "upstream_rq_active") == 100, "a hundred held")
        everybody += callers(1100)
        wait_for(lambda: proxy.stat("http.web.downstream_rq_total") == 1200, "all requests")
        assert proxy.stat(cluster + "upstream_rq_pending_overflow") == 100
        assert proxy.stat(cluster + "upstream_rq_pending_active") == 1000
        assert proxy.stat(cluster + "upstream_rq_active") == 100
        assert proxy.stat(cluster + "upstream_cx_total") == 100
        assert proxy.stat(cluster + "circuit_breakers.default.cx_open") == 1
        assert proxy.stat(cluster + "circuit_breakers.default.rq_pending_open") == 1
        assert overflows(proxy)[1] == 100

        upstream.go.set()
        answers = [caller.read_answer() for caller in everybody]

    assert [a.status for a in answers].count(200) == 1100
    refused = [a for a in answers if a.status != 200]
    assert len(refused) == 100
    assert {(a.status, a.field("x-envoy-overloaded")) for a in refused} == {(503, "true")}
    records = wait_for(lambda: lines_of(log, 1200), "1,200 lines of the log")
    cut = [r for r in records if "UO" in r["response_flags"]]
    assert len(cut) == 100
    assert {r["response_code"] for r in cut} == {503}
    assert max(r["duration"] for r in cut) < 5
    for kind in ("5xx", "gateway_failure", "local_origin_failure"):
        assert proxy.stat(cluster + f"outlier_detection.ejections_detected_consecutive_{kind}") == 0
    assert proxy.stat(cluster + "outlier_detection.ejections_enforced_total") == 0


def lines_of(log, count):
    lines = log.read_text().splitlines() if log.exists() else []
    return [json.loads(line) for line in lines] if len(lines) >= count else None


def test_the_rule_is_shown_under_istios_name(start, tmp_path, upstream):
    proxy = start(Proxy, *example(tmp_path, upstream), "--access-log", "stdout")
    upstream.go.set()
    assert request(proxy.address, "GET", "/").status == 200
    proxy.wait_line(re.escape(f'"upstream_cluster":"{NAME}"'))
    clusters = request(proxy.admin, "GET", "/clusters").body.decode()
    for line in ("max_connections::100", "max_pending_requests::1000", "max_requests::10000", "max_retries::2"):
        assert f"{NAME}::default_priority::{line}\n" in clusters
    assert f"{NAME}::observability_name::{NAME}\n" in clusters
    prometheus = request(proxy.admin, "GET", "/stats/prometheus").body.decode()
    assert f'envoy_cluster_upstream_rq_total{{envoy_cluster_name="{NAME}"}} 1\n' in prometheus
    assert request(proxy.admin, "GET", "/clusters?filter=^llm-server$").body.decode() == clusters


def test_the_files_may_come_in_any_order_and_each_can_be_wrong(start, tmp_path, upstream):
    _, native, _, rule = example(tmp_path, upstream)
    assert start(Proxy, "-c", rule, "-c", native).listeners

    rule.write_text(rule.read_text().replace("connectTimeout: 300ms", "connectTimeout: 300us"))
    broken = Process("run", "-c", native, "-c", rule)
    assert broken.wait() == 2
    assert (f"{rule}:12:25: 'connectTimeout' must be a number with a unit: 500ms, 15s, 1m; not '300us': only durations "
            "to ms precision are supported") in broken.err[0]
    assert broken.err[1].strip().startswith("connectTimeout: 300us")
    assert broken.err[2] == " " * (4 + 24) + "^"

    missing = Process("run", "-c", native, "-c", tmp_path / "none.yaml")
    assert missing.wait() == 2
    assert missing.err == [f"{tmp_path}/none.yaml: cannot be read: not found"]


def test_a_host_is_drained_by_every_name_of_its_cluster(start, tmp_path, upstream):
    proxy = start(Proxy, *example(tmp_path, upstream))
    host = upstream.address
    for name in ("llm-server", "llm-server.mesh-demo.svc.cluster.local", NAME, NAME.replace("|", "%7C")):
        for deed in ("drain", "undrain"):
            answer = request(proxy.admin, "POST", f"/clusters/{name}/hosts/{host}/{deed}",
                             [("Host", "localhost")])
            assert answer.status == 200, (name, answer)
    assert request(proxy.admin, "POST", f"/clusters/llm/hosts/{host}/drain", [("Host", "localhost")]).status == 404
