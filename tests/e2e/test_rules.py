# SPDX-License-Identifier: Apache-2.0
"""resilience.rules: where they act, where they are only counted, and what they leave alone."""

import http.client

import pytest

from rawpeers import OK, Proxy, Upstream, answers, config, wait_for

FAILED = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 3\r\n\r\nbad"

# No five in a row: the balancer goes round, and every other answer is good.
RULE = "{ signal: error, above: 30%, within: 10s, minRequests: 20 }"
CLUSTER = "loadBalancer: round_robin\nresilience: {{ {words}, detect: {{ errors: off, latency: off }} }}\n"


def every_other():
    return answers(*[FAILED, OK] * 200)


def run(words, scripts, requests=150):
    ups = [Upstream(s) for s in scripts]
    proxy = Proxy(config=config(ups, cluster=CLUSTER.format(words=words)))
    conn = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    for _ in range(requests):
        conn.request("GET", "/")
        conn.getresponse().read()
    conn.close()
    return proxy, ups


def counted(proxy, what):
    return proxy.stat(f"cluster.backend.outlier_detection.ejections_{what}")


@pytest.mark.parametrize("words", [f"profile: rules, rules: [{RULE}]", f"profile: adaptive, rules: [{RULE}]"])
def test_a_share_of_errors_ejects_the_host_it_is_of(words):
    proxy, ups = run(words, [every_other()] + [answers(OK)] * 4)
    with proxy:
        wait_for(lambda: counted(proxy, "enforced_rules") == 1, "the ejection by the rule")
        assert counted(proxy, "detected_rules") == 1
        assert counted(proxy, "enforced_detection") == 1
        assert f"{ups[0].address} of cluster backend: ejected: rule 1 (error): " in proxy.errors()
        assert f"{ups[0].address}::health_flags::/failed_outlier_check" in proxy.admin("/clusters")


@pytest.mark.parametrize("words", [f"rules: [{RULE}]", f"profile: rules, mode: observe, rules: [{RULE}]"])
def test_with_starter_or_to_observe_it_is_only_counted(words):
    proxy, _ = run(words, [every_other()] + [answers(OK)] * 4)
    with proxy:
        wait_for(lambda: counted(proxy, "detected_rules") == 1, "the rule")
        assert "would be ejected: rule 1 (error): " in proxy.errors()
        assert counted(proxy, "enforced_rules") == counted(proxy, "active") == 0


def test_what_all_hosts_have_ejects_nobody():
    proxy, _ = run(f"profile: rules, rules: [{RULE}]", [every_other() for _ in range(5)], requests=300)
    with proxy:
        wait_for(lambda: "its peers fare alike: rule 1 (error): " in proxy.errors(), "the line")
        assert counted(proxy, "active") == 0


def test_the_cap_holds_for_rules_as_for_all():
    scripts = [every_other(), every_other()] + [answers(OK)] * 20
    proxy, _ = run(f"profile: rules, rules: [{RULE}], ejection: {{ cap: 4% }}", scripts, requests=1100)
    with proxy:
        wait_for(lambda: "of cluster backend: cap: rule 1 (error): " in proxy.errors(), "the guard's line")
        assert counted(proxy, "enforced_rules") == counted(proxy, "active") == 1
