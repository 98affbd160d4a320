"""Cases from the tasks of a bundled desk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sopilot.desks.bundled import Desk, Outcome, State, Task
from sopilot.desks.bundled.judge import desk_judge
from sopilot.desks.bundled.simulator import Handler
from sopilot.lab.discipline.case import Case, World
from sopilot.lab.stats import Kind
from sopilot.language.program import Program
from sopilot.runtime.agent import Briefing, RoleApprovers, ScriptedUser, SessionResult
from sopilot.runtime.session.protocols import JSON, ToolResult
from sopilot.runtime.vm import Event


def desk_cases(
    desk: Desk, programs: Mapping[str, Program], *, whole_handbook: bool = True
) -> list[Case]:
    """``programs`` are the desk's, by goal. Without ``whole_handbook`` a case shows the
    programs of its own goals alone."""
    desk = replace(desk, handlers={name: _sturdy(one) for name, one in desk.handlers.items()})
    whole = Briefing(desk.handbook, programs)
    narrow: dict[tuple[str, ...], Briefing] = {}
    reader = desk_judge(desk)
    cases = []
    for task in desk.tasks:
        briefing = whole
        if not whole_handbook:
            goals = tuple(goal for goal in programs if goal in (task.goal, task.opening_goal))
            briefing = narrow.setdefault(
                goals, Briefing(desk.handbook, {goal: programs[goal] for goal in goals})
            )
        cases.append(
            Case(
                id=task.id,
                domain=desk.name,
                goal=task.goal,
                kind=Kind.EXECUTE if task.expected is Outcome.EXECUTED else Kind.REFUSE,
                briefing=briefing,
                goal_action=desk.handbook.procedures[task.goal].action,
                open=lambda task=task: _open(desk, task),  # type: ignore[misc]
                reader=reader,
            )
        )
    return cases


def _sturdy(handler: Handler) -> Handler:
    """Models call tools in states that no procedure leads to: a record that is not there is
    refused, as a real system would, and does not end the check."""

    def carry_out(state: State, **arguments: JSON) -> ToolResult:
        try:
            return handler(state, **arguments)
        except KeyError as missing:
            return ToolResult(False, {"error": f"there is no record of {missing}"})

    return carry_out


def _open(desk: Desk, task: Task) -> World:
    tools = desk.make_tools(task)

    def judge(result: SessionResult, events: Sequence[Event]) -> Sequence[str]:
        # The natural audit (R2) counts the calls after the goal; here they would count twice.
        return desk.judge(task, tools.calls, tools.state, late_calls_fail=False).reasons

    return World(
        tools=tools,
        user=ScriptedUser(
            task.request,
            task.knows,
            goal=task.goal,
            late=task.late,
            follow_ups=task.follow_ups,
        ),
        judge=judge,
        operator=RoleApprovers(task.approvers) if task.approvers else None,
    )
