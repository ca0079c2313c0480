# SPDX-License-Identifier: Apache-2.0
"""Scenarios drawn from a seed: a cluster, rules and limits, and a sequence of requests. The same seed
is the same scenario."""
import random

import catalogue
import configs
import upstream

HALF = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"

# One request after the other, each with what its attempt meets.
OUTCOMES = {
    "200": lambda: upstream.answer(200), "404": lambda: upstream.answer(404),
    "500": lambda: upstream.answer(500), "502": lambda: upstream.answer(502),
    "503": lambda: upstream.answer(503), "204": lambda: upstream.answer(204),
    "reset": lambda: upstream.raw(b"", "reset"), "fin": lambda: upstream.raw(b"", "finish"),
    "silent": upstream.silent, "garbage": lambda: upstream.raw(b"nonsense\r\n\r\n"),
    "close": lambda: upstream.answer(200, fields=[("connection", "close")]),
    "refused": None,
}


def draw(seed):
    """(Setup, [outcome names]) of one host, so that the balancer has no choice to differ in."""
    rng = random.Random(seed)
    outlier = {"interval": 60, "base_ejection_time": 60,
               "max_ejection_percent": rng.choice((0, 100, 100, 100)),
               "consecutive_5xx": rng.randint(2, 6)}
    if rng.random() < 0.5:
        outlier.update(consecutive_gateway_failure=rng.randint(2, 6),
                       enforcing_consecutive_gateway_failure=100)
    if rng.random() < 0.3:
        outlier.update(split_external_local_origin_errors=True,
                       consecutive_local_origin_failure=rng.randint(1, 4))
    setup = configs.Setup(outlier=outlier, panic=0, timeout=0.15)
    if rng.random() < 0.3:
        setup.max_requests_per_connection = rng.randint(1, 4)
    weights = [rng.random() for _ in OUTCOMES]
    return setup, rng.choices(list(OUTCOMES), weights, k=rng.randint(15, 30))


def play(outcomes):
    def play_them(s):
        for outcome in outcomes:
            if outcome == "refused":
                s.hosts[0].refuse()
                s.hosts[0].drop_idle()
                s.await_stat(upstream_cx_active=0)
                s.get()
                s.hosts[0].listen()
            else:
                if outcome in ("reset", "fin"):  # on a new connection: there is no race for a reused one
                    s.hosts[0].drop_idle()
                    s.await_stat(upstream_cx_active=0)
                s.get(OUTCOMES[outcome]())
    return play_them


def register(count):
    for seed in range(1, count + 1):
        name = f"seed-{seed}"
        setup, outcomes = draw(seed)
        catalogue.SCENARIOS[name] = catalogue.Scenario(
            name, "by seed", " ".join(outcomes), setup, play(outcomes), by_seed=True)
