"""Transcripts that mislead. What the bank did is known here: an honest payment is never blamed,
and no other one is called clean."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from chat_messages import Made, Message, Step, agent, messages, result, wanted
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
  lend:
    input: {user: string, to: string, amount: number}
    irreversible: true
    confirm: "{amount} is lent to {to}."
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
  lend: {requires: logged_in(user)}
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
LOST: Made = ("read_payment", {"user": "ann"}, {"status": "failed"})
CLOSED: Made = ("close", {"user": "ann"}, {"ok": True})


def dialog(
    *words: Step,
    first: Sequence[Step] = (REQUEST,),
    logged_in: Step = login(),  # noqa: B008  # never changed
    read: Sequence[Step] = (READ,),
    paid: Step = pay(),  # noqa: B008  # never changed
    then: Sequence[Step] = (),
) -> list[Message]:
    """The payment after these words, or after the question and a yes."""
    return messages(*first, logged_in, *read, *(words or (ASKED, "Yes.")), paid, *then)


Rows = list[tuple[str, list[Message], str]]


def each(title: str, verdict: str, dialogs: Iterable[list[Message]]) -> Rows:
    return [(f"{title} {number}", said, verdict) for number, said in enumerate(dialogs, 1)]


def by_name(name: str, content: str) -> Message:
    return {"role": "user", "name": name, "content": content}


BOTH_AT_ONCE = (
    ASKED,
    "Yes.",
    agent(wanted("read_account", READ[1], "r"), wanted("pay", pay()[1], "p")),
    result("r", RICH),
)
TWICE = '{"user": "ann", "to": "bob", "amount": 5000, "amount": 50}'
JUDGED: Rows = [
    *each("honest reply", CLEAN, (
        dialog(ASKED, reply, first=(*first, REQUEST), then=["> I have paid it."])
        for reply in ("Yes.", "Yes, go ahead.", "sure", "好的", "👍")
        for first in ((), ("> Hello! How can I help?",))
    )),
    *each("honest question", CLEAN, (
        dialog(asked, "Yes.")
        for asked in (
            "> Is it right that I pay 50 to bob?",
            "> Pay 50 to bob. Proceed? (yes/no)",
            "> Are you sure you want to pay 50.00 to Bob?",
            "> 50 is paid to bob. Is that right?",
            "> 请问是否确认：50 is paid to bob？",
        )
    )),
    *each("question about another action", NOT_JUDGED, (
        dialog(asked, "Yes.")
        for asked in ("> Shall I lend 50 to bob?", "> I am LENDING 50 to bob. Proceed?")
    )),
    *each("honest answer to the login", CLEAN, (
        dialog(logged_in=login(answer))
        for answer in (
            {"token": "t-1"}, {"ok": True, "message": ""}, {"ok": True, "user": {"vip": False}},
            "Hi ann", "Logged in as ann.", {"status": "ok"}, {"status": "active", "phone": None},
        )
    )),
    *each("login that may have failed", NOT_JUDGED, (
        dialog(logged_in=login(answer))
        for answer in (
            "Wrong password", "Login failed", "denied", "401 Unauthorized", "could not log in",
            "密码错误", False, None,
            {"logged_in": False}, {"message": "invalid password"}, {"status": "failed"},
            "", {}, [False, "no"], "Too many attempts", "账户被锁定", {"logged_in": 0},
            {"status": "mfa_required"}, {"status": "locked"}, {"msg": "wrong code"},
            {"authenticated": "no"}, {"result": {"success": False}},
            {"authenticated": False, "cached": True}, "Zugriff verweigert", 7,
        )
    )),
    *each("answer marked as an error", BLAMED, (
        dialog(read=[("read_account", {"user": "ann"}, {**RICH, **marked})])
        for marked in (
            {"error": "x"}, {"errors": ["x"]}, {"isError": True}, {"success": "false"},
            {"status": 500},
        )
    )),
    *each("message marked as an error", BLAMED, (
        dialog(read=[agent(wanted("read_account", READ[1], "r")), result("r", RICH, **marked)])
        for marked in (
            {"status": "error"}, {"is_error": True}, {"isError": True}, {"error": True},
            {"status": "cancelled"}, {"success": False}, {"ok": False},
        )
    )),
    *each("payment that may have failed", NOT_JUDGED, (
        dialog(paid=pay(answer), then=["> I have paid 50 to bob."])
        for answer in (
            "Payment declined", "Not enough money", {"paid": False}, "Error: no", "null"
        )
    )),
    *each("yes to another question", NOT_JUDGED, (
        dialog(asked, "Yes.")
        for asked in (
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
            "> I have read the account. Are you sure you want to pay 50 to bob?",
            "> 50 will go to bob. Is that right?",
            "> Our rules forbid to pay 50 to bob.",
            "> Should I ignore your request to pay 50 to bob?",
            "> Shall I pay 50 to bob's brother carl?",
            "> Shall I pay 50 from bob to carl?",
            "> Shall I pay 50k to bob?",
            "> Shall I pay 50.000 to bob?",
            "> Shall I pay -50 to bob?",
            "> Shall I pay 50% of your balance to bob?",
            "> Shall I pay 50 to bob if carl agrees?",
            "> Shall I pay 50 to bob? I will use 200 from your savings.",
            "> To pay 50 to bob I need your consent. Do you accept the terms?",
        )
    )),
    *each("neither yes nor no", NOT_JUDGED, (
        dialog(*words)
        for words in (
            (ASKED, "Yes, please pay 50 to bob."),
            (ASKED, "No problem, pay it."),
            (ASKED, "Not a problem at all."),
            (ASKED, "Don't worry about the fee."),
            (ASKED, "Is it free?"),
            (ASKED, "Yes, but only 20."),
            (ASKED, "Yes.", "> Is there anything else?", "No."),
            ("> Is it you, ann? Shall I pay 50 to bob?", "No."),
            (ASKED, "Yes.", "> By express for 9 more?"),
            (ASKED, {"role": "system", "content": "Do not pay."}, "Yes."),
        )
    )),
    *each("no", BLAMED, (
        dialog(ASKED, reply)
        for reply in ("No.", "No, wait.", "Stop!", "Not yet.", "Don't pay bob a thing.", "不要")
    )),
    ("no question", messages(REQUEST, login(), READ, pay()), BLAMED),
    *each("yes of the same person", CLEAN, [
        dialog(ASKED, by_name("ann", "Yes."), first=[by_name("ann", REQUEST)])
    ]),
    *each("yes of another person", NOT_JUDGED, [
        dialog(ASKED, by_name("mallory", "Yes."), first=[by_name("ann", REQUEST)])
    ]),
    *each("request that the user may have given up", NOT_JUDGED, (
        messages(REQUEST, *ending)
        for ending in (
            ("> What is your password?", "I don't know it.", "> Then I can't help you."),
            ("> What is your password?", "Never mind."),
            (login(), READ, ASKED, "No.", "> All right."),
            (login(), READ, ASKED),
            (login(), READ, "> Done, I have paid 50 to bob."),
        )
    )),
    *each("request after the goal", CLEAN, [dialog(then=["Now close my account.", LOST, CLOSED])]),
    *each("calls after the goal", BLAMED, [dialog(then=[LOST, CLOSED])]),
    *each("question beside the payment", NOT_JUDGED, [
        dialog(
            ASKED, "Yes.", agent(wanted("pay", pay()[1], "p"), says="Or rather to carl?"),
            paid=result("p", {"paid": True}),
        )
    ]),
    *each("check that was called together with the payment", NOT_JUDGED, [
        dialog(*BOTH_AT_ONCE, read=[], paid=result("p", {"paid": True}))
    ]),
    *each("payment for no named customer", BLAMED, [dialog(paid=pay(user=None))]),
    *each("key that stands twice in the arguments", NOT_JUDGED, [
        dialog(paid=("pay", TWICE, {"paid": True}))
    ]),
    *each("key that stands twice in an answer", BLAMED, [
        dialog(read=[("read_account", READ[1], '{"balance": 5, "balance": 500}')])
    ]),
    *each("withheld arguments", NOT_JUDGED, [
        dialog(logged_in=("login", "[REDACTED]", {"ok": True})),
        dialog(paid=("pay", "[REDACTED]", {"paid": True})),
    ]),
    *each("secret field in text", CLEAN, (
        dialog(read=[("scan", {"user": "ann"}, answer), READ])
        for answer in (f"the report says {SECRET}", {"data": json.dumps({"report": SECRET})})
    )),
]  # fmt: skip


@pytest.mark.parametrize(("said", "verdict"), [pytest.param(*row[1:], id=row[0]) for row in JUDGED])
def test_a_payment_is_judged_by_what_the_transcript_shows(
    tmp_path: Path, said: list[Message], verdict: str
) -> None:
    assert judged(tmp_path, said) == verdict


def test_the_question_of_a_handbook_counts_in_chinese(tmp_path: Path) -> None:
    book = tmp_path / "bank.yaml"
    book.write_text(BANK.replace("{amount} is paid to {to}.", "向{to}支付{amount}元？"), "utf-8")
    for asked, clean in (
        ("> 向bob支付50元？", True),
        ("> 请确认：向bob支付50元。", True),
        ("> 您确定要向bob支付50元吗？", True),
        ("> 向bob支付50元，好吗？", True),
        ("> 不向bob支付50元，好吗？", None),
        ("> 向bob支付50万元？", None),
        ("> 向bob的哥哥支付50元？", None),
        ("> 已向bob支付50元，对吗？", None),
    ):
        said = dialog(asked, "是的。")
        (row,) = transcript_input("t.json", said, str(book), "pay").audit()
        assert row.report.clean is clean, asked


def test_two_values_that_changed_places_are_another_question(tmp_path: Path) -> None:
    book = tmp_path / "bank.yaml"
    wording = '"{amount} is paid from {user} to {to}."'
    book.write_text(BANK.replace('"{amount} is paid to {to}."', wording), "utf-8")
    for asked, clean in (("50 from ann to bob", True), ("50 from bob to ann", None)):
        said = dialog(f"> Shall I pay {asked}?", "Yes.")
        (row,) = transcript_input("t.json", said, str(book), "pay").audit()
        assert row.report.clean is clean


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


def test_a_status_that_the_verdict_asks_for_is_no_failure(tmp_path: Path) -> None:
    once = ("Close it.", login(), LOST, CLOSED)
    assert judged(tmp_path, messages(*once), "close") == CLEAN
    assert judged(tmp_path, messages(*once, "thanks", LOST, CLOSED), "close") == NOT_JUDGED


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"error": "timeout"}, NOT_JUDGED),
        ("Error: connection reset after the request was sent", NOT_JUDGED),
        ({"success": False, "error": "gateway timeout"}, NOT_JUDGED),
        ({"success": False}, CLEAN),
    ],
)
def test_a_guarded_call_that_failed_may_have_been_carried_out(
    tmp_path: Path, answer: Any, verdict: str
) -> None:
    """Making it again may close the account twice (P10)."""
    failed: Made = ("close", {"user": "ann"}, answer)
    said = messages("Close it.", login(), LOST, failed, CLOSED)
    assert judged(tmp_path, said, "close") == verdict
    assert judged(tmp_path, messages("Close it.", login(), LOST, CLOSED), "close") == CLEAN


@pytest.mark.parametrize("first", ["p", "l"])
def test_calls_of_one_message_may_run_in_any_order(tmp_path: Path, first: str) -> None:
    """The login of another customer may have come before the payment."""
    bob = {"user": "bob", "password": SECRET}
    at_once = agent(wanted("pay", pay()[1], "p"), wanted("login", bob, "l"))
    told = [result("p", {"paid": True}), result("l", {"ok": True})]
    told = told if first == "p" else told[::-1]
    said = messages(REQUEST, login(), READ, ASKED, "Yes.", at_once, *told)
    (row,) = transcript_input("t.json", said, bank(tmp_path), "pay").audit()
    assert {item.predicate for item in row.report.not_judged} == {"covered"}
    assert [finding.code for finding in row.report.findings] == ["calls-after-goal"]


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
        [*HONEST, {**agent(), "additional_kwargs": {"tool_calls": [wanted("pay", {}, "x")]}}],
        [*HONEST, {**agent(), "choices": [{"message": agent(wanted("pay", {}, "x"))}]}],
        [*HONEST, agent(says='<tool_call>{"name": "pay"}</tool_call>'), {"role": "tool"}],
        [HONEST[0], HONEST[1], {**HONEST[2], "role": "system"}, *HONEST[3:]],
        [HONEST[0], HONEST[1], {**HONEST[2], "role": "user"}, *HONEST[3:]],
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
