"""Hand-broken programs: each is refused with its place, what is wrong and what would help.

`mistakes.txt` has them as changes of `fine.yaml`, each with the diagnostics that it must give.
``SOPILOT_REGOLD=1`` rewrites the diagnostics.
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

HERE = Path(__file__).parent
MISTAKES = HERE / "mistakes.txt"


def broken(change: str) -> str:
    """`fine.yaml` with the hunks of ``change``; without hunks ``change`` is the program itself."""
    if not change.startswith("@@\n"):
        return change
    text = (HERE / "fine.yaml").read_text(encoding="utf-8")
    for hunk in change.split("@@\n")[1:]:
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] in " -")
        assert text.count(before) == 1, hunk
        text = text.replace(before, "".join(line[1:] for line in lines if line[0] in " +"))
    return text


def test_mistakes_read_as_expected() -> None:
    golden = MISTAKES.read_text(encoding="utf-8")
    written = []
    for case in golden.removeprefix("=== ").split("\n=== "):
        name, _, rest = case.partition("\n")
        change, _, _ = rest.partition("---\n")
        with pytest.raises(UserMistake) as caught:
            program_from_yaml(broken(change), f"{name}.yaml")
        for item in caught.value.diagnostics:
            assert item.place.line, item
            assert item.message[:1] == "`" or item.message[:1].islower(), item
        diagnostics = render_diagnostics(caught.value.diagnostics)
        written.append(f"=== {name}\n{change}---\n{diagnostics}\n")
    text = "\n".join(written)
    if os.environ.get("SOPILOT_REGOLD"):
        MISTAKES.write_text(text, encoding="utf-8")
    assert text == golden


def test_the_program_that_the_mistakes_start_from_is_fine() -> None:
    program_from_yaml((HERE / "fine.yaml").read_text(encoding="utf-8"))


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
