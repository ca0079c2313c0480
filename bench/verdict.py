# SPDX-License-Identifier: Apache-2.0
"""How soon a verdict is every worker's: four workers under load, a host that fails, again and again. From the
decision in the journal (which has milliseconds) to the last request that any worker began on that host, by the
access log. For bench/bench.py."""

import datetime
import json
import pathlib
import statistics
import subprocess
import tempfile
import time
import urllib.request

CONFIG = """
admin: {{ listen: "127.0.0.1:0" }}
workers: {workers}
journal: {directory}/journal
accessLog: {{ to: {directory}/access.log, format: '%START_TIME(%s.%9f)% %UPSTREAM_HOST%' }}
listeners:
  - name: web
    listen: "127.0.0.1:0"
    routes: [ {{ cluster: shop, timeout: 5s }} ]
clusters:
  - name: shop
    endpoints: [{endpoints}]
    resilience: {{ profile: adaptive }}
"""
HOSTS = 10


def start(command, last_line):
    """The process, and what it said up to the line that begins so, by first words."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    said = []
    for line in process.stdout:
        said.append(line.split())
        if line.startswith(last_line):
            return process, said
    raise SystemExit(f"bench: {' '.join(command)} ended with {process.wait()}")


def ask(method, address, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{address}{path}", data=data, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read()


def decisions(directory):
    """Of hosts: when, which host, what."""
    for line in pathlib.Path(directory, "journal").read_text().splitlines():
        d = json.loads(line)
        if "host" in d:
            at = datetime.datetime.fromisoformat(d["time"].replace("Z", "+00:00")).timestamp()
            yield at, d["host"], d["what"]


def ejections(directory):
    """When, which host, and until when nothing else was decided about it."""
    all_of_them = list(decisions(directory))
    for i, (at, host, what) in enumerate(all_of_them):
        if what == "ejected":
            yield at, host, min([d[0] for d in all_of_them[i + 1:] if d[1] == host], default=at + 1)


def begun(directory):
    """Instants of requests by host."""
    found = {}
    for line in pathlib.Path(directory, "access.log").read_text().splitlines():
        at, host = line.split()
        found.setdefault(host, []).append(float(at))
    return found


def eject_one(directory, control, admin, server, host):
    """By its evidence; and lets it back a second later, before it is probed."""
    before = len(list(ejections(directory)))
    ask("POST", control, "/fault", {"fault": "status", "value": 503, "server": server})
    end = time.monotonic() + 30
    while len(list(ejections(directory))) == before:
        if time.monotonic() > end:
            raise SystemExit("bench: a host that answers 503 is not ejected")
        time.sleep(0.02)
    time.sleep(1)
    ask("DELETE", control, "/fault")
    ask("POST", admin, f"/clusters/shop/hosts/{host}/pardon", {})
    time.sleep(1)


def latest_after(directory):
    """Of each ejection, ms: negative, none was begun after it."""
    requests = begun(directory)
    for at, host, end in ejections(directory):
        yield 1000 * (max(r for r in requests[host] if r < end) - at)


def measure(binary, workers=4, rate=3000, times=20):
    processes = []
    with tempfile.TemporaryDirectory(prefix="firebreak-verdict-") as directory:
        try:
            backend, said = start([binary, "backend", "--listen", "127.0.0.1:0", "--count", str(HOSTS), "--control",
                                   "127.0.0.1:0", "--service", "uniform:4ms:12ms"], "control")
            processes.append(backend)
            hosts = [s[1] for s in said if s[0] == "listening"]
            control = said[-1][1]
            config = pathlib.Path(directory, "firebreak.yaml")
            config.write_text(CONFIG.format(workers=workers, directory=directory,
                                            endpoints=", ".join(f'{{ address: "{h}" }}' for h in hosts)))
            proxy, said = start([binary, "run", "-c", str(config)], "admin")
            processes.append(proxy)
            admin = said[-1][1]
            web = next(s[2] for s in said if s[0] == "listening")
            load = subprocess.Popen([binary, "load", "--url", f"http://{web}/", "--rate", str(rate), "--duration",
                                     f"{5 * times + 60}s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            processes.append(load)
            time.sleep(5)
            for i in range(times):
                eject_one(directory, control, admin, i % HOSTS, hosts[i % HOSTS])
            load.terminate()
            time.sleep(0.5)  # the log's thread writes every 20 ms
            late = list(latest_after(directory))
        finally:
            for p in reversed(processes):
                p.kill()
                p.wait()
    print(f"\n{len(late)} ejections seen by {workers} workers at {rate} requests/s: the last request begun on the host, ms after"
          f" the decision: median {statistics.median(late):.2f}, latest {max(late):.2f} (the journal cuts to 1 ms)")
    return late
