# SPDX-License-Identifier: Apache-2.0
"""Ejections as Envoy logs them, on a real file; and a run that follows Envoy in all."""

import http.client
import json
import signal

from rawpeers import OK, Proxy, Upstream, answers, config, wait_for

FAILED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\n\r\nbad"

POLICY = """trafficPolicy:
  outlierDetection: { consecutive5xxErrors: 3, maxEjectionPercent: 50, baseEjectionTime: 1s, interval: 100ms }
"""


def events(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def ask(proxy, times):
    conn = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    for _ in range(times):
        conn.request("GET", "/")
        conn.getresponse().read()
    conn.close()


def test_ejection_and_return_in_envoys_form_and_a_rotated_file(tmp_path):
    log = tmp_path / "events.json"
    bad, good = Upstream(answers(FAILED)), Upstream(answers(OK))
    text = f"outlierEventLog: {log}\n" + config([bad, good], cluster=POLICY)
    with Proxy(config=text, args=("--semantics", "envoy")) as proxy:
        ask(proxy, 6)
        first = wait_for(lambda: events(log), "the ejection")[0]
        assert list(first) == ["type", "timestamp", "cluster_name", "upstream_url", "action", "num_ejections",
                               "enforced", "eject_consecutive_event"]
        assert first["type"] == "CONSECUTIVE_5XX"
        assert first["upstream_url"] == bad.address
        assert (first["action"], first["num_ejections"], first["enforced"]) == ("EJECT", 1, True)
        last = wait_for(lambda: len(events(log)) == 2 and events(log)[1], "the return")
        assert (last["action"], last["enforced"], last["secs_since_last_action"]) == ("UNEJECT", False, "1")

        old = log.rename(tmp_path / "events.old")
        proxy.process.send_signal(signal.SIGUSR1)
        wait_for(log.exists, "the new file")
        ask(proxy, 6)
        again = wait_for(lambda: events(log), "the second ejection")[0]
        assert (again["action"], again["num_ejections"]) == ("EJECT", 2)
        assert len(events(old)) == 2


def test_ours_keeps_the_last_two_where_envoys_semantics_does_not(tmp_path):
    for semantics, out in (("firebreak", 0), ("envoy", 1)):
        log = tmp_path / semantics
        bad, good = Upstream(answers(FAILED)), Upstream(answers(OK))
        text = f"outlierEventLog: {log}\n" + config([bad, good], cluster=POLICY.replace("1s", "60s"))
        with Proxy(config=text, args=("--semantics", semantics)) as proxy:
            ask(proxy, 10)
            wait_for(lambda: len(events(log)) == out, "as many ejections as that")


def test_what_is_done_by_hand_is_in_the_log(tmp_path):
    log = tmp_path / "events.json"
    ups = [Upstream(answers(OK)), Upstream(answers(OK))]
    policy = POLICY.replace("1s", "300s").replace("}", "}\nresilience: { semantics: envoy }")
    text = f"outlierEventLog: {log}\n" + config(ups, cluster=policy)
    with Proxy(config=text) as proxy:
        def hand(deed):
            return proxy.admin(f"/clusters/backend/hosts/{ups[0].address}/{deed}", "POST")

        for deed in ("drain", "drain", "undrain", "undrain", "pardon", "eject", "eject", "pardon"):
            hand(deed)
        seen = wait_for(lambda: len(events(log)) == 4 and events(log), "four lines")
        assert list(seen[0]) == ["type", "timestamp", "cluster_name", "upstream_url", "action", "num_ejections",
                                 "enforced"]
        assert {(e["type"], e["cluster_name"], e["upstream_url"]) for e in seen} == {
            ("BY_HAND", "backend", ups[0].address)}
        assert [(e["action"], e["num_ejections"], e["enforced"], "secs_since_last_action" in e) for e in seen] == [
            ("DRAIN", 0, True, False), ("UNDRAIN", 0, False, True), ("EJECT", 1, True, False),
            ("UNEJECT", 1, False, True)]


def test_lines_that_a_full_disk_costs_are_counted():
    up = Upstream(answers(OK))
    text = "outlierEventLog: /dev/full\n" + config([up], cluster=POLICY)
    with Proxy(config=text) as proxy:
        conn = http.client.HTTPConnection("127.0.0.1", proxy.admin_port, timeout=20)
        for i in range(2000):  # some 200 bytes each: more than may wait
            deed = "undrain" if i % 2 else "drain"
            conn.request("POST", f"/clusters/backend/hosts/{up.address}/{deed}")
            assert conn.getresponse().read().startswith(b"in again" if i % 2 else b"draining")
        assert 100 < proxy.stat("firebreak.event_log_dropped") < 2000
        assert "firebreak_event_log_dropped_total" in proxy.admin("/stats/prometheus?filter=event_log")
        assert proxy.errors().count("event_log.trouble") == 1
    up.close()
