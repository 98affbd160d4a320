"""The examples as a whole: names, content, compilation."""

from __future__ import annotations

import re

import pytest

from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.reader import read_handbook
from sopilot.handbook.requirements import (
    leaves,
)
from sopilot.messages.errors import UserMistake
from sopilot.program.model import Kind
from sopilot.protocols import Tools
from sopilot.tasks.examples.example import Example, bundled_names, handbook_text, load_example

EXAMPLES = [load_example(name) for name in bundled_names()]
every_desk = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


def test_names() -> None:
    assert bundled_names() == ("bank", "clinic", "it")
    assert [example.handbook.name for example in EXAMPLES] == list(bundled_names())


def test_an_unknown_name_is_a_typed_mistake_with_a_suggestion() -> None:
    with pytest.raises(UserMistake) as caught:
        load_example("bnak")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "there is no bundled handbook `bnak`"
    assert diagnostic.help == "did you mean `bank`?"
    with pytest.raises(UserMistake, match="did you mean `card-first`"):
        load_example("bank").task("card-frist")


@every_desk
def test_the_handbook_reads_without_a_remark(example: Example) -> None:
    handbook, diagnostics = read_handbook(handbook_text(example.name), example.name)
    assert diagnostics == []
    assert handbook == example.handbook


@every_desk
def test_every_tool_and_predicate_has_its_part_in_the_simulator(example: Example) -> None:
    assert set(example.handlers) == set(example.handbook.actions)
    assert set(example.truths) == set(example.handbook.predicates)
    tools: Tools = example.make_tools(example.tasks[0])
    assert {schema.name for schema in tools.schemas()} == set(example.handbook.actions)


@every_desk
def test_every_sentence_and_remedy_is_written(example: Example) -> None:
    for predicate in example.handbook.predicates.values():
        for text in (predicate.says, predicate.says_not, predicate.remedy):
            assert re.fullmatch(r"[A-Z].*[.]", text), (predicate.name, text)
    assert all(action.says for action in example.handbook.actions.values())
    assert all(procedure.says for procedure in example.handbook.procedures.values())


@every_desk
def test_one_gate_needs_the_other(example: Example) -> None:
    gates = [p for p in example.handbook.predicates.values() if p.established_by is not None]
    guarded = [
        leaf.predicate
        for gate in gates
        if gate.established_by is not None
        for leaf in leaves(example.handbook.actions[gate.established_by.action].requires)
    ]
    assert len(gates) == 2
    assert guarded == [gates[0].name]


@every_desk
def test_every_procedure_compiles_and_deep_ones_are_factored(example: Example) -> None:
    deep = {task.goal for task in example.tasks if "deep" in task.tags}
    assert deep
    for name in example.handbook.procedures:
        program = compile_procedure(example.handbook, name).program
        kinds = {function.kind for function in program.functions.values()}
        assert (Kind.GROUP in kinds) == (name in deep), name
