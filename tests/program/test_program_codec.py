from __future__ import annotations

import random
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_handbooks import SCALARS, TEXTS, compiled_programs, random_handbook

from sopilot.handbook.requirements import Constant
from sopilot.messages.diagnostic import Diagnostic
from sopilot.messages.errors import UserMistake
from sopilot.program import codec
from sopilot.program.codec import program_from_yaml, program_hash, program_to_yaml
from sopilot.program.model import (
    Act,
    Check,
    CompleteStep,
    Emit,
    FailStep,
    Function,
    Kind,
    Program,
    Source,
)
from sopilot.program.printer import print_program
from sopilot.program.verifier import verify_program

T = TypeVar("T")


def random_programs(seed: int) -> Iterator[Program]:
    """Compiled programs of a random handbook, with awkward words and values in them."""
    dice = random.Random(seed)
    for program in compiled_programs(random_handbook(seed)):
        functions = {
            name: replace(
                function,
                steps=tuple(_awkward(step, dice) for step in function.steps),
                fallbacks=tuple(
                    tuple(_awkward(act, dice) for act in acts) for acts in function.fallbacks
                ),
                says=dice.choice(TEXTS),
                remedy=dice.choice(TEXTS),
                verdict=dice.choice([None, *TEXTS]),
                notes=tuple(dice.sample(TEXTS, 2)),
            )
            for name, function in program.functions.items()
        }
        constants = {f"c{number}": value for number, value in enumerate(dice.sample(SCALARS, 4))}
        yield replace(program, functions=functions, constants=constants)


def _awkward(step: T, dice: random.Random) -> T:
    if isinstance(step, Act):
        arguments = tuple(
            (name, Constant(dice.choice(SCALARS)) if dice.random() < 0.4 else term)
            for name, term in step.arguments
        )
        return replace(step, arguments=arguments, says=dice.choice(TEXTS))
    return replace(step, says=dice.choice(TEXTS)) if isinstance(step, Check | FailStep) else step


@pytest.mark.parametrize("seed", range(60))
def test_reading_what_was_written_changes_nothing(seed: int) -> None:
    for program in random_programs(seed):
        text = program_to_yaml(program)
        again = program_from_yaml(text, "p.yaml")
        assert again == program
        assert list(again.functions) == list(program.functions)
        # Equality takes 1 for true and 1.0; the bytes do not.
        assert program_to_yaml(again) == text
        assert print_program(again) == print_program(program)


def test_numbers_and_truths_keep_their_types() -> None:
    values = [1, 1.0, True, "1", -0.0, 1e22, "true", None]
    constants = {f"c{number}": value for number, value in enumerate(values)}
    program = _program(CompleteStep("end"), constants=constants)
    again = program_from_yaml(program_to_yaml(program))
    assert repr(list(again.constants.values())) == repr(values)


def _program(
    *steps: Act | Emit | CompleteStep, constants: dict[str, object] | None = None
) -> Program:
    body = steps if isinstance(steps[-1], CompleteStep) else (*steps, CompleteStep("end"))
    main = Function("main", Kind.PROCESS, (), body)
    return Program("main", {"main": main}, Source("", "", ""), "", constants or {})  # type: ignore[arg-type] # any scalar, on purpose


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", 10**400])
def test_values_that_no_file_can_hold_are_refused(value: object) -> None:
    act = Act("a", "tool", (("x", Constant(value)),))  # type: ignore[arg-type] # a hostile value
    with pytest.raises(UserMistake) as caught:
        program_to_yaml(_program(act))
    assert caught.value.diagnostics[0].code == "unwritable-value"


def test_a_schema_that_is_not_json_is_refused() -> None:
    with pytest.raises(UserMistake):
        program_to_yaml(_program(Emit("a", "b", schema={"x": {1, 2}})))


def test_the_hash_is_of_the_bytes() -> None:
    one = _program(Act("a", "tool"))
    other = _program(Act("a", "tool", says="something"))
    assert program_hash(one) == program_hash(_program(Act("a", "tool")))
    assert program_hash(one) != program_hash(other)
    assert len(program_hash(one)) == 64


@pytest.mark.parametrize("seed", range(40))
def test_damaged_files_end_in_diagnostics(seed: int) -> None:
    chance = random.Random(seed)
    programs = (program for number in range(seed, 400) for program in random_programs(number))
    text = program_to_yaml(next(programs))
    for _ in range(chance.randint(1, 6)):
        cut = chance.randrange(len(text) + 1)
        piece = chance.choice(
            ["", "{", "]", ": ", "\n", "  ", "&a", "*a", "!!x ", "- ", '"', "\0", "9"]
        )
        text = text[:cut] + piece + text[cut + chance.randint(0, 4) :]
    mistakes: tuple[Diagnostic, ...] = ()
    try:
        loaded = program_from_yaml(text, "p.yaml")
    except UserMistake as mistake:
        mistakes = mistake.diagnostics
    else:
        assert verify_program(loaded) == []
        return
    assert mistakes
    assert all(one.place.source == "p.yaml" for one in mistakes)


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=80))
def test_any_text_ends_in_diagnostics(text: str) -> None:
    with pytest.raises(UserMistake):
        program_from_yaml(text)


def test_the_documented_example_is_a_program() -> None:
    documented = textwrap.dedent((codec.__doc__ or "").split("::", 1)[1].split("``$name``")[0])
    program = program_from_yaml(documented)
    assert list(program.functions) == ["close_ticket", "ticket_open"]
    assert program_from_yaml(program_to_yaml(program)) == program


def test_yaml_tricks_are_refused_at_their_places() -> None:
    text = program_to_yaml(_program(Act("a", "tool"))).replace("kind: process", "kind: &k process")
    text = text.replace("act: tool", "act: !!str tool").replace("entry: main", "entry: *k")
    text = text.replace("sopilot_program: 1", "sopilot_program: 1\nsopilot_program: 1")
    with pytest.raises(UserMistake) as caught:
        program_from_yaml(text, "p.yaml")
    found = {(one.code, one.place.line) for one in caught.value.diagnostics}
    assert {("duplicate-key", 2), ("yaml-alias", 3), ("yaml-anchor", 6), ("yaml-tag", 9)} <= found


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 50_000,
        "a: &x [1]\nb: [*x, *x]",
        "sopilot_program: !!python/object/apply:os.system [ls]",
        "---\na: 1\n---\nb: 2\n",
    ],
)
def test_hostile_yaml_is_refused(text: str) -> None:
    with pytest.raises(UserMistake):
        program_from_yaml(text)
