"""How large a prompt gets: dialogs of 10, 100 and 1,000 turns, call depths from 1 to 50.

    python benchmarks/prompt_growth.py [--turns 10 100 1000] [--json FILE]

Every turn a user says something, and every second one a tool is called, while a process
waits. Prints the largest request of `pg` and of `fused` without its fold, which send the
whole dialog, and of `fused`, which folds it; and its slot by call depth. Exit 1 when the
prompt of `fused` grows with either.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from campaign import main
from metered import MeteredModel
from sopilot.agent.budgets import Budgets
from sopilot.agent.loop import open_run, run_session
from sopilot.machine.machine import Machine
from sopilot.program.model import (
    Act,
    Check,
    CompleteStep,
    FailStep,
    Function,
    Holds,
    Kind,
    Local,
    Program,
    ReturnStep,
    Source,
    Step,
)
from sopilot.protocols import ModelReply, ModelRequest, ToolCall
from sopilot.runner.sources import open_source
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.examples.example import load_example
from sopilot.trace.events import Start
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS
from sopilot.views.fused import ALL_ON, fused_view
from sopilot.views.moment import Moment
from sopilot.views.step_tool import TOOL_NAME
from sopilot.views.view import View
from vocabulary import smollm2

DEPTHS = (1, 2, 5, 10, 20, 50)
ROOM = 1.5
"""How much larger the longest dialog's prompt may be than that of 100 turns."""
ROOM_IN_DEPTH = 1.1
"""How much larger the deepest slot may be than the smallest: names get a digit more."""


class Chatter:
    """Starts a process, then asks and looks something up by turns."""

    name = "chatter"

    def __init__(self) -> None:
        self.requests = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests += 1
        number = self.requests
        if number == 1:
            start = '{"operation": "start", "goal": "transfer"}'
            return ModelReply("", (ToolCall("call_1", TOOL_NAME, start),))
        if number % 2:
            arguments = '{"username": "anna"}'
            return ModelReply("", (ToolCall(f"call_{number}", "find_account", arguments),))
        return ModelReply(f"Is there anything new about the matter, number {number}?")


class Talker:
    def __init__(self, turns: int) -> None:
        self._left = turns

    def opening(self) -> str:
        return "I want to transfer some money, but let us talk first."

    async def reply(self, message: str) -> str | None:
        self._left -= 1
        if self._left < 0:
            return None
        return f"Not yet, there are {self._left} things to tell first. " + "Well, you see. " * 12


async def largest_prompt(arm: View, turns: int) -> int:
    example = load_example("bank")
    briefing = open_source("bank").briefing()
    world = example.make_tools(example.tasks[0])
    model = MeteredModel(Chatter())
    session = await open_run(MemoryStore(), briefing, arm, tools=world, unguarded=True)
    budgets = Budgets(
        agent_turns=10 * turns, domain_calls=10 * turns, user_turns=10 * turns,
        refresh_actions=100 * turns, wall_seconds=3_600,
    )  # fmt: skip
    await run_session(session, briefing, view=arm, model=model, user=Talker(turns), budgets=budgets)
    return max(sent.prompt - sent.tools for sent in model.sent)


def nested(depth: int) -> Program:
    """A process whose one check goes down through so many functions."""
    arguments = (("username", Local("username")),)
    rule = Function(
        "rule", Kind.RULE, ("username",), (Act("read", "read", arguments), ReturnStep("judge")),
        predicate="rule", says="The user is known.",
    )  # fmt: skip
    functions = {"rule": rule}
    below = "rule"
    for level in range(depth - 1, 0, -1):
        steps: tuple[Step, ...] = (
            Check("check", below, arguments, "slot"),
            ReturnStep("done", Holds("slot")),
        )
        below = f"level_{level}"
        functions[below] = Function(below, Kind.GROUP, ("username",), steps)
    steps = (
        Check("check", below, arguments, "slot", unmet="refuse"),
        Act("act", "main", arguments, goal=True),
        CompleteStep("finish"),
        FailStep("refuse"),
    )
    functions["main"] = Function("main", Kind.PROCESS, ("username",), steps)
    return Program("main", functions, Source("growth", "main", ""), "hand")


def slot_at_depth(depth: int) -> int:
    program = nested(depth)
    arm = VIEWS["fused"]
    machine = Machine({"main": program})
    started = machine.step(machine.initial(), Start("main", {"username": "anna"}), at=0.0)
    settled = machine.automate(started.configuration, arm.automation, at=0.0)
    briefing = Briefing(load_example("bank").handbook, {"main": program})
    moment = Moment(briefing, machine, settled.configuration, (), arm.automation)
    here = moment.here
    assert here is not None
    assert len(here.process.frames) == depth + 1
    return smollm2().count(arm.frame_message(moment).text)


def measure(turns: list[str]) -> dict[str, Any]:
    arms = {
        "pg": VIEWS["pg"],
        "fused without fold": fused_view(replace(ALL_ON, fold=False), "unfolded"),
        "fused": fused_view(ALL_ON),
    }
    largest = {
        name: {n: asyncio.run(largest_prompt(arm, int(n))) for n in turns}
        for name, arm in arms.items()
    }
    slots = {str(depth): slot_at_depth(depth) for depth in DEPTHS}
    folded = list(largest["fused"].values())
    met = {
        "turns": len(folded) < 3 or folded[-1] <= ROOM * folded[-2],
        "depth": max(slots.values()) <= ROOM_IN_DEPTH * min(slots.values()),
    }
    return {
        "passed": all(met.values()),
        "what": "tokens of the largest request of a dialog, without tool schemas",
        "tokenizer": smollm2().name,
        "largest_request_by_turns": largest,
        "slot_of_fused_by_depth": slots,
        "met": met,
    }


if __name__ == "__main__":
    main(__doc__, measure, turns=["10", "100", "1000"])
