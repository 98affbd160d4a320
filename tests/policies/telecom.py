"""A small telephone company for honest runs: every construct that such a policy needs, on tools
that answer from one state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sopilot.agent.approvers import offered_tools
from sopilot.agent.reference.executor import Reference
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.protocols import Model, ToolResult, ToolSchema
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.benchmarks import BenchmarkTask, benchmark_task
from sopilot.tasks.run import Conditions, run_task
from sopilot.tasks.task import Result
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS

HANDBOOK = load_handbook((Path(__file__).parent / "telecom.yaml").read_text("utf-8"))
PROGRAMS = {name: one.program for name, one in compile_handbook(HANDBOOK).items()}
READS = ("find_by_phone", "read_bill", "read_line", "read_plan", "list_bills")


class Telecom:
    """``done`` are the changing calls that were carried out."""

    def __init__(self) -> None:
        self.customers = {
            "555-1": {"customer_id": "C1", "lines": ["L1", "L2"]},
            "555-2": {"customer_id": "C2", "lines": ["L3"]},
        }
        self.bills: dict[str, dict[str, Any]] = {
            "B1": {"customer_id": "C1", "status": "Overdue", "amount": 80},
            "B2": {"customer_id": "C1", "status": "Paid", "amount": 70},
            "B3": {"customer_id": "C2", "status": "Awaiting payment", "amount": 60},
        }
        self.lines: dict[str, dict[str, Any]] = {
            "L1": {"status": "Suspended", "contract_end": "2026-01-01", "roaming": False},
            "L2": {"status": "Active", "contract_end": "2026-01-01", "roaming": True},
            "L3": {"status": "Suspended", "contract_end": "2025-01-31", "roaming": False},
        }
        self.done: list[tuple[str, dict[str, JSON]]] = []

    def time(self) -> str:
        return "2025-02-25T12:08:00-05:00"

    def schemas(self) -> Sequence[ToolSchema]:
        return offered_tools(HANDBOOK.actions)

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        return self.perform(name, arguments)

    def perform(self, name: str, arguments: Mapping[str, JSON]) -> ToolResult:
        it = dict(arguments)
        if name == "find_by_phone":
            return _answer(self.customers.get(str(it["phone"])))
        if name == "read_bill":
            return _answer(self.bills.get(str(it["bill_id"])))
        if name == "read_line":
            return _answer(self.lines.get(str(it["line_id"])))
        if name == "read_plan":
            return _answer({"price_per_gigabyte": 2})
        if name == "list_bills":
            mine = [one for one in self.bills.values() if one["customer_id"] == it["customer_id"]]
            return ToolResult(True, {"bills": mine})
        if name == "request_payment":
            self.bills[str(it["bill_id"])]["status"] = "Awaiting payment"
        elif name == "take_payment":
            self.bills[str(it["bill_id"])]["status"] = "Paid"
        elif name == "resume_line":
            self.lines[str(it["line_id"])]["status"] = "Active"
        elif name == "enable_roaming":
            self.lines[str(it["line_id"])]["roaming"] = True
        self.done.append((name, it))
        return ToolResult(True, {"done": True})

    # --- as the simulator of a task

    @property
    def tools(self) -> Telecom:
        return self

    def verdict(self, messages: int, said: Sequence[str] | None) -> Mapping[str, JSON]:
        return {"success": True}

    def close(self) -> None:
        return


def _answer(found: Mapping[str, Any] | None) -> ToolResult:
    return ToolResult(found is not None, dict(found or {"error": "not found"}))


@dataclass(frozen=True)
class Honest:
    result: Result
    simulation: Telecom


async def run_honestly(
    view: str,
    goal: str,
    inputs: Mapping[str, JSON],
    *,
    simulation: Telecom | None = None,
    model: Model | None = None,
) -> Honest:
    """The reference executor carries a request out, or refuses it, as the handbook says."""
    simulation = simulation or Telecom()
    entry = BenchmarkTask("honest", f"I want {goal}", goal, inputs, {})
    task = benchmark_task("telecom", entry, Briefing(HANDBOOK, PROGRAMS), lambda: simulation)
    task = replace(task, names_goal=True)
    conditions = Conditions(VIEWS[view], model or Reference(task.reader))
    return Honest(await run_task(task, task.open(), conditions, store=MemoryStore()), simulation)
