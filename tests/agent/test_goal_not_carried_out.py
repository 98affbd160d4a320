"""A goal that every requirement allows and no tool carries out: it ends, and says why."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from desk_runs import play

from sopilot.agent.reference.misbehaviour import Misbehaviour
from sopilot.agent.result import Ending, SessionResult
from sopilot.audit.audit import audit_trace
from sopilot.handbook.expressions import judge
from sopilot.protocols import ToolSchema
from sopilot.session.session import Session
from sopilot.tasks.examples.example import load_example
from sopilot.tasks.examples.simulator import Simulator
from sopilot.views.catalogue import VIEWS

EXAMPLE = load_example("bank")
TASK = next(task for task in EXAMPLE.tasks if str(task.expected) == "executed")
GOAL = EXAMPLE.handbook.procedures[TASK.goal].action


class Without(Simulator):
    """Does not offer the goal's tool, or offers it with an input that nobody knows."""

    wants = ""

    def schemas(self) -> Sequence[ToolSchema]:
        found = [schema for schema in super().schemas() if schema.name != GOAL]
        if self.wants:
            found.append(
                ToolSchema(
                    GOAL,
                    "",
                    {"type": "object", "properties": {self.wants: {}}, "required": [self.wants]},
                )
            )
        return tuple(found)


def run(
    view: str, *, wants: str = "", misbehaviour: Misbehaviour | None = None
) -> tuple[SessionResult, Session]:
    world = EXAMPLE.make_tools(TASK)
    world.__class__ = Without
    assert isinstance(world, Without)
    world.wants = wants
    run = asyncio.run(play(EXAMPLE, TASK, VIEWS[view], world=world, misbehaviour=misbehaviour))
    return run.result, run.session


@pytest.mark.parametrize("view", ["pg", "full-cursor", "flat"])
def test_a_goal_that_is_not_on_offer_is_given_up(view: str) -> None:
    result, _ = run(view)
    assert result.ending is Ending.REFUSED
    assert result.reason == f"the tool {GOAL} isn't offered"
    assert result.agent_turns < 40


def test_the_audit_says_that_it_was_not_on_offer() -> None:
    _, session = run("pg")
    report = audit_trace(
        session.programs.programs, session.events, session_id=session.id, judge=judge
    )
    assert report.clean
    assert [one.obstacle for one in report.refusals] == [f"the tool `{GOAL}` isn't offered"]


@pytest.mark.parametrize("view", ["pg", "flat"])
def test_a_call_that_cannot_be_made_is_not_tried_for_ever(view: str) -> None:
    result, _ = run(view, wants="what_nobody_knows")
    assert result.ending is Ending.REFUSED
    assert "what_nobody_knows" in result.reason
    assert result.agent_turns < 40


def test_acting_early_without_the_tool_ends_as_well() -> None:
    result, _ = run("flat", misbehaviour=Misbehaviour(act_early=1.0))
    assert result.agent_turns < 40
