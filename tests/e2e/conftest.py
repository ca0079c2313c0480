# SPDX-License-Identifier: Apache-2.0
"""Shared by all end-to-end tests. The peers are in rawpeers.py."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))


def pytest_configure(config):
    config.addinivalue_line("markers", "multiworker: also run under the thread sanitizer")
