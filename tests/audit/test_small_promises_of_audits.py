"""Promises of audits that little would show if they were broken: one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from audit_desk import Desk
from audit_desk import codes as codes_of
from vm_programs import TRANSFER
from vm_runs import ARGUMENTS, Run, decided

import sopilot as product
from sopilot.audit.audit import audit_trace
from sopilot.audit.state import SessionCall
from sopilot.audit.text import render_text
from sopilot.audit.timeline import entries_of
from sopilot.audit.transcript_files import Transcript, UserWords
from sopilot.audit.transcripts import audit_transcript, audit_untracked
from sopilot.handbook.expressions import judge as cel
from sopilot.handbook.model import CONFIRM
from sopilot.handbook.reader import load_handbook
from sopilot.messages.diagnostic import Severity
from sopilot.trace.events import (
    Call,
    DomainCall,
    DomainResult,
    Event,
    Return,
    SelectBranch,
    Start,
)
from sopilot.web.audit_page import render_audit


def test_a_branch_that_was_tried_and_did_not_fit_names_the_sentence() -> None:
    entry = replace(TRANSFER.functions["transfer"], says="Move money for those who may.")
    said = replace(TRANSFER, functions={**TRANSFER.functions, entry.name: entry})
    run = Run({"transfer": said})
    walked = decided()
    run.configuration, run.events = walked.configuration, walked.events
    assert run.no(SelectBranch("refuse")) == "branch-contradicts"
    (found,) = [
        one
        for one in audit_trace({"transfer": said}, run.events, ended=False).findings
        if one.code == "wrong-branch"
    ]
    assert (found.seq, found.severity, found.sentence) == (
        run.events[-1].seq, Severity.WARNING, "Move money for those who may.",
    )  # fmt: skip


def test_nothing_more_is_said_of_a_process_whose_group_came_out_otherwise() -> None:
    run = decided()
    last = [one for one in run.events if one.kind == "return"][-1]
    assert last.payload["bound"]["holds"] is True
    forged = last._replace(payload={**last.payload, "holds": False})
    events = [forged if one is last else one for one in run.events]
    seq = len(run.events)
    odd = Event(seq, float(seq), "model", "emit_artifact", "p1", "nowhere", {"name": "memo"})
    programs = {"transfer": TRANSFER}
    found = audit_trace(programs, [*events, odd], ended=False).findings
    assert [(one.seq, one.code) for one in found] == [(last.seq, "wrong-branch")]


def test_a_verdict_that_stays_undecided_needs_no_evidence() -> None:
    desk = Desk().log_in().do(Call(), Return(undecided=True))
    assert "return-without-evidence" not in codes_of(desk.report())
    guessed = Desk().log_in().do(Call(), Return(True))
    assert "return-without-evidence" in codes_of(guessed.report())


def test_a_check_that_was_skipped_is_reported_once_for_each_process() -> None:
    desk = Desk().log_in()
    for _ in range(2):
        desk.tool("pay", {"user": "ann", "amount": 5}, "down", ok=False)
    found = codes_of(desk.report(ended=False))
    assert (found.count("premature-goal"), found.count("skipped-check")) == (2, 1)


def test_a_result_of_unknown_outcome_is_shown_as_unknown() -> None:
    desk = Desk().do(DomainCall("c", "login", {"user": "ann", "password": "x"}))
    desk.do(DomainResult("c", False, {"error": "reset"}, unknown=True))
    assert [entry.state for entry in entries_of(desk.events)] == ["unknown"]


def test_a_session_of_one_event_is_audited() -> None:
    run = Run({"transfer": TRANSFER})
    run.ok(Start("transfer", ARGUMENTS))
    found = audit_trace({"transfer": TRANSFER}, run.events[:1]).findings
    assert [one.code for one in found] == []


# --- agents without a machine -----------------------------------------------------------

ALONE = """
handbook: desk
actions:
  pay: {input: {user: string}, irreversible: true, confirm: "A payment for {user}."}
predicates:
  known(user): {says: K., verify: arguments, verdict: user != ''}
procedures:
  pay: {requires: known(user)}
"""
BOOK = load_handbook(
    ALONE.replace("predicates:", "  close_account: {input: {user: string}}\npredicates:")
    + "  close_account: {requires: known(user)}\n"
)


@pytest.mark.parametrize(
    ("answer", "codes"),
    [
        ("yes", []),
        ("no", ["executed-against-condition"]),
        (None, ["premature-goal", "skipped-check"]),
    ],
)
def test_a_yes_that_the_user_said_to_an_agent_of_others(
    answer: str | None, codes: list[str]
) -> None:
    said = [UserWords(0, "Yes hello, pay ann.", "")]
    if answer is not None:
        said.append(UserWords(2, answer, "A payment for ann. Is that right?"))
    call = SessionCall(3, "pay", {"user": "ann"}, answered=3, ok=True, value={}, message=3)
    for book in (load_handbook(ALONE), BOOK):
        spoken = Transcript((call,), user_messages=tuple(said))
        found = audit_transcript(book, spoken, goal="pay", judge=cel).findings
        assert [one.code for one in found] == codes


def test_the_requirement_of_an_action_that_no_procedure_asks_for_is_read() -> None:
    book = load_handbook(
        ALONE.replace("predicates:", "  close: {input: {user: string}, requires: rich(user)}\n"
        "  look: {input: {user: string}}\npredicates:\n"
        "  rich(user): {says: R., verify: look(user), verdict: result.rich}")
    )  # fmt: skip
    for rich, codes in ((True, []), (False, ["executed-against-condition"])):
        calls = [
            SessionCall(0, "look", {"user": "ann"}, answered=0, ok=True, value={"rich": rich}),
            SessionCall(1, "close", {"user": "ann"}, answered=1, ok=True, value={}),
        ]
        report = audit_transcript(book, Transcript(tuple(calls)), goal=None, judge=cel)
        assert [finding.code for finding in report.findings] == codes


def event(seq: int, kind: str, **payload: Any) -> Event:
    return Event(seq, 0.0, "user", kind, None, "", payload)


@pytest.mark.parametrize(
    ("later", "codes"),
    [("Rather close account, please.", []), ("Thanks.", ["refusal-without-cause"])],
)
def test_who_changed_over_to_something_else_was_refused_nothing(
    later: str, codes: list[str]
) -> None:
    events = [
        event(0, "user_said", text="Pay ann."),
        event(1, "user_said", text=later),
        event(2, "domain_call", call_id="c", action="close_account", arguments={"user": "ann"}),
        event(3, "domain_result", call_id="c", ok=True, value={}),
    ]
    found = audit_untracked(BOOK, events, goal="pay", chain=[], judge=cel).findings
    assert [one.code for one in found] == codes


@pytest.mark.parametrize("view", ["pg", "guard", "guard-auto"])
async def test_every_form_of_a_report_counts_the_same_checks(tmp_path: Path, view: str) -> None:
    """A call that is made again, with its requirements, counts once."""
    look = "  look: {input: {user: string}, read_only: true}\npredicates:"
    words = 'confirm: "A payment for {user}."'
    book = ALONE.replace("predicates:", look).replace(words, "confirm: false")
    book = book.replace(
        "verify: arguments, verdict: user != ''", "verify: look(user), verdict: result"
    )
    (tmp_path / "alone.yaml").write_text(book, "utf-8")

    def look_up(user: str) -> bool:
        return True

    def pay(user: str) -> dict[str, bool]:
        return {"ok": True}

    look_up.__name__ = "look"
    async with product.load(tmp_path / "alone.yaml").session(
        "Pay.", tools=[look_up, pay], inputs={"user": "ann"}, goal="pay", view=view
    ) as opened:
        result, events = await opened.run(), await opened.session.shown_events()
    assert result.audit.score_card.as_json()["checks"] == 1
    assert "checks: 1 (proven 1)" in render_text(result.audit)
    assert "1 met, 0 not met" in render_audit(result.audit, events)


BLAMED = ["refusal-without-cause"]


@pytest.mark.parametrize(("answer", "codes"), [("no", []), ("yes", BLAMED), ("", BLAMED)])
def test_a_no_to_the_question_of_the_runtime_is_a_ground_to_refuse(
    answer: str, codes: list[str]
) -> None:
    """Asking is none: the user was there, and nobody asked."""
    book = load_handbook(ALONE)
    asked = {"action": "pay", "user": "ann"}
    events = [
        event(0, "user_said", text="user: ann"),
        event(1, "domain_call", call_id="c", action=CONFIRM, arguments=asked),
        event(2, "domain_result", call_id="c", ok=True, value={"answer": answer}),
    ][: None if answer else 1]
    found = audit_untracked(book, events, goal="pay", chain=[], judge=cel, offered=["pay"]).findings
    assert [one.code for one in found] == codes


async def test_a_question_that_the_runtime_left_open_is_not_blamed(tmp_path: Path) -> None:
    (tmp_path / "alone.yaml").write_text(ALONE, "utf-8")

    def pay(user: str) -> None:
        raise AssertionError

    result = await product.load(tmp_path / "alone.yaml").run(
        "Pay.",
        tools=[pay],
        user=lambda _: 'goal: "pay"\nuser: "ann"',
        goal="pay",
    )
    assert result.ending == "budget"
    assert result.audit.findings == ()


@pytest.mark.parametrize(
    ("unknown", "codes"),
    [(True, ["executed-against-condition", "approval-missing"]), (False, [])],
)
def test_a_call_of_unknown_outcome_may_have_been_carried_out(
    unknown: bool, codes: list[str]
) -> None:
    words = 'irreversible: true, confirm: "A payment for {user}."'
    book = load_handbook(ALONE.replace(words, "approval: boss, confirm: false"))
    events = [
        event(0, "domain_call", call_id="c", action="pay", arguments={"user": ""}),
        event(1, "domain_result", call_id="c", ok=False, unknown=unknown, value="timeout"),
    ]
    found = audit_untracked(book, events, goal="pay", chain=[], judge=cel).findings
    assert [one.code for one in found] == codes
