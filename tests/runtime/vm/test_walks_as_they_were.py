"""What the machine did once it does for ever, unless somebody wants it otherwise.

Stored traces are replayed, so a transition that comes out another way is a fault, or a change
that is made on purpose: ``SOPILOT_REGOLD=1`` rewrites the digests of the walks
(`machine_walks.py`, which also prints one), after a look at what has changed.
"""

from __future__ import annotations

import pytest
from kept_promises import broken_promises
from machine_walks import digest
from walk_digests import as_they_were

from sopilot.runtime import vm

EACH = 25


@pytest.mark.parametrize("batch", range(6))
def test_walks_are_as_they_were(batch: int) -> None:
    seeds = range(batch * EACH, (batch + 1) * EACH)
    as_they_were("machine", {str(seed): digest(seed, proofs=False) for seed in seeds})


def test_what_the_machine_promises_to_return_it_returns() -> None:
    def walk() -> None:
        for seed in range(300, 318):
            digest(seed, proofs=False)

    assert broken_promises(walk, vm) == {}
