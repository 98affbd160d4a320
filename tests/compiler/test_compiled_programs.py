"""Programs of random handbooks come out as their listings say.

Sessions are kept with the hash of their program, so a program that comes out another way is
another program. A number makes a handbook (`random_handbooks.py`); the listing of its programs
and of what the compiler decided is in `compiled/`. ``SOPILOT_REGOLD=1`` rewrites the listings.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from random_handbooks import random_handbook

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
from sopilot.handbook.requirements import Constant, Leaf, Name
from sopilot.program.codec import program_to_yaml
from sopilot.program.printer import print_program

LISTINGS = Path(__file__).with_name("compiled")
SEEDS = (0, 45, 75, 105, 120, 150, 195, 240, 300, 360, 380, 400)


def listing(seed: int) -> Iterator[str]:
    handbook = random_handbook(seed, dense=seed >= 300)
    compiler = Compiler(handbook.actions, handbook.predicates, wide_first=seed % 5 == 0)
    for name, procedure in handbook.procedures.items():
        compiled = compiler.compile(handbook, procedure, source_hash=name)
        yield print_program(replace(compiled.program, compiler=""))
        why = compiled.explanation
        for guard in why.guards:
            yield f"guard {guard.leaf.key} for {guard.needed_by.key}, {guard.hoisted}\n"
        for predicate, recipes in why.recipes.items():
            yield f"recipe of {predicate}: {recipes.because}\n"
        for item in why.dropped:
            yield f"dropped {item.what!r} by {item.known.key}, {item.impossible}\n"
        yield f"postponed {why.postponed}; excluded {why.excluded}\n"
        yield f"unchecked {why.unchecked}; unopened {why.unopened}\n"
        yield f"missing {compiled.missing_recipes}; unprovable {unprovable(compiled.program)}\n"
        yield f"judged by a model: {judged_by_model(compiled.program)}\n\n"


@pytest.mark.parametrize("seed", SEEDS)
def test_programs_come_out_as_they_did(seed: int) -> None:
    golden = LISTINGS / f"{seed:03}.txt"
    text = "".join(listing(seed))
    if os.environ.get("SOPILOT_REGOLD"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


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
