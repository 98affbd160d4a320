"""What was proven once is proven for ever, and what was held is held, unless somebody wants it
otherwise: every leaf and every licence along the walks of the machine's tests (`machine_walks.py`),
with what is missing, in words. ``SOPILOT_REGOLD=1`` rewrites their digests; to look at what has
changed, print a walk before and after."""

from __future__ import annotations

import pytest
from kept_promises import broken_promises
from machine_walks import digest
from walk_digests import as_they_were

from sopilot.runtime import proof

EACH = 20


@pytest.mark.parametrize("batch", range(6))
def test_proofs_are_as_they_were(batch: int) -> None:
    seeds = range(1000 + batch * EACH, 1000 + (batch + 1) * EACH)
    as_they_were("proof", {str(seed): digest(seed, proofs=True) for seed in seeds})


def test_what_the_prover_promises_to_return_it_returns() -> None:
    def walk() -> None:
        for seed in range(1300, 1318):
            digest(seed, proofs=True)

    assert broken_promises(walk, proof) == {}
