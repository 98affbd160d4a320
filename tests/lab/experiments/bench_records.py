"""Records made by hand, for tests that need no simulator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sopilot_lab.experiments.run_folder import BenchRecord, RunConfiguration, RunFolder


def verdict(*, should: bool, passed: bool, **flags: bool) -> dict[str, Any]:
    """A pass has every flag right; a failure is one of the goal unless flags say otherwise."""
    return {
        "user_goal": "goal",
        "action_should_succeed": should,
        "no_tool_call_error": True,
        "constraint_not_violated": True,
        "database_match": True,
        "action_successfully_called": should if passed else not should,
        "dirgraph_satisfied": True,
        "action_called_correctly": passed,
        "success": passed,
        **flags,
    }


def number(task: str) -> int:
    return int(task.rpartition("#")[2])


def record(
    task: str, *, passed: bool = True, run_id: str = "r", broken: str = "", **fields: Any
) -> BenchRecord:
    """The run of a task; those with an even number should be executed. ``broken`` is how the
    infrastructure broke it."""
    domain, _, rest = task.removeprefix("sopbench:").partition("/")
    made: dict[str, Any] = {
        "run_id": run_id,
        "task": task,
        "domain": domain,
        "goal": rest.partition("#")[0],
        "fingerprint": "f",
        "handbook_sha256": "h",
        "program_sha256": "p",
        "ending": "executed",
        "verdict": verdict(should=number(task) % 2 == 0, passed=passed),
        "r2": number(task) % 3,
        "agent_turns": number(task),
        "seconds": 2.0,
    }
    if broken:
        made |= {"verdict": None, "ending": "infrastructure_failure", "fault": broken}
        made["reason"] = f"{broken} at noon"
    return BenchRecord(**(made | fields))


def write_runs(
    path: Path, *records: BenchRecord, made: RunConfiguration | None = None
) -> RunFolder:
    """Plan and write these runs, in a new folder or in one that is there."""
    folder = RunFolder.create(path, made or configuration())
    folder.ask({each.task: number(each.task) % 2 == 0 for each in records})
    with folder.writer() as writer:
        for each in records:
            writer.write(each)
    return folder


def fill(
    path: Path, passed: dict[str, bool], *, broken: dict[str, str] | None = None, **fields: Any
) -> Path:
    """A folder of runs, by task. ``fields`` differ from the usual configuration."""
    judged = [record(task, passed=ok) for task, ok in passed.items()]
    rest = [record(task, broken=fault) for task, fault in (broken or {}).items()]
    write_runs(path, *judged, *rest, made=replace(configuration(), **fields))
    return path


def configuration(
    arm: str = "pg-paper", model: str = "m", tools: str = "official", sources: str = "s" * 64
) -> RunConfiguration:
    budgets = {"bank": {"user_turns": 3}}
    return RunConfiguration(
        arm, model, tools, "default", 0, "c" * 40, budgets, compiler="0", sources=sources
    )
