# SPDX-License-Identifier: Apache-2.0
"""Shared by all end-to-end tests. Raw peers are in rawpeers.py, processes of ours in harness.py."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import harness  # noqa: E402


def pytest_configure(config):
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
