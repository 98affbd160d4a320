"""Calls that wait for people and will expire, with the people who can still decide."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sopilot.protocols import Clock, SystemClock
from sopilot.records.actions import ActionOutcome
from sopilot.records.journal import entries, write
from sopilot.records.loading import register
from sopilot.records.people import load_people
from sopilot.records.selection import Wanted
from sopilot.records.store import Store
from sopilot.trace.events import AWAITS_APPROVAL
from sopilot.values.text import moment

JOURNAL = "reminders"


@dataclass(frozen=True, slots=True)
class DueCall:
    """The fields are those of its JSON. ``people`` maps each role to those who may decide in it
    now; ``escalated`` maps roles to those that may decide in their place by now."""

    session: str
    call_id: str
    action: str
    approvals: int
    needed: int
    expires_at: float | None
    people: dict[str, list[str]]
    escalated: dict[str, str]

    @property
    def noted_as(self) -> str:
        return f"{self.session} {self.call_id} {','.join(sorted(self.escalated))}"


async def due_calls(
    store: Store, minutes: float | None = None, once: bool = False, *, clock: Clock | None = None
) -> list[DueCall]:
    """Soonest first. ``once`` leaves out calls that were reported before; a call is reported again
    when it escalates."""
    clock = clock or SystemClock()
    now, people = clock.now(), await load_people(store)
    selected = await register(store, Wanted(outcome=str(ActionOutcome.HELD), now=now))
    results = []
    for entry in selected.entries():
        left = math.inf if entry.expires_at is None else entry.expires_at - now
        if entry.awaits != AWAITS_APPROVAL or (minutes is not None and left > minutes * 60):
            continue
        may = {
            role: sorted(
                person.name
                for person in people.persons.values()
                if people.entitled(person.name, role, now, entry.expires_at)
            )
            for role in entry.roles
        }
        escalated = {
            role: people.escalations[role][0]
            for role in entry.roles
            if role in people.escalations and left <= people.escalations[role][1]
        }
        results.append(
            DueCall(
                entry.session_id, entry.call_id, entry.action, len(entry.approvers), entry.needed,
                entry.expires_at, may, escalated,
            )
        )  # fmt: skip
    results.sort(key=lambda call: call.expires_at or math.inf)
    if once:
        noted = {str(item.details.get("call")) for item in await entries(store, JOURNAL)}
        results = [call for call in results if call.noted_as not in noted]
        for call in results:
            await write(store, JOURNAL, "reminded", {"call": call.noted_as}, clock=clock)
    return results


def due_lines(calls: Sequence[DueCall]) -> Iterator[str]:
    for call in calls:
        until = "no deadline" if call.expires_at is None else f"until {moment(call.expires_at)}"
        yield (
            f"{call.session} {call.call_id}  {call.action}  "
            f"{call.approvals} of {call.needed}, {until}"
        )
        for role, names in call.people.items():
            instead = f", or {call.escalated[role]} in its place" if role in call.escalated else ""
            yield f"  {role}{instead}: {', '.join(names) or 'no person has this role'}"
    if not calls:
        yield "no calls are waiting"
