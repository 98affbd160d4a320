"""Promises of audits that little would show if they were broken: one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from vm_programs import TRANSFER, program
from vm_runs import ARGUMENTS, Run, decided

from sopilot.audit.audit import audit_trace
from sopilot.audit.calls import Cited
from sopilot.audit.leaf_reading import read_recipe
from sopilot.audit.returns import ReturnReview
from sopilot.audit.state import AuditState, FrameView, ProcessView, SeenResult, read_program
from sopilot.audit.transcript_files import Transcript, TranscriptCall, UserWords
from sopilot.audit.transcripts import audit_transcript, audit_untracked
from sopilot.handbook.expressions import judge as cel
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.requirements import Path
from sopilot.messages.diagnostic import Severity
from sopilot.program.model import Act, Check, CompleteStep, Function, Kind, Local, ReturnStep
from sopilot.trace.events import Event, SelectBranch, Start

REF = {"$ref": "00", "bytes": 5}
CODE = read_program("transfer", TRANSFER)


def review(values: dict[str, Any], **payload: Any) -> ReturnReview:
    """Of a verdict on the funds, in the frame that began with event 6."""
    funds = CODE.functions["funds_cover"]
    frames = [
        FrameView(CODE.entry, "money", dict(ARGUMENTS), None, 0, "transfer"),
        FrameView(funds, "done", values, "funds", 6, "transfer/funds_cover"),
    ]
    process = ProcessView("p1", CODE, frames, ARGUMENTS, dict(ARGUMENTS))
    event = Event(9, 9.0, "model", "return", "p1", "", payload)
    return ReturnReview(
        AuditState({"transfer": CODE}, cel), event, process, frames[1], True, Cited((), "")
    )


@pytest.mark.parametrize(
    ("seq", "opened", "borrowed", "stale"),
    [
        (4, 2, [], True), (4, 2, [3], True), (4, 2, [4], False), (4, 6, [], False),
        (5, 2, [], True), (7, 2, [], False),
    ],
)  # fmt: skip
def test_what_was_read_before_the_goal_was_carried_out_shows_nothing_after_it(
    seq: int, opened: int, borrowed: list[int], stale: bool
) -> None:
    """But for what the frame itself asked for, or took over with its reason."""
    one = review({"username": "bob", "amount": 100})
    one.run.goal_seq = 5
    one.frame.borrowed[:] = borrowed
    about = {"username": "bob"}
    read = SeenResult(seq, seq - 1, "c", "read_balance", about, True, {}, "p1", opened)
    problem = one._problem(read)
    assert (problem is not None) is stale
    if problem is not None:
        assert problem[0] == "evidence-stale"


@pytest.mark.parametrize("payload", [{"grade": "proven"}, {}, {"grade": 5}])
def test_where_values_are_withheld_a_verdict_is_not_judged(payload: Any) -> None:
    one = review({"username": REF, "amount": 100}, **payload)
    assert one._grade() == ""
    assert one.run.findings == []
    assert len(one.run.not_judged) == 1


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


def test_a_session_of_one_event_is_audited() -> None:
    run = Run({"transfer": TRANSFER})
    run.ok(Start("transfer", ARGUMENTS))
    found = audit_trace({"transfer": TRANSFER}, run.events[:1]).findings
    assert [one.code for one in found] == []


@pytest.mark.parametrize(
    ("told", "asked", "known"),
    [
        ({"id": 5}, {"id": 5}, True), ({"id": 5}, {"id": 6}, False), ({"id": 5}, {}, False),
        ({"id": None}, {}, False), ({"id": None}, {"id": None}, False), ({}, {}, False),
    ],
)  # fmt: skip
def test_a_call_that_looks_into_an_answer_with_nothing_there(
    told: Any, asked: Any, known: bool
) -> None:
    """What was asked of nobody in particular is not what the recipe asks for."""
    find = Act("find", "find", (("user", Local("user")),))
    look = Act("look", "look", (("id", Path("find", ("id",))),))
    rule = Function("rule", Kind.RULE, ("user",), (find, look, ReturnStep("end")), predicate="rule")
    check = Check("c", "rule", (("user", Local("user")),), "s")
    go = Function("go", Kind.PROCESS, ("user",), (check, CompleteStep("done")))
    code = read_program("go", program("go", go, rule))
    frame = FrameView(code.functions["rule"], "end", {"user": "ann"}, "s", 1, "go/rule")
    process = ProcessView("p1", code, [frame], {"user": "ann"}, {"user": "ann"})
    results = [
        SeenResult(3, 2, "c1", "find", {"user": "ann"}, True, told, "p1", 1),
        SeenResult(5, 4, "c2", "look", asked, True, {"ok": True}, "p1", 1),
    ]
    found = read_recipe(process, frame, (find, look), results)
    assert found == ({"find": told, "look": {"ok": True}} if known else None)


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
    said = [UserWords(0, "Pay ann.", "")]
    if answer is not None:
        said.append(UserWords(2, answer, "A payment for ann. Is that right?"))
    call = TranscriptCall(3, 3, "pay", {"user": "ann"}, True, {}, answered=True, let_through=True)
    for book in (load_handbook(ALONE), BOOK):
        spoken = Transcript((call,), 5, said=tuple(said))
        found = audit_transcript(book, spoken, goal="pay", judge=cel).findings
        assert [one.code for one in found] == codes


@pytest.mark.parametrize(
    ("later", "codes"),
    [("Rather close account, please.", []), ("Thanks.", ["refusal-without-cause"])],
)
def test_who_changed_over_to_something_else_was_refused_nothing(
    later: str, codes: list[str]
) -> None:
    def event(seq: int, kind: str, **payload: Any) -> Event:
        return Event(seq, 0.0, "user", kind, None, "", payload)

    given = {"user": "ann"}
    events = [
        event(0, "user_said", text="Pay ann."),
        event(1, "user_said", text=later),
        event(2, "domain_call", call_id="c", action="close_account", arguments=given),
        event(3, "domain_result", call_id="c", ok=True, value={}),
    ]
    found = audit_untracked(BOOK, events, goal="pay", chain=[], judge=cel).findings
    assert [one.code for one in found] == codes
