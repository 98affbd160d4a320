"""What a guarded action takes from a model, and what nobody can prove for it."""

from __future__ import annotations

import pytest

from sopilot.compiler.pipeline import compile_handbook
from sopilot.compiler.recipes import Unprovable, judged_by_model, shared_state, unprovable
from sopilot.handbook.reader import load_handbook
from sopilot.program.model import Program

DESK = """\
handbook: judged-desk
actions:
  look: {input: {user: string}}
  draw: {input: {user: string}LOTS}
  wipe: {input: {user: string}, irreversible: true}
  note: {input: {user: string}}
predicates:
  calm(user): {says: "{user} is calm.", verify: look(user), judged_by: model}
  fair(user): {says: "{user} is fair.", verify: look(user)}
  sane(user): {says: "{user} is sane.", verify: arguments}
  sure(user): {says: "{user} is sure.", verify: look(user), verdict: result.sure}
  drawn(user): {says: "{user} was drawn.", verify: draw(user), verdict: result.drawn}
  either(user): {says: "{user} is it.", verify: {any: [draw(user), look(user)]}, verdict: result.it}
procedures:
  wipe:
    requires: [calm(user), {not: fair(user)}, sane(user), sure(user), drawn(user), either(user)]
  note:
    requires: [calm(user), fair(user), sane(user)]
"""


def _text(lots: str = "") -> str:
    return DESK.replace("LOTS", lots)


def _program(name: str, lots: str = "") -> Program:
    return compile_handbook(load_handbook(_text(lots)))[name].program


def test_the_places_where_a_model_is_believed() -> None:
    assert judged_by_model(_program("wipe")) == ("calm",)
    assert judged_by_model(_program("note")) == ()  # nothing is guarded there


def test_what_nobody_can_prove() -> None:
    assert unprovable(_program("wipe")) == (Unprovable("fair"), Unprovable("sane"))
    assert unprovable(_program("note")) == ()


@pytest.mark.parametrize(
    ("lots", "found"),
    [
        (", changes: [lots]", True),  # it reads everything
        (", changes: [lots], reads: [lots, names]", True),
        (", changes: [lots], reads: [names]", False),
        (", changes: [], reads: [lots]", False),
        (", approval: boss", True),  # guarded, so it may change everything
    ],
)
def test_a_verifier_that_changes_what_it_reads_proves_nothing(lots: str, found: bool) -> None:
    program = _program("wipe", lots)
    # `either` has a second way, which stays fresh.
    assert (Unprovable("drawn", "draw") in unprovable(program)) is found
    assert not any(one.predicate == "either" for one in unprovable(program))


@pytest.mark.parametrize("goal", ["wipe", "note"])
@pytest.mark.parametrize("shared", ["look", "draw", "look draw", "note", ""])
def test_the_calls_whose_answers_count_for_every_connection(goal: str, shared: str) -> None:
    """Of those that a guarded action rests on."""
    text = _text()
    for name in shared.split():
        text = text.replace(f"  {name}: {{input", f"  {name}: {{state: shared, input")
    program = compile_handbook(load_handbook(text))[goal].program
    rests_on = [name for name in ("draw", "look") if name in shared.split()]
    assert list(shared_state(program)) == (rests_on if goal == "wipe" else [])
