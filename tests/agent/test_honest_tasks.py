"""Honest runs of bundled tasks: the audit blames nobody, and calls the ending what the run does."""

from __future__ import annotations

import asyncio

import pytest
from desk_runs import played

from sopilot.agent.result import audit_session
from sopilot.messages.diagnostic import Severity
from sopilot.tasks.examples.example import load_example
from sopilot.views.catalogue import VIEWS

ENDINGS = {"executed": "completed", "refused": "refused"}


@pytest.mark.parametrize("view", ["pg", "fused", "flat"])
@pytest.mark.parametrize("name", ["bank", "clinic", "it"])
def test_an_honest_run_has_no_finding_above_a_note(name: str, view: str) -> None:
    example = load_example(name)
    for task in example.tasks[::9]:
        run = played(name, task.id, view)
        report = asyncio.run(
            audit_session(run.session, example.handbook, VIEWS[view], goal=task.goal)
        )
        above = {one.code for one in report.findings if one.severity is not Severity.NOTE}
        # Nobody is asked for an approval where there is no machine.
        assert above <= ({"approval-missing"} if view == "flat" else set()), (task.id, report)
        assert report.score_card.outcome == ENDINGS[str(run.result.ending)]
