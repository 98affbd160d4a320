"""Hand-broken programs: each is refused with its place, what is wrong and what would help.

``SOPILOT_REGOLD=1`` rewrites the expected listings.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sopilot.messages.diagnostic import render_diagnostics
from sopilot.messages.errors import UserMistake
from sopilot.program.codec import program_from_yaml
from sopilot.program.model import (
    Act,
    Ask,
    Check,
    Choose,
    CompleteStep,
    Function,
    Kind,
    Local,
    Option,
    Program,
    ReturnStep,
    Source,
)
from sopilot.program.verifier import require_valid, verify_program

CASES = sorted((Path(__file__).parent / "mistakes").glob("*.yaml"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_mistakes_read_as_expected(case: Path) -> None:
    try:
        program_from_yaml(case.read_text(encoding="utf-8"), case.name)
        found = "no mistakes"
    except UserMistake as mistake:
        found = render_diagnostics(mistake.diagnostics)
    golden = case.with_suffix(".txt")
    if os.environ.get("SOPILOT_REGOLD"):
        golden.write_text(found + "\n", encoding="utf-8")
    assert found + "\n" == golden.read_text(encoding="utf-8")
    assert (found == "no mistakes") is (case.stem == "fine")


def test_every_mistake_has_place_and_help() -> None:
    for case in CASES:
        if case.stem == "fine":
            continue
        with pytest.raises(UserMistake) as caught:
            program_from_yaml(case.read_text(encoding="utf-8"), case.name)
        for one in caught.value.diagnostics:
            assert one.place.line, one
            assert one.message[:1] in "`" or one.message[:1].islower(), one


def _rule(name: str = "rule", *, parameters: tuple[str, ...] = ()) -> Function:
    return Function(name, Kind.RULE, parameters, (ReturnStep("end"),), predicate=name)


def _program(*functions: Function, listed: tuple[str, ...] = ()) -> Program:
    names = listed or tuple(function.name for function in functions)
    return Program("main", dict(zip(names, functions, strict=True)), Source("", "", ""), "")


def _process(*steps: Act | Ask | Check | Choose) -> Function:
    return Function("main", Kind.PROCESS, (), (*steps, CompleteStep("end")))


def _codes(program: Program, predicates: frozenset[str] | None = None) -> list[tuple[str, str]]:
    return [(one.code, one.place.path) for one in verify_program(program, predicates)]


def test_what_only_code_can_get_wrong() -> None:
    call = Check("c", "rule", (), "s")
    assert _codes(_program(_process(call), _rule())) == []
    assert ("name-mismatch", "other") in _codes(
        _program(_process(call), _rule(), listed=("main", "other"))
    )
    two = Function("rule", Kind.RULE, ("a", "a"), (ReturnStep("end"),))
    assert ("duplicate-parameter", "rule") in _codes(_program(_process(call), two))
    twice = Act("a", "tool", (("x", Local("x")), ("x", Local("x"))))
    assert [code for code, _ in _codes(_program(_process(Ask("q", ("x",)), twice)))] == [
        "wrong-arguments"
    ]
    assert _codes(_program(_process(Ask("q", ())))) == [("empty-ask", "main@q")]
    assert ("empty-choice", "main@q") in _codes(_program(_process(Choose("q", "?", ()))))
    same = Choose("q", "?", (Option("a", "end"), Option("a", "end")))
    assert _codes(_program(_process(same))) == [("duplicate-option", "main@q")]


def test_predicates_are_bounded_by_the_procedure() -> None:
    program = _program(_process(Check("c", "rule", (), "s")), _rule())
    assert _codes(program, frozenset({"rule"})) == []
    assert _codes(program, frozenset({"rulo"})) == [("unknown-predicate", "rule")]
    assert _codes(program, frozenset()) == [("unknown-predicate", "rule")]


def test_a_value_is_known_after_it_was_asked_for() -> None:
    act = Act("a", "tool", (("x", Local("x")),))
    assert _codes(_program(_process(Ask("q", ("x",)), act))) == []
    assert _codes(_program(_process(act, Ask("q", ("x",))))) == [("unknown-value", "main@a")]


def test_require_valid_raises_everything_at_once() -> None:
    with pytest.raises(UserMistake) as caught:
        require_valid(_program(_process(Check("c", "nowhere", (), "s")), _rule()))
    assert [one.code for one in caught.value.diagnostics] == ["unknown-function", "unused-function"]
