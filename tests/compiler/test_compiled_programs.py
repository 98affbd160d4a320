"""What was compiled once is compiled to the same for ever, unless somebody wants it otherwise.

Sessions are kept with the hash of their program, so a program that comes out another way is
another program. Numbers make handbooks (`random_desks.py`), and of each the file beside
this one has a digest of all that the compiler says about it. ``SOPILOT_REGOLD=1`` rewrites it:
then look at what has changed with ``sopilot compile`` before and after.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from random_desks import Desk

from sopilot.compiler.factoring import Names, numbered
from sopilot.compiler.pipeline import Compiler
from sopilot.compiler.recipes import judged_by_model, unprovable
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

GOLDEN = Path(__file__).with_name("compiled_programs.json")
BATCHES, EACH, SPARSE = 14, 30, 300


def compiled(handbook: Handbook, *, wide_first: bool) -> Iterator[str]:
    """All that is said of its procedures, but for what changes with every release."""
    asked = {"wide_first": True} if wide_first else {}
    compiler = Compiler(handbook.actions, handbook.predicates, **asked)
    for name, procedure in handbook.procedures.items():
        try:
            found = compiler.compile(handbook, procedure, source_hash=name)
        except UserMistake as refused:
            yield str(refused)
            continue
        yield program_to_yaml(replace(found.program, compiler=""))
        why = found.explanation
        yield repr((why.guards, why.recipes, why.tree, why.unchecked, why.unopened))
        yield repr((why.dropped, why.postponed, why.excluded, found.missing_recipes))
        yield repr([(one.name, one.complete, one.parameters, one.because) for one in why.groups])
        yield repr((judged_by_model(found.program), unprovable(found.program)))


def digest(seed: int) -> str:
    desk = Desk(seed, dense=seed >= SPARSE)
    said = compiled(desk.handbook(), wide_first=seed % 5 == 0)
    return sha256("\n".join(said).encode()).hexdigest()[:12]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_programs_come_out_as_they_did(batch: int) -> None:
    seeds = range(batch * EACH, (batch + 1) * EACH)
    found = {str(seed): digest(seed) for seed in seeds}
    kept = json.loads(GOLDEN.read_text("utf-8")) if GOLDEN.exists() else {}
    if os.environ.get("SOPILOT_REGOLD"):
        kept |= found
        GOLDEN.write_text(json.dumps(kept, indent=0) + "\n", "utf-8")
    assert found == {seed: kept.get(seed) for seed in found}


def test_what_was_compiled_before_leaves_no_mark() -> None:
    """One compiler for procedures that differ in one thing each, and one of its own for each."""
    look = Action("look", (Input("user"),))
    tree = Leaf("known", (("user", Name("user")),))
    predicates = {
        "known": Predicate("known", ("user",), recipes=((ActionCall("look", tree.arguments),),)),
        "free": Predicate("free", tool_free=True),
    }
    goal = Action("goal", (Input("user"), Input("amount", required=False)))
    plain = Procedure("goal", "goal", tree)
    handbooks = [
        Handbook("one", actions={"look": look, "goal": action}, predicates=predicates,
                 procedures={procedure.name: procedure})
        for action, procedure in [
            (goal, plain),
            (replace(goal, requires=Leaf("free")), plain),
            (goal, replace(plain, name="other")),
            (goal, replace(plain, requires=Leaf("free"))),
            (goal, replace(plain, says="It is done.")),
            (goal, replace(plain, arguments=(("amount", Constant(1)),))),
            (goal, replace(plain, inputs=(Input("extra"),))),
            (goal, replace(plain, otherwise="come again")),
            (goal, replace(plain, computed=(Computed("amount", "1"),))),
            (goal, replace(plain, confirm="Really?")),
            (replace(goal, confirm="Really?"), plain),
            (replace(goal, confirm=""), plain),
            (replace(goal, irreversible=True), plain),
        ]
    ]  # fmt: skip
    texts = set()
    # What procedures make stands among the predicates, so they are given to all alike.
    everything = {name: one for book in handbooks for name, one in book.predicates.items()}
    shared = Compiler({"look": look, "goal": goal}, everything)
    for book in handbooks:
        whole = replace(book, predicates=everything)
        (procedure,) = whole.procedures.values()
        alone = Compiler({"look": look, "goal": goal}, everything).compile(whole, procedure)
        found = shared.compile(whole, procedure)
        assert found.program == alone.program
        source = replace(found.program.source, sha256="")
        texts.add(program_to_yaml(replace(found.program, source=source)))
    # To be asked by the action or by the procedure is the same; so are no text and an empty one.
    assert len(texts) == len(handbooks) - 2


def test_names_that_are_taken_are_numbered() -> None:
    taken: dict[str, int] = {}
    assert [numbered("a", taken) for _ in range(3)] == ["a", "a_2", "a_3"]
    assert [numbered(one, taken) for one in ("a_2", "b", "b_2", "b", "b")] == [
        "a_2_2", "b", "b_2", "b_3", "b_4",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tree", "name"),
    [
        (All((Leaf("a"), Leaf("b"))), "all_of_a_b"),
        (AnyOf((Leaf("a"), Leaf("b", (), False))), "any_of_a_not_b"),
        (First((Leaf("a"), All((Leaf("b"), Leaf("c"))))), "first_of_a_c"),
        (InOrder((Leaf("a"), Leaf("b"), Leaf("c"))), "in_order_3_to_c"),
        (InOrder((Leaf("a"), All((Leaf("b"), Leaf("c"))))), "in_order_3_to_c"),
        (All((Leaf("a"), AnyOf((Leaf("a", (), False), Leaf("b"))))), "all_of_a_b"),
        (AnyOf((Leaf("a"), Leaf("b"), Leaf("c"), Leaf("c", (), False))), "any_of_3_to_not_c"),
        (AnyOf((Leaf("a"), NOTHING)), "any_of_a"),
    ],
)
def test_a_group_is_named_for_what_it_comes_to(tree: Tree, name: str) -> None:
    names = Names("goal", ["a", "b", "all_of_b_c"])
    assert [names.group(tree), names.group(tree)] == [name, f"{name}_2"]
    assert names.group(All((Leaf("b"), Leaf("c")))) == "all_of_b_c_2"


def test_only_the_namesake_of_the_goal_is_called_otherwise() -> None:
    assert Names("all_of_a_b", ["a", "b"]).group(All((Leaf("a"), Leaf("b")))) == "all_of_a_b_2"
    names = Names("all_of_a_b", ["a", "all_of_a_b", "verify_all_of_a_b"])
    assert [names.rule(one) for one in ("a", "all_of_a_b")] == ["a", "verify_all_of_a_b_2"]
    assert names.group(All((Leaf("a"), Leaf("b")))) == "all_of_a_b_2"
