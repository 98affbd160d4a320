"""A goal that every requirement allows and no tool carries out: it ends, and says why."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from desk_runs import Played, play

from sopilot.agent.result import Ending
from sopilot.protocols import ToolSchema
from sopilot.tasks.examples.example import load_example
from sopilot.tasks.examples.simulator import Simulator
from sopilot.values.json import JSON
from sopilot_lab.experiments.misbehaviour import Misbehaviour

EXAMPLE = load_example("bank")
TASK = next(task for task in EXAMPLE.tasks if str(task.expected) == "executed")
GOAL = EXAMPLE.handbook.procedures[TASK.goal].action


class Without(Simulator):
    """Does not offer the goal's tool, or offers it with an input that nobody knows."""

    wants = ""

    def schemas(self) -> Sequence[ToolSchema]:
        found = [schema for schema in super().schemas() if schema.name != GOAL]
        if self.wants:
            inputs: dict[str, JSON] = {
                "type": "object",
                "properties": {self.wants: {}},
                "required": [self.wants],
            }
            found.append(ToolSchema(GOAL, "", inputs))
        return tuple(found)


async def run(view: str, *, wants: str = "", misbehaviour: Misbehaviour | None = None) -> Played:
    world = EXAMPLE.make_tools(TASK)
    world.__class__ = Without
    assert isinstance(world, Without)
    world.wants = wants
    done = await play("bank", TASK.id, view, world=world, misbehaviour=misbehaviour)
    assert done.result.agent_turns < 40
    return done


@pytest.mark.parametrize("view", ["pg", "full-cursor", "flat"])
async def test_a_goal_that_is_not_on_offer_is_given_up(view: str) -> None:
    done = await run(view)
    assert done.result.ending is Ending.REFUSED
    assert done.result.reason == f"the tool {GOAL} isn't offered"
    if view == "pg":
        report = done.audit()
        assert report.clean
        assert [one.obstacle for one in report.refusals] == [f"the tool `{GOAL}` isn't offered"]


@pytest.mark.parametrize("view", ["pg", "flat"])
async def test_a_call_that_cannot_be_made_is_not_tried_for_ever(view: str) -> None:
    done = await run(view, wants="what_nobody_knows")
    assert done.result.ending is Ending.REFUSED
    assert "what_nobody_knows" in done.result.reason


async def test_acting_early_without_the_tool_ends_as_well() -> None:
    await run("flat", misbehaviour=Misbehaviour(act_early=1.0))
