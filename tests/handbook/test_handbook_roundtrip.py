from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from random_handbooks import handbooks

from sopilot.handbook.model import Handbook
from sopilot.handbook.reader import load_handbook, read_handbook
from sopilot.handbook.requirements import Leaf, Name
from sopilot.handbook.writer import handbook_hash, write_handbook
from sopilot.messages.diagnostic import Severity

BANK = (Path(__file__).parent / "valid" / "bank_desk.yaml").read_text(encoding="utf-8")


@settings(deadline=None, max_examples=60)
@given(handbooks())
def test_write_then_read_is_identity(handbook: Handbook) -> None:
    text = write_handbook(handbook)
    read, diagnostics = read_handbook(text)
    assert read == handbook, "\n".join(map(str, diagnostics))
    assert all(one.severity is Severity.WARNING for one in diagnostics)
    assert write_handbook(read) == text
    assert handbook_hash(read) == handbook_hash(handbook)


def _shuffled(mapping: Any, dice: random.Random) -> dict[str, Any]:
    pairs = list(mapping.items())
    dice.shuffle(pairs)
    return dict(pairs)


@settings(deadline=None, max_examples=25)
@given(handbooks())
def test_hash_does_not_see_key_order(handbook: Handbook) -> None:
    dice = random.Random(1)
    other = replace(
        handbook,
        parameters=_shuffled(handbook.parameters, dice),
        actions=_shuffled(handbook.actions, dice),
        predicates=_shuffled(handbook.predicates, dice),
        procedures=_shuffled(handbook.procedures, dice),
    )
    assert handbook_hash(other) == handbook_hash(handbook)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("largest_debt: 500", "largest_debt: 501"),
        ("largest_debt: 500", "largest_debt: 500.0"),  # sentences show the difference
        ("is at least {amount}", "is not below {amount}"),
        ("- small(amount)", "- small(3)"),
        ("not: frozen", "all: [frozen(username)]  #"),
    ],
)
def test_hash_sees_content(old: str, new: str) -> None:
    assert handbook_hash(load_handbook(BANK.replace(old, new))) != handbook_hash(
        load_handbook(BANK)
    )


def test_hash_sees_which_parameter_a_leaf_binds() -> None:
    book = load_handbook(BANK)
    goal = book.procedures["transfer"]
    hashes = set()
    for parameter in book.predicates["funds_cover"].parameters:
        requires = Leaf("funds_cover", ((parameter, Name("to")),))
        procedures = {**book.procedures, "transfer": replace(goal, requires=requires)}
        hashes.add(handbook_hash(replace(book, procedures=procedures)))
    assert len(hashes) == 2
