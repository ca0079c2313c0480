# SPDX-License-Identifier: Apache-2.0
"""Another configuration while traffic flows: nothing is lost, what is wrong changes nothing."""

import http.client
import signal
import socket
import threading

import pytest

from harness import Backend, Connection, Proxy, request, show_address, wait_for

pytestmark = pytest.mark.multiworker


def native(listeners, clusters, workers=2, extra=""):
    """|listeners|: name -> (address, cluster); |clusters|: name -> addresses."""
    text = f"admin: {{ listen: 127.0.0.1:0 }}\nworkers: {workers}\n{extra}listeners:\n"
    for name, (address, cluster) in listeners.items():
        text += (f"  - name: {name}\n    listen: {address}\n"
                 f"    routes: [ {{ match: {{ pathPrefix: / }}, cluster: {cluster} }} ]\n")
    text += "clusters:\n"
    for name, addresses in clusters.items():
        ends = ", ".join(f"{{ address: {show_address(a)} }}" for a in addresses)
        text += f"  - name: {name}\n    endpoints: [ {ends} ]\n"
    return text


class Traffic:
    """Threads that ask all the time, on connections kept alive and on fresh ones."""

    def __init__(self, address, threads=4):
        self.address = address
        self.over = threading.Event()
        self.asked = 0
        self.failures = []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._ask, args=(i,)) for i in range(threads)]
        for t in self.threads:
            t.start()

    def _once(self, conn):
        conn.request("GET", "/")
        answer = conn.getresponse()
        answer.read()
        return answer.status

    def _ask(self, number):
        conn = http.client.HTTPConnection(*self.address, timeout=20)
        count = 0
        while not self.over.is_set():
            count += 1
            try:
                status = self._once(conn)
                failure = None if status == 200 else status
            except Exception as e:  # whatever it is, a caller would have noticed
                failure = repr(e)
                conn.close()
            with self.lock:
                self.asked += 1
                if failure is not None:
                    self.failures.append(failure)
            if number % 2 == 0 and count % 10 == 0:
                conn.close()

    def more(self, count=50):
        goal = self.asked + count
        wait_for(lambda: self.asked >= goal, "more requests")

    def end(self):
        self.over.set()
        for t in self.threads:
            t.join()
        return self.failures


def reload(proxy):
    return request(proxy.admin, "POST", "/reload", {"host": "localhost"})


def test_ten_reloads_lose_no_request(tmp_path):
    file = tmp_path / "firebreak.yaml"
    with Backend(count=4) as backend:
        file.write_text(native({"web": ("127.0.0.1:0", "c")}, {"c": backend.servers[:2]}))
        with Proxy("-c", file) as proxy:
            traffic = Traffic(proxy.address)
            for i in range(10):
                hosts = [backend.servers[i % 4], backend.servers[(i + 1) % 4]]
                file.write_text(native({"web": ("127.0.0.1:0", "c")}, {"c": hosts}))
                answer = reload(proxy)
                assert (answer.status, answer.text()) == (200, "OK\n")
                traffic.more()
            assert traffic.end() == []
            assert set(proxy.hosts()) == {show_address(a) for a in hosts}
            assert proxy.stat("firebreak.config_version") == 11


def test_a_bad_file_changes_nothing_and_says_why(tmp_path):
    file = tmp_path / "firebreak.yaml"
    with Backend() as backend:
        file.write_text(native({"web": ("127.0.0.1:0", "c")}, {"c": backend.servers}))
        with Proxy("-c", file) as proxy:
            file.write_text(file.read_text() + "clusterz: []\n")
            answer = reload(proxy)
            assert answer.status == 400
            assert f"{file}:" in answer.text() and "clusters" in answer.text()
            file.unlink()
            assert reload(proxy).status == 400
            proxy.signal(signal.SIGHUP)
            wait_for(lambda: sum("config.rejected" in l for l in proxy.err) == 3, "three refusals")
            assert request(proxy.address, "GET", "/").status == 200
            assert proxy.stat("firebreak.config_version") == 1


def test_hup_and_watch_load_the_file_anew(tmp_path):
    file = tmp_path / "firebreak.yaml"
    with Backend(count=2) as backend:
        first, second = backend.servers
        file.write_text(native({"web": ("127.0.0.1:0", "c")}, {"c": [first]}))
        with Proxy("-c", file, "--watch") as proxy:
            file.write_text(native({"web": ("127.0.0.1:0", "c")}, {"c": [first, second]}))
            wait_for(lambda: len(proxy.hosts()) == 2, "the change to be seen")
        with Proxy("-c", file) as proxy:
            file.write_text(native({"web": ("127.0.0.1:0", "c")}, {"c": [second]}))
            proxy.signal(signal.SIGHUP)
            wait_for(lambda: set(proxy.hosts()) == {show_address(second)}, "the reload")


def test_listeners_appear_change_and_vanish(tmp_path):
    file = tmp_path / "firebreak.yaml"
    with Backend(count=2) as backend:
        first, second = backend.servers
        both = {"a": [first], "b": [second]}
        file.write_text(native({"one": ("127.0.0.1:0", "a")}, both))
        with Proxy("-c", file) as proxy:
            old = Connection(proxy.address)
            old.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert old.read_answer().status == 200
            file.write_text(native({"one": ("127.0.0.1:0", "b"), "two": ("127.0.0.1:0", "a")}, both))
            assert reload(proxy).status == 200
            ports = dict(l.split("::") for l in proxy.page("/listeners").text().split())
            two = ("127.0.0.1", int(ports["two"].rpartition(":")[2]))
            before = backend.stats(1)["requests"]
            assert request(proxy.address, "GET", "/").status == 200
            assert request(two, "GET", "/").status == 200
            assert backend.stats(1)["requests"] == before + 1
            file.write_text(native({"two": ("127.0.0.1:0", "a")}, both))
            assert reload(proxy).status == 200
            old.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = old.read_answer()
            assert answer.status == 200 and answer.field("connection") == "close"
            wait_for(lambda: refuses(proxy.address), "the listener to close")
            assert request(two, "GET", "/").status == 200
            old.close()


def refuses(address):
    try:
        socket.create_connection(address, 5).close()
        return False
    except OSError:
        return True


def test_a_listener_that_cannot_listen_refuses_the_whole_file(tmp_path):
    file = tmp_path / "firebreak.yaml"
    with Backend() as backend, socket.create_server(("127.0.0.1", 0)) as taken:
        clusters = {"c": backend.servers}
        file.write_text(native({"web": ("127.0.0.1:0", "c")}, clusters))
        with Proxy("-c", file) as proxy:
            file.write_text(native({"web": ("127.0.0.1:0", "c"),
                                    "new": (show_address(taken.getsockname()), "c")}, clusters))
            answer = reload(proxy)
            assert answer.status == 400 and "new" in answer.text()
            assert request(proxy.address, "GET", "/").status == 200
            assert "new" not in proxy.page("/listeners").text()


def test_without_a_file_there_is_nothing_to_reload():
    with Backend() as backend, Proxy.to(backend.servers) as proxy:
        assert reload(proxy).status == 400
        assert request(proxy.admin, "GET", "/reload").status == 405


def hand(proxy, address, deed, cluster="c"):
    target = f"/clusters/{cluster}/hosts/{show_address(address)}/{deed}"
    answer = request(proxy.admin, "POST", target, {"host": "localhost"})
    assert answer.status == 200, answer
    return answer.text()


def out_of_service(proxy):
    """Which hosts are drained, and which ejected, as /clusters has it."""
    hosts = proxy.hosts().items()
    return ({a for a, h in hosts if h["health_status"].get("eds_health_status") == "DRAINING"},
            {a for a, h in hosts if h["health_status"].get("failed_outlier_check", False)})


def test_what_was_done_by_hand_holds_across_a_reload(tmp_path):
    file = tmp_path / "firebreak.yaml"
    with Backend(count=6) as backend:
        drained, ejected, *rest = backend.servers
        there = {show_address(drained)}, {show_address(ejected)}
        file.write_text(native({"web": ("127.0.0.1:0", "c")}, {"c": backend.servers[:5]}))
        with Proxy("-c", file) as proxy:
            assert hand(proxy, drained, "drain").startswith("draining")
            assert hand(proxy, ejected, "eject") == "ejected\n"
            assert out_of_service(proxy) == there
            asked = [backend.stats(i)["requests"] for i in (0, 1)]
            # another order, one more host, other hosts' order: nothing of that is about these two
            file.write_text(native({"web": ("127.0.0.1:0", "c")}, {"c": backend.servers[::-1]}))
            assert reload(proxy).status == 200
            assert len(proxy.hosts()) == 6 and out_of_service(proxy) == there
            for _ in range(60):
                assert request(proxy.address, "GET", "/").status == 200
            assert [backend.stats(i)["requests"] for i in (0, 1)] == asked
            assert all(backend.stats(i)["requests"] > 0 for i in range(2, 6))
            assert proxy.stat("cluster.c.outlier_detection.ejections_active") == 1
            assert hand(proxy, drained, "undrain") == "in again\n"
            assert hand(proxy, ejected, "pardon") == "in again\n"
            assert out_of_service(proxy) == (set(), set())
            for _ in range(60):
                assert request(proxy.address, "GET", "/").status == 200
            assert all(backend.stats(i)["requests"] > asked[i] for i in (0, 1))


def test_a_host_that_was_taken_out_of_the_file_comes_back_without_a_past(tmp_path):
    file = tmp_path / "firebreak.yaml"
    with Backend(count=5) as backend:
        whole = native({"web": ("127.0.0.1:0", "c")}, {"c": backend.servers})
        file.write_text(whole)
        with Proxy("-c", file) as proxy:
            hand(proxy, backend.servers[0], "drain")
            changes = proxy.stat("cluster.c.membership_change")
            file.write_text(native({"web": ("127.0.0.1:0", "c")}, {"c": backend.servers[1:]}))
            assert reload(proxy).status == 200
            wait_for(lambda: proxy.stat("cluster.c.membership_change") > changes, "all workers to leave it")
            assert out_of_service(proxy) == (set(), set())
            file.write_text(whole)
            assert reload(proxy).status == 200
            assert len(proxy.hosts()) == 5 and out_of_service(proxy) == (set(), set())


def test_requests_under_way_survive_the_end_of_their_cluster(tmp_path):
    file = tmp_path / "firebreak.yaml"
    with Backend(count=2) as backend:
        first, second = backend.servers
        file.write_text(native({"web": ("127.0.0.1:0", "a")}, {"a": [first]}))
        with Proxy("-c", file) as proxy, Connection(proxy.address) as slow:
            slow.send("GET /delay/1500 HTTP/1.1\r\nHost: x\r\n\r\n")
            wait_for(lambda: proxy.stat("cluster.a.upstream_rq_active") == 1, "the request")
            file.write_text(native({"web": ("127.0.0.1:0", "b")}, {"b": [second]}))
            assert reload(proxy).status == 200
            assert request(proxy.address, "GET", "/").status == 200
            assert slow.read_answer().status == 200


def test_a_second_instance_takes_over_without_a_lost_request(tmp_path):
    file = tmp_path / "firebreak.yaml"
    with Backend(count=2) as backend:
        file.write_text(native({"web": ("127.0.0.1:0", "c")}, {"c": backend.servers}))
        first = Proxy("-c", file)
        traffic = Traffic(first.address, threads=6)
        traffic.more()
        file.write_text(native({"web": (show_address(first.address), "c")}, {"c": backend.servers}))
        with Proxy("-c", file) as second:
            traffic.more()
            first.signal(signal.SIGTERM)
            assert first.wait() == 0
            traffic.more(200)
            assert traffic.end() == []
            assert second.stat("http.web.downstream_rq_total") > 200
