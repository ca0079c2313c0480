# SPDX-License-Identifier: Apache-2.0
"""docs/adoption.md: each step's file is without traps, runs, and does what the step says and no more."""

import pathlib
import re

import pytest

from harness import ROOT, Backend, Connection, Process, Proxy, firebreak, show_address, wait_for

STEPS = sorted(pathlib.Path(ROOT, "examples/adoption").glob("*.yaml"))
LONG = 60  # within which detection has acted; it takes seconds


@pytest.mark.parametrize("path", STEPS, ids=lambda p: p.stem)
def test_each_step_is_without_traps(path):
    code, out, err = firebreak("check", "-c", path, "--strict")
    assert code == 0 and err == "", out + err


def test_the_guide_names_each_step():
    guide = pathlib.Path(ROOT, "docs/adoption.md").read_text()
    assert len(STEPS) == 4
    assert [p.name for p in STEPS if p.name not in guide] == []


def test_the_dump_shows_all_of_it(start, tmp_path):
    file = tmp_path / "dumped.yaml"
    file.write_text("""admin: {listen: 127.0.0.1:0}
accessLog: {to: off}
listeners:
  - name: web
    listen: 127.0.0.1:0
    routes:
      - {match: {pathPrefix: /search}, cluster: a, class: search}
      - {cluster: a, largeBody: 1MiB}
clusters:
  - name: a
    endpoints: [{address: 127.0.0.1:1}, {address: 127.0.0.1:2}, {address: 127.0.0.1:3}]
    resilience:
      profile: adaptive
      detect: {errors: off, falseAlarms: 1 per week}
      ejection: {cap: 40%, base: 20s, max: 4m}
      readmit: {after: 1s, gap: 4s, probes: 2, successes: 9, ramp: 8s}
      capacity: {maxLoad: 60%}
      escalate: {repeatedFor: 10m, timesPerHour: 5}
""")
    dump = start(Proxy, "-c", file).page("/config_dump").json()["configs"]
    cluster = dump[1]["static_clusters"][0]["cluster"]
    found = dict(cluster["firebreak"]["detection"])
    assert abs(found.pop("threshold_nats") - 16.752) < 0.002
    assert found == {
        "on": True, "mode": "enforce", "profile": "adaptive", "latency": True, "errors": False, "connections": True,
        "max_load": 0.6, "least_share_permille": 50, "probed_soon": True, "probe_after": "1s", "probe_gap": "4s",
        "probes": 2, "successes": 9, "ramp": "8s", "quarantine_base": "20s", "quarantine_max": "240s",
        "needs_human_after": "600s", "needs_human_times_per_hour": 5}
    assert cluster["outlier_detection"]["max_ejection_percent"] == 40
    routes = dump[3]["static_route_configs"][0]["route_config"]["routes"]
    assert [(r.get("class"), r.get("large_body")) for r in routes] == [("search", None), (None, "1048576")]


class Site:
    """Four servers, a proxy with the file of a step, and traffic."""

    def __init__(self, start, step, tmp_path, rate=200):
        text = next(p for p in STEPS if p.name.startswith(str(step))).read_text()
        self.backend = start(Backend, 4, "--service", "lognormal:4ms:0.3")
        for i, server in enumerate(self.backend.servers):
            text = text.replace(f"127.0.0.1:900{i + 1}", show_address(server))
        file = tmp_path / "step.yaml"
        file.write_text(re.sub(r"127\.0\.0\.1:(8080|9901)", "127.0.0.1:0", text) + "accessLog: { to: off }\n")
        self.proxy = start(Proxy, "-c", file)
        self.load = start(Process, "load", "--url", f"http://{show_address(self.proxy.address)}/", "--rate", rate,
                          "--duration", "10m")
        wait_for(lambda: self.proxy.stat("cluster.checkout.upstream_rq_completed") > 5 * rate, "some traffic", LONG)

    def out(self):
        return [name for name, host in self.proxy.hosts("checkout").items()
                if host["health_status"].get("failed_outlier_check")]

    def ejections(self):
        return self.proxy.stat("cluster.checkout.outlier_detection.ejections_enforced_total")

    def logged(self, event):
        return any(event in line for line in self.proxy.err)

    def bad(self, fault, **keys):
        self.backend.fault(fault, server=0, **keys)
        return show_address(self.backend.servers[0])


def test_step_one_says_what_it_would_do_and_does_nothing(start, tmp_path):
    site = Site(start, 1, tmp_path)
    site.bad("status", value=500)
    wait_for(lambda: site.logged("endpoint.observed"), "what would be done", LONG)
    assert site.out() == [] and site.ejections() == 0


def test_step_two_takes_out_who_fails_and_leaves_in_who_is_slow(start, tmp_path):
    site = Site(start, 2, tmp_path)
    slow = site.bad("delay", value="60ms")
    wait_for(lambda: site.logged(f"{slow} of cluster checkout is suspect"), "the slow one to get less", LONG)
    assert site.out() == []
    site.backend.clear()
    failing = site.bad("status", value=500)
    wait_for(lambda: site.out() == [failing], "the failing one to go", LONG)


def test_step_three_hides_the_failures_before_the_ejection(start, tmp_path):
    site = Site(start, 3, tmp_path)
    before = site.proxy.stat("cluster.checkout.upstream_rq_5xx")
    failing = site.bad("status", value=500)
    wait_for(lambda: site.out() == [failing], "the failing one to go", LONG)
    wait_for(lambda: site.proxy.stat("cluster.checkout.upstream_rq_retry") > 0, "the retries of what it failed")
    assert site.proxy.stat("cluster.checkout.upstream_rq_5xx") == before
    with Connection(site.proxy.address) as c:
        assert c.request("GET", "/").status == 200


def test_step_four_takes_out_who_is_slow_and_lets_it_back_on_proof(start, tmp_path):
    site = Site(start, 4, tmp_path)
    slow = site.bad("delay", value="150ms")
    wait_for(lambda: site.out() == [slow], "the slow one to go", LONG)
    site.backend.clear()
    wait_for(lambda: site.out() == [], "it to come back", LONG)
    wait_for(lambda: site.logged(f"endpoint.whole {slow} of cluster checkout"), "its whole share", LONG)
