"""What the audit says of a run: sentences about the case at hand, and waiting called waiting."""

from __future__ import annotations

import asyncio
import re

import pytest
from desk_runs import play, programs_of

from sopilot.agent.reference.misbehaviour import SWITCHES, Misbehaviour
from sopilot.audit.audit import audit_trace
from sopilot.audit.report import Report
from sopilot.audit.text import render_text
from sopilot.handbook.expressions import judge
from sopilot.session.session import Session
from sopilot.tasks.examples.example import bundled_names, load_example
from sopilot.views.catalogue import VIEWS

HOLE = re.compile(r"\{[a-z_]+\}")


def audited(example: str, session: Session) -> Report:
    return audit_trace(programs_of(example, "pg").programs, session.events, judge=judge)


@pytest.mark.parametrize("example", bundled_names())
def test_no_sentence_of_a_report_has_a_hole(example: str) -> None:
    found = load_example(example)
    wrong = Misbehaviour(**dict.fromkeys(SWITCHES, 0.3), seed=7)  # type: ignore[arg-type]
    sentences = 0
    for task in found.tasks[::2]:
        played = asyncio.run(play(found, task, VIEWS["pg"], misbehaviour=wrong))
        report = audited(example, played.session)
        sentences += sum(bool(finding.sentence) for finding in report.findings)
        assert not HOLE.search(render_text(report)), render_text(report)
    assert sentences > 10


def test_a_refusal_speaks_of_the_values() -> None:
    example = load_example("bank")
    played = asyncio.run(play(example, example.task("transfer-above-the-limit"), VIEWS["pg"]))
    (refusal,) = audited("bank", played.session).refusals
    (cause,) = refusal.causes
    wanted = "The amount 2500 is more than zero and not above the limit of 2000."
    assert str(cause["sentence"]) == wanted
