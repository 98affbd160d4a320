"""Scenario tests for procedures.

Owns the scenario file (a user, simulated tool results, what must come of it), the
verdict on a run of one, and the count of the steps and branches that no scenario
reached. Runs are made by the room `tasks`, as of any other task.
"""

from sopilot.desks.scenarios._coverage import Coverage, Gap, ProgramCoverage, coverage_of
from sopilot.desks.scenarios._reader import load_scenarios, read_scenarios
from sopilot.desks.scenarios._scenario import (
    Expectation,
    ExpectedCall,
    Scenario,
    ScriptedAnswer,
    ScriptedRuling,
    Suite,
    request_for,
)
from sopilot.desks.scenarios._world import SimulatedTools

__all__ = [
    "Coverage",
    "Expectation",
    "ExpectedCall",
    "Gap",
    "ProgramCoverage",
    "Scenario",
    "ScriptedAnswer",
    "ScriptedRuling",
    "SimulatedTools",
    "Suite",
    "coverage_of",
    "load_scenarios",
    "read_scenarios",
    "request_for",
]
