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
    Step,
)
from sopilot.program.verifier import verify_program

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


def _rule(name: str, parameters: tuple[str, ...] = ()) -> Function:
    return Function(name, Kind.RULE, parameters, (ReturnStep("end"),), predicate=name)


def _codes(
    steps: tuple[Step, ...], rules: dict[str, Function], predicates: frozenset[str] | None = None
) -> list[tuple[str, str]]:
    main = Function("main", Kind.PROCESS, (), (*steps, CompleteStep("end")))
    program = Program("main", {"main": main, **rules}, Source("", "", ""), "")
    return [(item.code, item.place.path) for item in verify_program(program, predicates)]


CALL = Check("c", "rule", (), "s")
RULE = {"rule": _rule("rule")}


def test_what_only_code_can_get_wrong() -> None:
    assert ("name-mismatch", "rule") in _codes((CALL,), {"rule": _rule("other")})
    assert ("duplicate-parameter", "rule") in _codes((CALL,), {"rule": _rule("rule", ("a", "a"))})
    twice = Act("a", "tool", (("x", Local("x")), ("x", Local("x"))))
    assert _codes((Ask("q", ("x",)), twice), {}) == [("wrong-arguments", "main@a")]
    assert _codes((Ask("q", ()),), {}) == [("empty-ask", "main@q")]
    assert ("empty-choice", "main@q") in _codes((Choose("q", "?", ()),), {})
    same = Choose("q", "?", (Option("a", "end"), Option("a", "end")))
    assert _codes((same,), {}) == [("duplicate-option", "main@q")]


@pytest.mark.parametrize(
    ("predicates", "codes"),
    [
        (frozenset({"rule"}), []),
        (frozenset({"rulo"}), [("unknown-predicate", "rule")]),
        (frozenset(), [("unknown-predicate", "rule")]),
    ],
)
def test_predicates_are_bounded_by_the_procedure(
    predicates: frozenset[str], codes: list[tuple[str, str]]
) -> None:
    assert _codes((CALL,), RULE, predicates) == codes
