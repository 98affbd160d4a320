"""Guard and audit against each other in adversarial sessions: at one while the guard is whole,
apart as soon as one clause of it is off."""

from __future__ import annotations

import pytest

from adversary.campaign import MOVES_PER_SESSION, campaign
from adversary.newer_sabotage import NEWER_SABOTAGES
from adversary.sabotage import SABOTAGES, sabotaged

MOVES = 4_000
ENOUGH = 3
OF_BOTH = {"look-alikes differ"}
"""Guard and audit evaluate expressions by one evaluator. `test_adversary` judges these by the
simulator's truth."""


@pytest.mark.parametrize("through", ["core", "session", "outside"])
def test_a_whole_guard_and_the_audit_agree(through: str) -> None:
    tally, _ = campaign(51, moves=MOVES, through=through, audited=True)
    assert tally.audited >= MOVES // MOVES_PER_SESSION
    assert tally.apart == []


@pytest.mark.parametrize("name", sorted(SABOTAGES.keys() - OF_BOTH))
def test_a_clause_that_is_off_shows_in_the_audit(name: str) -> None:
    newer = name in NEWER_SABOTAGES
    with sabotaged(name):
        tally, _ = campaign(
            3,
            moves=10 * MOVES if newer else 2 * MOVES,
            through="core" if newer else "session",
            newer=newer,
            stop=lambda so_far: len(so_far.apart) >= ENOUGH,
            audited=True,
        )
    assert len(tally.apart) >= ENOUGH
    assert not any("inconsistent-trace" in one for one in tally.apart)
