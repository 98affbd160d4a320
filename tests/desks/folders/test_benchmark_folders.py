"""Benchmark folders as a source, without anybody's benchmark."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sopilot.adapters.memory_store import MemoryStore
from sopilot.desks.folders.trust import folder_code
from sopilot.desks.tasks import Conditions, run_task
from sopilot.doors.mcp.playing import resume_play, start_play
from sopilot.doors.sources import is_task, named_task, open_source
from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.agent import ARMS, Reference

DOCUMENT = Path(__file__).parents[3] / "docs" / "benchmarks.md"


@pytest.fixture
def ferry(tmp_path: Path) -> Path:
    """The folder that the document shows."""
    folder = tmp_path / "ferry"
    folder.mkdir()
    text = DOCUMENT.read_text("utf-8")
    for name in ("handbook.yaml", "benchmark.py"):
        block = text.split(f"<!-- file: ferry/{name} -->\n", 1)[1].split("```", 2)[1]
        (folder / name).write_text(block.split("\n", 1)[1], encoding="utf-8")
    folder_code(folder).trust()
    return folder


def test_a_task_is_run_and_judged_by_the_benchmark(ferry: Path) -> None:
    reference = f"{ferry}#first"
    assert is_task(reference)
    task = named_task(reference)
    conditions = Conditions(ARMS["pg"], Reference(task.reader))
    result = asyncio.run(run_task(task, task.open(), conditions, store=MemoryStore()))
    assert result.good
    assert result.verdict == {"success": True, "reasons": []}
    assert task.open().score(1) == {"success": False, "reasons": ["nothing was paid back"]}  # type: ignore[misc]  # it has one


def test_the_handbook_needs_no_benchmark(ferry: Path) -> None:
    (ferry / "benchmark.py").write_text("raise RuntimeError('no files here')\n")
    assert [unit.procedure.name for unit in open_source(str(ferry)).units()] == ["refund"]


def test_what_is_missing_is_said(ferry: Path) -> None:
    with pytest.raises(UserMistake, match="has no task `frist`"):
        open_source(str(ferry)).task("frist")


def test_a_folder_without_the_function_says_so(ferry: Path) -> None:
    (ferry / "benchmark.py").write_text("")
    with pytest.raises(UserMistake, match="is not the code that was trusted"):
        open_source(str(ferry)).task("first")
    folder_code(ferry).trust()
    with pytest.raises(UserMistake, match="no function `open_benchmark"):
        open_source(str(ferry)).task("first")


def test_an_agent_can_play_it(ferry: Path) -> None:
    async def play() -> None:
        store = MemoryStore()
        begun = await start_play(store, f"{ferry}#first")
        await begun.close()
        score = await (await resume_play(store, begun.id)).finish()
        assert score.verdict == {"success": False, "reasons": ["nothing was paid back"]}

    asyncio.run(play())
