"""Tasks that can be played: a bundled desk's, or SOPBench's."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sopilot.desks.bundled import Desk, bundled_names, load_desk
from sopilot.desks.bundled.simulator import Simulator
from sopilot.doors.mcp.world import ReplayedTools, World
from sopilot.lab.bench.reference import is_sopbench
from sopilot.language.compiler import compile_handbook
from sopilot.language.diagnostics import Diagnostic, UserMistake, did_you_mean
from sopilot.runtime.agent import Briefing, Budgets, RoleApprovers, ScriptedUser
from sopilot.runtime.session.protocols import JSON

TOOL_LISTS = ("official", "full-state")


@dataclass(frozen=True, slots=True)
class OpenTask:
    """One task with a fresh world, and what the arms may show of its handbook."""

    briefing: Briefing
    world: World


def open_task(reference: str, *, tools: str = "official", language: str = "en") -> OpenTask:
    """``bank-desk/TASK`` or ``sopbench:bank/get_loan#3``; ``tools`` matters to SOPBench alone.

    The wall clock is the player's own, so that budget is lifted.
    """
    if is_sopbench(reference):
        return _sopbench(reference, tools, language)
    name, _, task_id = reference.partition("/")
    if name not in bundled_names() or not task_id:
        raise UserMistake(
            [
                Diagnostic(
                    "unknown-task",
                    f"`{reference}` names no task",
                    help="write `bank-desk/TASK` or `sopbench:bank/get_loan#3`; "
                    + did_you_mean(name, bundled_names()),
                )
            ]
        )
    return _bundled(load_desk(name), task_id, language)


@functools.cache
def desk_briefing(name: str, language: str = "en") -> Briefing:
    handbook = load_desk(name).handbook
    compiled = compile_handbook(handbook)
    return Briefing(handbook, {goal: one.program for goal, one in compiled.items()}, language)


def desk_world(desk: Desk) -> World:
    """The desk as it stands when nobody has asked for anything: no user, nothing to score."""
    simulator = Simulator(desk.handbook.actions, desk.handlers, desk.base_state)
    return World(ReplayedTools(simulator), simulated=True)


def _bundled(desk: Desk, task_id: str, language: str) -> OpenTask:
    task = desk.task(task_id)
    simulator = desk.make_tools(task)

    def score(messages: int) -> Mapping[str, JSON]:
        judgement = desk.judge(task, simulator.calls, simulator.state)
        return {"success": judgement.passed, "reasons": list(judgement.reasons)}

    world = World(
        ReplayedTools(simulator),
        user=ScriptedUser(
            task.request, task.knows, goal=task.goal, late=task.late, follow_ups=task.follow_ups
        ),
        budgets=replace(Budgets(), wall_seconds=float("inf")),
        operator=RoleApprovers(task.approvers) if task.approvers else None,
        simulated=True,
        score=score,
        task=f"{desk.name}/{task_id}",
        goal=task.goal,
    )
    return OpenTask(desk_briefing(desk.name, language), world)


def _sopbench(reference: str, tools: str, language: str) -> OpenTask:
    from sopilot.lab.bench.contestants import domain_budgets
    from sopilot.lab.bench.programs import ProgramShelf
    from sopilot.lab.bench.sopbench_process import ToolList, shared_upstream
    from sopilot.lab.bench.source import load_tasks
    from sopilot.lab.bench.world import open_world

    upstream = shared_upstream()
    found = load_tasks(reference, upstream=upstream)
    if len(found) != 1:
        raise UserMistake(f"`{reference}` names {len(found)} tasks; add `#0`, `#1`, … for one")
    task = found[0]
    offered: ToolList = "full-state" if tools == "full-state" else "official"
    simulator, domain_tools = open_world(task, offered, upstream)

    async def close() -> None:
        simulator.close()

    world = World(
        ReplayedTools(domain_tools),
        user=ScriptedUser(task.user_prompt, task.user_known),
        budgets=replace(domain_budgets(task.domain), wall_seconds=float("inf")),
        simulated=True,
        score=lambda messages: simulator.evaluate(messages=messages),
        close=close,
        task=str(task.reference),
        goal=task.goal,
    )
    program = ProgramShelf(offered, upstream).program(task).program
    briefing = Briefing(task.handbook, {task.goal: program}, language)
    return OpenTask(briefing, world)
