"""Cases of the bundled desks, compiled once."""

from __future__ import annotations

import asyncio

import pytest

from sopilot.adapters.memory_store import MemoryStore
from sopilot.desks.bundled import load_desk
from sopilot.lab.discipline import Case, Rehearsal, desk_cases, planned, rehearse
from sopilot.lab.discipline.population import SIMULATED_ARMS
from sopilot.language.compiler import compile_handbook


@pytest.fixture(scope="session")
def bank_cases() -> list[Case]:
    desk = load_desk("bank-desk")
    return desk_cases(desk, {g: c.program for g, c in compile_handbook(desk.handbook).items()})


@pytest.fixture(scope="session")
def few_cases(bank_cases: list[Case]) -> list[Case]:
    return planned(bank_cases, 20)


@pytest.fixture(scope="session")
def rehearsal(few_cases: list[Case]) -> Rehearsal:
    return asyncio.run(rehearse(few_cases, SIMULATED_ARMS, store_for=MemoryStore))
