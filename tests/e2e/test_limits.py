# SPDX-License-Identifier: Apache-2.0
"""Limits with real peers and several workers: what Envoy 1.40 was seen to do, the order of those
who wait, and what an operator is shown (T-004-1, T-004-3, T-004-9 of reference/scenarios.md)."""

import threading
import time

import pytest

import harness

CONFIG = """
admin: {{ listen: 127.0.0.1:0 }}
workers: {workers}
accessLog: {{ to: {log}, format: json }}
listeners:
  - name: web
    listen: 127.0.0.1:0
    routes: [{{ cluster: llm, timeout: 60s }}]
clusters:
  - name: llm
    endpoints: [{{ address: "{host}" }}]
    trafficPolicy:
      connectionPool:
        tcp: {{ maxConnections: {connections} }}
        http: {{ http1MaxPendingRequests: {pending}, maxRequestsPerConnection: {per_connection} }}
    resilience: {{ queueTimeout: {queue_timeout} }}
"""


@pytest.fixture
def limited(start, tmp_path):
    """limited(...): a proxy with these limits before one host that holds each answer."""

    def begin(connections, pending, hold="1s", workers=1, per_connection=0, queue_timeout="none"):
        host = start(harness.Backend)
        if hold != "0ms":
            host.fault("delay", value=hold)
        log = tmp_path / "access.log"
        path = tmp_path / "f.yaml"
        path.write_text(CONFIG.format(
            workers=workers, log=log, host=harness.show_address(host.address),
            connections=connections, pending=pending, per_connection=per_connection,
            queue_timeout=queue_timeout))
        proxy = start(harness.Proxy, "-c", str(path))
        proxy.log_path = log
        return proxy

    return begin


class Crowd:
    """Requests one after the other, each in a thread: (status, seconds until the answer, answer,
    when that came)."""

    def __init__(self, proxy):
        self.proxy = proxy
        self.threads = []
        self.answers = {}

    def ask(self, i):
        began = time.monotonic()
        answer = harness.request(self.proxy.address, "GET", "/")
        self.answers[i] = (answer.status, time.monotonic() - began, answer, time.monotonic())

    def come(self, count):
        for i in range(len(self.threads), len(self.threads) + count):
            self.threads.append(threading.Thread(target=self.ask, args=(i,)))
            self.threads[-1].start()
            harness.wait_for(lambda: self.proxy.stat("http.web.downstream_rq_total") == i + 1,
                             "a request")

    def wait_answers(self, count):
        harness.wait_for(lambda: len(self.answers) >= count, "answers")

    def end(self):
        for t in self.threads:
            t.join()
        return [self.answers.get(i) for i in range(len(self.threads))]


def crowd(proxy, count):
    many = Crowd(proxy)
    many.come(count)
    return many.end()


def overflows(proxy):
    lines = proxy.page("/stats?filter=upstream_(cx|rq_pending)_overflow").text().splitlines()
    return dict(line.split(": ") for line in lines)


def test_six_on_two_connections_come_in_three_waves(limited):
    proxy = limited(2, 1000)
    answers = crowd(proxy, 6)
    assert [a[0] for a in answers] == [200] * 6
    waits = [a[1] for a in answers]
    for wave, wait in enumerate(min(waits[i:i + 2]) for i in (0, 2, 4)):
        assert wait > 0.8 + 0.9 * wave, waits
    assert proxy.stat("cluster.llm.upstream_cx_total") == 2
    # Envoy 1.40: 7, or one less for each pair of answers that comes in one turn of the loop.
    assert overflows(proxy).keys() == {"cluster.llm.upstream_cx_overflow",
                                       "cluster.llm.upstream_rq_pending_overflow"}
    assert overflows(proxy)["cluster.llm.upstream_cx_overflow"] in ("5", "6", "7")
    assert overflows(proxy)["cluster.llm.upstream_rq_pending_overflow"] == "0"


def test_what_is_beyond_the_queue_is_refused_at_once_and_says_so(limited):
    proxy = limited(2, 3)
    answers = crowd(proxy, 8)
    assert [a[0] for a in answers] == [200] * 5 + [503] * 3
    for _, seconds, answer, _ in answers[5:]:
        assert seconds < 0.5
        assert answer.field("x-envoy-overloaded") == "true"
    for _, _, answer, _ in answers[:5]:
        assert answer.field("x-envoy-overloaded") is None
    assert overflows(proxy)["cluster.llm.upstream_cx_overflow"] in ("4", "5")
    assert overflows(proxy)["cluster.llm.upstream_rq_pending_overflow"] == "3"
    assert proxy.stat("cluster.llm.outlier_detection.ejections_enforced_total") == 0
    proxy.wait_line(r"limit\.reached.*http1MaxPendingRequests 3 is reached, 503 UO", proxy.err)
    proxy.wait_line(r"limit\.reached.*maxConnections 2 is reached, requests wait", proxy.err)
    harness.wait_for(lambda: len([line for line in proxy.log_path.read_text().splitlines()
                                  if '"UO"' in line]) == 3, "three lines with UO")


def test_limits_at_work_are_shown(limited):
    proxy = limited(1, 2, hold="20s")
    callers = [harness.Connection(proxy.address) for _ in range(3)]
    for c in callers:
        c.send(harness.compose("GET", "/"))
    gauge = "cluster.llm.circuit_breakers.default."
    harness.wait_for(lambda: proxy.stat(gauge + "rq_pending_open") == 1, "a full queue")
    assert proxy.stat(gauge + "cx_open") == 1
    assert proxy.stat(gauge + "remaining_cx") == 0
    assert proxy.stat(gauge + "remaining_pending") == 0
    assert proxy.stat("cluster.llm.circuit_breakers.high.cx_open") == 0
    prometheus = proxy.page("/stats/prometheus").text()
    assert 'envoy_cluster_circuit_breakers_default_cx_open{envoy_cluster_name="llm"} 1' in prometheus
    text = proxy.page("/clusters").text()
    assert "llm::firebreak_limit_reached::maxConnections: 1 of 1, requests wait\n" in text
    assert "llm::firebreak_limit_reached::http1MaxPendingRequests: 2 of 2, 503 UO\n" in text
    shown = proxy.page("/clusters?format=json").json()["cluster_statuses"][0]["firebreak"]
    assert [r["limit"] for r in shown["limits_reached"]] == [
        "maxConnections", "http1MaxPendingRequests"]
    for c in callers:
        c.reset()


@pytest.mark.multiworker
def test_four_workers_share_two_connections_and_none_starves(limited):
    proxy = limited(2, 1000, hold="100ms", workers=4)
    many = Crowd(proxy)
    many.come(20)
    many.wait_answers(len(many.answers) + 3)  # more than a wave of two, so a hold of 100 ms
    many.come(20)
    answers = many.end()
    assert [a[0] for a in answers] == [200] * 40
    # The order is that of coming, to 20 ms of four workers: none of the first twenty waits when the
    # first of the others is served, but who has the other connection and a caller slow to look.
    served = min(a[3] for a in answers[20:])
    assert sum(a[3] > served for a in answers[:20]) <= 2, [a[3] for a in answers]


@pytest.mark.multiworker
def test_an_idle_connection_of_another_worker_is_given_up(limited):
    proxy = limited(1, 10, hold="0ms", workers=4)
    for _ in range(30):
        began = time.monotonic()
        assert harness.request(proxy.address, "GET", "/").status == 200
        assert time.monotonic() - began < 5
    assert proxy.stat("cluster.llm.upstream_cx_active") == 1


def test_who_waits_too_long_is_refused(limited):
    proxy = limited(1, 10, hold="3s", queue_timeout="300ms")
    answers = crowd(proxy, 2)
    assert [a[0] for a in answers] == [200, 503]
    assert 0.2 < answers[1][1] < 2.5
    assert answers[1][2].field("x-envoy-overloaded") == "true"
    assert proxy.stat("cluster.llm.queue_timeout") == 1
