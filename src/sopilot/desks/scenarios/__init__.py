"""Scenario tests for procedures.

Owns the scenario file (a user, simulated tool results, what must come of it), the
run of a scenario through the real loop with the reference executor, and the
count of the steps and branches that no scenario reached. May import every room
above it; the store comes in from outside.
"""

from sopilot.desks.scenarios.coverage import Coverage, Gap, ProgramCoverage, coverage_of
from sopilot.desks.scenarios.reader import load_scenarios, read_scenarios
from sopilot.desks.scenarios.running import ScenarioResult, run_scenario
from sopilot.desks.scenarios.scenario import (
    Answer,
    Expectation,
    ExpectedCall,
    Ruling,
    Scenario,
    Suite,
)
from sopilot.desks.scenarios.world import SimulatedTools

__all__ = [
    "Answer",
    "Coverage",
    "Expectation",
    "ExpectedCall",
    "Gap",
    "ProgramCoverage",
    "Ruling",
    "Scenario",
    "ScenarioResult",
    "SimulatedTools",
    "Suite",
    "coverage_of",
    "load_scenarios",
    "read_scenarios",
    "run_scenario",
]
