"""The desks as a whole: names, content, compilation."""

from __future__ import annotations

import re

import pytest

from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.model import Handbook
from sopilot.handbook.reader import read_handbook
from sopilot.handbook.requirements import (
    AnyOf,
    Constant,
    First,
    InOrder,
    Leaf,
    Name,
    Path,
    Tree,
    leaves,
)
from sopilot.messages.errors import UserMistake
from sopilot.program.model import Kind
from sopilot.protocols import Tools
from sopilot.tasks.examples.example import BundledDesk, bundled_names, handbook_text, load_desk

DESKS = [load_desk(name) for name in bundled_names()]
every_desk = pytest.mark.parametrize("desk", DESKS, ids=lambda desk: desk.name)


def nodes(tree: Tree) -> list[Tree]:
    if isinstance(tree, Leaf):
        return [tree]
    return [tree, *(node for child in tree.children for node in nodes(child))]


def test_names() -> None:
    assert bundled_names() == ("bank-desk", "clinic-desk", "it-desk")
    assert [desk.handbook.name for desk in DESKS] == list(bundled_names())


def test_an_unknown_name_is_a_typed_mistake_with_a_suggestion() -> None:
    with pytest.raises(UserMistake) as caught:
        load_desk("bank_desk")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "there is no bundled handbook `bank_desk`"
    assert diagnostic.help == "did you mean `bank-desk`?"
    with pytest.raises(UserMistake, match="did you mean `card-first`"):
        load_desk("bank-desk").task("card-frist")


@every_desk
def test_the_handbook_reads_without_a_remark(desk: BundledDesk) -> None:
    handbook, diagnostics = read_handbook(handbook_text(desk.name), desk.name)
    assert diagnostics == []
    assert handbook == desk.handbook


@every_desk
def test_size(desk: BundledDesk) -> None:
    assert 5 <= len(desk.handbook.procedures) <= 8
    assert 12 <= len(desk.handbook.predicates) <= 20


@every_desk
def test_every_tool_and_predicate_has_its_part_in_the_world(desk: BundledDesk) -> None:
    assert set(desk.handlers) == set(desk.handbook.actions)
    assert set(desk.truths) == set(desk.handbook.predicates)
    tools: Tools = desk.make_tools(desk.tasks[0])
    assert {schema.name for schema in tools.schemas()} == set(desk.handbook.actions)


@every_desk
def test_every_sentence_and_remedy_is_written(desk: BundledDesk) -> None:
    for predicate in desk.handbook.predicates.values():
        for text in (predicate.says, predicate.says_not, predicate.remedy):
            assert re.fullmatch(r"[A-Z].*[.]", text), (predicate.name, text)
    assert all(action.says for action in desk.handbook.actions.values())
    assert all(procedure.says for procedure in desk.handbook.procedures.values())


@every_desk
def test_the_language_is_used_widely(desk: BundledDesk) -> None:
    handbook = desk.handbook
    found = [n for p in handbook.procedures.values() for n in nodes(p.requires)]
    assert {type(node) for node in found} >= {InOrder, AnyOf, First, Leaf}
    literals = [node for node in found if isinstance(node, Leaf)]
    assert any(not leaf.wanted for leaf in literals)
    assert any(isinstance(term, Constant) for leaf in literals for _, term in leaf.arguments)
    assert any(
        isinstance(term, Name) and term.name != parameter
        for leaf in literals
        for parameter, term in leaf.arguments
    )
    predicates = handbook.predicates.values()
    assert any(action.full_state for action in handbook.actions.values())
    assert any(len(predicate.recipes) > 1 for predicate in predicates)
    assert any(predicate.tool_free and predicate.verdict is None for predicate in predicates)
    assert any(predicate.recipes and predicate.verdict is None for predicate in predicates), (
        "one judgement must rest on evidence"
    )
    assert needs_earlier_evidence(handbook)
    approvals = [action.approval for action in handbook.actions.values() if action.approval]
    assert any(len(approval.roles) == 3 and approval.needed == 2 for approval in approvals)
    assert any(len(approval.roles) == 1 for approval in approvals)


def needs_earlier_evidence(handbook: Handbook) -> bool:
    return any(
        isinstance(term, Path)
        for predicate in handbook.predicates.values()
        for recipe in predicate.recipes
        for step in recipe
        for _, term in step.arguments
    )


@every_desk
def test_one_gate_needs_the_other(desk: BundledDesk) -> None:
    gates = [p for p in desk.handbook.predicates.values() if p.established_by is not None]
    guarded = [
        leaf.predicate
        for gate in gates
        if gate.established_by is not None
        for leaf in leaves(desk.handbook.actions[gate.established_by.action].requires)
    ]
    assert len(gates) == 2
    assert guarded == [gates[0].name]


@every_desk
def test_every_procedure_compiles_and_deep_ones_are_factored(desk: BundledDesk) -> None:
    deep = {task.goal for task in desk.tasks if "deep" in task.tags}
    assert deep
    for name in desk.handbook.procedures:
        program = compile_procedure(desk.handbook, name).program
        kinds = {function.kind for function in program.functions.values()}
        assert (Kind.GROUP in kinds) == (name in deep), name


def test_some_gates_are_hoisted() -> None:
    hoisted = {
        (desk.name, name)
        for desk in DESKS
        for name in desk.handbook.procedures
        for guard in compile_procedure(desk.handbook, name).explanation.guards
        if guard.hoisted
    }
    assert hoisted == {
        ("bank-desk", "issue_card"),
        ("clinic-desk", "book_specialist"),
        ("it-desk", "install_software"),
    }
