"""Sessions by chance: whatever is said, returned or refused is kept, so that a life can be told
again. Ids, salts and keys come from the same chance, and time from a clock set by hand."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, replace
from typing import Any, ClassVar

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from life_desk import DAY, ERRANDS, FIRST, PEOPLE, ROLES, SECOND, Answering

from counter_desk import HandClock, next_move
from sopilot.adapters.memory_store import MemoryStore
from sopilot.language.diagnostics import RunEnded, SopilotError
from sopilot.runtime.records.log import SealedHead
from sopilot.runtime.records.people import Principal
from sopilot.runtime.session import (
    Session,
    Settings,
    open_session,
    resume_session,
)
from sopilot.runtime.session import _opening as opening
from sopilot.runtime.session._approvals import HeldCall
from sopilot.runtime.session._trace_file import export_trace, read_trace, write_trace
from sopilot.runtime.session.deciding import decide_or_leave
from sopilot.runtime.session.registers import Traces
from sopilot.runtime.session.reminders import due_calls, due_lines
from sopilot.runtime.session.session_text import waiting_lines
from sopilot.runtime.session.trace_check import as_recorded, verify_trace
from sopilot.runtime.session.unsettled import settle_orphan, sweep, waiting_in
from sopilot.runtime.session.user_questions import UserAnswer
from sopilot.runtime.trace.signing import SigningKey
from sopilot.runtime.vm import JSON, Amend, Automation, Complete, Fail, Return, Start


def _plain(value: Any) -> JSON:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, HeldCall):
        return [_plain(value.as_json()), str(value.state)]
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, _plain(asdict(value))]
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


class Life:
    """Sessions: opened, worked in, left, taken up again, and decided on."""

    acts: ClassVar[Mapping[str, float]] = {}
    """What may happen, and how often."""

    def __init__(self, rng: random.Random, patch: pytest.MonkeyPatch) -> None:
        self.rng = rng
        self.store, self.clock = MemoryStore(), HandClock(1_700_000_000.0)
        self.tools = Answering()
        self.sessions: dict[str, Session] = {}
        self.seals: list[SealedHead] = []
        self.key = SigningKey(Ed25519PrivateKey.from_private_bytes(rng.randbytes(32)))
        self.told: list[Any] = []
        self.said: dict[str, int] = {}
        patch.setattr(opening.secrets, "token_hex", lambda size: rng.randbytes(size).hex())
        patch.setattr(opening, "default_owner", lambda: "host:elsewhere:9")

    async def live(self, steps: int) -> None:
        await self.begin()
        for _ in range(steps):
            act = self.rng.choices(list(self.acts), list(self.acts.values()))[0]
            self.clock.advance(self.rng.choice((0.0, 0.5, 1.0)))
            try:
                self.tell(act, await getattr(self, act)())
            except SopilotError as problem:
                self.tell(act, type(problem).__name__, str(problem))
                if isinstance(problem, RunEnded) and self.rng.random() < 0.8:
                    await self.take_back()
        for session_id in self.sessions:
            await self.look_at(session_id)

    def tell(self, name: str, *what: Any) -> None:
        self.said[name] = self.said.get(name, 0) + 1
        self.told.append([name, *map(_plain, what)])

    async def look_at(self, session_id: str) -> None:
        """All that anybody can read of a session."""
        try:
            record = await self.store.record(session_id)
            self.tell("record", record.as_json(), dict(record.metadata), record.is_unfinished)
            waiting = await waiting_in(self.store, session_id, clock=self.clock)
            self.tell("waiting", waiting.as_json(), list(waiting_lines(waiting)))
            trace = await export_trace(self.store, session_id, payloads=self.rng.random() < 0.5)
            again = read_trace(write_trace(trace))
            self.tell("trace", write_trace(trace), [str(one) for one in verify_trace(again)])
            cut = replace(
                again, events=again.events[:-2], payloads={}, about={**again.about, "x": 1}
            )
            self.tell("cut", [str(one) for one in verify_trace(cut, keys=["aa"])])
            self.tell("as recorded", dict(as_recorded(again).payloads), as_recorded(again).programs)
            head, rows = await Traces(self.store).rows(session_id)
            self.tell("rows", list(head), [list(row) for row in rows])
        except SopilotError as problem:
            self.tell("unreadable", str(problem))

    # --- opening and working ----------------------------------------------------------

    async def begin(self) -> Any:
        rng, name = self.rng, f"s{len(self.sessions) + 1}"
        settings = Settings(
            private=rng.random() < 0.4,
            automation=Automation(*(rng.random() < 0.5 for _ in range(8))),
            inline_limit=rng.choice((None, 64, 16_384)),
            by_reference=frozenset(rng.choice(((), ("amount",)))),
        )
        one = await open_session(
            self.store, FIRST, tools=self.tools, clock=self.clock, handbook="lives",
            model=rng.choice(("", "m")), settings=settings, owner=f"host:{name}:1",
            extra=rng.choice(({}, {"task": 7}, {"requester": "sue"})), session_id=name,
            requester=rng.choice(("", "", "ida")),
        )  # fmt: skip
        if rng.random() < 0.6:
            one.asker = self.answer
        self.sessions[name] = one
        return name, one.metadata

    async def answer(self, text: str, about: str) -> UserAnswer | None:
        """What the user says, on record; now and then nothing, or what was said before."""
        said, chance = self.rng.choice(("Yes.", "Yes.", "no", "4000-1234")), self.rng.random()
        self.tell("asked", text, about)
        if chance < 0.1:
            return None
        outcome = await self.asked.user_said(said)
        return UserAnswer(said, outcome.events[0].seq if chance < 0.9 else 1)

    def one(self) -> Session:
        return self.rng.choice(list(self.sessions.values())[-2:])

    def waiting(self) -> Session:
        """One in which something waits, if there is any."""
        open_still = [
            one for one in self.sessions.values() if one.held_calls or one.configuration.pending
        ]
        return self.rng.choice(open_still) if open_still else self.one()

    async def take_back(self) -> None:
        for name, one in list(self.sessions.items()):
            try:
                back = await resume_session(
                    self.store, name, tools=self.tools, clock=self.clock, take_over=True,
                    owner=f"host:{name}:3",
                )  # fmt: skip
            except SopilotError as problem:
                self.tell("gone", str(problem))
            else:
                back.asker, self.sessions[name] = one.asker, back

    async def work(self) -> Any:
        one, found = self.one(), []
        self.asked = one
        for _ in range(self.rng.choice((2, 6, 12))):
            move = next_move(one.machine, one.configuration)
            if move is None:
                goal = self.rng.choices(list(ERRANDS), (3, 4, 2, 1))[0]
                found.append((await one.operate(Start(goal, ERRANDS[goal]))).answer)
            elif isinstance(move, tuple):
                found.append(await one.call_tool(move[0], move[1], self.rng.choice(("", "c"))))
            else:
                found.append((await one.operate(move)).answer)
        return found

    async def stumble(self) -> Any:
        one, rng = self.one(), self.rng
        goal = rng.choice(list(ERRANDS))
        match rng.randrange(7):
            case 0:
                return (await one.operate(Complete("claimed"))).answer
            case 1:
                return (await one.operate(Fail("no"))).answer
            case 2:
                return (await one.operate(Amend({"amount": rng.choice((10, 600))}))).answer
            case 3:
                return (await one.operate(Return(rng.random() < 0.5, ("#3",)))).answer
            case 4:
                return (await one.user_said("my password is secret")).answer
            case 5:
                return (await one.assistant_said("a moment")).answer
            case _:
                return await one.call_tool(goal, {**ERRANDS[goal], "amount": 70}, "x")

    async def note(self) -> Any:
        return (await self.one().note(self.rng.choice(("seen", "closed")), {"a": 1})).answer

    async def break_tools(self) -> Any:
        names = ("wire", "transfer", "refund", "find_account", "read_balance")
        self.tools.failing = set(self.rng.sample(names, self.rng.choice((0, 0, 1))))
        self.tools.refusing = set(self.rng.sample(names, self.rng.choice((0, 0, 1))))
        return sorted(self.tools.failing), sorted(self.tools.refusing)

    async def take_time(self) -> Any:
        self.clock.advance(self.rng.choice((1.0, 2.5, 4.0, 600.0, 3601.0, DAY)))
        return self.clock.time

    async def leave(self) -> Any:
        one = self.one()
        await one.release()
        return one.id

    async def come_back(self) -> Any:
        one, rng = self.one(), self.rng
        more: dict[str, Any] = {}
        if rng.random() < 0.3:
            more = {"programs": SECOND, "accept_changed": rng.random() < 0.7}
        back = await resume_session(
            self.store, one.id, tools=self.tools, clock=self.clock, owner=f"host:{one.id}:2",
            take_over=rng.random() < 0.5, **more,
        )  # fmt: skip
        back.asker = one.asker
        self.sessions[one.id] = back
        return back.head, back.unknown_outcomes, back.retryable, sorted(back.program_changes)

    async def hold_on(self) -> Any:
        """The lease, and what the store knows."""
        one = self.one()
        match self.rng.randrange(4):
            case 0:
                return await one.refresh(), one.is_current
            case 1:
                await one.reload()
                return one.head, one.is_current
            case 2:
                await one.renew()
                return one.is_current
            case _:
                return await one.reacquire(), one.is_current

    async def read_all(self) -> Any:
        one = self.one()
        events = [list(event) for event in one.own_events]
        whole = [list(event) for event in await one.whole_events()]
        shown = [list(event) for event in await one.shown_events()]
        return events == whole, whole, shown, sorted(one.program_changes), await one.stored_head()

    # --- calls that wait --------------------------------------------------------------

    def a_call(self, one: Session) -> str:
        known = [held.call_id for held in one.held_calls] + list(one.configuration.pending)
        every = [*one.ledger.held, "c"]
        return self.rng.choice(known if known and self.rng.random() < 0.9 else every)

    def who(self) -> Principal | None:
        name = self.rng.choice(PEOPLE)
        return Principal(name, "token", f"of {name}") if self.rng.random() < 0.3 else None

    async def decide(self) -> Any:
        one, rng = self.waiting(), self.rng
        word = rng.choices(("approve", "reject", "amend", "perhaps"), (8, 1, 2, 0.5))[0]
        changed: dict[str, JSON] = {"username": "una", "amount": rng.choice((80, 80, 700, "x"))}
        call_id = self.a_call(one)
        held = one.ledger.held.get(call_id)
        right = held is not None and rng.random() < 0.85
        role = rng.choice(held.roles if held is not None and right else ROLES)
        by = (
            {"supervisor": "joe", "auditor": "zoe"}.get(role, "max")
            if right
            else rng.choice(PEOPLE)
        )
        given: dict[str, Any] = {"by": by, "role": role, "reason": "so"}
        given["who"] = None if right else self.who()
        arguments = changed if word == "amend" else None
        if rng.random() < 0.6:
            return await one.decide(word, call_id, arguments=arguments, **given)
        return await decide_or_leave(
            self.store, one.id, word, call_id, arguments=arguments, clock=self.clock, **given
        )

    async def go_on_with(self) -> Any:
        one, rng = self.waiting(), self.rng
        call_id = self.a_call(one)
        match rng.randrange(4):
            case 0:
                return await one.run_held(call_id)
            case 1:
                return await one.retry(call_id)
            case 2:
                settled = await one.settle_outcome(
                    call_id, ok=rng.random() < 0.5, value={"a": 1}, by=rng.choice(PEOPLE),
                    who=self.who(),
                )  # fmt: skip
                return settled.answer
            case _:
                await one.take_decisions()
                return one.held_calls, await one.has_decisions(), one.retryable

    async def wait(self) -> Any:
        one, slept = self.waiting(), []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            self.clock.advance(seconds)

        held = await one.wait_for_decision(
            self.a_call(one), poll_seconds=self.rng.choice((1.0, 60.0)),
            timeout_seconds=self.rng.choice((0.0, 3.0, 120.0)), sleep=sleep,
        )  # fmt: skip
        return held, slept

    async def look_after(self) -> Any:
        found = await sweep(self.store, clock=self.clock)
        one = self.one()
        orphan = await settle_orphan(
            self.store, one.id, clock=self.clock, take_over=self.rng.random() < 0.3
        )
        due = await due_calls(
            self.store,
            self.rng.choice((None, 30.0, 60.0)),
            self.rng.random() < 0.5,
            clock=self.clock,
        )
        return found, orphan, [call.as_json() for call in due], list(due_lines(due))
