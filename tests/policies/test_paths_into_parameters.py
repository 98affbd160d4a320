"""A recipe goes through a list that the call itself gives: machine, guard and audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from small_desks import AnsweringTools, programs_of
from sopilot.audit.audit import audit_trace
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook
from sopilot.machine.automation import Automation
from sopilot.messages.errors import UserMistake
from sopilot.records.store import Settings
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Start
from sopilot.values.json import JSON
from sopilot.views.step_answers import CallStatus

TEXT = """
handbook: trips
actions:
  read_leg: {input: {number: string}, changes: []}
  read_owner: {input: {name: string}, changes: []}
  book:
    input: {legs: array, owner: object}
    irreversible: true
    confirm: false
predicates:
  on_sale(legs):
    says: Every leg is on sale.
    verify: {call: read_leg(leg.number), for_each: legs as leg}
    verdict: size(result) == size(legs) && result.all(one, one.sold)
  grown_up(owner):
    says: The owner is grown up.
    verify: read_owner(owner.name)
    verdict: result.age >= 18
procedures:
  book: {requires: {in_order: [on_sale(legs), grown_up(owner)]}}
"""
LEGS = [{"number": "a"}, {"number": "b"}]
OWNER = {"name": "ann"}


@pytest.mark.parametrize(
    ("read", "booked", "unsold", "status"),
    [
        ("ab", LEGS, "", CallStatus.DONE),
        ("a", LEGS, "", CallStatus.HELD),
        ("ab", LEGS, "b", CallStatus.HELD),
        ("ab", [*LEGS, {"number": "c"}], "", CallStatus.HELD),
    ],
)
async def test_every_element_of_the_call_is_read(
    read: str, booked: list[dict[str, str]], unsold: str, status: CallStatus
) -> None:
    def trips(name: str, given: Mapping[str, Any]) -> JSON:
        return {"sold": given["number"] not in unsold} if name == "read_leg" else {"age": 40}

    programs = programs_of(TEXT)
    settings = Settings(automation=Automation(*[True] * 7))
    session = await open_session(
        MemoryStore(), programs, tools=AnsweringTools(trips), settings=settings
    )
    await session.operate(Start("book", {"legs": LEGS, "owner": OWNER}))
    for number in read:
        await session.call_tool("read_leg", {"number": number})
    await session.call_tool("read_owner", {"name": "ann"})
    done = await session.call_tool("book", {"legs": booked, "owner": OWNER})
    assert done.status is status, done
    if status is CallStatus.DONE:
        report = audit_trace(programs, await session.whole_events(), judge=judge, ended=False)
        assert report.clean, report.findings


def test_a_path_starts_somewhere() -> None:
    with pytest.raises(UserMistake, match="neither an earlier answer of this recipe nor a param"):
        load_handbook(TEXT.replace("for_each: legs as leg", "for_each: lags as leg"))
