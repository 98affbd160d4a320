"""Benchmark folders as a source, without anybody's benchmark."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sopilot.agent.reference.executor import Reference
from sopilot.messages.errors import UserMistake
from sopilot.runner.play import resume_play, start_play
from sopilot.runner.sources import is_task, named_task, open_source
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.run import Conditions, run_task
from sopilot.tasks.trust import folder_code
from sopilot.views.catalogue import VIEWS

DOCUMENT = Path(__file__).parents[2] / "docs" / "research" / "benchmarks.md"
HOLDS = """\
    def holds(self, predicate, arguments, evidence):
        return 'yes'

    def close"""


INIT = """\
    def __init__(self):
        self.tools = self
"""
BROKEN_TOOLS = """\
    tools = property(lambda self: 1 / 0)

    def __init__(self):
"""


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
    conditions = Conditions(VIEWS["pg"], Reference(task.reader))
    result = asyncio.run(run_task(task, task.open(), conditions, store=MemoryStore()))
    assert result.good
    assert result.verdict == {"success": True, "reasons": []}
    assert task.open().score(1) == {"success": False, "reasons": ["nothing was refunded"]}  # type: ignore[misc]  # it has one


def test_the_handbook_needs_no_benchmark(ferry: Path) -> None:
    (ferry / "benchmark.py").write_text("raise RuntimeError('no files here')\n")
    assert [unit.procedure.name for unit in open_source(str(ferry)).units()] == ["refund"]


def test_what_is_missing_is_said(ferry: Path) -> None:
    with pytest.raises(UserMistake, match="has no task `frist`"):
        open_source(str(ferry)).task("frist")


def test_a_folder_without_the_function_says_so(ferry: Path) -> None:
    (ferry / "benchmark.py").write_text("")
    with pytest.raises(UserMistake, match="has changed since it was trusted"):
        open_source(str(ferry)).task("first")
    folder_code(ferry).trust()
    with pytest.raises(UserMistake, match="no function `open_benchmark"):
        open_source(str(ferry)).task("first")


@pytest.mark.parametrize(
    ("instead_of", "written", "message", "cure"),
    [
        (
            "return FerryBenchmark()",
            "return None",
            "`open_benchmark()` gave nothing",
            "`tasks()` and",
        ),
        (
            "import ToolResult",
            "import Tool",
            "`benchmark.py` raised Imp",
            "correct it there",
        ),
        ("    def tasks", "    async def tasks", "`tasks()` is `async def`", "write `def`, and re"),
        ("return [BenchmarkTask(", "return [1]; [(", "`tasks()` gave something", "`BenchmarkTask("),
        ("return Ferry()", "raise OSError(7)", "`open(task)` raised OSError", "correct it"),
        ("return Ferry()", "return None", "`open(task)` gave", "`verdict(messages, said)`"),
        ("self.tools = self", "self.tools = None", "`tools` gave", "`schemas()` and an"),
        (INIT, BROKEN_TOOLS, "`open(task)` raised ZeroDiv", "correct it there"),
        ("return [ToolSchema", "return 0; [ToolSchema", "`schemas()` gave", "`ToolSchema(name"),
        ('return {"success": done', 'return {"": done', "`verdict(messages, said)` gave", "a map"),
        ("        pass", "        1 / 0", "`close()` raised ZeroDiv", "correct it there"),
        ("    def close", HOLDS, "`holds(predicate, arguments, ev", "True or"),
    ],
)
async def test_what_a_benchmark_does_wrong_is_told_as_its_own(
    instead_of: str, written: str, message: str, cure: str, ferry: Path
) -> None:
    text = (ferry / "benchmark.py").read_text("utf-8")
    assert instead_of in text
    (ferry / "benchmark.py").write_text(text.replace(instead_of, written), encoding="utf-8")
    folder_code(ferry).trust()

    async def whole() -> None:
        task = named_task(f"{ferry}#first")
        conditions = Conditions(VIEWS["pg"], Reference(task.reader))
        simulation = task.open()
        await run_task(task, simulation, conditions, store=MemoryStore())
        await simulation.close()

    with pytest.raises(UserMistake) as told:
        await whole()
    (one,) = told.value.diagnostics
    assert one.code == "bad-folder-code"
    assert one.place.source == str(ferry / "benchmark.py")
    assert message in one.message
    assert cure in one.help


@pytest.mark.parametrize("time", ["7", "'soon'", "'2026-01-31'"])
def test_a_clock_that_tells_no_time_is_no_clock(time: str, ferry: Path) -> None:
    for name, instead_of, written in (
        (
            "benchmark.py",
            "    def close",
            f"    def time(self):\n        return {time}\n\n    def close",
        ),
        ("handbook.yaml", "result.used == false", "result.used == false && now > 0"),
    ):
        text = (ferry / name).read_text("utf-8")
        assert instead_of in text
        (ferry / name).write_text(text.replace(instead_of, written), encoding="utf-8")
    folder_code(ferry).trust()
    task = named_task(f"{ferry}#first")
    conditions = Conditions(VIEWS["pg"], Reference(task.reader))
    with pytest.raises(UserMistake, match=r"the tools: time\(\).*isn't a time"):
        asyncio.run(run_task(task, task.open(), conditions, store=MemoryStore()))


async def test_an_agent_can_play_it(ferry: Path) -> None:
    store = MemoryStore()
    begun = await start_play(store, f"{ferry}#first")
    await begun.close()
    score = await (await resume_play(store, begun.id)).finish()
    assert score.verdict == {"success": False, "reasons": ["nothing was refunded"]}
