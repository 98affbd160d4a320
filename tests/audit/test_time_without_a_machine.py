"""Sessions of views without a machine, whose proof depends on the time. The judge is the desk's
own clock at the act."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from counter_sessions import opened, programs_of
from small_desks import AnsweringTools
from sopilot.audit.transcripts import audit_untracked
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook
from sopilot.protocols import ToolResult
from sopilot.values.json import JSON

DESK = """
handbook: desk
actions:
  read_hours: {input: {}, read_only: true}
  pay: {input: {amount: number}, GUARD}
predicates:
  open():
    says: The desk is open.
    verify: read_hours()
    verdict: timestamp(now) < timestamp(result.until)
procedures:
  pay: {requires: open()}
"""
GUARD = "irreversible: true, confirm: false"
UNTIL = "2026-06-01T17:00:00+02:00"
BEFORE, BEFORE_ELSEWHERE = "2026-06-01T16:59:00+02:00", "2026-06-01T17:59:00+03:00"
AFTER, AFTER_ELSEWHERE = "2026-06-01T17:01:00+02:00", "2026-06-01T15:30:00+00:00"


class Desk(AnsweringTools):
    def __init__(self, times: list[str]) -> None:
        super().__init__(self.answer)
        self.times = times
        self.paid_at: list[str] = []

    def time(self) -> str:
        return self.times[0]

    def answer(self, name: str, arguments: Mapping[str, JSON]) -> ToolResult:
        if name == "pay":
            self.paid_at.append(self.time())
        self.times = self.times[1:] or self.times
        return ToolResult(True, {"until": UNTIL} if name == "read_hours" else {"paid": True})


@pytest.mark.parametrize("later", [BEFORE, AFTER])
@pytest.mark.parametrize(
    ("at_the_act", "right"),
    [(BEFORE, True), (BEFORE_ELSEWHERE, True), (AFTER, False), (AFTER_ELSEWHERE, False)],
)
@pytest.mark.parametrize("at_first", [BEFORE, AFTER])
async def test_a_call_is_judged_at_its_own_time(
    at_first: str, at_the_act: str, right: bool, later: str
) -> None:
    """Whatever the clock shows before and after it, also if it goes back."""
    desk = Desk([at_first, at_the_act, later])
    unguarded = DESK.replace("GUARD", "changes: []")
    session = await opened(programs=programs_of(unguarded), tools=desk)
    await session.call_tool("read_hours", {})
    await session.call_tool("pay", {"amount": 5})
    await session.call_tool("read_hours", {})
    assert desk.paid_at == [at_the_act]
    events = await session.shown_events()
    handbook = load_handbook(DESK.replace("GUARD", GUARD))
    report = audit_untracked(handbook, events, goal="pay", chain=session.events, judge=judge)
    blamed = [item.code for item in report.findings if item.code != "calls-after-goal"]
    assert report.not_judged == ()
    assert blamed == ([] if right else ["executed-against-condition"])


@pytest.mark.parametrize(
    ("condition", "blamed"),
    [("amount > 4", True), ("amount > 5", False), ("hours_between(now, '2026-06-01') > 0", None)],
)
async def test_an_approval_that_depends_on_an_unknown_time_is_not_judged(
    condition: str, blamed: bool | None
) -> None:
    desk = Desk([BEFORE])
    approval = f'approval: {{roles: [boss], when: "{condition}"}}'
    text = DESK.replace("requires: open()", "says: Pays.")
    session = await opened(programs=programs_of(text.replace("GUARD", "changes: []")), tools=desk)
    await session.call_tool("pay", {"amount": 5})
    handbook = load_handbook(text.replace("GUARD", f"{GUARD}, {approval}"))
    events = await session.shown_events()
    report = audit_untracked(handbook, events, goal="pay", chain=session.events, judge=judge)
    codes = [item.code for item in report.findings]
    assert codes == (["approval-missing"] if blamed else [])
    assert bool(report.not_judged) is (blamed is None)
