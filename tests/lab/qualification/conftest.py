"""Cases of the bundled examples, compiled once."""

from __future__ import annotations

import asyncio

import pytest
from gate_records import briefing_of

from population import SIMULATED_ARMS
from sopilot.tasks.example_tasks import example_tasks
from sopilot.tasks.examples.example import load_example
from sopilot.tasks.task import Task
from sopilot_lab.qualification.plan import RehearsedCases, planned, rehearse


@pytest.fixture(scope="session")
def bank_cases() -> list[Task]:
    example = load_example("bank")
    return example_tasks(example, briefing_of(example.handbook), late_calls_fail=False)


@pytest.fixture(scope="session")
def few_cases(bank_cases: list[Task]) -> list[Task]:
    return planned(bank_cases, 20)


@pytest.fixture(scope="session")
def rehearsal(few_cases: list[Task]) -> RehearsedCases:
    return asyncio.run(rehearse(few_cases, SIMULATED_ARMS))
