# SPDX-License-Identifier: Apache-2.0
"""Decisions as data: the journal and /events, and scripts/check-journal, which does their sums again."""
import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest
from harness import (ROOT, Backend, Connection, Process, Proxy, binary, firebreak, needs_terminal, request, show_address,
                     wait_for)

CHECK = os.path.join(ROOT, "scripts", "check-journal")
HOSTS = 8

CONFIG = """admin: {{ listen: "127.0.0.1:0" }}
journal: {journal}
workers: 1
accessLog: {{ to: "off" }}
listeners:
  - name: web
    listen: 127.0.0.1:0
    routes: [ {{ match: {{ pathPrefix: / }}, cluster: shop, timeout: 2s }} ]
clusters:
  - name: shop
    endpoints:
{endpoints}
    resilience: {{ profile: adaptive }}
"""


def decisions(path):
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(True) if line.endswith("\n")]


def check(path, *args):
    done = subprocess.run([sys.executable, CHECK, *args, str(path)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


class Shop:
    """A proxy with a journal before eight servers under load."""

    def __init__(self, stack, tmp_path, rate=300):
        self.journal = tmp_path / "journal"
        self.backend = stack.enter_context(
            Backend(HOSTS, "--service", "lognormal:30ms:0.4", "--workers", "64"))
        self.names = [show_address(a) for a in self.backend.servers]
        file = tmp_path / "firebreak.yaml"
        file.write_text(CONFIG.format(
            journal=self.journal, endpoints="\n".join(f"      - {{ address: {n} }}" for n in self.names)))
        self.proxy = stack.enter_context(Proxy("-c", str(file)))
        self.load = Process("load", "--url", f"http://{show_address(self.proxy.address)}/",
                            "--rate", rate, "--duration", "600s")
        stack.callback(self.load.kill)

    def decided(self, what, server, **also):
        """Waits for that decision about a server."""
        def found():
            for d in decisions(self.journal):
                if (d["what"], d.get("host")) == (what, self.names[server]) and \
                        all(d.get(k) == v for k, v in also.items()):
                    return d
            return None
        return wait_for(found, f"{what} {also} of server {server}", 60)

    def well(self, server):
        """Waits until it is in again, with a whole share."""
        def found():
            states = [d["state"] for d in decisions(self.journal) if d.get("host") == self.names[server]]
            return states[-1:] == ["healthy"]
        wait_for(found, f"server {server} to be well", 60)

    def served(self, at_least):
        def enough():
            return sum(s["requests"] for s in
                       request(self.backend.control, "GET", "/stats").json()["servers"]) >= at_least
        wait_for(enough, f"{at_least} requests", 60)


@pytest.fixture(scope="module")
def day(tmp_path_factory):
    """A bad day: errors, more of them than the cap allows, a return, slowness. Its journal and events."""
    with contextlib.ExitStack() as stack:
        shop = Shop(stack, tmp_path_factory.mktemp("day"))
        stream = stack.enter_context(Connection(shop.proxy.admin, timeout=60))
        stream.send("GET /events HTTP/1.1\r\nhost: x\r\n\r\n")
        shop.served(1200)
        shop.backend.fault("status", value=503, server=0)
        shop.decided("ejected", 0)
        shop.backend.fault("status", value=503, server=2)
        shop.decided("refused", 2)
        shop.backend.clear()
        shop.decided("returned", 0)
        shop.well(0)
        shop.well(2)
        shop.served(5000)
        shop.backend.fault("slow", value=6, server=1)
        shop.decided("ejected", 1)
        shop.backend.clear()
        shop.decided("returned", 1)
        shop.well(1)
        shop.events = b""
        last = f"id: {decisions(shop.journal)[-1]['number']}\n".encode()

        def read():
            shop.events += stream.sock.recv(65536)
            return last in shop.events and shop.events.endswith(b"\n\n\r\n")
        wait_for(read, "the last event")
        shop.all = decisions(shop.journal)
        yield shop


def test_the_journal_of_a_bad_day_agrees_with_itself(day):
    code, said = check(day.journal)
    assert code == 0, said
    assert " ejected" in said and "refused" in said and "returned" in said, said


def test_a_decision_has_the_numbers_of_before_the_deed(day):
    errors = next(d for d in day.all if d["what"] == "ejected")
    assert errors["line"] in ("errors_many", "errors_some")
    assert errors["statistic"] > errors["threshold"] == 11
    assert errors["inputs"]["out"] == 0 and errors["inputs"]["hosts"] == HOSTS
    assert errors["guards"]["cap"] == "passes" and errors["guard"] is None
    refused = next(d for d in day.all if d["what"] == "refused")
    assert refused["guard"] == "cap" and refused["inputs"]["out"] == 1 and refused["host"] == day.names[2]
    slow = next(d for d in day.all if d["what"] == "ejected" and d["host"] == day.names[1])
    assert slow["line"] in ("rank", "age", "tail", "stalls")
    assert slow["ratio"] > slow["gate"]
    assert [d["number"] for d in day.all] == list(range(1, len(day.all) + 1))


def test_events_are_the_same_decisions(day):
    raw = day.events.split(b"\r\n\r\n", 1)
    assert b"text/event-stream" in raw[0]
    lines = [l for l in raw[1].split(b"\n") if l.startswith(b"data: ")]
    assert [json.loads(l[6:]) for l in lines] == day.all
    kinds = [l[7:].decode() for l in raw[1].split(b"\n") if l.startswith(b"event: ")]
    assert kinds == [d["what"] for d in day.all]


def doctor(d, kind):
    if kind == "statistic":
        d["statistic"] += 0.5
    elif kind == "bucket":
        d["buckets"][-1]["gain"] -= 30
        d["buckets"][-1]["least"] = max(0, d["buckets"][-1]["least"] - 30)
    elif kind == "below":
        d["threshold"] = d["statistic"] + 1
    elif kind == "guard":
        d["guards"]["cap"] = "holds"
    elif kind == "share":
        d["share"] = 500
    elif kind == "ratio":
        d["ratio"] = 1.01
    elif kind == "fleet":
        d["inputs"]["fleet_slow"] = True
    elif kind == "cap":
        d["inputs"]["out"] = HOSTS - 1
    elif kind == "missing":
        del d["buckets"]
    elif kind == "state":
        d["before"] = "ramping"


@pytest.mark.parametrize("kind,which", [
    ("statistic", "errors"), ("statistic", "latency"), ("bucket", "errors"), ("bucket", "latency"), ("below", "errors"),
    ("guard", "errors"), ("share", "latency"), ("ratio", "latency"), ("fleet", "latency"), ("cap", "errors"),
    ("missing", "errors"), ("state", "latency")])
def test_a_doctored_line_is_found(day, tmp_path, kind, which):
    lines = [dict(d) for d in json.loads(json.dumps(day.all))]
    host = day.names[0 if which == "errors" else 1]
    n = next(i for i, d in enumerate(lines) if d["what"] == "ejected" and d["host"] == host and d["cause"] == "accused")
    doctor(lines[n], kind)
    path = tmp_path / "doctored"
    path.write_text("".join(json.dumps(d) + "\n" for d in lines))
    code, said = check(path)
    assert code == 1 and said.startswith(f"{path}:{n + 1}: "), said


def test_a_refusal_made_an_ejection_is_found(day, tmp_path):
    lines = json.loads(json.dumps(day.all))
    n = next(i for i, d in enumerate(lines) if d["what"] == "refused")
    lines[n].update(what="ejected", guard=None, state="ejected", share=0)
    path = tmp_path / "doctored"
    path.write_text("".join(json.dumps(d) + "\n" for d in lines))
    code, said = check(path)
    assert code == 1 and f"{path}:{n + 1}: " in said and "cap" in said, said


def test_no_journal_is_no_agreement(tmp_path):
    assert check(tmp_path / "none")[0] == 2
    (tmp_path / "text").write_text("hello\n")
    assert check(tmp_path / "text")[0] == 1


def test_since_and_follow(day):
    newest = day.all[-1]["number"]
    answer = request(day.proxy.admin, "GET", f"/events?follow=no&since={newest}")
    assert answer.status == 200 and answer.complete
    ids = [l for l in answer.text().splitlines() if l.startswith("id: ")]
    assert ids[0] == f"id: {newest}"
    assert request(day.proxy.admin, "GET", "/events?follow=no").text().count("\nid: ") >= newest
    assert request(day.proxy.admin, "GET", "/events?since=yesterday").status == 400
    assert request(day.proxy.admin, "GET", "/events?follow=perhaps").status == 400
    again = request(day.proxy.admin, "GET", "/events?follow=no", [("Last-Event-ID", str(newest - 1))])
    assert [l for l in again.text().splitlines() if l.startswith("id: ")][0] == f"id: {newest}"


def test_readers_of_events_are_bounded_and_none_costs_another_page(day):
    with contextlib.ExitStack() as stack:
        readers = []
        for _ in range(20):
            c = stack.enter_context(Connection(day.proxy.admin))
            c.send("GET /events HTTP/1.1\r\nhost: x\r\n\r\n")
            readers.append(c.sock.recv(64))
            if b" 503 " in readers[-1]:
                break
        assert b" 503 " in readers[-1] and len(readers) <= 10
        assert day.proxy.page("/ready").text() == "LIVE\n"

    def free():
        with Connection(day.proxy.admin) as c:
            c.send("GET /events?follow=no HTTP/1.1\r\nhost: x\r\n\r\n")
            return b" 200 " in c.sock.recv(64)
    wait_for(free, "the readers that left to be found out", 40)


def test_the_journal_is_opened_anew_at_usr1(day):
    old = day.journal.rename(day.journal.with_name("journal.old"))
    day.proxy.signal(signal.SIGUSR1)
    wait_for(day.journal.exists, "the new file")
    assert check(old)[0] == 0


# --- peers side by side, and why ---


def admin(day):
    return ("--admin", show_address(day.proxy.admin))


def test_peers_count_exactly_what_the_servers_saw(day):
    day.load.signal(signal.SIGINT)
    day.load.wait()
    served = request(day.backend.control, "GET", "/stats").json()["servers"]

    def counted():
        hosts = day.proxy.page("/peers?format=json&cluster=shop").json()["clusters"][0]["hosts"]
        assert [h["host"] for h in hosts] == day.names
        return all(sum(c["requests"] for c in h["classes"]) == s["requests"] for h, s in zip(hosts, served)) and hosts
    hosts = wait_for(counted, f"the counts of {[s['requests'] for s in served]}")
    assert hosts[0]["classes"][0]["class"] == "read"
    assert hosts[0]["classes"][0]["errors_5xx"] > 0 == hosts[3]["classes"][0]["errors_5xx"]
    for h in hosts[3:]:
        c = h["classes"][0]
        assert h["state"] == "healthy" and h["share"] == 1000
        assert 15000 < c["p50_us"] < c["p95_us"] <= c["p99_us"]
        assert 0.5 < c["p50_times"] < 2


def test_peers_as_text_and_what_is_not_there(day):
    text = day.proxy.page("/peers").text()
    assert text.startswith("cluster shop\nhost ")
    assert len([l for l in text.splitlines() if " read " in l]) == HOSTS
    assert request(day.proxy.admin, "GET", "/peers?cluster=nope").status == 404
    assert request(day.proxy.admin, "GET", "/peers?format=xml").status == 400
    assert request(day.proxy.admin, "GET", "/explain?cluster=nope").status == 404
    assert request(day.proxy.admin, "GET", "/explain?cluster=shop&host=nope").status == 404
    assert request(day.proxy.admin, "GET", "/explain?host=nope").status == 400
    assert request(day.proxy.admin, "GET", "/explain?cluster=" + "x" * 600).status in (200, 404)


def test_top_works_without_a_terminal(day):
    code, out, err = firebreak("top", "--once", *admin(day))
    assert code == 0 and out.startswith("cluster shop\n") and "\x1b" not in out, err
    assert all(n in out for n in day.names)
    with Process("top", "--every", "100ms", "--cluster", "shop", *admin(day)) as top:
        wait_for(lambda: sum(l == "cluster shop" for l in top.out) >= 3, "three pages")
        top.signal(signal.SIGINT)
        assert top.wait() == 0


def test_top_on_a_terminal_redraws_one_screen(day):
    needs_terminal()
    ours, theirs = os.openpty()
    top = subprocess.Popen([binary(), "top", "--every", "100ms", *admin(day)], stdout=theirs,
                           stdin=subprocess.DEVNULL)
    os.close(theirs)
    seen = b""
    while seen.count(b"\x1b[H") < 3:
        seen += os.read(ours, 65536)
    top.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):
        while True:
            data = os.read(ours, 65536)
            if not data:
                break
            seen += data
    assert top.wait(20) == 0
    os.close(ours)
    assert seen.startswith(b"\x1b[?1049h") and seen.endswith(b"\x1b[?1049l")
    assert b"cluster shop" in seen


def test_explain_says_why_a_host_is_in_and_what_was_decided(day):
    code, out, err = firebreak("explain", "shop", day.names[0], *admin(day))
    assert code == 0, err
    for part in ("Evidence against it, in nats; 11.0 accuse it:", "If it were accused of latency now:",
                 "If it were accused of failures now:", "cap passes: 0 of 8 hosts out, cap 20 %",
                 "How long detection takes at its present rate", " ejected: ", "what would change it: "):
        assert part in out, out
    assert day.names[1] not in out
    code, out, err = firebreak("explain", *admin(day))
    assert code == 0 and all(f"  {n} is " in out for n in day.names), err
    assert min(20, len(day.all)) <= len([l for l in out.splitlines() if l.startswith("#")]) <= 20


def test_explain_as_json_agrees_with_the_events(day):
    code, out, err = firebreak("explain", "shop", day.names[1], "--json", *admin(day))
    assert code == 0, err
    page = json.loads(out)
    known = [d for d in day.all if d.get("host", day.names[1]) == day.names[1]]
    told = [d for d in page["decisions"] if d["number"] <= day.all[-1]["number"]]  # more may have come since
    assert told and len(page["decisions"]) <= 20 and told == known[-len(told):]
    assert [h["latency"]["host"] for h in page["hosts"]] == [day.names[1]]
    assert page["hosts"][0]["failures"]["line"] == "errors_many"


def test_what_explain_is_asked_wrongly(day):
    assert firebreak("explain", "a", "b", "c", *admin(day))[0] == 2
    assert firebreak("explain", "--nonsense")[0] == 2
    code, _, err = firebreak("explain", "nope", *admin(day))
    assert code == 1 and "no such cluster" in err
    for command in ("explain", "top"):
        code, _, err = firebreak(command, "--admin", "127.0.0.1:1")
        assert code == 1 and "refused" in err and "--admin" in err
        assert firebreak(command, "--help")[0] == 0
