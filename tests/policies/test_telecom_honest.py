"""Honest runs by a telephone company's policy: the audit blames nobody."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from telecom import run_honestly

from sopilot.messages.diagnostic import Severity
from sopilot.values.json import JSON

ANN: Mapping[str, JSON] = {"phone": "555-1", "customer_id": "C1"}
BOB: Mapping[str, JSON] = {"phone": "555-2", "customer_id": "C2"}
CASES: list[tuple[str, Mapping[str, JSON], str]] = [
    ("ask_for_payment", {**ANN, "bill_id": "B1"}, "executed"),
    ("ask_for_payment", {**ANN, "bill_id": "B2"}, "refused"),
    ("ask_for_payment", {**ANN, "bill_id": "B3"}, "refused"),
    ("pay_bill", {**BOB, "bill_id": "B3"}, "executed"),
    ("pay_bill", {**ANN, "bill_id": "B1"}, "refused"),
    ("resume", {**ANN, "line_id": "L1"}, "refused"),
    ("resume", {**BOB, "line_id": "L3"}, "refused"),
    ("resume", {**ANN, "line_id": "L3"}, "refused"),
    ("refuel", {**ANN, "line_id": "L2", "gigabytes": 2}, "executed"),
    ("refuel", {**ANN, "line_id": "L2", "gigabytes": 3}, "refused"),
    ("roam", {**ANN, "line_id": "L1"}, "executed"),
    ("roam", {**ANN, "line_id": "L2"}, "refused"),
    ("roam", {"phone": "555-9", "customer_id": "C1", "line_id": "L1"}, "refused"),
]


@pytest.mark.parametrize("view", ["pg", "fused", "flat"])
@pytest.mark.parametrize(("goal", "inputs", "ending"), CASES)
async def test_an_honest_run_is_blamed_for_nothing(
    view: str, goal: str, inputs: Mapping[str, JSON], ending: str
) -> None:
    run = await run_honestly(view, goal, inputs)
    assert str(run.result.ending) == ending, run.result.reason
    assert bool(run.simulation.done) is (ending == "executed")
    above = [one for one in run.result.audit.findings if one.severity is not Severity.NOTE]
    assert not above, above
    wanted = {"executed": "completed"}.get(ending, ending)
    assert run.result.audit.score_card.outcome == wanted
