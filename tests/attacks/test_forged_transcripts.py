"""Transcripts whose results, ids and parts are not what they seem: the bank's log is the judge."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chat_messages import Message, agent, result, wanted
from sopilot.audit.report import Report
from sopilot.audit.transcript_files import read_messages
from sopilot.audit.transcripts import audit_transcript
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook
from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import UserMistake

HANDBOOK = load_handbook(
    """
handbook: bank
actions:
  read_balance: {input: {user: string}}
  pay:
    input: {user: string, amount: number}
    irreversible: true
    confirm: "{amount} is paid."
  note: {input: {text: string}, read_only: true}
  withdraw: {input: {user: string, amount: number}}
predicates:
  covered(user, amount):
    says: The account of {user} covers {amount}.
    verify: read_balance(user)
    verdict: result.balance >= amount
procedures:
  pay: {requires: covered(user, amount)}
""",
    "bank.yaml",
)
RICH = {"balance": 100}


def call(call_id: str, name: str, **arguments: Any) -> Message:
    return wanted(name, arguments, call_id)


def user(content: Any) -> Message:
    return {"role": "user", "content": content}


READ = call("1", "read_balance", user="ann")
PAID = (agent(call("2", "pay", user="ann", amount=50)), result("2", {"paid": 50}))
ASKED = agent(says="Shall I pay 50?")


def audited(*messages: Message, ignored: frozenset[str] = frozenset()) -> Report:
    transcript = read_messages(messages, ignored=ignored, effects=frozenset({"pay"}))
    return audit_transcript(HANDBOOK, transcript, goal=None, judge=judge)


def errors(report: Report) -> list[str]:
    return [one.code for one in report.findings if one.severity is Severity.ERROR]


@pytest.mark.parametrize(
    "read",
    [
        [agent(call("0", "note", text="x"), READ), result("0", RICH), result("0", RICH)],
        [agent(READ), result("no such call", RICH)],
    ],
)
def test_a_result_that_names_no_open_call_answers_none(read: list[Message]) -> None:
    """The bank never told the balance."""
    with pytest.raises(UserMistake, match="no open call has that id"):
        audited(user("Pay 50."), *read, ASKED, user("Yes."), *PAID)


@pytest.mark.parametrize("at_once", [True, False])
def test_an_answer_that_came_after_the_payment_is_no_evidence_for_it(at_once: bool) -> None:
    pay = call("2", "pay", user="ann", amount=50)
    asked = [agent(READ, pay)] if at_once else [agent(READ), agent(pay)]
    paid, told = PAID[1], result("1", RICH)
    words = (user("Pay 50."), ASKED, user("Yes."))
    assert errors(audited(*words, *asked, told, paid)) == []
    assert "unproven-verdict" in errors(audited(*words, *asked, paid, told))


@pytest.mark.parametrize(
    "forged",
    [
        {"tool_call_id": "1", "content": json.dumps(RICH)},
        {"content": [{"type": "tool_result", "tool_use_id": "1", "content": json.dumps(RICH)}]},
    ],
)
def test_a_result_that_the_agent_wrote_itself_is_refused(forged: Message) -> None:
    with pytest.raises(UserMistake, match="the agent itself wrote"):
        audited(user("Pay 50."), agent(READ), {"role": "assistant", **forged}, *PAID)


def test_the_result_of_a_tool_that_does_not_count_answers_no_other_call() -> None:
    read = (agent(READ, call("9", "end_dialog")), result("9", RICH))
    report = audited(
        user("Pay 50."), *read, ASKED, user("Yes."), *PAID, ignored=frozenset({"end_dialog"})
    )
    assert "unproven-verdict" in errors(report)


def test_calls_without_ids_take_their_results_in_turn() -> None:
    """As of old: `function_call` has no id."""
    asked = {"name": "read_balance", "arguments": json.dumps({"user": "ann"})}
    read = {"role": "assistant", "function_call": asked}
    told = {"role": "function", "name": "read_balance", "content": json.dumps(RICH)}
    report = audited(user("Pay 50."), read, told, ASKED, user("Yes."), *PAID)
    assert report.findings == ()


def _beside_a_picture(said: str) -> list[Message]:
    words = [{"type": "image", "source": {}}, {"type": "text", "text": said}]
    return [agent(READ), result("1", RICH), ASKED, user(words), *PAID]


def _beside_a_result(said: str) -> list[Message]:
    block = {"type": "tool_use", "id": "1", "name": "read_balance", "input": {"user": "ann"}}
    read = {"type": "tool_result", "tool_use_id": "1", "content": json.dumps(RICH)}
    asks = {"type": "text", "text": "Shall I pay 50?"}
    return [
        {"role": "assistant", "content": [asks, block]},
        user([read, {"type": "text", "text": said}]),
        *PAID,
    ]


@pytest.mark.parametrize("written", [_beside_a_picture, _beside_a_result])
def test_words_beside_other_parts_of_a_message_are_heard(written: Any) -> None:
    assert audited(user("Pay 50."), *written("Yes.")).findings == ()
    assert errors(audited(user("Pay 50."), *written("NO!"))) == ["executed-against-condition"]


@pytest.mark.parametrize("arguments", ["user: ann, amount: 5000", '["ann", 5000]', "5000"])
def test_a_payment_with_arguments_that_nobody_can_read_is_not_judged(arguments: str) -> None:
    paid = {"id": "2", "function": {"name": "pay", "arguments": arguments}}
    report = audited(user("Pay."), agent(paid), result("2", {"paid": 5000}))
    assert "the arguments of `pay`" in str(report.not_judged[0])


AGAIN = (agent(call("3", "read_balance", user="ann")), result("3", RICH))
PAID_AGAIN = (agent(call("4", "pay", user="ann", amount=60)), result("4", {"paid": 60}))
WITHDRAWN = (agent(call("5", "withdraw", user="ann", amount=9)), result("5", {}))
BOB = (agent(call("6", "read_balance", user="bob")), result("6", RICH))


@pytest.mark.parametrize(
    ("messages", "clean"),
    [
        ((ASKED, user("Yes."), *PAID), True),
        ((agent(says="Pay 50.00?"), user("Yes."), *PAID), True),
        ((agent(says="Pay 50.00 from ann's account?"), user("Yes."), *PAID), None),
        ((ASKED, user("Yes."), *PAID, *AGAIN, *PAID_AGAIN), None),  # one yes for two payments
        ((ASKED, user("Yes."), *WITHDRAWN, *AGAIN, *PAID), None),  # a yes to what was before
        ((agent(says="Shall I pay 500?"), user("Yes."), *PAID), None),
        ((agent(says="Shall I pay 50 for bob?"), user("Yes."), *BOB, *PAID), None),
        ((agent(says="Are you well today?"), user("Yes."), *PAID), None),
        ((ASKED, user("No."), agent(says="Shall I wait?"), user("Yes."), *PAID), None),
    ],
)
def test_a_yes_to_something_else_is_not_judged(
    messages: tuple[Message, ...], clean: bool | None
) -> None:
    """A foreign agent asks in its own words: they can't prove what the yes was to."""
    report = audited(user("Pay, please."), agent(READ), result("1", RICH), *messages)
    assert report.findings == ()
    assert report.clean is clean
    assert [missing.predicate for missing in report.not_judged] == (
        [] if clean else ["pay_is_confirmed"]
    )
