# SPDX-License-Identifier: Apache-2.0
"""docs/runbook.md: each command is run against a proxy on which what it is about is happening."""

import contextlib
import pathlib
import re
import socket
import threading

import pytest

import examples
from rawpeers import OK, PATIENCE, Proxy, Upstream, answers, status_of, wait_for

RUNBOOK = pathlib.Path(__file__).parents[2] / "docs/runbook.md"
FAILED = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 3\r\n\r\nbad"


SECTIONS = examples.read(RUNBOOK)


def check(section, proxy, address):
    for example in SECTIONS[section]:
        examples.run(example, proxy, address)


def config(address, route="", cluster=""):
    return ("accessLog: { to: off }\nworkers: 1\nlisteners:\n  - name: web\n    listen: 127.0.0.1:0\n    routes:\n"
            f"      - match: {{ pathPrefix: / }}\n        cluster: checkout\n{route}"
            f"clusters:\n  - name: checkout\n{cluster}    endpoints:\n      - {{ address: {address} }}\n")


@contextlib.contextmanager
def silent():
    """An upstream that takes requests and says nothing."""
    done = threading.Event()

    def hang(peer):
        peer.read_head()
        done.wait(PATIENCE)

    upstream = Upstream(hang)
    yield upstream
    done.set()
    upstream.close()


def get(proxy, path="/"):
    client = proxy.client()
    status = status_of(client.get(path)[0])
    client.close()
    return status


def hold(proxy, n):
    """|n| more requests under way."""
    before = proxy.stat("firebreak.requests")
    clients = []
    for _ in range(n):
        client = proxy.client()
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        clients.append(client)
        wait_for(lambda: proxy.stat("firebreak.requests") == before + len(clients), "the request under way")
    return clients


def test_uo_and_the_start():
    limits = ("    trafficPolicy:\n      connectionPool:\n        tcp: { maxConnections: 1 }\n"
              "        http: { http1MaxPendingRequests: 1 }\n")
    with silent() as upstream, Proxy(config=config(upstream.address, "        timeout: 1h\n", limits)) as proxy:
        clients = hold(proxy, 1)
        wait_for(lambda: proxy.stat("cluster.checkout.upstream_cx_active") == 1, "the connection")
        clients += hold(proxy, 1)
        assert [get(proxy) for _ in range(5)] == [503] * 5
        check("UO", proxy, upstream.address)
        check(next(iter(SECTIONS)), proxy, upstream.address)
        for c in clients:
            c.close()


def test_uh():
    policy = ("    trafficPolicy:\n      outlierDetection: { consecutive5xxErrors: 3, interval: 30s, "
              "baseEjectionTime: 30s, maxEjectionPercent: 100, minHealthPercent: 0 }\n"
              "    resilience: { semantics: envoy }\n")
    upstream = Upstream(answers(FAILED))
    with Proxy(config=config(upstream.address, cluster=policy)) as proxy:
        assert [get(proxy) for _ in range(3)] == [500] * 3
        wait_for(lambda: proxy.stat("cluster.checkout.membership_healthy") == 0, "the ejection")
        assert [get(proxy) for _ in range(2)] == [503] * 2
        check("UH", proxy, upstream.address)
    upstream.close()


def test_uf():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # nobody listens
        address = "127.0.0.1:%d" % held.getsockname()[1]
        with Proxy(config=config(address)) as proxy:
            assert [get(proxy) for _ in range(3)] == [503] * 3
            check("UF", proxy, address)


def test_uc():
    def breaks(peer):
        peer.read_head()
        peer.close()

    upstream = Upstream(breaks)
    with Proxy(config=config(upstream.address)) as proxy:
        assert [get(proxy) for _ in range(2)] == [503] * 2
        check("UC", proxy, upstream.address)
    upstream.close()


def test_ut():
    with silent() as upstream, Proxy(config=config(upstream.address, route="        timeout: 50ms\n")) as proxy:
        assert [get(proxy) for _ in range(2)] == [504] * 2
        check("UT", proxy, upstream.address)


def test_urx():
    upstream = Upstream(answers(FAILED))
    text = config(upstream.address, route="        retry: { attempts: 1, on: [5xx] }\n")
    with Proxy(config=text) as proxy:
        assert [get(proxy) for _ in range(2)] == [500] * 2
        check("URX", proxy, upstream.address)
    upstream.close()


def test_dc():
    with silent() as upstream, Proxy(config=config(upstream.address)) as proxy:
        for c in hold(proxy, 2):
            c.close()
        check("DC", proxy, upstream.address)


@pytest.mark.parametrize("section", ["LH", "What else to have at hand"])
def test_the_rest(section):
    upstream = Upstream(answers(OK))
    with Proxy(config=config(upstream.address)) as proxy:
        assert get(proxy) == 200
        check(section, proxy, upstream.address)
    upstream.close()


def test_every_section_with_commands_is_tested():
    source = pathlib.Path(__file__).read_text()
    first, *rest = SECTIONS
    assert len(rest) >= 9
    for section in rest:
        assert f'"{section}"' in source, section


def test_the_runbook_names_every_flag_once_in_its_table():
    rows = re.findall(r"^\| \[(\w+)\]\(#(\w+)\) \|", RUNBOOK.read_text(), re.M)
    assert [a.lower() for a, _ in rows] == [b for _, b in rows]
    assert [a for a, _ in rows] == ["UO", "UH", "UF", "UC", "UT", "URX", "DC", "LH"]
