"""The compiler's mechanisms, each by example."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from sopilot.compiler.pipeline import Compiler, compile_procedure
from sopilot.handbook.model import Action, ActionCall, Handbook, Input, Predicate, Procedure
from sopilot.handbook.requirements import All, AnyOf, Leaf, Name, Path, Tree
from sopilot.program.model import Act, Check, Program
from sopilot.views.check_sentences import check_saying
from sopilot.views.program_text import render_flat

USER = (("user", Name("user")),)


def leaf(name: str, wanted: bool = True) -> Leaf:
    return Leaf(name, USER, wanted)


def handbook(tree: Tree, *predicates: Predicate) -> Handbook:
    actions = {
        "goal": Action("goal", (Input("user"), Input("amount", "number"))),
        "look": Action("look", (Input("user"),)),
        "scan": Action("scan", full_state=True),
        "find": Action("find", (Input("user"), Input("case"))),
        "gone": Action("gone", offered=False),
    }
    known = {name: rule(name) for name in "abcdefghijklmnopq"}
    known |= {predicate.name: predicate for predicate in predicates}
    return Handbook(
        "mechanisms",
        parameters={"limit": 500},
        actions=actions,
        predicates=known,
        procedures={"goal": Procedure("goal", "goal", tree)},
    )


def rule(name: str, *recipes: str) -> Predicate:
    return Predicate(
        name,
        ("user",),
        says=f"{name} of {{user}} under {{limit}}.",
        recipes=tuple(
            tuple(_call(action) for action in recipe.split("+")) for recipe in recipes or ("look",)
        ),
    )


def _call(action: str) -> ActionCall:
    return ActionCall(action, USER if action in ("look", "find") else ())


def compiled(tree: Tree, *predicates: Predicate, offered: str | None = None) -> Program:
    names = frozenset(offered.split()) if offered is not None else None
    return compile_procedure(handbook(tree, *predicates), "goal", offered=names).program


def checks(program: Program, function: str = "goal") -> list[str]:
    return [s.slot for s in program.functions[function].steps if isinstance(s, Check)]


def test_the_narrowest_verifier_comes_first_wherever_it_is_written() -> None:
    for recipes in (("scan", "look"), ("look", "scan"), ("scan+look", "scan", "find", "look")):
        function = compiled(leaf("balance"), rule("balance", *recipes)).functions["balance"]
        assert [s.action for s in function.steps if isinstance(s, Act)] == ["look"]
        assert function.fallbacks[-1][0].action == "scan", "named by the handbook, and the last"


def test_in_a_benchmark_a_full_state_read_ranks_first_and_is_dropped_if_not_offered() -> None:
    predicate = rule("balance", "look", "scan")
    book = handbook(leaf("balance"), predicate)
    compiler = Compiler(book.actions, book.predicates, wide_first=True)
    with_reader = compiler.compile(book, book.procedures["goal"]).program.functions["balance"]
    assert [s.action for s in with_reader.steps if isinstance(s, Act)] == ["scan"]
    assert [[a.action for a in acts] for acts in with_reader.fallbacks] == [["look"]]
    without = compiled(leaf("balance"), predicate, offered="goal look").functions["balance"]
    assert [s.action for s in without.steps if isinstance(s, Act)] == ["look"]
    assert without.fallbacks == ()
    assert without.notes == ("dropped: scan is not offered",)


@pytest.mark.parametrize("offered", [True, False])
def test_a_gate_that_no_tool_opens_says_so(offered: bool) -> None:
    known = Predicate("known", ("user",), "Known.", established_by=_call("find"))
    tools = "goal find" if offered else "goal"
    notes = compiled(leaf("known"), known, offered=tools).functions["known"].notes
    assert any("cannot be opened" in note for note in notes) is not offered


@pytest.mark.parametrize(
    ("recipe", "made", "note"),
    [
        ("gone+next", [], "dropped: gone is not offered"),
        ("gone+next+last", [], "dropped: gone is not offered"),
        ("gone+each", [], "dropped: gone is not offered"),
        ("look+gone+next", ["look"], "not offered: gone; the recipe uses its other calls"),
    ],
)
def test_a_call_that_reads_the_answer_of_one_that_is_not_offered_is_left_out_too(
    recipe: str, made: list[str], note: str
) -> None:
    calls = {
        "next": ActionCall("find", (("item", Path("gone", ("item",))),), name="next"),
        "last": ActionCall("scan", (("item", Path("next", ("item",))),)),
        "each": ActionCall("find", (("item", Path("one")),), each=Path("gone"), element="one"),
    }
    named = tuple(calls.get(one, ActionCall(one)) for one in recipe.split("+"))
    predicate = replace(rule("member", "look"), recipes=(named,))
    result = compile_procedure(handbook(leaf("member"), predicate), "goal")
    assert result.missing_recipes == (() if made else ("member",))
    function = result.program.functions["member"]
    assert [s.action for s in function.steps if isinstance(s, Act)] == made
    assert function.notes[0] == note


def test_same_bytes_under_every_hash_seed() -> None:
    script = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from test_mechanisms import compiled, leaf
        from sopilot.handbook.requirements import All, AnyOf, First, InOrder
        from sopilot.program.codec import program_to_yaml
        names = "abcdefghijklmnopq"
        tree = All((AnyOf(tuple(map(leaf, names))), First((leaf("b"), leaf("c", False))),
                    InOrder((leaf("q"), AnyOf((First((leaf("d"), leaf("e"))), leaf("f")))))))
        print(program_to_yaml(compiled(tree)))
        """
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script, os.path.dirname(__file__)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1
    assert len(outputs.pop()) > 1_000


def requiring(book: Handbook, action: str, tree: Tree) -> Handbook:
    """The handbook in which an action requires this of its own."""
    changed = replace(book.actions[action], requires=tree)
    return replace(book, actions={**book.actions, action: changed})


def test_what_the_goal_action_requires_is_checked_even_if_the_procedure_forgets_it() -> None:
    book = requiring(handbook(leaf("a")), "goal", All((leaf("b"), leaf("a"))))
    # In front: what binds every call of it is not learned past.
    assert checks(compile_procedure(book, "goal").program) == ["b", "a"]


def test_requirement_of_a_verifier_that_is_no_gate_is_reported_not_hoisted() -> None:
    book = requiring(handbook(AnyOf((leaf("a"), leaf("c")))), "look", leaf("b"))
    result = compile_procedure(book, "goal")
    assert checks(result.program) == ["a", "c"]
    assert result.explanation.unchecked == (("look", leaf("b")),)


def test_programs_that_share_a_tree_keep_their_own_constants() -> None:
    book = handbook(leaf("a"))
    compiler = Compiler(book.actions, book.predicates)
    for limit in (500, 500.0, True, 1):
        own = replace(book, parameters={"limit": limit})
        program = compiler.compile(own, own.procedures["goal"]).program
        step = program.functions["goal"].steps[0]
        assert isinstance(step, Check)
        saying = check_saying(step, program, "en")
        assert saying is not None
        assert saying.text == f"a of <user> under {limit}."
        assert render_flat(program).text.count(f"under {limit}.") == 2


def test_a_fallback_behind_a_gate_that_nobody_opens_is_left_out() -> None:
    book = handbook(
        leaf("balance"),
        rule("balance", "scan", "look"),
        Predicate("in", ("user",), "In.", established_by=ActionCall("find", USER)),
    )
    book = requiring(book, "look", leaf("in"))
    compiler = Compiler(book.actions, book.predicates, wide_first=True)
    function = compiler.compile(book, book.procedures["goal"]).program.functions["balance"]
    assert function.fallbacks == ()
    assert function.notes == ("no fallback: look needs a gate that no step opens",)


def test_secrets_are_those_of_the_handbook_that_is_compiled() -> None:
    """Whatever the compiler made before, and whatever schema an input has."""
    book = handbook(leaf("a"))
    goal = book.procedures["goal"]
    compiler = Compiler(book.actions, book.predicates)
    for secret in (False, True, False):
        pin = Input("pin", schema={"type": "string", "pattern": "[0-9]*"}, secret=secret)
        one = replace(book, procedures={"goal": replace(goal, inputs=(pin,))})
        program = compiler.compile(one, one.procedures["goal"]).program
        assert ("pin" in program.secrets) is secret
