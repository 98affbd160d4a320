"""What the small passes make of their smallest inputs, and what is computed once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sopilot.compiler.action_facts import (
    handbook_facts,
    input_schema,
)
from sopilot.compiler.functions import left_out, verifier_arguments
from sopilot.compiler.pipeline import compile_handbook, compile_procedure
from sopilot.compiler.schedule import goal_terms
from sopilot.compiler.simplify import simplify
from sopilot.handbook.model import (
    ASK_USER,
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
    Path,
    Tree,
)
from sopilot.messages.errors import UserMistake
from sopilot.program.codec import program_to_yaml
from sopilot.program.model import Literal, Local, Unknown

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


# --- what all programs of a handbook share --------------------------------------------

GOAL = Action("goal", (Input("user"),), irreversible=True)
LOOK = Action("look", (Input("user"),))
SHARED = {"a": Predicate("a", recipes=((ActionCall("look"),),))}
PLAIN = Handbook(
    "plain",
    actions={"goal": GOAL, "look": LOOK},
    predicates=SHARED,
    procedures={"goal": Procedure("goal", "goal", A)},
)


LOOKING = Predicate("a", recipes=((ActionCall("look"),),))


@pytest.mark.parametrize(
    ("look", "read_only"),
    [
        (Action("look"), ()),
        (Action("look", read_only=True), ("look",)),
        (Action("look", changes=()), ("look",)),
        (Action("look", changes=("money",)), ()),
    ],
)
def test_a_goal_changes_things_unless_it_says_otherwise(
    look: Action, read_only: tuple[str, ...]
) -> None:
    book = Handbook(
        "h",
        actions={"look": look, "other": Action("other", read_only=True)},
        predicates={"a": LOOKING},
        procedures={"look": Procedure("look", "look", NOTHING)},
    )
    assert handbook_facts(book).read_only == (*read_only, "other")


def test_names_that_a_call_may_leave_out() -> None:
    inputs = (Input("user"), Input("note", required=False), Input("size", required=False))
    action = Action("goal", (*inputs, Input("more", required=False)))
    declared = (Input("size", required=True),)
    procedure = Procedure("goal", "goal", NOTHING, arguments=(("note", Name("memo")),),
                          inputs=declared, computed=(Computed("more", "1"),))  # fmt: skip
    assert left_out(procedure, action) == {"memo": "note"}
    assert left_out(procedure, action, goal_terms(action, procedure)) == {"memo": "note"}
    other = tuple((one.name, Name(f"{one.name}_")) for one in action.inputs)
    assert left_out(procedure, action, other) == {"note_": "note", "size_": "size", "more_": "more"}


# --- the front door ------------------------------------------------------------------


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
    assert told.code == "unknown-procedure"
    assert told.message == "`gaol` is not a procedure of `plain`"
    assert told.place is not None
    assert told.place.path == "procedures.gaol"
    assert "goal" in (told.help or "")


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
    assert told.code == "circular-guards"
    assert told.message.endswith("each needs the next: `b` → `c` → `b`")
    assert told.place is not None
    assert told.place.path == "b"
    assert told.help == "remove one `requires` on an action that establishes them"


# --- what is said of an input ---------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        (None, {"type": "string"}),
        ({}, {"type": "string"}),
        ({"type": "integer"}, {"type": "integer"}),
        ({"enum": [1, 2]}, {"enum": [1, 2]}),
        ({"type": "integer", "enum": (1, 2)}, {"type": "integer", "enum": [1, 2]}),
        ({"minimum": 1, "format": "x"}, {"type": "string", "minimum": 1}),
        (
            {"type": "object", "additionalProperties": {"format": "x"}},
            {"type": "object", "additionalProperties": {"format": "x"}},
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "format": "x"}, "b": True}},
            {"type": "object", "properties": {"a": {"type": "string"}, "b": True}},
        ),
        (
            {"type": "array", "items": {"type": "string", "title": "x"}},
            {"type": "array", "items": {"type": "string"}},
        ),
        ({"type": "array", "items": True}, {"type": "array", "items": True}),
        ({"type": "object", "properties": True}, {"type": "object", "properties": True}),
    ],
)
def test_of_a_schema_what_says_what_a_value_is(
    schema: dict[str, object] | None, kept: dict[str, object]
) -> None:
    assert input_schema(Input("x", schema=schema)) == kept


@pytest.mark.parametrize(
    ("item", "handed_on"),
    [
        (Input("x", required=False), False),
        (Input("x", "null", required=False), True),
        (Input("x", required=True), True),
        (Input("x", required=False, schema={"type": "string"}), False),
        (Input("x", required=False, schema={"type": "null"}), True),
        (Input("x", required=False, schema={"type": ["string", "null"]}), True),
        (Input("x", required=False, schema={"type": ["string", "integer"]}), False),
        (Input("x", "null", required=False, schema={"minimum": 1}), True),
        (Input("x", "nullable", required=False), False),
    ],
)
def test_no_value_is_handed_on_where_the_input_takes_it(item: Input, handed_on: bool) -> None:
    call = ActionCall("look", (("x", Constant(None)),))
    found = verifier_arguments(call, Action("look", (item,)), Predicate("a"))
    assert found == ((("x", Literal(None)),) if handed_on else ())


def test_what_the_machine_asks_itself_takes_whatever_it_is_given() -> None:
    call = ActionCall(ASK_USER, (("question", Constant("q")), ("who", Name("user"))))
    found = verifier_arguments(call, Action(ASK_USER), Predicate("a", ("user",)))
    assert found == (("question", Literal("q")), ("who", Local("user")))
    strange = Action("look", (Input("a"), Input("b", required=False), Input("c")))
    call = ActionCall("look", (("c", Path("first", ("id",))), ("a", Name("nobody"))))
    assert verifier_arguments(call, strange, Predicate("a", ("user",))) == (
        ("a", Unknown("nobody")),
        ("c", Path("first", ("id",))),
    )
    assert verifier_arguments(ActionCall("look"), strange, Predicate("a")) == (
        ("a", Unknown("a")),
        ("c", Unknown("c")),
    )
