# SPDX-License-Identifier: Apache-2.0
"""Shared by all end-to-end tests. Raw peers are in rawpeers.py, processes of ours in harness.py."""

import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import harness  # noqa: E402


def signals_as_from_a_terminal():
    """What we start inherits which signals are ignored or blocked; nohup and `&` leave their own."""
    for s in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1):
        if signal.getsignal(s) == signal.SIG_IGN:
            signal.signal(s, signal.default_int_handler if s == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def pytest_configure(config):
    signals_as_from_a_terminal()
    config.addinivalue_line("markers", "multiworker: also run under the thread sanitizer")


@pytest.fixture
def start():
    """start(kind, *args, **keys): a harness.Process of that kind, stopped in order after the test.
    One that the test itself ended may have any exit code, but no sanitizer report."""
    started = []

    def begin(kind, *args, **keys):
        process = kind(*args, **keys)
        started.append(process)
        return process

    yield begin
    wrong = []
    for process in reversed(started):
        ran = process.running()
        try:
            code = process.stop()
        except AssertionError as error:
            process.kill()
            wrong.append(str(error))
            continue
        if (ran and code != 0) or process.sanitizer_report():
            wrong.append(f"exit code {code}: {process}")
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def backend(start):
    """One server without faults."""
    return start(harness.Backend)
