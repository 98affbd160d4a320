"""A call that people decide on, carried out afterwards: or not, and why."""

from __future__ import annotations

import pytest

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, walk
from sopilot.machine.approvals import HeldState
from sopilot.messages.errors import RunEnded, UserMistake
from sopilot.session.opening import open_session
from sopilot.session.outcomes import call_key
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.views.answers import CallStatus

WIRE = ERRANDS["wire"]


async def waiting(tools: CountingTools) -> Session:
    session = await open_session(
        MemoryStore(), COUNTER, tools=tools, clock=HandClock(), session_id="s"
    )
    await walk(session, "wire", stop_at_action="wire")
    answer = await session.call_tool("wire", WIRE, "w")
    assert (answer.status, answer.call_id) == (CallStatus.HELD, "w")
    assert answer.held is not None
    assert "waits for approval: 0 of 2 from supervisor, auditor, officer" in answer.problem
    return session


async def approve(session: Session, *roles: str) -> None:
    for number, role in enumerate(roles):
        await session.decide("approve", "w", by=f"person {number}", role=role)


@pytest.mark.parametrize(
    ("roles", "status", "made"),
    [
        ((), CallStatus.HELD, 0),
        (("supervisor",), CallStatus.HELD, 0),
        (("supervisor", "auditor"), CallStatus.DONE, 1),
    ],
)
async def test_it_runs_once_enough_have_approved(
    roles: tuple[str, ...], status: CallStatus, made: int
) -> None:
    tools = CountingTools()
    session = await waiting(tools)
    await approve(session, *roles)
    answer = await session.run_held("w")
    assert answer.status is status
    assert tools.made("wire") == made
    if made:
        assert answer.call_id == "w"
        assert answer.result is not None
        assert answer.result.ok
        assert answer.seq == session.ledger.answered["w"]
        assert session.ledger.held["w"].state is HeldState.USED
        assert tools.calls[-1] == ("wire", WIRE, call_key("s", "w", "wire", WIRE))
    else:
        assert f"{len(roles)} of 2" in answer.problem
        assert answer.held is not None


async def test_what_was_rejected_or_never_asked_does_not_run() -> None:
    tools = CountingTools()
    session = await waiting(tools)
    with pytest.raises(UserMistake):
        await session.run_held("x")
    await session.decide("reject", "w", by="ann", role="auditor", reason="no")
    answer = await session.run_held("w")
    assert answer.status is CallStatus.HELD
    assert "was rejected by auditor" in answer.problem
    assert tools.made("wire") == 0
    with pytest.raises(UserMistake):
        await session.retry("w")


async def test_amended_arguments_are_those_that_run() -> None:
    tools = CountingTools()
    session = await waiting(tools)
    less = {**WIRE, "amount": 7}
    await session.decide("amend", "w", by="ann", role="supervisor", arguments=less)
    await session.decide("approve", "w", by="bo", role="auditor")
    assert session.ledger.held["w"].amended
    answer = await session.run_held("w")
    if answer.status is CallStatus.DONE:
        assert tools.calls[-1] == ("wire", less, call_key("s", "w", "wire", less))
    else:
        assert tools.made("wire") == 0


async def test_a_tool_that_breaks_off_leaves_the_outcome_open() -> None:
    tools = CountingTools()
    session = await waiting(tools)
    await approve(session, "supervisor", "auditor")
    tools.failing.add("wire")
    answer = await session.run_held("w")
    assert answer.status is CallStatus.UNKNOWN
    assert answer.problem == "`wire` broke off, and may have been carried out"
    assert session.unknown_outcomes == ("w",)
    assert session.in_flight == set()
    tools.failing.add("find_account")
    soft = await session.call_tool("find_account", {"username": "una"}, "f")
    assert soft.status is CallStatus.DONE
    assert soft.result is not None
    assert (soft.result.ok, soft.result.unknown) == (False, True)
    assert soft.result.value == {"error": "the tool could not be reached: connection reset"}


async def test_without_tools_nothing_is_called() -> None:
    session = await open_session(MemoryStore(), COUNTER, clock=HandClock())
    with pytest.raises(RunEnded, match="opened without tools"):
        await session.call_tool("find_account", {"username": "una"}, "f")
    assert session.in_flight == set()


async def test_ids_that_are_taken_are_numbered() -> None:
    tools = CountingTools()
    session = await open_session(
        MemoryStore(), COUNTER, tools=tools, clock=HandClock(), session_id="s"
    )
    asked = {"username": "una"}
    found = [
        (await session.call_tool("find_account", asked, wanted)).call_id
        for wanted in ("f", "f", "f", "", "")
    ]
    assert found == ["f", "f.2", "f.3", "call", "call.2"]
    keys = [call_key("s", one, "find_account", asked) for one in found]
    assert [key for _, _, key in tools.calls] == keys
