# SPDX-License-Identifier: Apache-2.0
"""The access log of a running proxy: what is in a line, and bad days of the file under it."""

import json
import os
import re
import signal
import socket

import pytest

from rawpeers import OK, Proxy, Upstream, answers, config, proxied, status_of, wait_for

KEYS = """start_time method path protocol response_code response_flags response_code_details
connection_termination_details upstream_transport_failure_reason bytes_received bytes_sent duration
upstream_service_time x_forwarded_for user_agent request_id authority upstream_host upstream_cluster
upstream_local_address downstream_local_address downstream_remote_address requested_server_name route_name
attempts queue_time service_time""".split()


def free_port():
    """A port that nobody listens at: bound, but not listening."""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    return s, "127.0.0.1:%d" % s.getsockname()[1]


def test_one_request_one_line_with_all_keys():
    with proxied(answers(OK)) as (proxy, upstream):
        client = proxy.client()
        client.send(b"POST /cart?id=7 HTTP/1.1\r\nHost: shop.example.test\r\nUser-Agent: me/1 \"q\"\r\n"
                    b"X-Request-Id: r-1\r\nContent-Length: 3\r\n\r\nabc")
        assert client.answer()[1] == b"ok"
        record, = proxy.records(1)
    assert sorted(record) == sorted(KEYS)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["start_time"])
    expected = {"method": "POST", "path": "/cart?id=7", "protocol": "HTTP/1.1", "response_code": 200,
                "response_flags": "-", "response_code_details": "via_upstream", "bytes_received": 3,
                "bytes_sent": 2, "user_agent": 'me/1 "q"', "authority": "shop.example.test",
                "upstream_host": upstream.address, "requested_server_name": None,
                "upstream_transport_failure_reason": None, "downstream_local_address": f"127.0.0.1:{proxy.port}"}
    assert {k: record[k] for k in expected} == expected
    assert isinstance(record["duration"], int) and isinstance(record["queue_time"], float)
    attempt, = record["attempts"]
    assert attempt["endpoint"] == upstream.address and attempt["status"] == 200 and attempt["flags"] == "-"
    assert attempt["outcome"] == "answered"


def test_a_failed_connect_is_an_attempt_of_its_own():
    held, dead = free_port()
    upstream = Upstream(answers(OK))
    with held, Proxy(config=config([upstream], cluster="connectTimeout: 1s").replace(
            "    endpoints:\n", f"    endpoints:\n      - {{ address: {dead} }}\n")) as proxy:
        client = proxy.client()

        def moved():
            assert status_of(client.get("/")[0]) == 200
            return proxy.stat("cluster.backend.connect_failover") > 0

        wait_for(moved, "a request on the dead host")
        record = wait_for(lambda: next((r for r in proxy.records(1) if len(r["attempts"]) == 2), None),
                          "its line")
    first, second = record["attempts"]
    assert first["endpoint"] == dead and first["outcome"] == "connect_failed" and first["status"] is None
    assert second["endpoint"] == upstream.address and second["status"] == 200
    assert record["response_code"] == 200
    upstream.close()


def test_nobody_there_is_flagged():
    held, dead = free_port()
    with held, Proxy(to=[dead]) as proxy:
        head, body = proxy.client().get("/")
        assert status_of(head) == 503
        record, = proxy.records(1)
    assert "UF" in record["response_flags"].split(",")
    assert record["upstream_service_time"] is None


def test_lines_cannot_be_forged():
    with proxied(answers(OK)) as (proxy, _):
        client = proxy.client()
        client.send(b'GET /a"\\%0a{ HTTP/1.1\r\nHost: a\r\nUser-Agent: x\xff\xfe"}\r\n\r\n')
        client.answer()
        record, = proxy.records(1)
        assert len(proxy.log_path.read_bytes().splitlines()) == 1
    if record["response_code"] == 200:
        assert record["user_agent"] == 'x\ufffd\ufffd"}'


def test_usr1_opens_the_file_anew():
    with proxied(answers(OK)) as (proxy, _):
        client = proxy.client()
        client.get("/before")
        proxy.records(1)
        moved = proxy.log_path.with_suffix(".1")
        proxy.log_path.rename(moved)
        proxy.process.send_signal(signal.SIGUSR1)
        wait_for(proxy.log_path.exists, "a new file")
        client.get("/after")
        record, = proxy.records(1)
        assert record["path"] == "/after"
        assert json.loads(moved.read_text())["path"] == "/before"


def test_text_lines_are_envoys():
    upstream = Upstream(answers(OK))
    with Proxy(config=config([upstream]).replace("to: off", "to: off, format: text")) as proxy:
        proxy.client().get("/t", extra=b"User-Agent: ua\r\nX-Request-Id: id-1\r\n")
        line = wait_for(lambda: proxy.log_path.exists() and proxy.log_path.read_text(), "a line")
    assert re.fullmatch(r'\[[\dT:.Z-]{24}\] "GET /t HTTP/1\.1" 200 - 0 2 \d+ \d+ "[^"]+" "ua" "[^"]+" "a" "'
                        + re.escape(upstream.address) + '"\n', line)
    upstream.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def formatted(reply, log, request, lines=1):
    """The access log's lines after one request, with |log| behind `to:` in accessLog."""
    upstream = Upstream(answers(reply))
    with Proxy(config=config([upstream]).replace("to: off", f"to: off, {log}")) as proxy:
        client = proxy.client()
        client.send(request)
        client.answer()
        wait_for(lambda: proxy.log_path.exists() and proxy.log_path.read_text().count("\n") >= lines, "the line")
        found = proxy.log_path.read_text().splitlines()
        port = proxy.port
    upstream.close()
    return found, upstream.address, port


def test_a_format_of_ones_own_with_headers_of_both_sides():
    reply = b"HTTP/1.1 200 OK\r\nX-Shard: seven\r\nContent-Length: 2\r\n\r\nok"
    form = ("'%REQ(X-Tenant?:AUTHORITY)% %REQ(x-none)% %REQ(x-tenant):3% %RESP(x-shard)% %RESPONSE_CODE% "
            "%RESPONSE_FLAGS_LONG% %REQ(:METHOD)% %UPSTREAM_REQUEST_ATTEMPT_COUNT% 100%%'")
    request = b"GET /a HTTP/1.1\r\nHost: shop\r\nX-Tenant: blue\"\x7f\r\nConnection: x-tenant\r\n\r\n"
    request = request.replace(b"\x7f", b"")
    (line,), _, _ = formatted(reply, f"format: {form}", request)
    assert line == r'blue\x22 - blu seven 200 - GET 1 100%'


def test_the_formats_of_envoy_and_istio_by_name():
    request = b"GET /a?b=c HTTP/1.1\r\nHost: shop\r\nUser-Agent: me\r\nX-Request-Id: r-1\r\n\r\n"
    (line,), upstream, _ = formatted(OK, "format: envoy", request)
    start = r'\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\] "GET /a\?b=c HTTP/1\.1" 200 - '
    middle = rf'0 2 \d+ \d+ "127\.0\.0\.1" "me" "r-1" "shop" "{re.escape(upstream)}"'
    assert re.fullmatch(start + middle, line), line
    (line,), upstream, port = formatted(OK, "format: istio", request)
    middle = rf'0 2 \d+ \d+ "127\.0\.0\.1" "me" "r-1" "shop" "{re.escape(upstream)}"'
    rest = rf' backend - 127\.0\.0\.1:{port} 127\.0\.0\.1:\d+ - -'
    assert re.fullmatch(start + 'via_upstream - "-" ' + middle + rest, line), line


def test_json_of_ones_own():
    (line,), upstream, _ = formatted(
        OK, "jsonFormat: {status: '%RESPONSE_CODE%', ms: '%DURATION%', who: '%REQ(x-tenant)%', "
            "line: '%REQ(:METHOD)% %REQ(:PATH)%', why: '%UPSTREAM_TRANSPORT_FAILURE_REASON%', day: '%START_TIME(%F)%'}",
        b"GET /\" HTTP/1.1\r\nHost: shop\r\n\r\n".replace(b'/"', b"/x"))
    record = json.loads(line)
    assert list(record) == ["status", "ms", "who", "line", "why", "day"]
    assert record["status"] == 200 and isinstance(record["ms"], int) and record["who"] is None
    assert record["line"] == "GET /x" and record["why"] is None
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["day"])


def test_a_refused_request_has_its_headers_in_the_line_too():
    upstream = Upstream(answers(OK))
    log = "format: '%RESPONSE_CODE% %RESPONSE_FLAGS% %REQ(x-tenant)%'"
    with Proxy(config=config([upstream]).replace("to: off", f"to: off, {log}")) as proxy:
        client = proxy.client()
        client.send(b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nX-Tenant: blue\r\n\r\n")
        assert status_of(client.answer()[0]) == 501
        wait_for(lambda: proxy.log_path.exists() and "\n" in proxy.log_path.read_text(), "the line")
        assert proxy.log_path.read_text() == "501 - blue\n"
    upstream.close()


def test_a_full_disk_costs_lines_not_requests():
    upstream = Upstream(answers(OK))
    with Proxy(to=[upstream.address], args=["--access-log", "/dev/full"]) as proxy:
        client = proxy.client()
        for _ in range(50):
            assert status_of(client.get("/")[0]) == 200
        wait_for(lambda: proxy.stat("firebreak.access_log_dropped") >= 50, "the dropped lines counted")
        assert proxy.stat("firebreak.access_log_written") == 0
        assert proxy.errors().count("access_log.trouble") == 1
    upstream.close()


def test_every_line_is_there_after_a_drain():
    with proxied(answers(OK)) as (proxy, _):
        client = proxy.client()
        for i in range(2000):
            client.send(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % i)
            client.answer()
        client.close()
        proxy.process.send_signal(signal.SIGTERM)
        assert proxy.process.wait() == 0
        paths = [json.loads(x)["path"] for x in proxy.log_path.read_text().splitlines()]
    assert paths == [f"/{i}" for i in range(2000)]


def test_a_path_that_cannot_be_opened_is_an_error_at_start():
    upstream = Upstream(answers(OK))
    with pytest.raises(AssertionError, match="access.log"):
        Proxy(to=[upstream.address], args=["--access-log", "/nonexistent/dir/access.log"])
    upstream.close()
