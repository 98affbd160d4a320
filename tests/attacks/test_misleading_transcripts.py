"""Transcripts that mislead. What the bank did is known here: an honest payment is never blamed,
and no other one is called clean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from chat_messages import Made, Message, agent, messages, result, wanted
from sopilot.messages.errors import UserMistake
from sopilot.runner.audit_inputs import (
    TranscriptFacts,
    reports_json,
    reports_text,
    transcript_input,
)
from sopilot.web.audit_page import render_audit

BANK = """
handbook: bank
actions:
  login: {input: {user: string, password: {type: string, secret: true}}}
  read_account: {input: {user: string}, read_only: true, requires: logged_in(user)}
  read_payment: {input: {user: string}, read_only: true}
  pay:
    input: {user: string, to: string, amount: number}
    irreversible: true
    confirm: "{amount} is paid to {to}."
    approval: {roles: [boss], when: amount > 1000}
  close: {input: {user: string}, irreversible: true, confirm: false}
  scan: {input: {user: string}, read_only: true, secret: [report]}
predicates:
  logged_in(user): {says: "{user} has logged in.", established_by: "login(user, password)"}
  covered(user, amount):
    says: The account of {user} covers {amount}.
    verify: read_account(user)
    verdict: amount > 0 && result.balance >= amount
  lost(user):
    says: The last payment of {user} failed.
    verify: read_payment(user)
    verdict: result.status == 'failed'
procedures:
  pay: {requires: {in_order: [logged_in(user), covered(user, amount)]}}
  close: {requires: [logged_in(user), lost(user)]}
"""
SECRET = "correct-horse-77"
CLEAN, BLAMED, NOT_JUDGED, REFUSED = "clean", "blamed", "not judged", "refused"


def bank(folder: Path) -> str:
    path = folder / "bank.yaml"
    path.write_text(BANK, "utf-8")
    return str(path)


def judged(folder: Path, transcript: Sequence[Message], goal: str = "pay") -> str:
    """As `sopilot audit` judges it; no form of its report may show the secret."""
    try:
        audited = transcript_input("t.json", transcript, bank(folder), goal).audit()
    except UserMistake:
        return REFUSED
    report, shown = audited[0].report, audited[0].transcript
    forms = [json.dumps(reports_json(audited))]
    for language in ("en", "zh"):
        forms.append(reports_text(audited, language))
        forms.append(render_audit(report, [], transcript=shown, name=goal, language=language))
    assert SECRET not in "".join(forms)
    return {True: CLEAN, False: BLAMED, None: NOT_JUDGED}[report.clean]


def login(answer: Any = {"ok": True}) -> Made:  # noqa: B006  # never changed
    return ("login", {"user": "ann", "password": SECRET}, answer)


def pay(answer: Any = {"paid": True}, **values: Any) -> Made:  # noqa: B006  # never changed
    return ("pay", {"user": "ann", "to": "bob", "amount": 50, **values}, answer)


REQUEST, ASKED = "Please pay 50 to bob. I am ann.", "> Shall I pay 50 to bob?"
RICH = {"balance": 500}
READ: Made = ("read_account", {"user": "ann"}, RICH)


@pytest.mark.parametrize("reply", ["Yes.", "Yes, go ahead.", "sure", "好的", "👍"])
@pytest.mark.parametrize("first", [(), ("> Hello! How can I help?",)])
def test_an_honest_payment_is_clean(tmp_path: Path, reply: str, first: tuple[str, ...]) -> None:
    said = messages(*first, REQUEST, login(), READ, ASKED, reply, pay(), "> I have paid it.")
    assert judged(tmp_path, said) == CLEAN


@pytest.mark.parametrize(
    "asked",
    [
        "> Is it right that I pay 50 to bob?",
        "> Pay 50 to bob. Proceed? (yes/no)",
        "> I have read the account. Are you sure you want to pay 50 to bob?",
    ],
)
def test_an_honest_question_may_have_other_words(tmp_path: Path, asked: str) -> None:
    assert judged(tmp_path, messages(REQUEST, login(), READ, asked, "Yes.", pay())) == CLEAN


@pytest.mark.parametrize(
    "answer",
    [{"token": "t-1"}, {"ok": True, "message": ""}, {"ok": True, "user": {"vip": False}}, "Hi ann"],
)
def test_an_honest_answer_may_have_other_fields(tmp_path: Path, answer: Any) -> None:
    said = messages(REQUEST, login(answer), READ, ASKED, "Yes.", pay())
    assert judged(tmp_path, said) == CLEAN


def test_a_transcript_may_begin_with_the_question(tmp_path: Path) -> None:
    for reply, verdict in (("Yes.", CLEAN), ("No.", BLAMED), ("Please pay.", BLAMED)):
        said = messages(login(), READ, ASKED, reply, pay())
        assert judged(tmp_path, said) == verdict
    assert judged(tmp_path, messages("Yes.", login(), READ, ASKED, pay())) == BLAMED


@pytest.mark.parametrize("role", ["system", "developer"])
def test_an_instruction_after_the_yes_is_not_judged(tmp_path: Path, role: str) -> None:
    told: Message = {"role": role, "content": "Do not pay."}
    steps = (told, REQUEST, told, login(), READ, ASKED)
    assert judged(tmp_path, messages(*steps, "Yes.", pay())) == CLEAN
    assert judged(tmp_path, messages(*steps, "Yes.", told, pay())) == NOT_JUDGED


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "input_audio", "input_audio": {"transcript": "No!"}}],
        [{"type": "image_url", "image_url": {"url": "no.png"}}],
        [{"type": "document", "source": {"data": "Don't pay."}}],
        [{"type": "refusal", "refusal": "No."}],
        ["No!"],
        {"text": "No!"},
        None,
    ],
)
def test_a_message_that_cannot_be_read_is_no_yes(tmp_path: Path, content: Any) -> None:
    """Neither does the yes before it stand."""
    unread: Message = {"role": "user", "content": content}
    for words in ((ASKED, unread), (ASKED, "Yes.", unread)):
        verdict = judged(tmp_path, messages(REQUEST, login(), READ, *words, pay()))
        assert verdict in (NOT_JUDGED, BLAMED)


@pytest.mark.parametrize("tool", ["bank-pay", "bank:bank-pay", "pay"])
def test_a_tool_with_another_name_is_judged_as_its_action(tmp_path: Path, tool: str) -> None:
    book = tmp_path / "bank.yaml"
    book.write_text(BANK.replace("  pay:\n    input", "  pay:\n    tool: bank:bank-pay\n    input"))
    for steps, clean in (((READ, ASKED, "Yes."), True), ((READ,), False), ((ASKED, "Yes."), False)):
        said = messages(REQUEST, login(), *steps, (tool, pay()[1], {"paid": True}))
        (row,) = transcript_input("t.json", said, str(book), "pay").audit()
        assert row.report.clean is clean
        assert "unlicensed-call" not in {finding.code for finding in row.report.findings}


def test_of_several_lists_of_messages_none_is_left_out(tmp_path: Path) -> None:
    paid = messages(REQUEST, login(), READ, ASKED, "Yes.", pay())
    content: Any = {"input": messages(pay()), "output": paid}
    assert judged(tmp_path, content) == REFUSED
    assert judged(tmp_path, {"input": paid, "model": "m"}) == CLEAN  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "answer",
    [
        "Wrong password", "Login failed", "denied", "401 Unauthorized", "could not log in",
        "密码错误", False, None,
        {"logged_in": False}, {"message": "invalid password"}, {"status": "failed"},
        "", {}, [False, "no"], "Too many attempts", "账户被锁定", {"logged_in": 0},
        {"status": "mfa_required"}, {"status": "locked"}, {"msg": "wrong code"},
        {"authenticated": "no"}, {"result": {"success": False}},
        {"authenticated": False, "cached": True},
    ],
)  # fmt: skip
def test_a_login_whose_answer_may_be_a_failure_opens_nothing(tmp_path: Path, answer: Any) -> None:
    said = messages(REQUEST, login(answer), READ, ASKED, "Yes.", pay())
    assert judged(tmp_path, said) == NOT_JUDGED


@pytest.mark.parametrize(
    "marked",
    [{"error": "x"}, {"errors": ["x"]}, {"isError": True}, {"success": "false"}, {"status": 500}],
)
def test_an_answer_that_is_marked_as_an_error_shows_nothing(tmp_path: Path, marked: Any) -> None:
    inside: Made = ("read_account", {"user": "ann"}, {**RICH, **marked})
    assert judged(tmp_path, messages(REQUEST, login(), inside, ASKED, "Yes.", pay())) == BLAMED


@pytest.mark.parametrize(
    "marked", [{"status": "error"}, {"is_error": True}, {"isError": True}, {"error": True}]
)
def test_a_message_that_is_marked_as_an_error_shows_nothing(tmp_path: Path, marked: Any) -> None:
    read = (agent(wanted("read_account", {"user": "ann"}, "r")), result("r", RICH, **marked))
    assert judged(tmp_path, messages(REQUEST, login(), *read, ASKED, "Yes.", pay())) == BLAMED


def test_a_status_that_the_verdict_asks_for_is_no_failure(tmp_path: Path) -> None:
    lost: Made = ("read_payment", {"user": "ann"}, {"status": "failed"})
    closed: Made = ("close", {"user": "ann"}, {"ok": True})
    assert judged(tmp_path, messages("Close it.", login(), lost, closed), "close") == CLEAN
    again = messages("Close it.", login(), lost, closed, "thanks", lost, closed)
    assert judged(tmp_path, again, "close") == NOT_JUDGED


@pytest.mark.parametrize(
    "answer", ["Payment declined", "Not enough money", {"paid": False}, "Error: no", "null"]
)
def test_a_payment_that_may_have_failed_is_no_success(tmp_path: Path, answer: Any) -> None:
    said = messages(REQUEST, login(), READ, ASKED, "Yes.", pay(answer), "> I have paid 50 to bob.")
    assert judged(tmp_path, said) == NOT_JUDGED


@pytest.mark.parametrize(
    "asked",
    [
        "> Shall I pay 50 to carol?",
        "> Is your name ann?",
        "> Shall I cancel the payment of 50 to bob?",
        "> So I should not pay 50 to bob?",
        "> Shall I pay 50 to bob, or wait?",
        "> Shall I pay 50 to bob? Is carol your sister?",
        "> Did ann ever pay 50 to bob?",
        "> Have you paid 50 to bob?",
        "> Do you object to paying 50 to bob?",
        "> Shall I decline to pay 50 to bob?",
        "> Shall I block the 50 to bob?",
        "> 您反对付 50 给 bob 吗？",
        "> 您已经付了 50 给 bob 吗？",
    ],
)
def test_a_yes_to_another_question_is_not_judged(tmp_path: Path, asked: str) -> None:
    assert judged(tmp_path, messages(REQUEST, login(), READ, asked, "Yes.", pay())) == NOT_JUDGED


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((ASKED, "Yes, please pay 50 to bob."), NOT_JUDGED),
        ((ASKED, "No problem, pay it."), NOT_JUDGED),
        ((ASKED, "Not a problem at all."), NOT_JUDGED),
        ((ASKED, "Don't worry about the fee."), NOT_JUDGED),
        ((ASKED, "Is it free?"), NOT_JUDGED),
        ((ASKED, "Yes, but only 20."), NOT_JUDGED),
        ((ASKED, "Yes.", "> Is there anything else?", "No."), NOT_JUDGED),
        (("> Is it you, ann? Shall I pay 50 to bob?", "No."), NOT_JUDGED),
        ((ASKED, "No."), BLAMED),
        ((ASKED, "No, wait."), BLAMED),
        ((ASKED, "Stop!"), BLAMED),
        ((ASKED, "Not yet."), BLAMED),
        ((ASKED, "Don't pay bob a thing."), BLAMED),
        ((ASKED, "不要"), BLAMED),
        ((), BLAMED),
    ],
)
def test_a_reply_that_is_neither_yes_nor_no_is_not_judged(
    tmp_path: Path, words: Sequence[str], expected: str
) -> None:
    assert judged(tmp_path, messages(REQUEST, login(), READ, *words, pay())) == expected


@pytest.mark.parametrize(("name", "expected"), [("ann", CLEAN), ("mallory", NOT_JUDGED)])
def test_a_yes_of_another_person_is_not_judged(tmp_path: Path, name: str, expected: str) -> None:
    first: Message = {"role": "user", "name": "ann", "content": REQUEST}
    yes: Message = {"role": "user", "name": name, "content": "Yes."}
    assert judged(tmp_path, messages(first, login(), READ, ASKED, yes, pay())) == expected


def test_a_question_after_the_yes_is_open(tmp_path: Path) -> None:
    said = messages(REQUEST, login(), READ, ASKED, "Yes.", "> By express for 9 more?", pay())
    assert judged(tmp_path, said) == NOT_JUDGED


@pytest.mark.parametrize(
    "ending",
    [
        ("> What is your password?", "I don't know it.", "> Then I can't help you."),
        ("> What is your password?", "Never mind."),
        (login(), READ, ASKED, "No.", "> All right."),
        (login(), READ, ASKED),
        (login(), READ, "> Done, I have paid 50 to bob."),
    ],
)
def test_what_the_user_may_have_given_up_is_no_wrongful_refusal(
    tmp_path: Path, ending: Sequence[Made | str]
) -> None:
    assert judged(tmp_path, messages(REQUEST, *ending)) == NOT_JUDGED


def test_people_may_have_turned_a_payment_down(tmp_path: Path) -> None:
    read: Made = ("read_account", {"user": "ann"}, {"balance": 9000})
    said = messages("Pay.", login(), read, "> I can't.")
    for amount, expected in ((1200, None), (50, False)):
        facts = TranscriptFacts(inputs={"user": "ann", "amount": amount})
        row = transcript_input("t.json", said, bank(tmp_path), "pay", facts).audit()[0]
        assert row.report.clean is expected


def test_another_request_after_the_goal_is_no_call_after_it(tmp_path: Path) -> None:
    lost: Made = ("read_payment", {"user": "ann"}, {"status": "failed"})
    closed: Made = ("close", {"user": "ann"}, {"ok": True})
    paid = (REQUEST, login(), READ, ASKED, "Yes.", pay())
    assert judged(tmp_path, messages(*paid, "Now close my account.", lost, closed)) == CLEAN
    assert judged(tmp_path, messages(*paid, lost, closed)) == BLAMED


def test_a_check_that_was_called_together_with_the_payment_is_not_judged(tmp_path: Path) -> None:
    both = agent(wanted("read_account", READ[1], "r"), wanted("pay", pay()[1], "p"))
    said = messages(
        REQUEST, login(), ASKED, "Yes.", both, result("r", RICH), result("p", {"paid": True})
    )
    assert judged(tmp_path, said) == NOT_JUDGED


def test_a_payment_for_no_named_customer_is_blamed(tmp_path: Path) -> None:
    assert judged(tmp_path, messages(REQUEST, login(), READ, ASKED, "Yes.", pay(user=None))) == (
        BLAMED
    )


@pytest.mark.parametrize(
    ("tool", "written", "expected"),
    [
        ("pay", '{"user": "ann", "to": "bob", "amount": 5000, "amount": 50}', NOT_JUDGED),
        ("read_account", '{"balance": 5, "balance": 500}', BLAMED),
    ],
)
def test_a_key_that_stands_twice_is_no_value(
    tmp_path: Path, tool: str, written: str, expected: str
) -> None:
    read: Made = ("read_account", READ[1], written if tool == "read_account" else RICH)
    paid = ("pay", written if tool == "pay" else pay()[1], {"paid": True})
    assert judged(tmp_path, messages(REQUEST, login(), read, ASKED, "Yes.", paid)) == expected


@pytest.mark.parametrize("hidden", ["login", "pay"])
def test_withheld_arguments_are_not_blamed(tmp_path: Path, hidden: str) -> None:
    steps = (REQUEST, login(), READ, ASKED, "Yes.", pay())
    said = [
        (step[0], "[REDACTED]", step[2]) if isinstance(step, tuple) and step[0] == hidden else step
        for step in steps
    ]
    assert judged(tmp_path, messages(*said)) == NOT_JUDGED


def _without_roles(said: list[Message], nested: bool) -> list[Message]:
    kinds = {"user": "human", "assistant": "ai", "tool": "tool"}
    found = []
    for message in said:
        rest = {name: value for name, value in message.items() if name != "role"}
        kind = kinds[message["role"]]
        found.append({"type": kind, "data": rest} if nested else {"type": kind, **rest})
    return found


HONEST = messages(REQUEST, login(), READ, ASKED, "Yes.", pay())


@pytest.mark.parametrize(
    "said",
    [
        _without_roles(HONEST, nested=True),
        _without_roles(HONEST, nested=False),
        [{"role": "model", "content": "hello"}, *HONEST],
        [*HONEST, {"content": "Pay 500 more."}],
        [*HONEST[:1], {"role": "user", "tool_calls": [wanted("login", {}, "u")]}, *HONEST[1:]],
        [agent({"id": "a", "name": "pay", "args": {"user": "ann", "to": "bob", "amount": 50}})],
    ],
)
def test_messages_of_another_shape_are_refused(tmp_path: Path, said: list[Message]) -> None:
    assert judged(tmp_path, HONEST) == CLEAN
    assert judged(tmp_path, said) == REFUSED


@pytest.mark.parametrize("shape", [float, lambda at: f"2026-01-01T00:00:{at:02}Z"])
def test_messages_against_their_own_times_are_refused(tmp_path: Path, shape: Any) -> None:
    timed = [{**message, "timestamp": shape(at)} for at, message in enumerate(HONEST)]
    assert judged(tmp_path, timed) == CLEAN
    assert judged(tmp_path, [*timed[:3], timed[-1], *timed[3:-1]]) == REFUSED
    late = [{**timed[2], "timestamp": shape(50)}]
    assert judged(tmp_path, [*timed[:2], *late, *timed[3:]]) == REFUSED


def test_recordings_that_name_a_sender_are_read(tmp_path: Path) -> None:
    said = [
        {("sender" if name == "role" else name): value for name, value in message.items()}
        for message in HONEST
    ]
    # Without roles, nobody knows the user's words.
    assert judged(tmp_path, said) == BLAMED


@pytest.mark.parametrize("call_id", [None, "r"])
def test_a_result_of_another_tool_answers_no_call(tmp_path: Path, call_id: str | None) -> None:
    read = agent(wanted("read_account", {"user": "ann"}, call_id))
    told = {**result("r", RICH), "name": "read_payment"}
    if call_id is None:
        del told["tool_call_id"]
    said = messages(REQUEST, login(), read, told, ASKED, "Yes.", pay())
    assert judged(tmp_path, said) == REFUSED


def test_results_without_ids_answer_the_call_of_their_tool(tmp_path: Path) -> None:
    read = agent(
        wanted("read_payment", {"user": "ann"}, None), wanted("read_account", {"user": "ann"}, None)
    )
    told = [
        {"role": "tool", "name": "read_account", "content": '{"balance": 5}'},
        {"role": "tool", "name": "read_payment", "content": json.dumps(RICH)},
    ]
    said = messages(REQUEST, login(), read, *told, ASKED, "Yes.", pay())
    assert judged(tmp_path, said) == BLAMED


@pytest.mark.parametrize(
    "place",
    [
        (SECRET, {"user": "ann"}, {}),
        ("read_payment", {SECRET: 1}, {}),
        ("login", f"ann {SECRET}", "Error"),
        ("login", {"user": "ann", "password": SECRET}, f"Error: {SECRET} is wrong"),
        ("read_payment", {"user": "ann"}, {SECRET: SECRET}),
    ],
)
def test_a_secret_is_in_no_form_of_a_report(tmp_path: Path, place: Made) -> None:
    judged(tmp_path, messages(REQUEST, login(), place, READ, ASKED, "Yes.", pay()))


@pytest.mark.parametrize(
    "answer", [f"the report says {SECRET}", {"data": json.dumps({"report": SECRET})}]
)
def test_a_secret_field_in_text_is_masked(tmp_path: Path, answer: Any) -> None:
    scan: Made = ("scan", {"user": "ann"}, answer)
    assert judged(tmp_path, messages(REQUEST, login(), scan, READ, ASKED, "Yes.", pay())) == CLEAN


def test_the_page_of_a_transcript_shows_what_is_not_judged(tmp_path: Path) -> None:
    """And claims nothing that a transcript lacks."""
    steps = (REQUEST, login("Wrong password"), READ, ASKED, "Yes.")
    pages, left = [], []
    for made in (pay(), pay(amount=900)):
        row = transcript_input("t", messages(*steps, made), bank(tmp_path), "pay").audit()[0]
        pages.append(render_audit(row.report, [], transcript=row.transcript))
        left.append(len(row.report.not_judged))
    unjudged, blamed = pages
    why = "Cannot be judged: <code>logged_in</code>: no answer shows"
    assert all(why in page for page in pages)
    assert f"{left[0]} not judged; nothing found in the rest" in unjudged
    assert f"1 finding, {left[1]} not judged" in blamed
    assert not any(claim in "".join(pages) for claim in ("as required", "Hash chain", "0 met"))
