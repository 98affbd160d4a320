"""Records made by hand, for tests that need no simulator."""

from __future__ import annotations

from typing import Any

from sopilot_lab.experiments.run_folder import BenchRecord, RunConfiguration


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


def record(
    task: str, *, passed: bool = True, should: bool = True, run_id: str = "r", **fields: Any
) -> BenchRecord:
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
        "verdict": verdict(should=should, passed=passed),
    }
    return BenchRecord(**(made | fields))


def configuration(
    arm: str = "pg-paper", model: str = "m", tools: str = "official", sources: str = "s" * 64
) -> RunConfiguration:
    budgets = {"bank": {"user_turns": 3}}
    return RunConfiguration(
        arm, model, tools, "default", 0, "c" * 40, budgets, compiler="0", sources=sources
    )
