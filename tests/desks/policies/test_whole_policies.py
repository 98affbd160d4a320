"""Two policies as a compliance office writes them, an insurer's claims desk and a clinic's
prescription line: nothing to warn of, every scenario as expected, honest runs without findings."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sopilot.adapters.memory_store import MemoryStore
from sopilot.desks.scenarios import read_scenarios
from sopilot.desks.tasks.testing import run_scenarios
from sopilot.doors.sources import open_source
from sopilot.doors.sources.checking import check_text
from sopilot.language.diagnostics import Severity
from sopilot.runtime.agent.progress import nobody_watches

HERE = Path(__file__).parent


@pytest.mark.parametrize(("name", "count"), [("claims", 22), ("clinic", 12)])
def test_every_scenario_of_a_whole_policy(name: str, count: int) -> None:
    path = HERE / f"{name}.yaml"
    found = check_text(path.read_text("utf-8"), path.name)
    assert [one for one in found if one.severity is not Severity.NOTE] == []
    source = open_source(str(path))
    text = (HERE / f"{name}.scenarios.yaml").read_text("utf-8")
    suite, wrong = read_scenarios(text, source.handbook, name)
    assert suite is not None
    assert wrong == []
    results = asyncio.run(
        run_scenarios(
            source.briefing(), suite.scenarios, MemoryStore(), watcher=lambda: nobody_watches
        )
    )
    assert [(one.name, result.problems) for one, result in results if not result.passed] == []
    assert len(results) == count
