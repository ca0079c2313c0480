# SPDX-License-Identifier: Apache-2.0
"""Detection, on real hosts: the bad one is found, loses its requests, and comes back by proof."""
import http.client
import threading
import time

import pytest

from harness import Backend, Proxy, show_address, wait_for

CONFIG = """
admin: {{ listen: "127.0.0.1:0" }}
workers: {workers}
listeners:
  - name: web
    listen: "127.0.0.1:0"
    routes: [ {{ cluster: shop, timeout: {timeout} }} ]
clusters:
  - name: shop
    endpoints: [{endpoints}]
    resilience: {{ {resilience} }}
"""


class Clients:
    """Keep-alive clients that ask one request after another, together so many a second."""

    def __init__(self, address, rate=400, count=8):
        self.address = address
        self.gap = count / rate
        self.stopped = threading.Event()
        self.lock = threading.Lock()
        self.answers = []  # (when, status or None, who answered, seconds)
        self.threads = [threading.Thread(target=self._ask) for _ in range(count)]
        for t in self.threads:
            t.start()

    def _one(self, conn):
        began = time.monotonic()
        status = host = None
        try:
            conn.request("GET", "/")
            answer = conn.getresponse()
            body = answer.read()
            status, host = answer.status, answer.getheader("x-firebreak-backend")
            if len(body) != int(answer.getheader("content-length", len(body))):
                status = None
        except (OSError, http.client.HTTPException):
            conn.close()
        with self.lock:
            self.answers.append((began, status, host, time.monotonic() - began))

    def _ask(self):
        conn = http.client.HTTPConnection(*self.address, timeout=20)
        due = time.monotonic()
        while not self.stopped.wait(max(0.0, due - time.monotonic())):
            due += self.gap
            self._one(conn)
        conn.close()

    def since(self, when):
        with self.lock:
            return [a for a in self.answers if a[0] >= when]

    def asked(self, n, since=None):
        """Waits for |n| more answers, and gives them."""
        since = time.monotonic() if since is None else since
        return wait_for(lambda: (lambda a: len(a) >= n and a)(self.since(since)), f"{n} answers")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for t in self.threads:
            t.join()


class Shop:
    """Ten hosts behind a proxy with a profile."""

    def __init__(self, start, tmp_path, resilience, service="uniform:4ms:12ms", workers=2, count=10,
                 timeout="8s"):
        self.hosts = start(Backend, count, "--service", service)
        path = tmp_path / "firebreak.yaml"
        path.write_text(CONFIG.format(
            workers=workers, timeout=timeout, resilience=resilience,
            endpoints=", ".join(f'{{ address: "{show_address(a)}" }}' for a in self.hosts.servers)))
        self.proxy = start(Proxy, "--config", path)
        self.count = count

    def name(self, index):
        return show_address(self.hosts.servers[index])

    def is_out(self, index):
        return self.proxy.hosts()[self.name(index)]["health_status"].get("failed_outlier_check", False)

    def out(self):
        return [i for i in range(self.count) if self.is_out(i)]

    def served(self, index):
        return self.hosts.stats(index)["requests"]

    def said(self, event):
        return [line for line in self.proxy.err if event in line]


def failures(answers):
    return [a for a in answers if a[1] is None or a[1] >= 500]



@pytest.mark.multiworker
def test_a_host_that_answers_503_is_out_after_a_few_and_back_by_proof(start, tmp_path):
    shop = Shop(start, tmp_path, "profile: adaptive")
    with Clients(shop.proxy.address) as clients:
        clients.asked(400)
        began = time.monotonic()
        shop.hosts.fault("status", value=503, server=3)
        wait_for(lambda: shop.is_out(3), "the ejection")
        assert 1 <= len(failures(clients.since(began))) < 60  # it had some 40 a second
        out = time.monotonic()
        wait_for(lambda: shop.proxy.stat("cluster.shop.probe_made_good") >= 2, "probes that fail")
        assert failures(clients.asked(800, out)) == []  # and are made good
        assert shop.out() == [3]
        shop.hosts.clear()
        wait_for(lambda: not shop.is_out(3), "its return")
        wait_for(lambda: shop.said("endpoint.whole"), "the end of its ramp")
        assert failures(clients.asked(400)) == []
        assert failures(clients.since(out)) == []
        share = [sum(a[2] == shop.name(i) for a in clients.asked(1000)) for i in range(10)]
        assert min(share) > 50  # all of them serve


@pytest.mark.multiworker
def test_a_black_hole_costs_a_few_requests_and_is_out(start, tmp_path):
    shop = Shop(start, tmp_path, "profile: adaptive", timeout="3s")
    with Clients(shop.proxy.address, count=24) as clients:
        clients.asked(1200)
        began = time.monotonic()
        shop.hosts.fault("hang", server=7)
        wait_for(lambda: shop.is_out(7), "the ejection")
        assert len(failures(clients.since(began))) < 12  # those it held: the least load shuns it
        later = time.monotonic()
        assert failures(clients.asked(800, later)) == []
        assert shop.out() == [7]


@pytest.mark.multiworker
def test_a_slow_host_gets_little_and_starter_never_less_than_a_fifth(start, tmp_path):
    shop = Shop(start, tmp_path, "profile: starter")
    with Clients(shop.proxy.address, count=16) as clients:
        clients.asked(1200)
        shop.hosts.fault("slow", value=10, server=2)
        wait_for(lambda: shop.said("is suspect"), "the suspicion")
        answers = clients.asked(2000)
        share = sum(a[2] == shop.name(2) for a in answers) / (len(answers) / 10)
        assert 0.1 < share < 0.3  # a fifth of what is fair
        assert shop.out() == []  # latency alone ejects nobody
        assert not shop.said("endpoint.ejected")


def test_what_a_suspect_of_three_is_late_with_another_answers(start, tmp_path):
    shop = Shop(start, tmp_path, "profile: adaptive", count=3)
    with Clients(shop.proxy.address, count=16) as clients:
        clients.asked(1200)
        shop.hosts.fault("slow", value=20, server=1)
        wait_for(lambda: shop.said("is suspect"), "the suspicion")
        suspect = time.monotonic()
        wait_for(lambda: shop.proxy.stat("cluster.shop.probe_made_good") >= 3, "trials that are late")
        assert failures(clients.asked(400, suspect)) == []
        assert shop.out() == []  # few are left: it is cut only
        assert shop.proxy.stat("cluster.shop.upstream_rq_per_try_timeout") == 0
        assert shop.proxy.stat("cluster.shop.upstream_rq_timeout") == 0
        shop.hosts.clear()
        wait_for(lambda: shop.said("endpoint.cleared") or shop.said("endpoint.whole"), "that it is none any more")
        assert failures(clients.asked(400)) == []


def test_least_load_gives_a_slow_host_less_than_a_fifth_before_anything_is_judged(start, tmp_path):
    shop = Shop(start, tmp_path, "mode: observe")
    with Clients(shop.proxy.address, count=16) as clients:
        clients.asked(400)
        shop.hosts.fault("slow", value=10, server=2)
        clients.asked(400)
        answers = clients.asked(2000)
        assert sum(a[2] == shop.name(2) for a in answers) < len(answers) / 10 / 5
        assert shop.out() == []
        assert not shop.said("is suspect")


def test_answers_that_are_cut_in_their_body_eject(start, tmp_path):
    shop = Shop(start, tmp_path, "profile: adaptive")
    with Clients(shop.proxy.address) as clients:
        clients.asked(800)
        shop.hosts.fault("reset-mid-body", server=5)
        wait_for(lambda: shop.is_out(5), "the ejection")
        assert shop.out() == [5]
        shop.hosts.clear()
        wait_for(lambda: not shop.is_out(5), "its return")


def test_who_observes_says_so_and_does_nothing(start, tmp_path):
    shop = Shop(start, tmp_path, "mode: observe, profile: adaptive")
    with Clients(shop.proxy.address) as clients:
        clients.asked(400)
        shop.hosts.fault("status", value=503, probability=0.4, server=4)
        wait_for(lambda: shop.said("endpoint.observed"), "the line that says so")
        clients.asked(800)
        assert shop.out() == []
        assert not shop.said("endpoint.accused") and not shop.said("endpoint.suspected")
