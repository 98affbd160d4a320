"""The share of tasks on which all runs agree."""

from __future__ import annotations

from sopilot_lab.statistics.repeats import RunSpread
from sopilot_lab.statistics.undefined import Undefined


def test_agreement_is_what_is_not_unstable() -> None:
    assert RunSpread((), 4, 0.5, 0.1, 0.25).agreement == 0.75
    nothing = Undefined("no task")
    assert RunSpread((), 0, nothing, nothing, nothing).agreement is nothing
