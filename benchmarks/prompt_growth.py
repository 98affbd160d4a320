"""How large a prompt gets: dialogs of 10, 100 and 1,000 turns, call depths from 1 to 50.

    python benchmarks/prompt_growth.py [--turns 10 100 1000]

Every turn a user says something, and every second one a tool is called, while a process
waits. Prints the largest request of `pg`, which sends the whole dialog, and of `fused`,
which folds it. Exit 1 when the prompt of `fused` grows with either.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from metered import MeteredModel
from sopilot.adapters.memory_store import MemoryStore
from sopilot.agent import ARMS, Arm, Briefing, Budgets, View, fused_arm, open_run, run_session
from sopilot.agent.arms.fused import ALL_ON
from sopilot.bundled import load_desk
from sopilot.compiler import compile_handbook
from sopilot.program.model import (
    Act,
    Check,
    Complete,
    Fail,
    Function,
    Holds,
    Kind,
    Local,
    Program,
    Return,
    Source,
    Step,
)
from sopilot.session.protocols import ModelReply, ModelRequest, ToolCall
from sopilot.vm import TOOL_NAME, Machine, Start
from vocabulary import smollm2

DEPTHS = (1, 2, 5, 10, 20, 50)
ROOM = 1.5
"""How much larger the longest dialog's prompt may be than that of 100 turns."""


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


async def largest_prompt(arm: Arm, turns: int) -> int:
    desk = load_desk("bank-desk")
    programs = {goal: one.program for goal, one in compile_handbook(desk.handbook).items()}
    briefing = Briefing(desk.handbook, programs)
    world = desk.make_tools(desk.tasks[0])
    model = MeteredModel(Chatter())
    session = await open_run(MemoryStore(), briefing, arm, tools=world, unguarded=True)
    budgets = Budgets(
        agent_turns=10 * turns, domain_calls=10 * turns, user_turns=10 * turns,
        refresh_actions=100 * turns, wall_seconds=3_600,
    )  # fmt: skip
    await run_session(session, briefing, arm=arm, model=model, user=Talker(turns), budgets=budgets)
    return max(sent.prompt - sent.tools for sent in model.sent)


def nested(depth: int) -> Program:
    """A process whose one check goes down through so many functions."""
    given = (("username", Local("username")),)
    rule = Function(
        "rule", Kind.RULE, ("username",), (Act("read", "read", given), Return("judge")),
        predicate="rule", says="The user is known.",
    )  # fmt: skip
    functions = {"rule": rule}
    below = "rule"
    for level in range(depth - 1, 0, -1):
        steps: tuple[Step, ...] = (
            Check("check", below, given, "slot"),
            Return("done", Holds("slot")),
        )
        below = f"level_{level}"
        functions[below] = Function(below, Kind.GROUP, ("username",), steps)
    steps = (
        Check("check", below, given, "slot", unmet="refuse"),
        Act("act", "main", given, goal=True),
        Complete("finish"),
        Fail("refuse"),
    )
    functions["main"] = Function("main", Kind.PROCESS, ("username",), steps)
    return Program("main", functions, Source("growth", "main", ""), "hand")


def slot_at_depth(depth: int) -> int:
    program = nested(depth)
    arm = ARMS["fused"]
    machine = Machine({"main": program})
    started = machine.step(machine.initial(), Start("main", {"username": "anna"}), at=0.0)
    settled = machine.settle(started.configuration, arm.automation, at=0.0)
    briefing = Briefing(load_desk("bank-desk").handbook, {"main": program})
    view = View(briefing, machine, settled.configuration, (), (), arm.automation)
    here = view.here
    assert here is not None
    assert len(here.process.frames) == depth + 1
    return smollm2().count(arm.slot(view))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, nargs="+", default=[10, 100, 1_000])
    arguments = parser.parse_args()
    print("largest request in tokens, without tool schemas")
    print(f"{'turns':>7} {'pg':>10} {'fused':>10}")
    curve = []
    for turns in arguments.turns:
        pg = asyncio.run(largest_prompt(ARMS["pg"], turns))
        fused = asyncio.run(largest_prompt(fused_arm(ALL_ON), turns))
        curve.append(fused)
        print(f"{turns:>7} {pg:>10,} {fused:>10,}")
    slots = [slot_at_depth(depth) for depth in DEPTHS]
    print("slot of fused in tokens by call depth: ", dict(zip(DEPTHS, slots, strict=True)))
    bounded = len(curve) < 3 or curve[-1] <= ROOM * curve[-2]
    if not bounded or max(slots) > 1.1 * min(slots):
        print("the prompt grows")
        sys.exit(1)


if __name__ == "__main__":
    main()
