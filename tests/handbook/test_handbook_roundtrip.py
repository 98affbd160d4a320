from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from random_handbooks import handbooks

from sopilot.handbook.model import Handbook
from sopilot.handbook.reader import load_handbook, read_handbook
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


def test_hash_does_not_see_layout_but_sees_content() -> None:
    handbook = load_handbook(BANK)
    lines = BANK.split("\n")
    cut = lines.index("predicates:")
    end = next(at for at, line in enumerate(lines) if line.startswith("procedures:"))
    swapped = "\n".join([*lines[:3], *lines[cut:end], *lines[3:cut], *lines[end:]])
    assert swapped != BANK
    assert handbook_hash(load_handbook(swapped)) == handbook_hash(handbook)
    changed = BANK.replace("largest_debt: 500", "largest_debt: 501")
    assert handbook_hash(load_handbook(changed)) != handbook_hash(handbook)
    whole = BANK.replace("largest_debt: 500", "largest_debt: 500.0")
    assert handbook_hash(load_handbook(whole)) != handbook_hash(handbook)  # as in a sentence
    renamed = BANK.replace("is at least {amount}", "is not below {amount}")
    assert handbook_hash(load_handbook(renamed)) != handbook_hash(handbook)


def test_hash_is_pinned() -> None:
    """Traces name handbooks by this hash: a change here orphans them."""
    assert handbook_hash(load_handbook(BANK)) == PINNED
    assert handbook_hash(Handbook("x")) == PINNED_EMPTY


PINNED = "187124a31f1eeaf8daea626bb928ce1f99c1313d9e2017b13f66fb8df8cdf233"
PINNED_EMPTY = "1f3bc425f856f30d277e07fc8382a3c430a58a3ed7c2795a1c6f87df42811256"
