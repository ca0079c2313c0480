# SPDX-License-Identifier: Apache-2.0
"""The scenarios by name: scenario() registers a function of one scenarios_*.py."""
import dataclasses

import configs


@dataclasses.dataclass
class Scenario:
    name: str
    area: str
    says: str  # what is played, in a line
    setup: configs.Setup
    play: object  # called with a run.Run
    by_seed: bool = False


SCENARIOS = {}


def scenario(area, says, **setup):
    """Registers the function under its name; |setup|: fields of configs.Setup."""
    def register(play):
        name = play.__name__.replace("_", "-")
        assert name not in SCENARIOS, name
        SCENARIOS[name] = Scenario(name, area, says, configs.Setup(**setup), play)
        return play
    return register
