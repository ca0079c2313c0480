# SPDX-License-Identifier: Apache-2.0
"""Endpoints given as names: a real name server (of this test), real hosts, the real daemon."""
import http.server
import os
import socket
import struct
import subprocess
import threading

import pytest

import harness
from harness import wait_for


class NameServer(threading.Thread):
    """Answers A questions from |names|; "fail" is SERVFAIL, [] an answer without addresses."""

    def __init__(self, names):
        super().__init__(daemon=True)
        self.names = names
        self.asked = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                query, peer = self.socket.recvfrom(4096)
            except OSError:
                return
            self.socket.sendto(self.answer(query), peer)

    def answer(self, query):
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
            at += query[at] + 1
        kind = struct.unpack(">H", query[at + 1:at + 3])[0]
        question = query[12:at + 5]
        value = self.names.get(".".join(labels), None)
        code = 3 if value is None else 2 if value == "fail" else 0
        addresses = value if code == 0 and kind == 1 else []
        self.asked += kind == 1
        head = query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(addresses), 0, 0)
        return head + question + b"".join(
            b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + socket.inet_aton(a) for a in addresses)

    def close(self):
        self.socket.close()


class Host(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    status = {}

    def do_GET(self):
        me = self.server.server_address[0]
        self.send_response(self.status.get(me, 200))
        self.send_header("content-length", str(len(me)))
        self.end_headers()
        self.wfile.write(me.encode())

    def log_message(self, *args):
        pass


ADDRESSES = [f"127.0.0.{i}" for i in range(2, 8)]


def listen_at(port):
    servers = []
    try:
        for address in ADDRESSES:
            servers.append(http.server.ThreadingHTTPServer((address, port), Host))
            port = servers[0].server_address[1]
    except OSError:
        for s in servers:
            s.server_close()
        return None
    return servers


@pytest.fixture
def hosts():
    """Six hosts at six addresses and one port; the port."""
    Host.status = {}
    servers = wait_for(lambda: listen_at(0), "a port that is free at six addresses")
    for s in servers:
        threading.Thread(target=s.serve_forever, args=(0.05,), daemon=True).start()
    yield servers[0].server_address[1]
    for s in servers:
        s.shutdown()
        s.server_close()


@pytest.fixture
def names():
    server = NameServer({})
    yield server
    server.close()


def proxy_to(start, names, endpoint):
    env = dict(os.environ, FIREBREAK_NAMESERVERS=f"127.0.0.1:{names.port}")
    return start(harness.Proxy, "--to", endpoint, "--listen", "127.0.0.1:0", "--admin",
                 "127.0.0.1:0", env=env)


def get(proxy):
    answer = harness.request(proxy.address, "GET", "/")
    assert answer.status == 200, answer
    return answer.text()


def known(proxy):
    return sorted(h.rsplit(":", 1)[0] for h in proxy.hosts())


def test_every_address_of_a_name_is_a_host_and_they_come_and_go(start, names, hosts):
    names.names["shop.test"] = ADDRESSES[:3]
    proxy = proxy_to(start, names, f"shop.test:{hosts}")
    wait_for(lambda: known(proxy) == ADDRESSES[:3], "three hosts")
    assert {get(proxy) for _ in range(12)} == set(ADDRESSES[:3])
    changes = proxy.stat("cluster.backend.membership_change")
    names.names["shop.test"] = ADDRESSES[2:5]
    wait_for(lambda: known(proxy) == ADDRESSES[2:5], "the new three")
    wait_for(lambda: {get(proxy) for _ in range(12)} == set(ADDRESSES[2:5]), "only the new serve")
    assert proxy.stat("cluster.backend.membership_change") > changes
    assert proxy.stat("cluster.backend.membership_total") == 3
    assert proxy.stat("cluster.backend.update_success") >= 2
    assert proxy.hosts()[f"{ADDRESSES[3]}:{hosts}"]["hostname"] == "shop.test"


def test_a_name_server_that_fails_or_answers_nothing_takes_no_host_away(start, names, hosts):
    names.names["shop.test"] = ADDRESSES[:2]
    proxy = proxy_to(start, names, f"shop.test:{hosts}")
    wait_for(lambda: known(proxy) == ADDRESSES[:2], "two hosts")
    names.names["shop.test"] = "fail"
    wait_for(lambda: proxy.stat("cluster.backend.update_failure") >= 1, "a failed lookup")
    assert known(proxy) == ADDRESSES[:2]
    assert {get(proxy) for _ in range(8)} == set(ADDRESSES[:2])
    names.names["shop.test"] = []
    failed = proxy.stat("cluster.backend.update_failure")
    wait_for(lambda: proxy.stat("cluster.backend.update_failure") +
             proxy.stat("cluster.backend.update_empty") > failed, "an empty answer", within=40)
    assert known(proxy) == ADDRESSES[:2]


def test_what_was_learnt_of_a_host_survives_a_refresh(start, names, hosts):
    names.names["shop.test"] = ADDRESSES[:5]
    Host.status[ADDRESSES[1]] = 503
    proxy = proxy_to(start, names, f"shop.test:{hosts}")
    wait_for(lambda: known(proxy) == ADDRESSES[:5], "five hosts")
    bad = f"{ADDRESSES[1]}:{hosts}"

    def out():
        harness.request(proxy.address, "GET", "/")
        return proxy.hosts()[bad]["health_status"].get("failed_outlier_check", False)

    wait_for(out, "the bad host to be ejected")
    names.names["shop.test"] = ADDRESSES[:6]
    wait_for(lambda: known(proxy) == ADDRESSES[:6], "six hosts")
    assert out()
    assert all(get(proxy) != ADDRESSES[1] for _ in range(12))
    assert proxy.stat("cluster.backend.outlier_detection.ejections_active") == 1


def test_what_was_done_by_hand_holds_across_a_refresh(start, names, hosts):
    names.names["shop.test"] = ADDRESSES[:5]
    proxy = proxy_to(start, names, f"shop.test:{hosts}")
    wait_for(lambda: known(proxy) == ADDRESSES[:5], "five hosts")
    for address, deed in ((ADDRESSES[0], "drain"), (ADDRESSES[1], "eject")):
        answer = harness.request(proxy.admin, "POST", f"/clusters/backend/hosts/{address}:{hosts}/{deed}",
                                 {"host": "localhost"})
        assert answer.status == 200, answer

    def out():
        at = proxy.hosts()
        return (at[f"{ADDRESSES[0]}:{hosts}"]["health_status"].get("eds_health_status"),
                at[f"{ADDRESSES[1]}:{hosts}"]["health_status"].get("failed_outlier_check"))

    assert out() == ("DRAINING", True)
    names.names["shop.test"] = ADDRESSES[5::-1]
    wait_for(lambda: known(proxy) == ADDRESSES[:6], "six hosts")
    assert out() == ("DRAINING", True)
    assert {get(proxy) for _ in range(24)} == set(ADDRESSES[2:6])
    names.names["shop.test"] = ADDRESSES[:2]  # only these two are left: ejection has no peer, a drain wants none
    wait_for(lambda: known(proxy) == ADDRESSES[:2], "two hosts")
    assert out() == ("DRAINING", True)


def test_a_name_that_is_not_known_at_the_start_is_an_error(names):
    env = dict(os.environ, FIREBREAK_NAMESERVERS=f"127.0.0.1:{names.port}")
    ran = subprocess.run([harness.binary(), "run", "--to", "nobody.test:80", "--listen",
                          "127.0.0.1:0"], env=env, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2, ran
    assert "cannot resolve 'nobody.test'" in ran.stderr
