"""Findings that matter: what an honest, careful reader cannot avoid is a note at most."""

from __future__ import annotations

import pytest
from careful_reader_model import CarefulReader, readers
from desk_runs import briefing_of, play, reference, some_tasks

from sopilot.messages.diagnostic import Severity


@pytest.mark.parametrize("view", ["pg", "pg-paper", "fused"])
@pytest.mark.parametrize("example", ["bank", "clinic", "it"])
async def test_no_finding_above_a_note(example: str, view: str) -> None:
    reading = readers(briefing_of(example).programs)
    extra = 0
    for _, task in some_tasks(10, example):
        model = CarefulReader(reference(example), reading)
        report = (await play(example, task, view, model=model)).audit()
        serious = [one for one in report.findings if one.severity is not Severity.NOTE]
        assert not serious, (task, [(one.code, one.explanation) for one in serious])
        extra += model.extra
    assert extra > 0
