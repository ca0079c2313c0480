# SPDX-License-Identifier: Apache-2.0
"""firebreak load: its numbers against servers whose numbers are known."""
import json
import os
import pty
import select
import signal
import socket
import threading
import time

import pytest

from harness import Backend, Process, firebreak, needs_terminal, show_address, wait_for


def url(address, target="/"):
    return f"http://{show_address(address)}{target}"


def load(address, *args, target="/", code=0):
    """The JSON summary."""
    got, out, err = firebreak("load", "--url", url(address, target), "--json", *args, within=60)
    assert got == code, (got, out, err)
    return json.loads(out)


class Server:
    """A server in Python that does exactly as told with each connection."""

    def __init__(self, serve):
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.address = self.sock.getsockname()
        self.requests = []  # what each connection sent, by connection
        threading.Thread(target=self._accept, args=(serve,), daemon=True).start()

    def _accept(self, serve):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(serve, sock), daemon=True).start()

    def _serve(self, serve, sock):
        try:
            serve(self, sock)
        except OSError:
            pass
        finally:
            sock.close()

    @staticmethod
    def head(sock):
        """One request head; b"" at the end."""
        data = b""
        while b"\r\n\r\n" not in data:
            got = sock.recv(65536)
            if not got:
                return b""
            data += got
        return data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


# --- the open loop ---


def test_latency_is_at_least_the_delay_of_the_server(backend):
    r = load(backend.address, "--rate", 40, "--duration", "1s", target="/delay/50")
    assert r["succeeded"] == r["sent"] == r["due"] > 20 and r["dropped"] == 0
    assert r["latency_ms"]["p50"] >= 50
    assert r["latency_ms"]["p50"] <= r["latency_ms"]["p99"] <= r["latency_ms"]["max"] < 5000
    assert r["statuses"] == {"200": r["sent"]}


def test_constant_arrivals_are_as_many_as_rate_times_duration(backend):
    r = load(backend.address, "--rate", 200, "--duration", "500ms", "--arrivals", "constant")
    assert r["due"] == 100
    assert r["achieved_rate"] == pytest.approx(200)
    assert backend.stats()["requests"] == 100


def test_poisson_arrivals_are_so_many_on_average_and_follow_the_seed(backend):
    args = ("--rate", 400, "--duration", "1s")
    first = load(backend.address, *args, "--seed", 3)
    assert 320 < first["due"] < 480
    assert load(backend.address, *args, "--seed", 3)["due"] == first["due"]
    assert {load(backend.address, *args, "--seed", s)["due"] for s in (4, 5, 6)} != {first["due"]}


def test_a_stalled_server_shows_in_the_latency_of_all_that_were_due(backend):
    # One worker that takes 400 ms for one request: those that became due meanwhile waited too.
    backend.fault("stall-every", value="10s", stall="400ms")
    r = load(backend.address, "--rate", 100, "--duration", "1s", "--arrivals", "constant")
    assert r["succeeded"] == 100
    # 0 to 400 ms for the first 40 of 100; a closed loop would have seen one slow request.
    assert r["latency_ms"]["p90"] > 250
    assert 300 < r["latency_ms"]["max"] < 1500
    assert r["latency_ms"]["p50"] < 200


def test_waiting_for_a_busy_server_counts_from_when_it_was_due(start):
    # 10 a second are served, 20 a second are due: the last one waits about a second.
    backend = start(Backend, 1, "--workers", 1)
    r = load(backend.address, "--rate", 20, "--duration", "2s", "--arrivals", "constant",
             target="/delay/100")
    assert r["succeeded"] == 40
    assert r["latency_ms"]["max"] > 1800
    assert 800 < r["latency_ms"]["p50"] < 2500


def test_without_a_free_connection_requests_are_dropped_and_counted(backend):
    r = load(backend.address, "--rate", 50, "--duration", "1s", "--arrivals", "constant",
             "--connections", 2, target="/delay/500")
    assert r["due"] == 50
    assert r["sent"] == r["succeeded"] <= 6
    assert r["dropped"] == 50 - r["sent"]
    assert r["most_in_flight"] == 2 == r["connections_opened"]
    assert r["latency_ms"]["max"] < 2500  # dropped ones are in no latency


def test_connections_are_kept_and_the_one_used_last_comes_first(backend):
    r = load(backend.address, "--rate", 50, "--duration", "1s", "--arrivals", "constant")
    assert r["sent"] == 50
    assert r["connections_opened"] <= 5
    assert backend.stats()["accepted"] == r["connections_opened"]


def test_requests_tells_when_each_was_due_how_long_it_took_and_who_answered(start, tmp_path):
    backend = start(Backend, 2)
    file = tmp_path / "requests"
    began = time.time()
    r = load(backend.address, "--rate", 50, "--duration", "1s", "--arrivals", "constant", "--timeout", "2s",
             "--requests", file, target="/delay/30")
    head, *lines = file.read_text().splitlines()
    assert head.split("\t") == ["due", "ms", "outcome", "status", "backend"]
    told = [l.split("\t") for l in lines]
    assert len(told) == r["sent"] == 50
    due = sorted(float(t[0]) for t in told)
    assert began - 1 < due[0] and due[-1] - due[0] == pytest.approx(0.98, abs=0.001) and due[-1] < time.time()
    assert max(float(t[1]) for t in told) == pytest.approx(r["latency_ms"]["max"], abs=0.002)
    assert all(30 <= float(t[1]) for t in told)
    assert {tuple(t[2:]) for t in told} == {("answered", "200", show_address(backend.address))}


def test_requests_tells_of_those_that_failed(backend, tmp_path):
    backend.fault("hang", probability=0.5)
    file = tmp_path / "requests"
    r = load(backend.address, "--rate", 50, "--duration", "500ms", "--timeout", "300ms", "--requests", file)
    lost = [l.split("\t") for l in file.read_text().splitlines()[1:] if "\ttimeout\t" in l]
    assert len(lost) == r["errors"]["timeout"] > 0
    assert all(300 <= float(t[1]) < 1500 and t[3:] == ["0", ""] for t in lost)
    code, out, err = firebreak("load", "--url", url(backend.address), "--rate", 1, "--duration", "1s",
                               "--requests", tmp_path / "none" / "x")
    assert code == 1 and not out and "--requests" in err and "No such file" in err
    code, _, err = firebreak("load", "--url", url(backend.address), "--rate", 50, "--duration", "1s",
                             "--requests", "/dev/full")
    assert code == 1 and "not all of it" in err


# --- errors by kind ---


def test_a_closed_port_is_refused_and_nothing_succeeded():
    with socket.create_server(("127.0.0.1", 0)) as s:
        address = s.getsockname()
    r = load(address, "--rate", 50, "--duration", "200ms", code=1)
    assert r["errors"]["refused"] == r["sent"] == r["failed"] > 0
    assert r["succeeded"] == 0 and r["statuses"] == {}


def test_resets_are_counted(backend):
    backend.fault("reset-mid-body")
    r = load(backend.address, "--rate", 50, "--duration", "200ms", target="/bytes/1000", code=1)
    assert r["errors"]["reset"] == r["sent"] > 0


def test_a_cut_answer_is_no_success():
    def serve(server, sock):
        server.head(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")

    with Server(serve) as s:
        r = load(s.address, "--rate", 20, "--duration", "200ms", code=1)
    assert r["errors"]["closed"] == r["sent"] > 0


def test_timeouts_count_from_when_the_request_was_due(backend):
    backend.fault("hang", probability=0.5)
    r = load(backend.address, "--rate", 50, "--duration", "500ms", "--timeout", "300ms")
    assert 0 < r["errors"]["timeout"] < r["sent"]
    assert r["errors"]["timeout"] + r["succeeded"] == r["sent"]
    assert 300 <= r["latency_all_ms"]["max"] < 1500
    assert r["latency_ms"]["max"] < 300 or r["latency_ms"]["p50"] < 300


def test_what_is_no_http_is_bad():
    def serve(server, sock):
        server.head(sock)
        sock.sendall(b"SSH-2.0-OpenSSH_9\r\n")
        sock.recv(1)

    with Server(serve) as s:
        r = load(s.address, "--rate", 20, "--duration", "200ms", code=1)
    assert r["errors"]["bad"] == r["sent"] > 0


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nokk",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100000 + b"\r\n\r\n",
])
def test_hostile_answers_are_bad_and_nothing_worse(answer):
    def serve(server, sock):
        server.head(sock)
        sock.sendall(answer)
        sock.recv(1)

    with Server(serve) as s:
        r = load(s.address, "--rate", 20, "--duration", "200ms", code=1)
    assert r["errors"]["bad"] == r["sent"] > 0


def test_bytes_beyond_an_answer_close_the_connection():
    def serve(server, sock):
        while server.head(sock):
            sock.sendall(OK + b"HTTP/1.1 200 OK\r\n")

    with Server(serve) as s:
        r = load(s.address, "--rate", 40, "--duration", "300ms", "--arrivals", "constant")
    assert r["succeeded"] == r["sent"] == r["connections_opened"] == 12


def test_statuses_are_counted_and_failures_are_400_and_above(backend):
    backend.fault("status", value=503, probability=0.5)
    r = load(backend.address, "--rate", 200, "--duration", "500ms")
    assert set(r["statuses"]) == {"200", "503"}
    assert r["statuses"]["200"] == r["succeeded"] == r["latency_ms"]["count"]
    assert r["errors"]["status"] == r["failed"] == r["statuses"]["503"]
    assert r["latency_all_ms"]["count"] == r["sent"]
    backend.clear()
    assert load(backend.address, "--rate", 20, "--duration", "100ms", "--arrivals", "constant",
                target="/status/301")["succeeded"] == 2


def test_answers_with_interim_ones_and_without_length_are_whole():
    def serve(server, sock):
        server.head(sock)
        sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n"
                     b"HTTP/1.0 200 OK\r\n\r\nuntil the end")

    with Server(serve) as s:
        r = load(s.address, "--rate", 20, "--duration", "200ms")
    assert r["succeeded"] == r["sent"] == r["connections_opened"] > 0
    assert r["body_bytes"] == 13 * r["sent"]


# --- the race of reuse ---


def race(serve_first, *args, code=0):
    """Every connection answers once, then does |serve_first| with the second request."""

    def serve(server, sock):
        server.head(sock)
        sock.sendall(OK)
        if server.head(sock):
            serve_first(sock)

    with Server(serve) as s:
        return load(s.address, "--rate", 50, "--duration", "400ms", "--arrivals", "constant", *args,
                    code=code)


def test_a_get_on_a_connection_that_was_closed_meanwhile_is_sent_again():
    r = race(lambda sock: None)
    assert r["succeeded"] == r["sent"] == 20
    assert 5 <= r["resent"] <= 19


def test_a_post_is_not_sent_again():
    r = race(lambda sock: None, "--method", "POST")
    assert r["resent"] == 0
    assert r["errors"]["closed"] + r["errors"]["reset"] == r["failed"] >= 5


def test_an_answer_that_has_begun_is_not_asked_for_again():
    r = race(lambda sock: sock.sendall(b"HTTP/1.1 2"))
    assert r["resent"] == 0 and r["errors"]["closed"] == r["failed"] >= 5


def test_an_idle_connection_closed_by_the_server_costs_nothing():
    def serve(server, sock):
        server.head(sock)
        sock.sendall(OK)

    with Server(serve) as s:
        r = load(s.address, "--rate", 20, "--duration", "500ms", "--arrivals", "constant")
    assert r["succeeded"] == r["sent"] == 10
    assert r["connections_opened"] == 10


# --- what is sent ---


def test_the_request_is_the_one_described():
    seen = []

    def serve(server, sock):
        data = server.head(sock)
        head, body = data.split(b"\r\n\r\n", 1)
        while len(body) < 5000:
            body += sock.recv(65536)
        seen.append((head, body))
        sock.sendall(OK)

    with Server(serve) as s:
        load(s.address, "--rate", 10, "--duration", "100ms", "--arrivals", "constant", "--method",
             "PUT", "--body-size", 5000, "--header", "x-a: 1", "-H", "X-B:  two words ",
             target="/path?q=1#fragment")
        host = show_address(s.address).encode()
    head, body = seen[0]
    lines = head.split(b"\r\n")
    assert lines[0] == b"PUT /path?q=1 HTTP/1.1"
    assert b"host: " + host in lines and b"content-length: 5000" in lines
    assert b"x-a: 1" in lines and b"X-B: two words" in lines
    assert len(body) == 5000


def test_large_bodies_go_both_ways(backend):
    r = load(backend.address, "--rate", 10, "--duration", "500ms", "--arrivals", "constant",
             "--body-size", "2MiB", target="/echo")
    assert r["succeeded"] == r["sent"] == 5
    assert r["body_bytes"] == 5 * 2 * 1024 * 1024


def test_an_early_answer_while_uploading_counts():
    def serve(server, sock):
        server.head(sock)
        # It serves one request: where the whole upload still gets through, the next needs another connection.
        sock.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        sock.settimeout(0.2)
        try:
            while sock.recv(65536):
                pass
        except TimeoutError:
            pass

    with Server(serve) as s:
        r = load(s.address, "--rate", 10, "--duration", "200ms", "--body-size", "50MiB",
                 "--arrivals", "constant", code=1)
    assert r["statuses"] == {"413": 2}


def test_localhost_is_looked_up(backend):
    code, out, err = firebreak("load", "--url", f"http://localhost:{backend.address[1]}/", "--rate",
                               "20", "--duration", "100ms")
    assert code == 0, (out, err)


def test_a_name_that_is_none_is_an_error():
    code, out, err = firebreak("load", "--url", "http://nobody.invalid/", "--rate", "20",
                               "--duration", "100ms", within=60)
    assert code == 1 and "nobody.invalid" in err and out == ""


# --- the command ---


@pytest.mark.parametrize("args, words", [
    ([], "--url is missing"),
    (["--url", "http://a/"], "--rate is missing"),
    (["--url", "http://a/", "--rate", "1"], "--duration is missing"),
    (["--url", "https://a/"], "https is not supported"),
    (["--url", "a:80"], "http://HOST:PORT/PATH"),
    (["--rate", "0"], "0.001"),
    (["--rate", "nan"], "0.001"),
    (["--rate", "10x"], "0.001"),
    (["--duration", "10"], "15s"),
    (["--arrivals", "uniform"], "poisson or constant"),
    (["--method", "GE T"], "GET or POST"),
    (["--url", "http://a/", "--rate", "1", "--duration", "1s", "--header", "nocolon"], "x-name"),
    (["--url", "http://a/", "--rate", "1", "--duration", "1s", "--header", "a: b\r\nc: d"], "x-name"),
    (["--url", "http://a/", "--rate", "1", "--duration", "1s", "--header", "content-length: 3"],
     "--body-size"),
])
def test_wrong_options_are_refused_with_what_to_write(args, words):
    code, out, err = firebreak("load", *args)
    assert code == 2 and words in err and out == ""


def test_the_text_summary_says_the_same(backend):
    code, out, err = firebreak("load", "--url", url(backend.address, "/delay/20"), "--rate", "50",
                               "--duration", "400ms", "--arrivals", "constant")
    assert code == 0 and err == ""  # no progress where nobody looks
    words = out.split()
    assert words[words.index("due") + 1] == "20"
    assert words[words.index("succeeded") + 1] == "20" and "100.00" in out
    assert "200: 20" in out and "p99.9" in out and "max" in out


def test_an_interrupt_ends_it_with_a_summary(backend, start):
    p = start(Process, "load", "--url", url(backend.address, "/delay/10"), "--rate", "50",
              "--duration", "1h", "--json")
    wait_for(lambda: backend.stats()["requests"] >= 20, "load is under way")
    p.signal(signal.SIGINT)
    assert p.wait() == 0
    r = json.loads("".join(p.out))
    assert r["interrupted"] and r["succeeded"] >= 15
    assert r["succeeded"] + r["failed"] + r["unfinished"] + r["dropped"] == r["due"]


def test_progress_is_shown_on_a_terminal(backend):
    import subprocess
    from harness import binary
    needs_terminal()
    master, slave = pty.openpty()
    p = subprocess.Popen([binary(), "load", "--url", url(backend.address), "--rate", "50",
                          "--duration", "2500ms"], stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)
    shown = b""
    while True:
        ready, _, _ = select.select([master], [], [], 20)
        assert ready, "no progress"
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    out, _ = p.communicate(timeout=20)
    os.close(master)
    assert p.returncode == 0 and b"succeeded" in out
    assert shown.count(b"\n") == 2 and b"1s  ended" in shown and b"p99" in shown


def test_a_full_disk_under_the_summary_is_said(backend):
    import subprocess
    from harness import binary
    with open("/dev/full", "w") as full:
        done = subprocess.run([binary(), "load", "--url", url(backend.address), "--rate", "20",
                               "--duration", "100ms", "--arrivals", "constant"], stdout=full,
                              stderr=subprocess.PIPE, timeout=20)
    assert done.returncode == 1 and b"No space" in done.stderr


def test_few_descriptors_bound_the_connections(backend):
    with Process("load", "--url", url(backend.address, "/delay/300"), "--rate", "300",
                 "--duration", "600ms", "--json", descriptors=100) as p:
        assert p.wait() == 0
    r = json.loads("".join(p.out))
    assert r["max_connections"] <= 100
    assert r["dropped"] > 0 and r["errors"]["local"] == 0


def test_it_sends_as_many_as_it_should_at_a_high_rate(backend):
    begun = time.monotonic()
    r = load(backend.address, "--rate", 3000, "--duration", "2s", "--arrivals", "constant")
    assert r["due"] == 6000 == r["sent"] + r["dropped"]
    assert r["succeeded"] == 6000
    assert time.monotonic() - begun < 20
