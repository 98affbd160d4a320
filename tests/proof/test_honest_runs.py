"""Runs that do all that is asked are not held for ever: each of these once was."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attack_desk import open_desk

from counter_desk import HandClock
from sopilot.audit.audit import audit_trace
from sopilot.handbook.expressions import judge
from sopilot.protocols import ToolResult
from sopilot.trace.events import Complete
from sopilot.values.json import JSON
from sopilot.views.answers import CallStatus

BLOCK = """
handbook: block
actions:
  read_block: {input: {user: string}, not_found: "result.error == 'no such block'"}
  pay: {input: {user: string}, irreversible: true, confirm: false, recheck: true}
predicates:
  blocked(user):
    says: "{user} is blocked."
    verify: read_block(user)
    verdict: "!has(result.error) && result.blocked"
procedures:
  pay: {requires: {not: blocked(user)}}
"""


def _absent(name: str, given: Mapping[str, JSON]) -> ToolResult:
    if name == "read_block":
        return ToolResult(False, {"error": "no such block"})
    return ToolResult(True, {"paid": True})


async def test_what_is_read_again_may_be_an_answer_that_there_is_nothing() -> None:
    desk = await open_desk(BLOCK, _absent, "fused")
    await desk.start("pay", user="a")
    await desk.call("read_block", user="a")
    await desk.push()
    assert (await desk.call("pay", user="a")).status is CallStatus.DONE
    assert len(desk.made("read_block")) == 2


async def test_a_tool_that_breaks_off_when_it_is_read_again_has_not_answered() -> None:
    """Whatever the words of its error."""

    broken: list[str] = []

    def world(name: str, given: Mapping[str, JSON]) -> ToolResult:
        if name == "read_block" and broken:
            raise RuntimeError("no such block")
        broken.append(name)
        return _absent(name, given)

    text = BLOCK.replace("result.error == 'no such block'", "'no such block' in [result.error]")
    desk = await open_desk(text, world, "fused")
    await desk.start("pay", user="a")
    await desk.call("read_block", user="a")
    await desk.push()
    await desk.held("pay", "failed when it was called last", user="a")


CANCEL = """
handbook: cancel
actions:
  cancel: {input: {booking: string, note: {type: string, required: false}}}
  pay: {input: {booking: string}, irreversible: true, confirm: false}
predicates:
  cancelled(booking): {says: "{booking} was cancelled.", done: cancel(booking)}
procedures:
  pay: {requires: cancelled(booking)}
  cancel: {}
"""


@pytest.mark.parametrize("more", [{}, {"note": "please"}])
async def test_what_was_done_with_a_declared_input_besides_was_done(more: dict[str, JSON]) -> None:
    desk = await open_desk(CANCEL, lambda name, given: {"done": True}, "fused")
    await desk.start("cancel", booking="b", **more)
    await desk.call("cancel", booking="b", **more)
    await desk.session.operate(Complete())
    await desk.start("pay", booking="b")
    await desk.push()
    assert (await desk.call("pay", booking="b")).status is CallStatus.DONE
    await desk.session.operate(Complete())
    programs = desk.session.programs.programs
    assert audit_trace(programs, await desk.session.whole_events(), judge=judge).clean


async def test_what_was_done_with_an_input_that_nobody_declared_is_undecided() -> None:
    desk = await open_desk(CANCEL, lambda name, given: {"done": True}, "fused")
    await desk.call("cancel", booking="b", dry_run=True)
    await desk.start("pay", booking="b")
    await desk.push()
    assert (await desk.call("pay", booking="b")).status is CallStatus.HELD
    assert desk.made("pay") == []


LATE = """
handbook: late
actions:
  read_loan: {input: {loan: string}}
  charge: {input: {loan: string, amount: number}, irreversible: true, confirm: false}
procedures:
  charge:
    arguments:
      amount: {verify: read_loan(loan), value: "10 * round(hours_between(result.due, now), 0)"}
"""


async def test_a_value_that_time_has_passed_by_is_computed_anew_with_a_new_start() -> None:
    desk = await open_desk(LATE, lambda name, given: {"due": "1970-01-01T00:00:00Z"}, "fused")

    async def charge() -> tuple[JSON, CallStatus, str]:
        await desk.push()
        process = desk.session.configuration.process
        assert process is not None
        amount = process.known["amount"]
        answer = await desk.call("charge", loan="l", amount=amount)
        return amount, answer.status, answer.problem

    await desk.start("charge", loan="l")
    await desk.call("read_loan", loan="l")
    assert isinstance(desk.session.clock, HandClock)
    desk.session.clock.advance(2 * 3600)
    first, status, why = await charge()
    assert status is CallStatus.HELD
    assert "`amount` would be computed otherwise now: start the goal again" in why
    await desk.start_anew("charge", loan="l")
    await desk.call("read_loan", loan="l")
    again, status, _ = await charge()
    assert (status, first, again) == (CallStatus.DONE, 0, 20)
