# SPDX-License-Identifier: Apache-2.0
"""Scenarios drawn from a seed: a cluster, rules or limits, and what happens to one request after the
other. The same seed is the same scenario."""
import random

import catalogue
import configs
import upstream

OK, HALF, CHUNKS = b"HTTP/1.1 200 OK\r\n", b"content-length: 10\r\n\r\nabc", b"transfer-encoding: chunked\r\n\r\n"

# What an attempt meets.
OUTCOMES = {
    "200": lambda: upstream.answer(200, body=b""), "404": lambda: upstream.answer(404, body=b""),
    "409": lambda: upstream.answer(409, body=b""), "500": lambda: upstream.answer(500, body=b""),
    "502": lambda: upstream.answer(502, body=b""), "503": lambda: upstream.answer(503, body=b""),
    "204": lambda: upstream.answer(204), "304": lambda: upstream.answer(304),
    "body": lambda: upstream.answer(200, body=b"x" * 3000),
    "chunks": lambda: upstream.raw(OK + CHUNKS + b"3\r\nabc\r\n0\r\n\r\n"),
    "500-chunks": lambda: upstream.raw(b"HTTP/1.1 500 No\r\n" + CHUNKS + b"3\r\nabc\r\n0\r\n\r\n"),
    "to-the-end": lambda: upstream.raw(OK + b"\r\nall of it", "finish"),
    "1.0": lambda: upstream.raw(b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"),
    "more": lambda: upstream.raw(OK + b"content-length: 2\r\n\r\nok and more"),
    "reset": lambda: upstream.raw(b"", "reset"), "fin": lambda: upstream.raw(b"", "finish"),
    "reset-in-head": lambda: upstream.raw(OK + b"content-le", "reset"),
    "fin-in-head": lambda: upstream.raw(OK + b"content-le", "finish"),
    "reset-in-body": lambda: upstream.raw(OK + HALF, "reset"), "fin-in-body": lambda: upstream.raw(OK + HALF, "finish"),
    "fin-in-chunks": lambda: upstream.raw(OK + CHUNKS + b"5\r\nabc", "finish"),
    "503-cut": lambda: upstream.raw(b"HTTP/1.1 503 No\r\n" + HALF, "finish"),
    "silent": upstream.silent, "garbage": lambda: upstream.raw(b"nonsense\r\n\r\n"),
    "two-lengths": lambda: upstream.raw(OK + b"content-length: 0\r\ncontent-length: 0\r\n\r\n"),
    "length-and-chunks": lambda: upstream.raw(OK + b"content-length: 0\r\n" + CHUNKS + b"0\r\n\r\n"),
    "close": lambda: upstream.answer(200, fields=[("connection", "close")]),
    "refused": None,
}
REQUESTS = {"GET": {}, "HEAD": {"method": "HEAD"}, "POST": {"method": "POST", "body": "x" * 100},
            "PUT": {"method": "PUT", "body": ""}}


# Failures one after the other, of one host


def draw_outlier(rng):
    rules = {"interval": 900, "base_ejection_time": 900, "consecutive_5xx": rng.randint(2, 6),
             "max_ejection_percent": rng.choice((0, 100, 100, 100))}
    if rng.random() < 0.5:
        rules.update(consecutive_gateway_failure=rng.randint(2, 6),
                     enforcing_consecutive_gateway_failure=100)
    if rng.random() < 0.3:
        rules.update(split_external_local_origin_errors=True,
                     consecutive_local_origin_failure=rng.randint(1, 4))
    return rules


def draw_retry(rng):
    tokens = rng.sample(("5xx", "gateway-error", "reset", "connect-failure", "retriable-4xx"), 2)
    return {"retry_on": ",".join(tokens), "num_retries": rng.randint(0, 2), "base": 0.005}


def draw_failures(rng):
    setup = configs.Setup(outlier=draw_outlier(rng), panic=0, timeout=0.3)
    if rng.random() < 0.3:
        setup.max_requests_per_connection = rng.randint(1, 4)
    if rng.random() < 0.4:
        setup.outlier = None  # attempts follow faster than Envoy's other thread takes note of them
        setup.retry = draw_retry(rng)
    weights = [rng.random() ** 2 for _ in OUTCOMES]
    outcomes = rng.choices(list(OUTCOMES), weights, k=rng.randint(15, 30))
    return setup, [f"{rng.choice(list(REQUESTS))}/{outcome}" for outcome in outcomes]


def play_failures(steps):
    def play(s):
        for step in steps:
            request, outcome = step.split("/")
            if outcome == "refused":
                s.hosts[0].refuse()
                s.hosts[0].drop_idle()
                s.await_stat(upstream_cx_active=0)
                s.get(**REQUESTS[request])
                s.hosts[0].listen()
            else:
                s.get(OUTCOMES[outcome](), **REQUESTS[request])
    return play


# Several hosts, in turn, of which some refuse for a while


def draw_hosts(rng):
    setup = configs.Setup(hosts=rng.randint(2, 4), timeout=0.5)
    if rng.random() < 0.7:
        setup.retry = draw_retry(rng)
    common = ("200", "500", "503", "close", "reset", "fin", "409", "body", "garbage")
    steps = []
    for _ in range(rng.randint(12, 25)):
        kind = rng.random()
        if kind < 0.2:
            steps.append(f"{rng.choice(('down', 'up'))} {rng.randrange(setup.hosts)}")
        else:
            steps.append("get " + "/".join(rng.choices(common, (5, 1, 1, 1, 1, 1, 1, 1, 1), k=rng.randint(1, 3))))
    return setup, steps


def go_down(s, host):
    """No connection to it is left, and none comes about."""
    kept = s.stat("upstream_cx_active")
    alive = sum(not upstream.readable(w.sock, 0) for w in host.wires if w.sock.fileno() >= 0)
    host.refuse()
    host.drop_idle()
    s.await_stat(upstream_cx_active=kept - alive)


def play_hosts(steps):
    def play(s):
        for _ in s.hosts:
            s.get()
        order = [c.script.seen[0][0] for c in s.calls]
        for step in steps:
            word, what = step.split(" ")
            host = s.hosts[order[int(what)]] if word != "get" else None
            if word == "get":
                s.get([OUTCOMES[outcome]() for outcome in what.split("/")])
                s.quiet()
            elif word == "down" and host.listener:
                go_down(s, host)
            elif word == "up" and not host.listener:
                host.listen()
    return play


# Requests that are held, at limits


def draw_limits(rng):
    limits = {"max_connections": rng.randint(1, 3), "max_pending_requests": rng.randint(1, 3)}
    if rng.random() < 0.4:
        limits["max_requests"] = rng.randint(1, 4)
    setup = configs.Setup(limits=limits, timeout=0)
    if rng.random() < 0.3:
        setup.max_requests_per_connection = rng.randint(1, 3)
    words = ("start", "start-close", "start-fin", "release", "leave")
    steps = rng.choices(words, (5, 1, 1, 4, 1), k=rng.randint(10, 25))
    return setup, [f"{step} {rng.randint(0, 99)}" for step in steps]


HELD = {"start": lambda: upstream.answer(), "start-close": OUTCOMES["close"], "start-fin": OUTCOMES["fin"]}


class Holding:
    """The requests of such a scenario."""

    def __init__(self, s):
        self.s = s
        self.open = []

    def collect(self):
        """Finishes what is answered without having been released: refused."""
        self.s.quiet()
        for call in list(self.open):
            if self.s.answered(call):
                self.s.finish(call)
                self.open.remove(call)

    def step(self, word, number):
        sent = [c for c in self.open if c.script.seen]
        if word in HELD:
            before = self.s.stat("http.downstream_rq_total")
            self.open.append(self.s.start(upstream.held(HELD[word]())))
            self.s.await_stat(http__downstream_rq_total=before + 1)
        elif word == "release" and sent:
            self.s.release(sent[0])
            self.open.remove(sent[0])
        elif word == "leave" and self.open:
            gone = self.open.pop(number % len(self.open))
            before = self.s.stat("http.downstream_rq_active")
            self.s.leave(gone)
            self.s.await_true(lambda: self.s.stat("http.downstream_rq_active") == before - 1, "it to go")
        self.collect()


def play_limits(steps):
    def play(s):
        holding = Holding(s)
        for step in steps:
            word, number = step.split()
            holding.step(word, int(number))
        while holding.open:
            s.await_true(lambda: any(c.script.seen for c in holding.open), "a request to be sent")
            holding.step("release", 0)
    return play


KINDS = ((draw_failures, play_failures), (draw_limits, play_limits), (draw_hosts, play_hosts))


def register(count, first=1):
    """|count| seeds, from |first| on."""
    for seed in range(first, first + count):
        rng = random.Random(seed)
        draw, play = KINDS[seed % len(KINDS)]
        setup, steps = draw(rng)
        name = f"seed-{seed}"
        catalogue.SCENARIOS[name] = catalogue.Scenario(
            name, "by seed", " ".join(steps), setup, play(steps), by_seed=True)
