from __future__ import annotations

from pathlib import Path as File

import pytest
import yaml

from sopilot.handbook import yaml as yaml_nodes
from sopilot.handbook.model import ActionCall, Approval, Handbook, Input
from sopilot.handbook.reader import load_handbook, read_handbook
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
)
from sopilot.messages.diagnostic import Severity

BANK = (File(__file__).parent / "valid" / "bank_desk.yaml").read_text(encoding="utf-8")

DESK = """
handbook: desk
parameters: {limit: 5}
actions:
  act: {input: {user: string, amount: number}}
  look: {input: {user: string, key: string}}
  peek: {}
predicates:
  a(user): {says: a, verify: arguments}
  b(user, amount): {says: b, verify: arguments}
  c: {says: c, verify: RECIPE, ask: [who, x]}
procedures:
  act: {requires: REQUIRES}
"""


def desk(requires: str = "[]", recipe: str = "peek()") -> Handbook:
    return load_handbook(DESK.replace("REQUIRES", requires).replace("RECIPE", recipe))


def a(wanted: bool = True) -> Leaf:
    return Leaf("a", (("user", Name("user")),), wanted)


def b(wanted: bool = True) -> Leaf:
    return Leaf("b", (("user", Name("user")), ("amount", Name("amount"))), wanted)


def test_the_documented_example() -> None:
    handbook = load_handbook("\ufeff" + BANK)  # a byte order mark is no mistake
    user = (("username", Name("username")),)
    assert handbook.parameters == {"largest_debt": 500}
    transfer = handbook.actions["transfer"]
    assert transfer.approval == Approval(("supervisor", "auditor"), 2, 3600)
    to = Input("to", "string", "The receiving account.", True, {"minLength": 1})
    assert transfer.inputs[1] == to
    assert transfer.irreversible
    covers = handbook.predicates["funds_cover"]
    assert covers.recipes == ((ActionCall("read_balance", user),), (ActionCall("read_ledger"),))
    assert handbook.predicates["small"].tool_free
    gate = handbook.predicates["logged_in"].established_by
    assert gate == ActionCall("login", (*user, ("password", Name("password"))))
    amount = (*user, ("amount", Name("amount")))
    assert handbook.procedures["transfer"].requires == All(
        (
            InOrder((Leaf("logged_in", user), Leaf("second_factor", user))),
            AnyOf((Leaf("funds_cover", amount), Leaf("overdraft", user))),
            Leaf("frozen", user, False),
            Leaf("small", (("amount", Name("amount")),)),
        )
    )


@pytest.mark.parametrize(
    ("written", "tree"),
    [
        ("[]", NOTHING),
        ("a(user)", a()),
        ("[a(user), b(user, amount)]", All((a(), b()))),
        ("{all: [b(user,amount), a(user)]}", All((b(), a()))),
        ("[not: b(user, amount), a(user)]", All((b(False), a()))),
        ("[a(user), not: b(user, amount=amount)]", All((a(), b(False)))),
        ("{not: {all: [a(user), b(user, amount)]}}", AnyOf((a(False), b(False)))),
        ("{not: {in_order: [a(user), {not: a(user)}]}}", First((a(False), a()))),
        ("b(amount=amount, user=user)", b()),
        ("b(user, amount=limit)", Leaf("b", (("user", Name("user")), ("amount", Constant(5))))),
        ("'a(\"x, (y\")'", Leaf("a", (("user", Constant("x, (y")),))),
        ("\"a('it')\"", Leaf("a", (("user", Constant("it")),))),
        ("b(null, -1.5e3)", Leaf("b", (("user", Constant(None)), ("amount", Constant(-1500.0))))),
        ("c", Leaf("c")),
    ],
)
def test_requirements(written: str, tree: object) -> None:
    assert desk(written).procedures["act"].requires == tree


def test_braces_end_a_call() -> None:
    broken = DESK.replace("REQUIRES", "[{not: b(user}, amount)]").replace("RECIPE", "peek()")
    _, found = read_handbook(broken, "desk.yaml")
    assert {one.code for one in found} == {"bad-expression"}


LOOK = ActionCall("look", (("user", Name("who")), ("key", Constant("k"))))


@pytest.mark.parametrize(
    ("written", "recipes"),
    [
        ("'look(who, \"k\")'", ((LOOK,),)),
        ("{all: ['look(who, \"k\")', peek()]}", ((LOOK, ActionCall("peek")),)),
        (
            "{all: [peek(), {any: ['look(\"k\", key=x)', {all: [SECOND, THIRD]}]}]}",
            (
                (
                    ActionCall("peek"),
                    ActionCall("look", (("user", Constant("k")), ("key", Name("x")))),
                ),
                (
                    ActionCall("peek"),
                    ActionCall("peek", name="second"),
                    ActionCall("peek", name="third", each=Path("second"), element="one"),
                ),
            ),
        ),
    ],
)
def test_recipes(written: str, recipes: object) -> None:
    written = written.replace("SECOND", "{call: peek(), name: second}")
    written = written.replace("THIRD", "{call: peek(), name: third, for_each: second as one}")
    assert desk("c", written).predicates["c"].recipes == recipes


def test_alternatives_do_not_explode() -> None:
    many = "{all: [" + ", ".join(["{any: [peek(), look(x)]}"] * 40) + "]}"
    text = DESK.replace("REQUIRES", "c").replace("RECIPE", many)
    handbook, diagnostics = read_handbook(text)
    assert handbook is None
    assert [one.code for one in diagnostics] == ["too-many-recipes"]


@pytest.mark.parametrize("loader", [yaml.SafeLoader, yaml.CSafeLoader])
def test_both_parsers_agree(loader: object, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = load_handbook(BANK)
    monkeypatch.setattr(yaml_nodes, "LOADER", loader)
    assert load_handbook(BANK) == expected
    _, found = read_handbook("handbook: é\nactions: {é: {}}\n")
    assert [(one.place.line, one.place.column) for one in found] == [(1, 11), (2, 11)]


def test_block_text_loses_its_last_line_break_only() -> None:
    text = (
        "handbook: x\nsays: |\n  one\n  two\nactions:\n  a:\n    says: >\n      folded\n      it\n"
    )
    handbook = load_handbook(text)
    assert handbook.says == "one\ntwo"
    assert handbook.actions["a"].says == "folded it"


@pytest.mark.parametrize(
    ("data", "code", "line", "column"),
    [
        (b"handbook: x\nsays: \xff\n", "not-utf8", 2, 7),
        (b"handbook: x\nsays: a\x07b\n", "control-character", 2, 8),
        ("handbook: x\nsays: \ud800\n", "control-character", 2, 7),
        ("x" * 2_000_001, "file-too-large", 1, 1),
        (b"handbook: [\n", "yaml-syntax", 2, 1),
        (b"", "empty-file", 1, 1),
        ("[" * 100_000, "nested-too-deep", 1, 65),
        ("- " * 50_000, "nested-too-deep", 1, 129),
        ('handbook: "\\ud800"', None, 1, 0),
    ],
)
def test_hostile_text(data: str | bytes, code: str | None, line: int, column: int) -> None:
    handbook, diagnostics = read_handbook(data)
    assert handbook is None
    assert diagnostics[0].severity is Severity.ERROR
    if code is not None:
        first = diagnostics[0]
        assert (first.code, first.place.line, first.place.column) == (code, line, column)


def test_a_flood_of_mistakes_is_cut() -> None:
    text = "handbook: x\n" + "".join(f"k{at}: 1\n" for at in range(5_000))
    _, diagnostics = read_handbook(text)
    assert len(diagnostics) == 201
    assert diagnostics[-1].code == "too-many-mistakes"
    assert "4800" in diagnostics[-1].message


def test_an_alternative_recipe_breaks_a_circle() -> None:
    text = """
handbook: desk
actions:
  login: {input: {user: string}, requires: known(user)}
  read: {input: {user: string}, requires: logged_in(user)}
  ledger: {}
predicates:
  logged_in(user): {says: in, established_by: login(user)}
  known(user): {says: known, verify: RECIPE}
procedures:
  read: {requires: known(user)}
"""
    _, found = read_handbook(text.replace("RECIPE", "read(user)"))
    assert [one.code for one in found] == ["circular-guard"]
    assert load_handbook(text.replace("RECIPE", "{any: [read(user), ledger()]}"))
    # Logging in only while not logged in is a sensible guard.
    assert load_handbook(
        text.replace("known(user)}", "{not: logged_in(user)}}", 1).replace("RECIPE", "ledger()")
    )
