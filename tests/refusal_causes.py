"""Whether a refused run of a bundled task blames what really fails."""

from __future__ import annotations

from collections.abc import Sequence

from sopilot.agent.result import Ending
from sopilot.handbook.requirements import Binding, leaves, meaning
from sopilot.tasks.examples.example import Example, Judgement
from sopilot.tasks.examples.simulator import SimulatedCall, State
from sopilot.tasks.examples.task import ExampleTask


def causes(example: Example, task: ExampleTask) -> set[str]:
    """The predicates that each make the goal's requirements false by themselves."""
    tree, truth = example.handbook.procedures[task.goal].requires, example.leaf_truth(task)
    if meaning(tree, truth):
        return set()
    found = set()
    for leaf in leaves(tree):

        def repaired(
            name: str,
            arguments: Binding,
            literal: tuple[str, Binding] = (leaf.predicate, leaf.arguments),
        ) -> bool:
            return truth(name, arguments) is not ((name, arguments) == literal)

        if meaning(tree, repaired):
            found.add(leaf.predicate)
    return found


def judged(
    example: Example,
    task: ExampleTask,
    calls: Sequence[SimulatedCall],
    state: State,
    cause: str | None,
) -> Judgement:
    """The example's judgement, and whether ``cause`` is what fails if the run was refused."""
    judgement = example.judge(task, calls, state)
    refused = cause is not None and task.expected is Ending.REFUSED
    if refused and cause not in causes(example, task):
        wrong = f"`{cause}` was blamed, but it is not what fails"
        return Judgement((*judgement.reasons, wrong))
    return judgement
