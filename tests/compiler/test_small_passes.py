"""The smallest trees simplified, missing values, and handbooks that the compiler refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sopilot.compiler.functions import left_out, verifier_arguments
from sopilot.compiler.pipeline import compile_handbook, compile_procedure
from sopilot.compiler.simplify import simplify
from sopilot.handbook.model import (
    Action,
    ActionCall,
    Computed,
    Handbook,
    Input,
    Predicate,
    Procedure,
)
from sopilot.handbook.requirements import (
    NOTHING,
    All,
    AnyOf,
    Constant,
    First,
    InOrder,
    Leaf,
    Name,
    Tree,
)
from sopilot.messages.errors import UserMistake
from sopilot.program.codec import program_to_yaml

A, B, C = Leaf("a"), Leaf("b"), Leaf("c")


@pytest.mark.parametrize(
    ("tree", "simple"),
    [
        (A, A),
        (All(()), NOTHING),
        (InOrder(()), NOTHING),
        (InOrder((), "come again"), NOTHING),
        (All((A,)), A),
        (InOrder((A,)), A),
        (First((A,)), A),
        (AnyOf((A,)), A),
        (AnyOf((All((A, B)),)), AnyOf((All((A, B)),))),
        (First((All((A, B)),)), All((A, B))),
        (InOrder((A,), "come again"), InOrder((A,), "come again")),
        (All((All((A, B)), A, InOrder((C,)))), All((A, B, C))),
        (InOrder((InOrder((A, B)), C)), InOrder((A, B, C))),
        (InOrder((InOrder((A, B), "x"), C)), InOrder((InOrder((A, B), "x"), C))),
        (All((A, NOTHING, B)), All((A, B))),
        (AnyOf((A, NOTHING)), AnyOf((A, NOTHING))),
        (First((A, NOTHING)), First((A, NOTHING))),
        (AnyOf((AnyOf((A, B)), C)), AnyOf((A, B, C))),
        (First((A, A, B)), First((A, B))),
    ],
)
def test_simpler_trees(tree: Tree, simple: Tree) -> None:
    assert simplify(tree) == simple


@pytest.mark.parametrize("tree", [AnyOf(()), First(()), All((A, AnyOf(())))])
def test_no_option_at_all(tree: Tree) -> None:
    with pytest.raises(UserMistake) as refused:
        simplify(tree)
    (told,) = refused.value.diagnostics
    assert (told.code, told.help) == ("empty-any", "give `any` or `first` at least one option")


GOAL = Action("goal", (Input("user"),), irreversible=True)
PLAIN = Handbook(
    "plain",
    actions={"goal": GOAL, "look": Action("look", (Input("user"),))},
    predicates={"a": Predicate("a", recipes=((ActionCall("look"),),))},
    procedures={"goal": Procedure("goal", "goal", A)},
)


def test_names_that_a_call_may_leave_out() -> None:
    loose = [Input(name, required=False) for name in ("note", "size", "more")]
    procedure = Procedure(
        "goal",
        "goal",
        arguments=(("note", Name("memo")),),
        inputs=(Input("size"),),
        computed=(Computed("more", "1"),),
    )
    assert left_out(procedure, Action("goal", (Input("user"), *loose))) == {"memo": "note"}


@pytest.mark.parametrize(
    ("item", "passed"),
    [
        (Input("x", required=False), False),
        (Input("x", "null", required=False), True),
        (Input("x", required=True), True),
        (Input("x", required=False, schema={"type": ["string", "null"]}), True),
        (Input("x", required=False, schema={"type": ["string", "integer"]}), False),
    ],
)
def test_null_is_passed_only_to_inputs_that_take_it(item: Input, passed: bool) -> None:
    call = ActionCall("look", (("x", Constant(None)),))
    arguments = verifier_arguments(call, Action("look", (item,)), Predicate("a"))
    assert arguments == ((("x", Constant(None)),) if passed else ())


def test_a_procedure_alone_is_what_it_is_among_all() -> None:
    scan = Action("scan", full_state=True)
    either = Predicate("a", recipes=((ActionCall("look"),), (ActionCall("scan"),)))
    book = replace(PLAIN, actions={**PLAIN.actions, "scan": scan}, predicates={"a": either})
    (whole,) = compile_handbook(book, tools="t").values()
    alone = compile_procedure(book, "goal", tools="t")
    assert program_to_yaml(alone.program) == program_to_yaml(whole.program)
    assert alone.program.source.tools == "t"
    assert [one.action for one in alone.explanation.recipes["a"].chosen] == ["look"]
    wide = compile_procedure(book, "goal", wide_first=True)
    assert [one.action for one in wide.explanation.recipes["a"].chosen] == ["scan"]
    assert wide.program.source.tools == compile_procedure(book, "goal").program.source.tools == ""
    none = compile_procedure(book, "goal", offered=frozenset({"goal"}))
    assert (none.missing_recipes, alone.missing_recipes) == (("a",), ())


def test_a_procedure_that_is_not_there() -> None:
    with pytest.raises(UserMistake) as refused:
        compile_procedure(PLAIN, "gaol")
    (told,) = refused.value.diagnostics
    assert str(told) == (
        "<input>: procedures.gaol: error[unknown-procedure]: "
        "`gaol` is not a procedure of `plain`\n  help: did you mean `goal`?"
    )


def test_gates_that_need_each_other_are_told_in_their_order() -> None:
    def gate(name: str) -> Predicate:
        return Predicate(name, established_by=ActionCall(f"open_{name}"))

    actions = {
        f"open_{name}": Action(f"open_{name}", requires=Leaf(needed))
        for name, needed in (("a", "b"), ("b", "c"), ("c", "b"))
    }
    book = Handbook(
        "circle",
        actions={**actions, "goal": GOAL},
        predicates={name: gate(name) for name in "abc"},
        procedures={"goal": Procedure("goal", "goal", A)},
    )
    with pytest.raises(UserMistake) as refused:
        compile_procedure(book, "goal")
    (told,) = refused.value.diagnostics
    assert (told.code, told.place.path) == ("circular-guards", "b")
    assert told.message.endswith("each needs the next: `b` → `c` → `b`")
