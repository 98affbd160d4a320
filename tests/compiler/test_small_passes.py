"""The smallest trees simplified, missing values, and handbooks that the compiler refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sopilot.compiler.pipeline import Compiler, compile_handbook, compile_procedure
from sopilot.compiler.simplify import simplify
from sopilot.handbook.model import Action, ActionCall, Handbook, Input, Predicate, Procedure
from sopilot.handbook.requirements import All, AnyOf, First, Leaf, Tree
from sopilot.messages.errors import UserMistake
from sopilot.program.codec import program_to_yaml

A, B, C = Leaf("a"), Leaf("b"), Leaf("c")


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


def test_a_procedure_alone_is_what_it_is_among_all() -> None:
    scan = Action("scan", full_state=True)
    either = Predicate("a", recipes=((ActionCall("look"),), (ActionCall("scan"),)))
    book = replace(PLAIN, actions={**PLAIN.actions, "scan": scan}, predicates={"a": either})
    (whole,) = compile_handbook(book, tools="t").values()
    alone = compile_procedure(book, "goal", tools="t")
    assert program_to_yaml(alone.program) == program_to_yaml(whole.program)
    assert alone.program.source.tools == "t"
    assert [one.action for one in alone.explanation.recipes["a"].chosen] == ["look"]
    compiler = Compiler(book.actions, book.predicates, wide_first=True)
    wide = compiler.compile(book, book.procedures["goal"])
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
