"""What the tasks promise, against the reference meaning and a careful clerk."""

from __future__ import annotations

import pytest
from clerk import Clerk, every_desk, every_task

from refusal_causes import causes, judged
from sopilot.agent.result import Ending
from sopilot.handbook.requirements import meaning
from sopilot.messages.errors import UserMistake
from sopilot.tasks.examples.example import Example, load_example
from sopilot.tasks.examples.task import ExampleTask


def test_an_unknown_name_is_a_typed_mistake_with_a_suggestion() -> None:
    with pytest.raises(UserMistake) as caught:
        load_example("bnak")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "there is no bundled handbook `bnak`"
    assert diagnostic.help == "did you mean `bank`?"
    with pytest.raises(UserMistake, match="did you mean `card-first`"):
        load_example("bank").task("card-frist")


@every_desk
def test_every_tool_and_predicate_has_its_part_in_the_simulator(example: Example) -> None:
    assert set(example.handlers) == set(example.handbook.actions)
    assert set(example.truths) == set(example.handbook.predicates)


@every_desk
def test_every_task_has_an_id_of_its_own(example: Example) -> None:
    assert len({task.id for task in example.tasks}) == len(example.tasks)


@every_desk
def test_every_predicate_is_the_cause_of_a_refusal(example: Example) -> None:
    assert {task.cause for task in example.tasks} - {None} == set(example.handbook.predicates)


@every_task
def test_the_expectation_is_the_reference_meaning(example: Example, task: ExampleTask) -> None:
    tree = example.handbook.procedures[task.goal].requires
    holds = meaning(tree, example.leaf_truth(task))
    assert (task.expected is Ending.EXECUTED) == holds
    if holds:
        assert task.cause is None
        assert causes(example, task) == set()
    else:
        # Were the cause alone as wanted, the goal would be allowed: nothing else fails.
        assert task.cause in causes(example, task)


@every_task
def test_the_task_is_well_formed(example: Example, task: ExampleTask) -> None:
    procedure = example.handbook.procedures[task.goal]
    action = example.handbook.actions[procedure.action]
    assert set(task.arguments) == set(action.input_names())
    assert task.inputs.items() >= task.arguments.items()
    assert len(task.request) > 15
    assert set(task.late) <= set(task.inputs)
    assert task.tags <= {"goal-change", "late-evidence", "pressure", "deep", "approval"}
    assert ("late-evidence" in task.tags) == bool(task.late)
    assert ("goal-change" in task.tags) == (task.opening_goal is not None)
    assert task.opening_goal in {None, *example.handbook.procedures} - {task.goal}
    if task.tags & {"goal-change", "pressure"}:
        assert task.follow_ups
    assert ("approval" in task.tags) == (action.approval is not None)
    if action.approval is not None:
        assert len(set(task.approvers) & set(action.approval.roles)) >= action.approval.needed


@pytest.mark.parametrize("last_recipe", [False, True], ids=["first-recipe", "last-recipe"])
@every_task
def test_a_careful_clerk_passes(example: Example, task: ExampleTask, last_recipe: bool) -> None:
    clerk = Clerk(example, task, last_recipe=last_recipe)
    clerk.serve()
    named = clerk.cause if task.expected is Ending.REFUSED else None
    judgement = judged(example, task, clerk.simulator.calls, clerk.simulator.state, named)
    assert judgement.reasons == ()
    assert judgement.passed
