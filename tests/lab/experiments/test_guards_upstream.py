"""What the trees leave out: the guards of verifiers that a compiler must hoist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sopbench_checkout import NEEDS_SOPBENCH

from sopilot.handbook.model import ActionCall
from sopilot.handbook.requirements import Leaf, leaves, substitute
from sopilot_lab.sopbench.process import ToolList
from sopilot_lab.sopbench.source import SopbenchTask, load_tasks, offered_actions

pytestmark = NEEDS_SOPBENCH


def verifier_calls(task: SopbenchTask, leaf: Leaf, tools: ToolList) -> Iterator[ActionCall]:
    """The calls of every recipe that the tool list can execute, in whole or else in part."""
    offered = offered_actions(task.handbook, tools)
    recipes = task.handbook.predicates[leaf.predicate].recipes
    whole = [recipe for recipe in recipes if all(call.action in offered for call in recipe)]
    for recipe in whole or recipes:
        yield from (call for call in recipe if call.action in offered)


def test_guards_that_the_trees_leave_out_are_gates_of_the_bank() -> None:
    missing: Counter[tuple[str, str, str]] = Counter()
    tasks = set()
    for task in load_tasks("sopbench:all"):
        found = set(leaves(task.handbook.procedures[task.goal].requires))
        present = {(leaf.predicate, leaf.arguments) for leaf in found}
        for leaf in found:
            values = dict(leaf.arguments)
            for call in verifier_calls(task, leaf, "official"):
                requires = task.handbook.actions[call.action].requires
                bound = substitute(requires, dict(call.arguments))
                for guard in leaves(substitute(bound, values)):
                    if (guard.predicate, guard.arguments) not in present:
                        assert task.handbook.predicates[guard.predicate].is_gate
                        missing[task.domain, call.action, guard.predicate] += 1
                        tasks.add(task.reference)
    assert {domain for domain, _, _ in missing} == {"bank"}
    assert len(tasks) == 47  # 41 when the first recipe of each predicate is taken
