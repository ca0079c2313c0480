# SPDX-License-Identifier: Apache-2.0
"""The two proxies under comparison, each a process with one worker and the clusters of all
scenarios: where they listen, what they count, log and eject."""
import json
import pathlib
import re
import subprocess
import threading

import configs
import harness


class Tail:
    """The JSON objects of a growing file."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.position = 0
        self.rest = b""
        self.objects = []
        self.lock = threading.Lock()

    def read(self):
        with self.lock:
            if self.path.exists():
                with self.path.open("rb") as f:
                    f.seek(self.position)
                    data = f.read()
                self.position += len(data)
                *lines, self.rest = (self.rest + data).split(b"\n")
                self.objects += [json.loads(line) for line in lines if line.strip()]
            return list(self.objects)


class Side:
    """What both have in common. name: "envoy" or "firebreak"."""

    name = None

    def page(self, target):
        answer = harness.wait_for(lambda: self._page(target), f"{target} of {self.name}", 30)
        assert answer.status == 200, answer
        return answer

    def _page(self, target):
        """None: on a busy machine more of the players are here at once than may be."""
        answer = harness.request(self.admin, "GET", target)
        return None if answer.status == 503 and answer.body.startswith(b"too many") else answer

    def stats(self, scenario):
        """{name without the prefix: value} of the cluster, and "http." those of the listener; those
        that are still 0 may be missing."""
        text = self.page(f"/stats?usedonly&filter=^(cluster|http)\\.{scenario}\\.").text()
        found = {}
        for line in text.splitlines():
            name, _, value = line.partition(": ")
            if re.fullmatch(r"\d+", value):
                kind, _, rest = name.partition(f".{scenario}.")
                found[rest if kind == "cluster" else "http." + rest] = int(value)
        return found

    def events(self, scenario):
        """The objects of the outlier event log."""
        return [e for e in self.event_log.read() if e["cluster_name"] == scenario]

    def log_line(self, path):
        """The access log's object of the request to |path|, or None."""
        for line in self.log.read():
            if line["path"] == path:
                return line
        return None


class Envoy(Side):
    name = "envoy"

    def __init__(self, binary, setups, addresses, directory):
        directory = pathlib.Path(directory)
        config = directory / "envoy.json"
        config.write_text(configs.envoy(setups, addresses, directory))
        self.said = directory / "envoy.out"
        self.port_file = directory / "envoy.admin"
        with self.said.open("wb") as out:
            self.popen = subprocess.Popen(
                [binary, "-c", str(config), "--concurrency", "1", "--use-dynamic-base-id",
                 "--disable-hot-restart", "--file-flush-interval-msec", "20", "--log-level", "warn",
                 "--admin-address-path", str(self.port_file)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        self.log = Tail(directory / "envoy.log")
        self.event_log = Tail(directory / "envoy.events")
        try:
            harness.wait_for(self._up, "Envoy to listen", 60)
        except AssertionError:
            self.popen.kill()
            raise
        self.addresses = self._listeners()

    def _up(self):
        assert self.popen.poll() is None, self.said.read_text()[-4000:]
        if not self.port_file.exists() or not self.port_file.read_text():
            return False
        self.admin = harness.parse_address(self.port_file.read_text())
        try:
            return harness.request(self.admin, "GET", "/ready").status == 200
        except OSError:
            return False

    def _listeners(self):
        found = {}
        for line in self.page("/listeners").text().splitlines():
            name, _, address = line.partition("::")
            found[name] = harness.parse_address(address)
        return found

    def stop(self):
        self.popen.terminate()
        try:
            self.popen.wait(harness.PATIENCE)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


class Firebreak(Side):
    name = "firebreak"

    def __init__(self, setups, addresses, directory):
        directory = pathlib.Path(directory)
        config = directory / "firebreak.yaml"
        config.write_text(configs.firebreak(setups, addresses, directory))
        self.process = harness.Proxy("-c", str(config))
        self.admin = self.process.admin
        self.addresses = self.process.listeners
        self.log = Tail(directory / "firebreak.log")
        self.event_log = Tail(directory / "firebreak.events")

    def log_line(self, path):
        line = super().log_line(path)
        if line is None:
            return None
        return {"path": line["path"], "code": line["response_code"], "flags": line["response_flags"],
                "details": line["response_code_details"], "received": line["bytes_received"],
                "sent": line["bytes_sent"], "host": line["upstream_host"]}

    def stop(self):
        code = self.process.stop()
        assert code == 0 and not self.process.sanitizer_report(), str(self.process)
