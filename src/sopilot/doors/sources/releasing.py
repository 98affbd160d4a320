"""What is released of a source: its text, its programs, and how far its scenarios reach."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from sopilot.adapters.memory_store import MemoryStore
from sopilot.adapters.model_by_name import make_model
from sopilot.adapters.text_files import read_text
from sopilot.desks.bundled import handbook_text
from sopilot.desks.scenarios import read_scenarios
from sopilot.desks.tasks.testing import reached, run_scenarios, summary
from sopilot.doors.sources._source import open_source
from sopilot.language.handbook import load_handbook
from sopilot.runtime.agent.progress import nobody_watches
from sopilot.runtime.records.versions import Version, difference
from sopilot.runtime.session import ProgramSet


@dataclass(frozen=True, slots=True)
class Releasable:
    handbook: str
    text: str
    programs: dict[str, str]
    coverage: dict[str, Any] | None
    """``None`` where there are no scenarios beside it."""


def releasable(name: str) -> Releasable:
    source = open_source(name)
    units = source.units()
    programs = ProgramSet({unit.procedure.name: unit.program for unit in units}).hashes
    coverage = None
    path = source.scenario_file
    if path.exists():
        suite, _ = read_scenarios(read_text(path), source.handbook, str(path))
        if suite is not None:
            briefing = source.briefing()
            results = asyncio.run(
                run_scenarios(
                    briefing,
                    suite.scenarios,
                    MemoryStore(),
                    watcher=lambda: nobody_watches,
                    player=lambda task: make_model("reference", judge=task.reader),
                    traces=None,
                )
            )
            told = summary(source.handbook.name, results, reached(briefing, results))
            coverage = {name: told[name] for name in ("n", "passed", "failed", "coverage")}
    text = handbook_text(name) if source.bundled else source.text or ""
    return Releasable(source.handbook.name, text, dict(programs), coverage)


def differences_between(before: Version, after: Version) -> dict[str, list[str]]:
    name = after.handbook
    return difference(
        load_handbook(before.text, f"{name} {before.number}"),
        load_handbook(after.text, f"{name} {after.number}"),
    )
