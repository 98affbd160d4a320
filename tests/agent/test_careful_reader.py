"""Findings that matter: what an honest, careful reader cannot avoid is a note at most."""

from __future__ import annotations

import pytest
from careful_reader_model import CarefulReader, readers
from desk_runs import briefing_of, played

from sopilot.agent.reference.executor import Reference
from sopilot.audit.audit import audit_trace
from sopilot.handbook.expressions import judge
from sopilot.messages.diagnostic import Severity
from sopilot.tasks.examples.example import load_example
from sopilot.tasks.examples.judge import example_judge

EXAMPLES = ("bank", "clinic", "it")


@pytest.mark.parametrize("view", ["pg", "pg-paper", "fused"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_no_finding_above_a_note(example: str, view: str) -> None:
    programs = briefing_of(example).programs
    extra = 0
    for task in list(load_example(example).tasks)[::10]:
        model = CarefulReader(Reference(example_judge(load_example(example))), readers(programs))
        run = played(example, task.id, view, model=model)
        report = audit_trace(programs, run.session.events, judge=judge)
        serious = [one for one in report.findings if one.severity is not Severity.NOTE]
        assert not serious, (task.id, [(one.code, one.explanation) for one in serious])
        extra += model.extra
    assert extra > 0
