"""What the audit says of a run: sentences about the case at hand, and waiting called waiting."""

from __future__ import annotations

import re

import pytest
from desk_runs import play, some_tasks

from sopilot.audit.text import render_text
from sopilot.tasks.examples.example import bundled_names
from sopilot_lab.experiments.misbehaviour import SWITCHES, Misbehaviour

HOLE = re.compile(r"\{[a-z_]+\}")


@pytest.mark.parametrize("example", bundled_names())
async def test_no_sentence_of_a_report_has_a_hole(example: str) -> None:
    wrong = Misbehaviour(**dict.fromkeys(SWITCHES, 0.3), seed=7)  # type: ignore[arg-type]
    sentences = 0
    for _, task in some_tasks(2, example):
        report = (await play(example, task, misbehaviour=wrong)).audit()
        sentences += sum(bool(finding.sentence) for finding in report.findings)
        assert not HOLE.search(render_text(report)), render_text(report)
    assert sentences > 10


async def test_a_refusal_speaks_of_the_values() -> None:
    (refusal,) = (await play("bank", "transfer-above-the-limit")).audit().refusals
    (cause,) = refusal.causes
    assert "2500" in str(cause["sentence"])
    assert "2000" in str(cause["sentence"])
