# SPDX-License-Identifier: Apache-2.0
"""firebreak backend: its pages, its workers, and each fault as a raw client sees it."""
import json
import os
import signal
import socket
import threading
import time

import pytest

from harness import (Backend, Closed, Connection, Process, compose, firebreak, parse_address,
                     refuses, request, show_address, wait_for)


def timed(call):
    begun = time.monotonic()
    value = call()
    return value, time.monotonic() - begun


# --- pages ---


def test_the_root_says_who_answers(backend):
    answer = request(backend.address, "GET", "/")
    assert answer.status == 200
    assert answer.field("x-firebreak-backend") == show_address(backend.address)
    assert show_address(backend.address) in answer.text()


def test_each_server_has_a_port_and_a_name_of_its_own(start):
    backend = start(Backend, 5)
    names = [request(a, "GET", "/").field("x-firebreak-backend") for a in backend.servers]
    assert names == [show_address(a) for a in backend.servers]
    assert len(set(names)) == 5


def test_ports_are_consecutive_where_the_first_is_given():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    code, out, err = firebreak("backend", "--listen", "127.0.0.1:65535", "--count", "2")
    assert code == 2 and "65536" in err
    if port > 65000:
        pytest.skip("no room above the port that was drawn")
    with Process("backend", "--listen", f"127.0.0.1:{port}", "--count", "2") as p:
        try:
            p.wait_line(rf"^listening 127.0.0.1:{port + 1}$")
        except AssertionError:
            if any("in use" in l for l in p.err):
                pytest.skip("somebody else took the port meanwhile")
            raise


def test_delay_takes_as_long_as_asked(backend):
    answer, took = timed(lambda: request(backend.address, "GET", "/delay/120"))
    assert answer.status == 200
    assert 0.12 <= took < 2


@pytest.mark.parametrize("status", [200, 204, 301, 304, 404, 429, 500, 503, 599])
def test_status_answers_what_was_asked_for(backend, status):
    with Connection(backend.address) as c:
        assert c.request("GET", f"/status/{status}").status == status
        assert c.request("GET", "/").status == 200  # and the connection lives on


@pytest.mark.parametrize("target", ["/nothing", "/status/99", "/status/600", "/status/20x",
                                    "/delay/", "/bytes/-1", "/delay/99999999999999999999"])
def test_what_is_no_page_is_404(backend, target):
    assert request(backend.address, "GET", target).status == 404


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 16384, 1000003])
def test_bytes_are_as_many_as_asked(backend, n):
    with Connection(backend.address) as c:
        answer = c.request("GET", f"/bytes/{n}")
        assert len(answer.body) == n
        assert answer.field("content-length") == str(n)
        assert c.request("GET", "/").status == 200


@pytest.fixture
def frugal(start):
    """A server whose memory can be judged: a sanitizer's hoard of freed memory is kept small."""
    return start(Backend, env={"ASAN_OPTIONS": "quarantine_size_mb=1"})


def test_a_huge_body_costs_the_backend_no_memory(frugal):
    backend = frugal
    with Connection(backend.address) as c:
        request(backend.address, "GET", "/bytes/3000000")
        before = backend.memory()
        c.send(compose("GET", "/bytes/1099511627776"))
        got = 0
        while got < 50_000_000:
            got += len(c.sock.recv(1 << 20))
        assert backend.memory() - before < 8_000_000


def test_head_has_the_length_and_no_body(backend):
    with Connection(backend.address) as c:
        answer = c.request("HEAD", "/bytes/1099511627776")
        assert answer.field("content-length") == "1099511627776"
        assert c.request("GET", "/").status == 200


@pytest.mark.parametrize("n", [0, 1, 100000, 5000000])
@pytest.mark.parametrize("chunked", [False, True])
def test_echo_returns_the_body_byte_for_byte(backend, n, chunked):
    body = os.urandom(n)
    framed = body
    fields = {"content-type": "text/x-test", "content-length": str(n)}
    if chunked:
        del fields["content-length"]
        fields["transfer-encoding"] = "chunked"
        framed = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in
                          (body[i:i + 7919] for i in range(0, n, 7919))) + b"0\r\n\r\n"
    with Connection(backend.address) as c:
        sender = threading.Thread(target=c.send,
                                  args=(compose("POST", "/echo?a=b", fields) + framed,))
        sender.start()
        answer = c.read_answer()
        sender.join()
        assert answer.body == body
        assert answer.field("content-type") == "text/x-test"
        assert answer.field("x-echo-method") == "POST"
        assert answer.field("x-echo-target") == "/echo?a=b"
        assert ("chunked" in answer.field("transfer-encoding", "")) == chunked
        assert c.request("GET", "/").status == 200


def test_echo_answers_while_the_body_still_comes(backend):
    with Connection(backend.address) as c:
        c.send(compose("POST", "/echo", {"content-length": "10"}))
        c.send(b"hello")
        c._need(until=b"hello")
        c.send(b"world")
        assert c.read_answer().body == b"helloworld"


def test_an_echo_that_nobody_reads_is_bounded(frugal):
    backend = frugal
    request(backend.address, "POST", "/echo", body=b"x" * 100000)
    before = backend.memory()
    with Connection(backend.address) as c:
        c.sock.settimeout(1)
        c.send(compose("POST", "/echo", {"content-length": str(1 << 40)}))
        sent = 0
        try:
            while sent < 200_000_000:
                sent += c.sock.send(b"x" * 1000000)
        except TimeoutError:
            pass
        assert sent < 200_000_000  # it stopped reading
        assert backend.memory() - before < 4_000_000
        assert request(backend.address, "GET", "/").status == 200


@pytest.mark.parametrize("target", ["/echo", "/status/200"])
def test_100_continue_is_said_before_the_body(backend, target):
    with Connection(backend.address) as c:
        c.send(compose("POST", target, {"content-length": "4", "expect": "100-continue"}))
        c._need(until=b"100 Continue\r\n\r\n")
        c.send(b"body")
        answer = c.read_answer()
        assert answer.status == 200 and answer.interim == [100]


def test_pipelined_requests_are_answered_in_order(backend):
    with Connection(backend.address) as c:
        c.send(b"".join(compose("GET", f"/delay/{ms}") for ms in (30, 1, 10))
               + compose("POST", "/echo", body=b"fourth") + compose("GET", "/status/404"))
        bodies = [c.read_answer() for _ in range(5)]
        assert [b.text().split(" ms")[0] for b in bodies[:3]] == ["late by 30", "late by 1",
                                                                  "late by 10"]
        assert bodies[3].body == b"fourth" and bodies[4].status == 404


def test_a_request_in_single_bytes_is_understood(backend):
    with Connection(backend.address) as c:
        for byte in compose("POST", "/echo", body=b"abc"):
            c.send(bytes([byte]))
        assert c.read_answer().body == b"abc"


def test_http_1_0_closes_unless_asked_not_to(backend):
    with Connection(backend.address) as c:
        c.send(compose("GET", "/", version="HTTP/1.0"))
        assert c.read_answer().status == 200
        assert c.closed_by_peer() == "fin"
    with Connection(backend.address) as c:
        c.send(compose("GET", "/", {"connection": "keep-alive"}, version="HTTP/1.0"))
        assert c.read_answer().field("connection") == "keep-alive"
        assert c.request("GET", "/").status == 200


def test_connection_close_closes(backend):
    with Connection(backend.address) as c:
        assert c.request("GET", "/", {"connection": "close"}).field("connection") == "close"
        assert c.closed_by_peer() == "fin"


@pytest.mark.parametrize("junk, status", [
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
    (b"GET / HTTP/3.0\r\nhost: a\r\n\r\n", 505),
    (b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 70000 + b"\r\n\r\n", 431),
])
def test_what_is_no_request_is_refused(backend, junk, status):
    with Connection(backend.address) as c:
        c.send(junk)
        assert c.read_answer().status == status
        assert c.closed_by_peer() in ("fin", "reset")
    assert request(backend.address, "GET", "/").status == 200


def test_a_broken_chunk_in_an_echo_never_looks_complete(backend):
    with Connection(backend.address) as c:
        c.send(compose("POST", "/echo", {"transfer-encoding": "chunked"}) + b"3\r\nabc\r\nzz\r\n")
        with pytest.raises(Closed):
            c.read_answer()


def test_clients_that_go_away_leave_nothing_behind(backend):
    request(backend.address, "GET", "/")
    before = backend.descriptors()
    for i in range(60):
        c = Connection(backend.address)
        c.send(compose("GET", "/delay/20")[: 20 + i])
        c.reset() if i % 2 else c.close()
    wait_for(lambda: backend.descriptors() <= before, "all connections closed")
    stats = wait_for(lambda: (s := backend.stats())["busy"] == 0 and s, "workers are free")
    assert stats["connections"] == 0 and stats["waiting"] == 0


# --- workers ---


def test_the_service_time_is_the_one_asked_for(start):
    backend = start(Backend, 1, "--service", "const:60ms")
    _, took = timed(lambda: request(backend.address, "GET", "/"))
    assert took >= 0.06
    _, took = timed(lambda: request(backend.address, "GET", "/healthz"))
    assert took < 0.06  # probes need no worker


def test_workers_are_bounded_and_the_rest_waits(start):
    backend = start(Backend, 1, "--workers", 2)
    connections = [Connection(backend.address) for _ in range(6)]
    begun = time.monotonic()
    for c in connections:
        c.send(compose("GET", "/delay/100"))
    took = []
    for c in connections:
        assert c.read_answer().status == 200
        took.append(time.monotonic() - begun)
    assert max(took) >= 0.3  # three rounds of two
    assert sorted(took)[1] < sorted(took)[2]


def test_a_full_queue_turns_away(start):
    backend = start(Backend, 1, "--workers", 1, "--queue", 2)
    connections = [Connection(backend.address) for _ in range(5)]
    for i, c in enumerate(connections):
        c.send(compose("GET", "/delay/300"))
        wait_for(lambda: backend.stats()["requests"] == i + 1, "the request came")
    statuses = [c.read_answer().status for c in connections]
    assert statuses == [200, 200, 200, 503, 503]
    assert backend.stats()["queue_full"] == 2


def test_a_worker_goes_on_for_a_client_that_left(start):
    backend = start(Backend, 1, "--workers", 1)
    c = Connection(backend.address)
    c.send(compose("GET", "/delay/400"))
    wait_for(lambda: backend.stats()["busy"] == 1, "it is worked on")
    c.reset()
    wait_for(lambda: backend.stats()["connections"] == 0, "the client is gone")
    assert backend.stats()["busy"] == 1
    answer, took = timed(lambda: request(backend.address, "GET", "/"))
    assert answer.status == 200 and took > 0.05


# --- faults ---


def test_delay_hits_live_connections_from_the_next_request_on(backend):
    with Connection(backend.address) as c:
        c.request("GET", "/")
        backend.fault("delay", value="150ms")
        _, took = timed(lambda: c.request("GET", "/"))
        assert took >= 0.15
        backend.clear()
        _, took = timed(lambda: c.request("GET", "/"))
        assert took < 0.15


def test_jitter_varies(backend):
    backend.fault("jitter", value="100ms")
    took = [timed(lambda: request(backend.address, "GET", "/"))[1] for _ in range(12)]
    assert max(took) - min(took) > 0.02


def test_slow_multiplies_the_service_time(backend):
    backend.fault("slow", value=5)
    _, took = timed(lambda: request(backend.address, "GET", "/delay/40"))
    assert took >= 0.2


def test_status_answers_instead(backend):
    backend.fault("status", value=503)
    with Connection(backend.address) as c:
        answer = c.request("GET", "/bytes/1000")
        assert answer.status == 503
        assert answer.field("x-firebreak-backend") == show_address(backend.address)
        assert c.request("POST", "/echo", body=b"x").status == 503


def test_refuse_closes_the_port_and_opens_it_again(backend):
    with Connection(backend.address) as c:
        backend.fault("refuse", for_="400ms")
        assert refuses(backend.address)
        assert c.request("GET", "/").status == 200  # live ones are left alone
        wait_for(lambda: not refuses(backend.address), "the port is open again")
    assert request(backend.address, "GET", "/").status == 200
    backend.fault("refuse")
    assert refuses(backend.address)
    backend.clear()
    assert request(backend.address, "GET", "/").status == 200


def test_accept_reset_resets_new_connections(backend):
    backend.fault("accept-reset")
    with pytest.raises((Closed, ConnectionResetError, BrokenPipeError)) as caught:
        request(backend.address, "GET", "/")
    assert getattr(caught.value, "data", b"") == b""
    backend.clear()
    assert request(backend.address, "GET", "/").status == 200
    assert backend.stats()["accept_resets"] >= 1


def test_hang_never_answers_and_keeps_its_worker(start):
    backend = start(Backend, 1, "--workers", 1)
    backend.fault("hang", path="/hangs")
    with Connection(backend.address) as c, Connection(backend.address) as other:
        c.send(compose("GET", "/hangs"))
        wait_for(lambda: backend.stats()["held"] == 1, "it hangs")
        other.send(compose("GET", "/"))
        assert other.closed_by_peer(0.3) == "open" and other.buffer == b""
        c.close()
        assert other.read_answer().status == 200  # the worker noticed and went on


def test_clearing_lets_held_connections_go(backend):
    backend.fault("hang")
    with Connection(backend.address) as c:
        c.send(compose("GET", "/"))
        wait_for(lambda: backend.stats()["held"] == 1, "it hangs")
        backend.clear()
        assert c.closed_by_peer() == "reset"


def test_a_held_connection_is_let_go_when_the_fault_is_over(backend):
    backend.fault("hang", for_="300ms")
    with Connection(backend.address) as c:
        c.send(compose("GET", "/"))
        assert c.closed_by_peer() == "reset"


def test_reset_mid_body_sends_half_and_resets(backend):
    backend.fault("reset-mid-body")
    with Connection(backend.address) as c:
        c.send(compose("GET", "/bytes/10000"))
        with pytest.raises(Closed) as caught:
            c.read_answer()
        assert caught.value.reset
        assert len(caught.value.data) == 5000
    for target in ("/status/204", "/"):
        with Connection(backend.address) as c:
            c.send(compose("GET", target))
            assert c.closed_by_peer() == "reset"


def test_stop_reading_leaves_the_body_where_it_is(backend):
    backend.fault("stop-reading")
    with Connection(backend.address) as c:
        c.sock.settimeout(0.5)
        c.send(compose("POST", "/echo", {"content-length": str(1 << 30)}))
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 1 << 29:
                sent += c.sock.send(b"x" * 1000000)
        assert sent < 1 << 29
        c.sock.settimeout(20)
        backend.clear()
        assert c.closed_by_peer() == "reset"


def test_drip_sends_the_body_byte_by_byte(backend):
    backend.fault("drip", value="20ms", bytes=10)
    with Connection(backend.address) as c:
        begun = time.monotonic()
        c.send(compose("GET", "/bytes/100"))
        pieces = 0
        c._need(until=b"\r\n\r\n")
        while len(c.buffer.split(b"\r\n\r\n", 1)[1]) < 100:
            c.more()
            pieces += 1
        assert time.monotonic() - begun >= 0.18  # nine gaps
        assert pieces >= 4
        c.buffer = b""
        backend.clear()
        assert c.request("GET", "/").status == 200


def test_heavy_makes_a_request_longer_and_its_answer_too(start):
    backend = start(Backend, 2, "--service", "const:20ms")
    backend.fault("heavy", value=10, bytes=5000, server=1)
    light, took = timed(lambda: request(backend.address, "GET", "/"))
    assert light.status == 200 and len(light.body) < 100 and took < 0.2
    heavy, took = timed(lambda: request(backend.servers[1], "GET", "/"))
    assert heavy.status == 200 and len(heavy.body) == 5000 and took >= 0.2
    assert request(backend.servers[1], "GET", "/status/404").status == 404


def test_stall_every_lets_all_work_stand_still(backend):
    backend.fault("stall-every", value="600ms", stall="300ms")
    took = []
    with Connection(backend.address) as c:
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            took.append(timed(lambda: c.request("GET", "/"))[1])
    assert 0.15 < max(took) < 1
    assert sum(t > 0.1 for t in took) in (2, 3, 4)  # one a period
    assert sorted(took)[len(took) // 2] < 0.1


def test_probability_is_a_share_of_the_requests(backend):
    backend.fault("status", value=500, probability=0.25)
    with Connection(backend.address) as c:
        failed = sum(c.request("GET", "/").status == 500 for _ in range(800))
    assert 140 < failed < 260


def test_the_same_seed_gives_the_same_faults(start):
    def outcomes():
        with Backend(1, "--seed", 7) as b:
            b.fault("status", value=500, probability=0.5)
            with Connection(b.address) as c:
                return [c.request("GET", "/").status for _ in range(40)]

    assert outcomes() == outcomes()


def test_path_limits_a_fault_to_its_beginning(backend):
    backend.fault("status", value=500, path="/status")
    assert request(backend.address, "GET", "/status/200").status == 500
    assert request(backend.address, "GET", "/").status == 200


def test_after_lets_so_many_by_first(backend):
    backend.fault("status", value=500, after=3, path="/")
    assert [request(backend.address, "GET", "/").status for _ in range(5)] == [200] * 3 + [500] * 2


def test_for_counts_from_the_first_one_hit_where_after_is_set(backend):
    backend.fault("status", value=500, after=1, for_="300ms")
    time.sleep(0.4)  # longer than the fault: it must not have run out unseen
    assert request(backend.address, "GET", "/").status == 200
    assert request(backend.address, "GET", "/").status == 500
    wait_for(lambda: request(backend.address, "GET", "/").status == 200, "it is over")


def test_server_limits_a_fault_to_one(start):
    backend = start(Backend, 3)
    backend.fault("status", value=500, server=1)
    assert [request(a, "GET", "/").status for a in backend.servers] == [200, 500, 200]


def test_faults_are_listed_and_cleared_one_by_one(backend):
    first = backend.fault("delay", value="1ms", path="/a", probability=0.5, after=2, for_="1h")
    second = backend.fault("status", value=404, path="/b")
    listed = request(backend.control, "GET", "/fault").json()["faults"]
    assert [f["id"] for f in listed] == [first["id"], second["id"]]
    assert listed[0]["value"] == "1ms" and listed[0]["path"] == "/a" and listed[0]["for"] == "1h"
    assert listed[1]["value"] == 404 and listed[1]["server"] == "all"
    assert request(backend.control, "DELETE", f"/fault?id={first['id']}").json() == {"cleared": 1}
    assert request(backend.control, "DELETE", f"/fault?id={first['id']}").status == 404
    assert request(backend.control, "DELETE", "/fault").json() == {"cleared": 1}
    assert request(backend.control, "GET", "/fault").json() == {"faults": []}


def test_no_more_than_64_faults(backend):
    for _ in range(64):
        backend.fault("delay", value="1ms", path="/" + "x" * 254)
    answer = request(backend.control, "POST", "/fault", body='{"fault": "hang"}')
    assert answer.status == 409 and "DELETE" in answer.json()["error"]
    assert len(request(backend.control, "GET", "/fault").json()["faults"]) == 64


@pytest.mark.parametrize("body, words", [
    ("", "JSON object"),
    ("[1]", "JSON object"),
    ('{"fault": "delay"', "JSON object"),
    ('{"fault": "dely"}', "delay, jitter"),
    ('{"value": "1s"}', "delay, jitter"),
    ('{"fault": "delay"}', '"200ms"'),
    ('{"fault": "delay", "value": 200}', '"200ms"'),
    ('{"fault": "delay", "value": "25h"}', "24h"),
    ('{"fault": "status", "value": 42}', "200 to 599"),
    ('{"fault": "slow", "value": -1}', "factor"),
    ('{"fault": "hang", "value": 1}', "leave it out"),
    ('{"fault": "hang", "probability": 2}', "0 to 1"),
    ('{"fault": "hang", "server": 1}', '"all"'),
    ('{"fault": "hang", "path": "x"}', "path"),
    ('{"fault": "refuse", "path": "/"}', "leave it out"),
    ('{"fault": "refuse", "after": 1}', "leave it out"),
    ('{"fault": "refuse", "probability": 0.5}', "accept-reset"),
    ('{"fault": "hang", "for": 10}', '"10s"'),
    ('{"fault": "hang", "after": -1}', "100"),
    ('{"fault": "stall-every", "value": "1s"}', "stall"),
    ('{"fault": "stall-every", "value": "1s", "stall": "1s"}', "shorter"),
    ('{"fault": "hang", "stall": "1s"}', "leave it out"),
    ('{"fault": "drip", "value": "1s", "bytes": 0}', "1 to 65536"),
    ('{"fault": "hang", "probabilty": 1}', "did you mean"),
    ('{"fault": "hang", "fault": "delay"}', "JSON object"),
])
def test_a_wrong_fault_is_refused_with_what_to_write(backend, body, words):
    answer = request(backend.control, "POST", "/fault", body=body)
    assert answer.status == 400
    assert words in answer.json()["error"]
    assert request(backend.control, "GET", "/fault").json() == {"faults": []}


def test_the_control_address_says_what_it_has(backend):
    assert "/fault" in request(backend.control, "GET", "/").text()
    assert request(backend.control, "GET", "/nope").status == 404
    assert request(backend.control, "PUT", "/fault", body="{}").status == 405
    big = request(backend.control, "POST", "/fault", body="x" * 70000)
    assert big.status == 413


def test_stats_count_what_was_answered(backend):
    for target in ("/", "/status/301", "/status/404", "/status/500", "/status/503"):
        request(backend.address, "GET", target)
    stats = backend.stats()
    assert (stats["requests"], stats["answered_2xx"], stats["answered_3xx"],
            stats["answered_4xx"], stats["answered_5xx"]) == (5, 1, 1, 1, 2)
    assert stats["address"] == show_address(backend.address) and stats["listening"]


# --- the command ---


def test_a_port_in_use_is_said(backend):
    code, out, err = firebreak("backend", "--listen", show_address(backend.address))
    assert code == 1 and show_address(backend.address) in err and "in use" in err


@pytest.mark.parametrize("args, words", [
    (["--count", "0"], "1 to 1000"),
    (["--count"], "missing"),
    (["--cuont", "3"], "did you mean --count"),
    (["--listen", "localhost"], "127.0.0.1:9001"),
    (["--service", "gauss:1ms"], "lognormal"),
    (["--service", "uniform:5ms:1ms"], "uniform:1ms:20ms"),
    (["extra"], "no option"),
])
def test_wrong_options_are_refused_with_what_to_write(args, words):
    code, out, err = firebreak("backend", *args)
    assert code == 2 and words in err and out == ""


def test_it_ends_at_once_when_told(backend):
    with Connection(backend.address) as c:
        c.send(compose("GET", "/delay/60000"))
        wait_for(lambda: backend.stats()["busy"] == 1, "it is worked on")
        assert backend.stop(5) == 0


def test_under_nohup_a_hangup_does_not_end_it():
    with Process("backend", "--listen", "127.0.0.1:0", ignore=signal.SIGHUP) as p:
        address = parse_address(p.wait_line(r"^listening (.*)$").group(1))
        p.signal(signal.SIGHUP)
        for _ in range(3):
            assert request(address, "GET", "/").status == 200
    p = Process("backend", "--listen", "127.0.0.1:0")
    p.wait_line(r"^listening (.*)$")
    p.signal(signal.SIGHUP)
    assert p.wait() == 0


def test_it_listens_on_ipv6_too():
    with Process("backend", "--listen", "[::1]:0") as p:
        address = parse_address(p.wait_line(r"^listening (\[::1\]:\d+)$").group(1))
        answer = request(address, "GET", "/")
        assert answer.field("x-firebreak-backend") == show_address(address)


def test_without_descriptors_it_pauses_and_recovers():
    with Process("backend", "--listen", "127.0.0.1:0", descriptors=40) as p:
        address = parse_address(p.wait_line(r"^listening (.*)$").group(1))
        held = [Connection(address) for _ in range(60)]
        for c in held[:20]:
            assert c.request("GET", "/").status == 200
        used = cpu_seconds(p.pid)
        time.sleep(0.5)
        assert cpu_seconds(p.pid) - used < 0.3, "it spins"
        for c in held[:40]:
            c.close()
        assert held[59].request("GET", "/").status == 200


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_json_of_the_control_address_is_valid_for_any_path(backend):
    backend.fault("hang", path="/\u00e4\u0001\"\\")
    listed = json.loads(request(backend.control, "GET", "/fault").body)["faults"]
    assert listed[0]["path"] == "/\u00e4\u0001\"\\"
