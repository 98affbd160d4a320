"""Reports for terminals, scripts and browsers."""

from __future__ import annotations

import json

from test_audit_trace import Desk

from sopilot.audit.report import batch
from sopilot.audit.state import filled_sentence, found_sentence
from sopilot.audit.text import render_batch_text, render_text
from sopilot.program.model import Function, Kind
from sopilot.trace.events import Fail


def test_the_terminal_report_names_what_matters() -> None:
    report = Desk().log_in().check_funds(1, holds=False).do(Fail("too little")).report()
    assert render_text(report).splitlines() == [
        "audit: refused, no findings",
        "",
        "refused: pay at #9",
        "    said: too little",
        "    required: The balance of ann is at least 5.",
        "    found: It is not the case that: The balance of ann is at least 5. (evidence: #7)",
        "    the user could: Pay in what is missing.",
        "",
        "what was checked:",
        "    yes  The user ann is logged in. (proven; evidence: #3)",
        "    no   The balance of ann is at least 5. (proven; evidence: #7)",
        "",
        "checks 2 (proven 2), evidence for 2 of the 2 that need it, reused 0, "
        "rejected operations 0",
        "calls of tools 2, after the goal 0",
    ]


def test_a_finding_in_the_terminal() -> None:
    text = render_text(Desk().log_in().do(Fail("no")).report())
    assert "#5 error refusal-without-cause: refusal without a false predicate" in text
    assert "    the SOP says: Pays a bill." in text


def test_a_batch_in_the_terminal() -> None:
    reports = [Desk().log_in().do(Fail("no")).report() for _ in range(2)]
    text = render_batch_text(batch(reports))
    assert text.splitlines()[0] == "2 sessions, 0 clean"
    assert "    2  refusal-without-cause in 2 sessions" in text


def test_json_survives_a_round_trip() -> None:
    report = Desk().log_in().do(Fail("no")).report()
    assert json.loads(json.dumps(report.as_json())) == report.as_json()


def test_a_hit_on_a_list_reads_as_a_hit() -> None:
    """What is required and what was found are two sentences; neither is the other with `not`."""
    function = Function(
        "on_list",
        Kind.RULE,
        predicate="on_list",
        parameters=("name",),
        says="The name {name} is on the sanctions list.",
        says_not="The name {name} is not on the sanctions list.",
        steps=(),
    )
    values = {"name": "Kim"}
    required = filled_sentence(function, {}, values, wanted=False)
    assert required == "The name Kim is not on the sanctions list."
    found = found_sentence(function, {}, values, holds=True)
    assert found == "The name Kim is on the sanctions list."
    assert found_sentence(function, {}, values, holds=None) == "it could not be told"
