#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Firebreak beside HAProxy and nginx in one run: CPU a request, throughput, latency, memory.

One worker (thread) each, access logs off, keep-alive, 1 KiB answers of one nginx behind all. The
proxies take turns in rounds, since hosts are noisy; Firebreak runs twice (A and B), and the spread
of those two says what a difference must exceed to mean something. Nothing here passes or fails.

Before that, what detection costs: nanoseconds a request on a worker, and the watch's share of one core at
1,000 endpoints and 100,000 requests a second (bench/evidence.c), and how soon all workers heed a verdict; --evidence:
nothing else.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import verdict

ROOT = pathlib.Path(__file__).resolve().parents[1]
TICK = os.sysconf("SC_CLK_TCK")
DESCRIPTORS = resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def free_ports(n):
    """|n| different ports: all held until the last is chosen."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def free_port():
    return free_ports(1)[0]


def wait_for_port(port, process):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        if process.poll() is not None:
            raise SystemExit(f"bench: {process.args[0]} ended with {process.returncode}")
        time.sleep(0.02)
    raise SystemExit(f"bench: nobody listens at port {port}")


def tree(pid):
    """The process and its children: HAProxy and nginx work in a child."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid] + [p for c in children for p in tree(int(c))]


def cpu(pid):
    total = 0
    for p in tree(pid):
        fields = pathlib.Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def resident(pid):
    total = 0
    for p in tree(pid):
        for line in pathlib.Path(f"/proc/{p}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1]) * 1024
    return total


class Server:
    """With no |port| it says itself where it listens."""

    def __init__(self, name, command, port=None):
        self.name, self.port = name, port
        errors = None if os.environ.get("BENCH_DEBUG") else subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL if port else subprocess.PIPE,
                                        stderr=errors, text=True)
        if port is None:
            line = self.process.stdout.readline().split()
            if line[:1] != ["listening"]:
                raise SystemExit(f"bench: {name} does not listen")
            self.port = int(line[-1].rpartition(":")[2])
        wait_for_port(self.port, self.process)

    @property
    def pid(self):
        return self.process.pid

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


NGINX_COMMON = """
daemon off; pid {dir}/{name}.pid; error_log {dir}/{name}.log crit; worker_processes {workers};
worker_rlimit_nofile {descriptors};
events {{ worker_connections 14000; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 3600s;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
  uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  {body}
}}
"""


def nginx(directory, name, port, body, workers=1):
    path = pathlib.Path(directory) / f"{name}.conf"
    path.write_text(NGINX_COMMON.format(dir=directory, name=name, body=body, workers=workers,
                                         descriptors=DESCRIPTORS))
    return Server(name, ["nginx", "-c", str(path), "-p", str(directory)], port)


def origin(directory, ports):
    listens = " ".join(f"listen 127.0.0.1:{p} backlog=4096;" for p in ports)
    body = f'server {{ {listens} location / {{ return 200 "{"x" * 1023}\\n"; }} }}'
    return nginx(directory, "origin", ports[0], body)


def proxy_nginx(directory, upstreams):
    port = free_port()
    servers = " ".join(f"server {u};" for u in upstreams)
    body = (f"upstream u {{ {servers} keepalive 1024; keepalive_requests 1000000000; }}"
            f"server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ proxy_pass http://u;"
            f' proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering on; }} }}')
    return nginx(directory, "nginx", port, body)


def proxy_haproxy(directory, upstreams):
    port = free_port()
    servers = "\n".join(f"  server s{i} {u}" for i, u in enumerate(upstreams))
    path = pathlib.Path(directory) / "haproxy.cfg"
    path.write_text(f"""global
  nbthread 1
  noreuseport
  maxconn {(DESCRIPTORS - 200) // 2}
defaults
  mode http
  timeout connect 5s
  timeout client 3600s
  timeout server 60s
  timeout http-keep-alive 3600s
  http-reuse always
frontend f
  bind 127.0.0.1:{port} backlog 4096
  default_backend b
backend b
  balance roundrobin
{servers}
""")
    return Server("haproxy", ["haproxy", "-f", str(path), "-db"], port)


def proxy_firebreak(binary, name, upstreams, workers=1):
    """At port 0: it shares ports (SO_REUSEPORT), so one chosen here might come to be another process's, too."""
    return Server(name, [binary, "run", "--to", ",".join(upstreams), "--listen", "127.0.0.1:0",
                         "--admin", "127.0.0.1:0", "--workers", str(workers)])


MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60000.0}


def latency(text, percent):
    found = re.search(rf"^\s+{percent}%\s+([\d.]+)(us|ms|s|m)", text, re.M)
    return float(found[1]) * MS[found[2]] if found else float("nan")


def measure(server, connections, seconds):
    before = cpu(server.pid)
    out = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency",
                          f"http://127.0.0.1:{server.port}/"], capture_output=True, text=True, check=True).stdout
    spent = cpu(server.pid) - before
    requests = int(re.search(r"(\d+) requests in", out)[1])
    if spent == 0:
        raise SystemExit(f"bench: {server.name} answered without any work: not who listens at {server.port}")
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    return {"cpu_us": spent * 1e6 / requests, "rps": float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]),
            "p50": latency(out, 50), "p99": latency(out, 99), "bad": int(bad[1]) if bad else 0}


def rounds(servers, connections, seconds, count):
    samples = {s.name: [] for s in servers}
    for s in servers:
        measure(s, connections, 1)  # warm
    for r in range(count):
        order = servers if r % 2 == 0 else servers[::-1]
        for s in order:
            samples[s.name].append(measure(s, connections, seconds))
    return {name: {k: statistics.median(x[k] for x in runs) for k in runs[0]} | {"cpu_runs": [x["cpu_us"] for x in runs]}
            for name, runs in samples.items()}


def ratio(row, base):
    """Of CPU: the median of the rounds' ratios, as what slows the host down lasts longer than a round."""
    return statistics.median(x / y for x, y in zip(row["cpu_runs"], base["cpu_runs"]))


def spread(rows):
    """What the two runs of the same binary differ by: within rounds, and of the medians."""
    a, b = rows["firebreak A"], rows["firebreak B"]
    print(f"  A/A: B is {ratio(b, a):.2f} of A by rounds, {b['cpu_us'] / a['cpu_us']:.2f} by medians")


def table(title, rows, base):
    print(f"\n{title}")
    print(f"  {'':12} {'CPU us/req':>10} {'req/s':>9} {'p50 ms':>8} {'p99 ms':>8} {'CPU ratio to ' + base:>22}")
    for name, row in rows.items():
        print(f"  {name:12} {row['cpu_us']:10.2f} {row['rps']:9.0f} {row['p50']:8.2f} {row['p99']:8.2f}"
              f" {ratio(row, rows[base]):22.2f}" + ("  BAD ANSWERS" if row["bad"] else ""))
    sys.stdout.flush()


def idle_bytes(server, count):
    """Resident bytes a connection that has made one request and then sits there."""
    before = resident(server.pid)
    held = []
    for _ in range(count):
        s = socket.create_connection(("127.0.0.1", server.port))
        s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        left = b""
        while not left.endswith(b"x\n"):
            left += s.recv(65536)
        held.append(s)
    grown = (resident(server.pid) - before) / count
    for s in held:
        s.close()
    return grown


def syscalls(server):
    """System calls a request at 64 connections, counted by strace (which slows everything down)."""
    if shutil.which("strace") is None:
        return None
    with tempfile.NamedTemporaryFile("r") as out:
        pids = [a for p in tree(server.pid) for a in ("-p", str(p))]
        tracer = subprocess.Popen(["strace", "-f", "-c", "-o", out.name, *pids],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        text = subprocess.run(["wrk", "-t1", "-c64", "-d2s", f"http://127.0.0.1:{server.port}/"],
                              capture_output=True, text=True, check=True).stdout
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        total = re.search(r"^\s*100\.00\s+[\d.]+\s+(?:\d+\s+)?(\d+)(?:\s+\d+)?\s+total", out.read(), re.M)
    requests = int(re.search(r"(\d+) requests in", text)[1])
    return int(total[1]) / requests if total else None


def evidence(binary, seconds):
    """Processor time, of the shipped code on a clock of its own; what is aimed at beside it."""
    figures = {"worker": {}, "watch": {}}
    text = subprocess.run([binary, str(seconds)], capture_output=True, text=True, check=True).stdout
    for part, name, *numbers in (line.split(";") for line in text.splitlines()):
        figures[part][name] = [float(n) for n in numbers]
    print("\nmaking one evidence and putting it into the ring, ns a request (aim: 150)")
    print(f"  {'':32} {'median':>8} {'95th':>8} {'arrive':>8}")
    for name, (half, most, arrive) in figures["worker"].items():
        print(f"  {name:32} {half:8.0f} {most:8.0f} {100 * arrive:6.0f} %")
    print(f"\nthe watch, 1,000 endpoints, 100,000 requests/s, {seconds} s (aim: 10 % of a core)")
    print(f"  {'':32} {'of a core':>10} {'ms a look':>10} {'longest':>8} {'evidence/s':>11}")
    for name, (share, half, most, rate) in figures["watch"].items():
        print(f"  {name:32} {share:8.1f} % {half:10.2f} {most:8.2f} {rate:11.0f}")
    sys.stdout.flush()
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=str(ROOT / "build"), help="directory with firebreak and bench_evidence")
    parser.add_argument("--evidence", action="store_true", help="only what detection costs")
    parser.add_argument("--seconds", type=int, default=3, help="a measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", default="1,64,512")
    parser.add_argument("--idle", type=int, default=5000, help="connections for the memory figure")
    parser.add_argument("--json", help="write all figures there too")
    args = parser.parse_args()
    args.binary = str(pathlib.Path(args.build).resolve() / "firebreak")
    figures = {"evidence": evidence(str(pathlib.Path(args.build).resolve() / "bench_evidence"), args.seconds)}
    figures["verdict"] = verdict.measure(args.binary)
    if args.evidence:
        write(args.json, figures)
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    with tempfile.TemporaryDirectory(prefix="firebreak-bench-") as directory:
        os.chmod(directory, 0o755)
        run(args, directory, figures)
    write(args.json, figures)


def write(path, figures):
    if path:
        pathlib.Path(path).write_text(json.dumps(figures, indent=1))


def run(args, directory, figures):
    servers = []

    def keep(server):
        servers.append(server)
        return server

    try:
        ports = free_ports(1000)
        keep(origin(directory, ports))
        one = [f"127.0.0.1:{ports[0]}"]
        many = [f"127.0.0.1:{p}" for p in ports]
        print(f"one worker each, {args.rounds} rounds of {args.seconds} s, medians; A and B are the same binary")
        rivals = [keep(proxy_firebreak(args.binary, "firebreak A", one)), keep(proxy_haproxy(directory, one)),
                  keep(proxy_nginx(directory, one)), keep(proxy_firebreak(args.binary, "firebreak B", one))]
        for c in map(int, args.connections.split(",")):
            rows = figures[f"c{c}"] = rounds(rivals, c, args.seconds, args.rounds)
            table(f"{c} connections", rows, "haproxy")
            spread(rows)
        print("\nsystem calls a request, 64 connections")
        for s in rivals[:3]:
            figures[f"syscalls {s.name}"] = syscalls(s)
            print(f"  {s.name:12} {figures[f'syscalls {s.name}'] or float('nan'):6.2f}")
        print(f"\nresident bytes a connection, {args.idle} idle ones after a request each, in a fresh process")
        for make in (lambda: proxy_firebreak(args.binary, "firebreak", one),
                     lambda: proxy_haproxy(directory, one), lambda: proxy_nginx(directory, one)):
            s = keep(make())
            figures[f"idle {s.name}"] = idle_bytes(s, args.idle)
            print(f"  {s.name:12} {figures[f'idle {s.name}']:8.0f}")
        two = keep(proxy_firebreak(args.binary, "2 workers", one, workers=2))
        figures["workers"] = rounds([rivals[0], two, rivals[3]], 64, args.seconds, args.rounds)
        table("one worker and two, 64 connections", figures["workers"], "firebreak A")
        spread(figures["workers"])
        thousand = keep(proxy_firebreak(args.binary, "1000 hosts", many))
        figures["endpoints"] = rounds([rivals[0], thousand, rivals[3]], 64, args.seconds, args.rounds)
        table("one endpoint and a thousand, 64 connections", figures["endpoints"], "firebreak A")
        spread(figures["endpoints"])
    finally:
        for s in reversed(servers):
            s.stop()


if __name__ == "__main__":
    main()
