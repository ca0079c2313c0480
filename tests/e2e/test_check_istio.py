# SPDX-License-Identifier: Apache-2.0
"""What Istio says of a DestinationRule when it refuses or doubts it, firebreak check says as well, at
the spot (reference/envoy-semantics.md 8.6). A rule below is what stands in spec:, with the place
of the message marked by @; where our own words for any key say it already, they do. What Firebreak
has no part for yet is refused by name."""
import json
import subprocess

import pytest

from harness import binary

NATIVE = """listeners: [{name: web, listen: 127.0.0.1:1, routes: [{cluster: a, timeout: 20s}]}]
clusters:
- name: a
  host: a.t
  port: 80
  endpoints: [{address: 127.0.0.1:1}, {address: 127.0.0.1:2}, {address: 127.0.0.1:3}, {address: 127.0.0.1:4}]
"""

RULE = """apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: a}
spec:
  host: a.t
"""


def policy(text):
    return "  trafficPolicy: {%s}\n" % text


def pool(text):
    return policy("connectionPool: {%s}" % text)


def http(text):
    return pool("http: {%s}" % text)


def tcp(text):
    return pool("tcp: {%s}" % text)


def outlier(text):
    return policy("outlierDetection: {%s}" % text)


def balancer(text):
    return policy("loadBalancer: {%s}" % text)


REFUSED = [
    ("  trafficPolicy: @{}\n", "traffic policy must have at least one field"),
    (policy("portLevelSettings: [@{port: {number: 80}}]"), "port traffic policy must have at least one field"),
    (policy("portLevelSettings: [{port: @{}, tls: {mode: DISABLE}}]"), "portTrafficPolicy must have valid port"),
    (policy("portLevelSettings: [@{tls: {mode: DISABLE}}]"), "'port'"),
    (policy("connectionPool: @{}"), "connection pool must have at least one field"),
    (tcp("maxConnections: @-1"), "max connections must be non-negative"),
    (http("http1MaxPendingRequests: @-1"), "http1 max pending requests must be non-negative"),
    (http("http2MaxRequests: @-1"), "http2 max requests must be non-negative"),
    (http("maxRequestsPerConnection: @-1"), "max requests per connection must be non-negative"),
    (http("maxRetries: @-1"), "max retries must be non-negative"),
    (http("maxConcurrentStreams: @-1"), "max concurrent streams must be non-negative"),
    (tcp("connectTimeout: @0s"), "duration must be greater than 1ms"),
    (outlier("interval: @0ms"), "duration must be greater than 1ms"),
    (outlier("baseEjectionTime: @1500us"), "only durations to ms precision are supported"),
    (http("idleTimeout: @0s"), "duration must be greater than 1ms"),
    (outlier("maxEjectionPercent: @101"), "percentage 101 is not in range 0..100"),
    (outlier("minHealthPercent: @-1"), "percentage -1 is not in range 0..100"),
    (outlier("@consecutiveLocalOriginFailures: 3"),
     "outlier detection consecutive local origin failures is specified, but split external local "
     "origin errors is set to false"),
    (http("http2KeepAlive: @{timeout: 1s}"), "http2KeepAlive has no 'interval'"),
    (http("http2KeepAlive: @{interval: 1s}"), "http2KeepAlive has no 'timeout'"),
    ("  subsets: [@{}]\n", "subset"),
    ("  subsets: [{name: @''}]\n", "'name' must be text; not ''"),
    ("  subsets: [{name: v1}, {name: @v1}]\n", "duplicate subset names: v1"),
    ("  subsets: [{name: @'v 1'}]\n", "'name' may have up to 63 letters, digits"),
    (policy("tls: {mode: @MUTUAL}"), "TLS"),
    (policy("@tunnel: {protocol: CONNECT}"), "'tunnel'"),
    (policy("@proxyProtocol: {version: V1}"), "'proxyProtocol'"),
    (balancer("@consistentHash: {useSourceIp: true}"), "'consistentHash'"),
    (balancer("@warmup: {duration: 10s}"), "'warmup'"),
    (balancer("localityLbSetting: {@failover: []}"), "'failover'"),
]

DOUBTED = [
    (outlier("@consecutiveErrors: 5"),
     "outlier detection consecutive errors is deprecated, use consecutiveGatewayErrors or "
     "consecutive5xxErrors instead"),
]


def check(tmp_path, rule):
    file = tmp_path / "rule.yaml"
    native = tmp_path / "firebreak.yaml"
    text = RULE + rule
    before = text[:text.index("@")]
    file.write_text(text.replace("@", "", 1))
    native.write_text(NATIVE)
    done = subprocess.run([binary(), "check", "-c", native, "-c", file, "--json"], capture_output=True,
                          text=True, timeout=20)
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    return done.returncode, json.loads(done.stdout), (str(file), *place)


def place_of(message):
    return message["file"], message["line"], message["column"]


@pytest.mark.parametrize("rule,said", REFUSED, ids=[said[:60] for _, said in REFUSED])
def test_what_istio_refuses_is_refused_at_its_place(tmp_path, rule, said):
    code, told, place = check(tmp_path, rule)
    assert code == 2
    assert [place_of(e) for e in told["errors"]] == [place], told
    assert said in told["errors"][0]["message"]


@pytest.mark.parametrize("rule,said", DOUBTED, ids=[said[:60] for _, said in DOUBTED])
def test_what_istio_warns_of_is_warned_of_at_its_place(tmp_path, rule, said):
    code, told, place = check(tmp_path, rule)
    assert code == 0
    found = [f for f in told["findings"] if f["trap"] == "istio-says"]
    assert [place_of(f) for f in found] == [place], told
    assert said in found[0]["why"] and found[0]["severity"] == "warning"


@pytest.mark.parametrize("rule", [
    tcp("connectTimeout: 1ms"), outlier("maxEjectionPercent: 100"), outlier("maxEjectionPercent: 0"),
    http("http1MaxPendingRequests: 0"), http("h2UpgradePolicy: DEFAULT"),
    outlier("consecutiveLocalOriginFailures: 0"), policy("loadBalancer: {simple: LEAST_CONN}")])
def test_what_istio_takes_is_taken(tmp_path, rule):
    code, told, _ = check(tmp_path, rule + "#@")
    assert code == 0 and told["valid"], told
