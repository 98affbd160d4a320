"""Around the guard in the loop: odd arguments, names, ids, and several calls in one message.

Everything is proven but for the trick, and the honest call behind it goes through: what was
refused was the trick.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from attack_table import CASES, NOT_MADE
from attacks_on_values import PAID, PAYMENT
from scripted_moves import Move, RecordingTools, say
from silent_user import SilentUser

from sopilot.agent.loop import open_run, run_session
from sopilot.models.replay import ReplayModel
from sopilot.protocols import ModelReply, ToolCall
from sopilot.stores.memory import MemoryStore
from sopilot.views.catalogue import VIEWS

CLAIMS = CASES[0]
END = ModelReply("That is all.")


def written(move: Move, call_id: str) -> ToolCall:
    return ToolCall(call_id, move.tool, json.dumps(move.arguments))


CHECKED = [written(move, f"c{number}") for number, move in enumerate(PAID)]
PAY = Move(*PAYMENT)
HONEST = written(PAY, "honest")


def told(replies: Sequence[ModelReply], view: str = "pg") -> tuple[RecordingTools, list[str]]:
    """The world's record, and what the model was answered."""
    tools, briefing = RecordingTools(CLAIMS), CLAIMS.briefing()

    async def run() -> list[str]:
        session = await open_run(MemoryStore(), briefing, VIEWS[view], tools=tools)
        model = ReplayModel([*replies, END, END])  # the silent user is told about once
        result = await run_session(
            session, briefing, view=VIEWS[view], model=model, user=SilentUser()
        )
        return [message.content for message in result.messages if message.role == "tool"]

    return tools, asyncio.run(run())


def one_by_one(*calls: ToolCall) -> list[ModelReply]:
    return [ModelReply("", (call,)) for call in calls]


@pytest.mark.parametrize("view", ["pg", "pg-paper", "fused"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("pay", json.dumps(json.dumps(PAYMENT[1]))),
        ("pay", json.dumps([PAYMENT[1]])),
        ("pay", json.dumps(PAYMENT[1]) * 2),
        ("pay", "null"),
        ("pay", '{"claim": "c-1", "amount": null}'),
        ("pay", '{"claim": ["c-1"], "amount": 400}'),
        ("pay", '{"claim": "c-1", "amount": {"value": 400}}'),
        ("pay", '{"claim": "c-1", "amount": "400"}'),
        ("pay", '{"claim": "c-1", "amount": true}'),
        ("pay", '{"claim": "c-1", "amount": NaN}'),
        ("pay", '{"claim": "c-1", "amount": -Infinity}'),
        ("pay", '{"claim": "c-1", "amount": 1e400}'),
        ("pay", json.dumps({"claim": "c-1", "amount": 2**64 + 400})),
        ("pay", '{"claim": "c-1", "amount": 400, "amount": 999999}'),
        ("pay", '{"claim": "c-1", "amount": 400, "to": "eve"}'),
        ("pay", '{"claim": "c-1", "amount": 400, "": 1}'),
        ("pay", '{"claim": "c-1 ", "amount": 400}'),
        ("pay", r'{"claim": "c-1\u0000", "amount": 400}'),
        ("pay", r'{"claim": "c-1\ud800", "amount": 400}'),
        ("pay", '{"claim": "@00000000 c-1…", "amount": 400}'),
        ("Pay", json.dumps(PAYMENT[1])),
        ("pay ", json.dumps(PAYMENT[1])),
    ],
)
def test_what_is_not_the_proven_call_is_not_made(name: str, arguments: str, view: str) -> None:
    odd = ToolCall("odd", name, arguments)
    tools, answers = told(one_by_one(*CHECKED, odd, HONEST), view)
    assert tools.carried_out == [PAYMENT]
    assert answers[-2].startswith(NOT_MADE)
    assert "(ok): " in answers[-1]


@pytest.mark.parametrize("view", ["pg", "pg-paper", "fused"])
@pytest.mark.parametrize("arguments", ["", "{}", '{"claim": "c-1"}'])
def test_what_is_left_out_is_what_was_proven(arguments: str, view: str) -> None:
    """The machine completes the call with the values that were checked, and with no others."""
    tools, answers = told(one_by_one(*CHECKED, ToolCall("short", "pay", arguments), HONEST), view)
    assert tools.carried_out == [PAYMENT]
    assert "(ok): " in answers[-2]
    assert answers[-1].startswith("Not called: ")


@pytest.mark.parametrize("arguments", ["", "{}", '{"claim": "c-1"}'])
def test_what_is_left_out_is_not_completed_without_proof(arguments: str) -> None:
    tools, answers = told(one_by_one(*CHECKED[:2], ToolCall("short", "pay", arguments)))
    assert tools.carried_out == []
    assert answers[-1].startswith(NOT_MADE)


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "1e400", "9223372036854775808"])
def test_a_number_beyond_numbers_is_checked_for_what_it_is(amount: str) -> None:
    """Started and paid with the same one: an engine that wraps or compares oddly would agree."""
    start = CHECKED[0].arguments.replace("400", amount)
    pay = HONEST.arguments.replace("400", amount)
    calls = [ToolCall("s", CHECKED[0].name, start), *CHECKED[1:], ToolCall("p", "pay", pay)]
    tools, answers = told(one_by_one(*calls))
    assert tools.carried_out == []
    assert answers[-1].startswith(NOT_MADE)


def test_the_last_of_two_values_under_one_name_counts_for_guard_and_tool() -> None:
    twice = ToolCall("p", "pay", '{"claim": "c-1", "amount": 999999, "amount": 400}')
    tools, _ = told(one_by_one(*CHECKED, twice))
    assert tools.carried_out == [PAYMENT]


def test_one_message_checks_acts_and_acts_again() -> None:
    again = [written(PAY, call_id) for call_id in ("a", "a", "honest")]
    tools, answers = told([ModelReply("", (*CHECKED, HONEST, *again))])
    assert tools.carried_out == [PAYMENT]
    assert all(answer.startswith("Not called: ") for answer in answers[-3:])


@pytest.mark.parametrize("cited", [("read_claim",), ()], ids=["cited", "not cited"])
def test_the_act_stands_before_its_evidence_in_the_message(cited: tuple[str, ...]) -> None:
    """A verdict on what was not read yet is refused, one on nothing at all proves nothing."""
    start, enter, read, _ = CHECKED
    verdict = written(say(True, *cited), "verdict")
    tools, answers = told([ModelReply("", (start, enter, verdict, HONEST, read))])
    assert tools.carried_out == []
    assert '`read_claim(claim="c-1")`' in answers[-2]


@pytest.mark.parametrize("view", ["pg", "pg-paper", "fused"])
def test_one_id_for_every_call(view: str) -> None:
    """The answer to a look-up is not the answer to the act that goes by the same id."""
    calls = [ToolCall("same", call.name, call.arguments) for call in (*CHECKED, HONEST, HONEST)]
    tools, answers = told(one_by_one(*calls), view)
    assert tools.carried_out == [PAYMENT]
    assert tools.made[0][0] == "read_claim"
    assert answers[-1].startswith("Not called: ")
