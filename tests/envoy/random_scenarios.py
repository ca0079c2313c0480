# SPDX-License-Identifier: Apache-2.0
"""Scenarios drawn from a seed: a cluster, rules or limits, and what happens to one request after the
other. The same seed is the same scenario. One host, so that the balancer has no choice to differ in."""
import random

import catalogue
import configs
import upstream

# What an attempt meets.
OUTCOMES = {
    "200": lambda: upstream.answer(200, body=b""), "404": lambda: upstream.answer(404, body=b""),
    "409": lambda: upstream.answer(409, body=b""), "500": lambda: upstream.answer(500, body=b""),
    "502": lambda: upstream.answer(502, body=b""), "503": lambda: upstream.answer(503, body=b""),
    "204": lambda: upstream.answer(204), "body": lambda: upstream.answer(200, body=b"x" * 3000),
    "reset": lambda: upstream.raw(b"", "reset"), "fin": lambda: upstream.raw(b"", "finish"),
    "silent": upstream.silent, "garbage": lambda: upstream.raw(b"nonsense\r\n\r\n"),
    "close": lambda: upstream.answer(200, fields=[("connection", "close")]),
    "refused": None,
}


# Failures one after the other


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


def draw_failures(rng):
    setup = configs.Setup(outlier=draw_outlier(rng), panic=0, timeout=0.3)
    if rng.random() < 0.3:
        setup.max_requests_per_connection = rng.randint(1, 4)
    if rng.random() < 0.4:
        setup.outlier = None  # attempts follow faster than Envoy's other thread takes note of them
        tokens = rng.sample(("5xx", "gateway-error", "reset", "connect-failure", "retriable-4xx"), 2)
        setup.retry = {"retry_on": ",".join(tokens), "num_retries": rng.randint(1, 2), "base": 0.005}
    weights = [rng.random() for _ in OUTCOMES]
    return setup, rng.choices(list(OUTCOMES), weights, k=rng.randint(15, 30))


def play_failures(outcomes):
    def play(s):
        for outcome in outcomes:
            if outcome == "refused":
                s.hosts[0].refuse()
                s.hosts[0].drop_idle()
                s.await_stat(upstream_cx_active=0)
                s.get()
                s.hosts[0].listen()
            else:
                s.get(OUTCOMES[outcome]())
    return play


# Requests that are held, at limits


def draw_limits(rng):
    limits = {"max_connections": rng.randint(1, 3), "max_pending_requests": rng.randint(1, 3)}
    if rng.random() < 0.4:
        limits["max_requests"] = rng.randint(1, 4)
    steps = rng.choices(("start", "release", "leave"), (5, 3, 1), k=rng.randint(10, 20))
    return configs.Setup(limits=limits, timeout=0), [f"{step} {rng.randint(0, 99)}" for step in steps]


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
        if word == "start":
            before = self.s.stat("http.downstream_rq_total")
            self.open.append(self.s.start(upstream.held(upstream.answer())))
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


def register(count):
    for seed in range(1, count + 1):
        rng = random.Random(seed)
        draw, play = ((draw_failures, play_failures), (draw_limits, play_limits))[seed % 2]
        setup, steps = draw(rng)
        name = f"seed-{seed}"
        catalogue.SCENARIOS[name] = catalogue.Scenario(
            name, "by seed", " ".join(steps), setup, play(steps), by_seed=True)
