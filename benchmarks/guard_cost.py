"""The cost of the guard without a protocol: model messages, prompt tokens, endings, time.

    python benchmarks/guard_cost.py [--sopbench] [--limit N] [--json FILE]

Plays the bundled tasks with the scripted reference executor under `pg`, `fused`, `flat`, `guard`
and `guard-auto`, the last also with the values of the task's user supplied by the application.
`--sopbench` plays SOPBench's tasks under `guard` too (set SOPBENCH_HOME). Then it times guarded
calls in memory beside 3,000 recorded answers. Exits 1 when a bound is missed.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from campaign import main
from sopbench_runs import Bench, metered_run
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.machine.automation import Automation
from sopilot.machine.program_set import ProgramSet
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.records.store import Settings
from sopilot.runner.sources import open_source
from sopilot.session.opening import open_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.examples.example import bundled_names
from sopilot.values.json import JSON
from sopilot.views.catalogue import VIEWS
from sopilot.views.step_answers import CallStatus
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.reference import DOMAINS

VARIANTS: dict[str, tuple[str, bool]] = {
    "pg": ("pg", False),
    "fused": ("fused", False),
    "flat": ("flat", False),
    "guard": ("guard", False),
    "guard-auto": ("guard-auto", False),
    "guard-auto, values supplied": ("guard-auto", True),
}
"""Name → the view, and whether the application supplies what the task's user knows."""
MOST_MESSAGES = {"guard": 1.0, "guard-auto, values supplied": 0.65}
"""Bounds of messages relative to `flat`."""
MOST_MS = {"ask": 1.5, "auto": 3.0}
LEAST_SOPBENCH = 808
ANSWERS = 3_000
BOOK = """
handbook: refunds
actions:
  find_order: {input: {customer: string, order: string}, reads: [orders]}
  refund: {input: {customer: string, order: string, amount: number}, irreversible: true,
           confirm: false, changes: [payments]}
predicates:
  delivered(customer, order):
    says: The order {order} of {customer} was delivered.
    verify: find_order(customer, order)
    verdict: result.state == 'delivered'
  small(amount):
    says: The amount {amount} is at most 200.
    verify: arguments
    verdict: amount <= 200
procedures:
  refund: {requires: [small(amount), delivered(customer, order)]}
"""


async def bundled() -> dict[str, Any]:
    tasks = [task for name in bundled_names() for task in open_source(name).tasks()]
    rows = {}
    for name, (view, supplied) in VARIANTS.items():
        played = [await metered_run(task, VIEWS[view], supplied=supplied) for task in tasks]
        missed = [
            task.name
            for task, run in zip(tasks, played, strict=True)
            if not run.passed or run.result.ending is not task.expected
        ]
        rows[name] = {
            "tasks": len(tasks),
            "expected_endings": len(tasks) - len(missed),
            "messages": sum(len(run.sent) for run in played),
            "prompt_tokens": sum(run.prompt_tokens for run in played),
            "findings": sum(len(run.findings) for run in played),
            "missed": missed,
        }
    flat = rows["flat"]
    for row in rows.values():
        for unit in ("messages", "prompt_tokens"):
            row[f"{unit}_to_flat"] = round(row[unit] / flat[unit], 3)
    return rows


async def over_sopbench(limit: int | None) -> dict[str, Any]:
    bench = Bench(shared_upstream(0), "official")
    passed, missed, findings = 0, [], 0
    for domain in DOMAINS:
        for task in bench.tasks(domain, limit):
            run = await bench.run(task, VIEWS["guard"])
            passed += run.passed
            findings += len(run.findings)
            missed += [] if run.passed else [str(task)]
    total = passed + len(missed)
    return {"tasks": total, "passed": passed, "findings": findings, "missed": missed}


class Shop:
    """Orders that are all delivered, and refunds that are all paid."""

    def schemas(self) -> Sequence[ToolSchema]:
        return ()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        return ToolResult(True, {"state": "delivered"} if name == "find_order" else "paid")


async def _opened(guard: str) -> Session:
    handbook = load_handbook(BOOK, "refunds.yaml")
    programs = {goal: unit.program for goal, unit in compile_handbook(handbook).items()}
    settings = Settings(automation=Automation(complete=True), guard=guard)
    return await open_session(MemoryStore(), ProgramSet(programs), tools=Shop(), settings=settings)


async def timed(guard: str, rounds: int) -> dict[str, float]:
    """Milliseconds of the processor per guarded call: carried out, refused, missing. The reads that
    ``auto`` makes by itself aren't counted."""
    session = await _opened(guard)
    order = 0
    while len(session.configuration.answers.get("find_order", {})) < ANSWERS:
        order += 1
        await session.call_tool("find_order", {"customer": "anna", "order": f"o-{order}"})
    times: dict[str, list[float]] = {"carried_out": [], "refused": [], "read": [], "missing": []}

    async def measure(kind: str, action: str, **arguments: JSON) -> None:
        began = time.process_time()
        answer = await session.call_tool(action, {"customer": "anna", **arguments})
        times[kind].append((time.process_time() - began) * 1000)
        carried_out = kind in ("carried_out", "read") or (kind == "missing" and guard == "auto")
        assert (answer.status is CallStatus.DONE) is carried_out, answer

    for number in range(rounds):
        await measure("carried_out", "refund", order=f"o-{order - number}", amount=50)
        await measure("refused", "refund", order=f"o-{order - number}", amount=900)
        await measure("missing", "refund", order=f"new-{number}", amount=50)
        await measure("read", "find_order", order=f"more-{number}")
    found = {kind: round(statistics.median(values), 3) for kind, values in times.items()}
    if guard == "auto":  # it makes the missing call itself: beside that
        found["missing"] = round(found["missing"] - found["read"], 3)
    return found


def measure(sopbench: bool, limit: int | None, rounds: int) -> dict[str, Any]:
    """Play SOPBench's tasks too if ``sopbench``, up to ``limit`` per domain."""
    rows = asyncio.run(bundled())
    speed = {guard: asyncio.run(timed(guard, rounds)) for guard in ("ask", "auto")}
    met = {
        "messages": all(rows[name]["messages_to_flat"] <= m for name, m in MOST_MESSAGES.items()),
        "endings": all(row["expected_endings"] == row["tasks"] for row in rows.values()),
        "findings": not any(row["findings"] for name, row in rows.items() if "guard" in name),
        "speed": all(max(speed[guard].values()) <= most for guard, most in MOST_MS.items()),
    }
    figures: dict[str, Any] = {"bundled": rows, "milliseconds": speed}
    if sopbench:
        figures["sopbench"] = bench = asyncio.run(over_sopbench(limit))
        if limit is None:
            met["sopbench"] = bench["passed"] >= LEAST_SOPBENCH and not bench["findings"]
    return {
        "passed": all(met.values()),
        "what": "scripted reference executor; time in memory, one process",
        "tasks": rows["guard"]["tasks"] + figures.get("sopbench", {"tasks": 0})["tasks"],
        "bounds": {"messages_to_flat": MOST_MESSAGES, "ms": MOST_MS, "sopbench": LEAST_SOPBENCH},
        "met": met,
        **figures,
    }


if __name__ == "__main__":
    main(__doc__, measure, sopbench=False, limit=int, rounds=200)
