# SPDX-License-Identifier: Apache-2.0
"""Load reports of hosts (`endpoint-load-metrics`): read in all forms, shown, passed on."""

import base64
import http.client
import json
import struct

import pytest

from rawpeers import OK, Proxy, Upstream, answers, config


def reporting(field, value):
    return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s: %s\r\n\r\nok" % (field, value)


BINARY = base64.b64encode(b"\x09" + struct.pack("<d", 0.25) + b"\x11" + struct.pack("<d", 0.5)
                          + b"\x42\x10\x0a\x05queue\x11" + struct.pack("<d", 7.0))
NAME = b"endpoint-load-metrics"
FORMS = {
    "text": (NAME, b"TEXT cpu_utilization=0.25,mem_utilization=0.5,named_metrics.queue=7"),
    "json": (b"Endpoint-Load-Metrics",
             b'JSON {"cpu_utilization": 0.25, "mem_utilization": 0.5, "named_metrics": {"queue": 7}}'),
    "binary": (NAME, b"BIN " + BINARY),
    "binary field": (NAME + b"-bin", BINARY),
}


def shown(proxy, host):
    page = json.loads(proxy.admin("/clusters?format=json"))
    hosts = {f"{h['address']['socket_address']['address']}:{h['address']['socket_address']['port_value']}": h
             for c in page["cluster_statuses"] if c["name"] == "backend" for h in c["host_statuses"]}
    return hosts[host.address]["firebreak"].get("load")


def ask(proxy, times=1):
    conn = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    for _ in range(times):
        conn.request("GET", "/")
        answer = conn.getresponse()
        answer.read()
    conn.close()
    return answer


@pytest.mark.parametrize("form", FORMS)
def test_what_a_host_reports_is_shown_and_passed_on(form):
    up = Upstream(answers(reporting(*FORMS[form])))
    with Proxy(config=config([up])) as proxy:
        answer = ask(proxy)
        assert answer.getheader(FORMS[form][0].decode()) == FORMS[form][1].decode()
        assert shown(proxy, up) == {"cpu": 0.25, "memory": 0.5, "named": {"queue": 7.0}}
        text = proxy.admin("/clusters")
        for line in ("load_cpu::0.250", "load_memory::0.500", "load_named_queue::7.000"):
            assert f"backend::{up.address}::firebreak_{line}\n" in text


def test_what_is_no_report_harms_nobody():
    up = Upstream(answers(*[reporting(NAME, v) for v in
                            (b"TEXT cpu_utilization=-1", b"JSON {", b"BIN !!!!", b"BIN " + BINARY[:-5], b"", b"x" * 9000)]))
    with Proxy(config=config([up])) as proxy:
        assert ask(proxy, 6).status == 200
        assert shown(proxy, up) is None


def test_of_a_host_that_says_nothing_nothing_is_shown():
    up = Upstream(answers(OK))
    with Proxy(config=config([up])) as proxy:
        ask(proxy)
        assert shown(proxy, up) is None
        assert "firebreak_load" not in proxy.admin("/clusters")
