"""What is released of a source: its text, its programs, and how far its scenarios reach."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
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
from sopilot.runtime.records import read_moment
from sopilot.runtime.records.people import Principal
from sopilot.runtime.records.versions import Version, difference
from sopilot.runtime.session import ProgramSet, Store, SystemClock
from sopilot.runtime.session.releases import load_versions, release


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


def moments(begin: str | None, end: str | None) -> tuple[float, float | None]:
    """From when to when, as people write it; from now on, and for good, where they do not."""
    start = SystemClock().now() if begin is None else read_moment(begin)
    return start, None if end is None else read_moment(end, whole_day=True)


async def release_next(
    store: Store,
    ready: Releasable,
    hours: tuple[float, float | None],
    *,
    who: Principal | None,
    by: str,
) -> tuple[Version, Version | None]:
    """The new version, and the one before it."""
    one = await release(
        store,
        ready.handbook,
        text=ready.text,
        programs=ready.programs,
        begin=hours[0],
        end=hours[1],
        coverage=ready.coverage,
        clock=SystemClock(),
        who=who,
        by=by,
    )
    return one, (await load_versions(store)).find(ready.handbook, one.number - 1)


def difference_lines(changed: dict[str, list[str]]) -> Iterator[str]:
    for kind, lines in changed.items():
        yield f"{kind}: {len(lines) or 'no'} {'difference' if len(lines) == 1 else 'differences'}"
        for line in lines:
            yield f"  {line}"
