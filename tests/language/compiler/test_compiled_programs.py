"""What was compiled once is compiled to the same for ever, unless somebody wants it otherwise.

Sessions are kept with the hash of their program, so a program that comes out another way is
another program. Numbers make handbooks (`random_desks.py`), and of each the file beside
this one has a digest of all that the compiler says about it. ``SOPILOT_REGOLD=1`` rewrites it:
then look at what has changed with ``sopilot compile`` before and after.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from random_desks import Desk

from sopilot.language.compiler import Compiler, judged_by_model, unprovable
from sopilot.language.diagnostics import UserMistake
from sopilot.language.handbook import Handbook
from sopilot.language.program import program_to_yaml

GOLDEN = Path(__file__).with_name("compiled_programs.json")
BATCHES, EACH = 10, 30


def compiled(handbook: Handbook, *, wide_first: bool) -> Iterator[str]:
    """All that is said of its procedures, but for what changes with every release."""
    compiler = Compiler(handbook.actions, handbook.predicates, wide_first=wide_first)
    for name, procedure in handbook.procedures.items():
        try:
            found = compiler.compile(handbook, procedure, source_hash=name)
        except UserMistake as refused:
            yield str(refused)
            continue
        yield program_to_yaml(replace(found.program, compiler=""))
        why = found.explanation
        yield repr((why.guards, why.recipes, why.tree, why.unchecked, why.unopened))
        yield repr((why.dropped, why.postponed, why.excluded, found.missing_recipes))
        yield repr([(one.name, one.complete, one.parameters, one.because) for one in why.groups])
        yield repr((judged_by_model(found.program), unprovable(found.program)))


def digest(seed: int) -> str:
    said = compiled(Desk(seed).handbook(), wide_first=seed % 5 == 0)
    return sha256("\n".join(said).encode()).hexdigest()[:12]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_programs_come_out_as_they_did(batch: int) -> None:
    seeds = range(batch * EACH, (batch + 1) * EACH)
    found = {str(seed): digest(seed) for seed in seeds}
    kept = json.loads(GOLDEN.read_text("utf-8")) if GOLDEN.exists() else {}
    if os.environ.get("SOPILOT_REGOLD"):
        GOLDEN.write_text(json.dumps(kept | found, indent=0) + "\n", "utf-8")
    assert found == {seed: kept.get(seed) for seed in found}
