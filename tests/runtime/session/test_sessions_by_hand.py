"""What sessions come to once in a thousand lives: case by case."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, go_on, walk
from sopilot.adapters.memory_store import MemoryStore
from sopilot.language.compiler import compile_handbook
from sopilot.language.diagnostics import RunEnded, UserMistake
from sopilot.language.handbook import load_handbook
from sopilot.language.handbook.cel import judge
from sopilot.language.program.model import Act, Guarded, Literal, Local
from sopilot.runtime.agent.toolbox import END_SESSION
from sopilot.runtime.records.log import digest_of
from sopilot.runtime.session import (
    Batch,
    LeaseHeld,
    LeaseLost,
    NewSession,
    ProgramSet,
    Session,
    Settings,
    ToolResult,
    open_session,
    resume_session,
)
from sopilot.runtime.session._admission import (
    _amended_request,
    _asked_of_people,
    _may_unprove,
    _read_again,
    _same_values,
    under_way,
)
from sopilot.runtime.session._approvals import HeldCall, HeldState
from sopilot.runtime.session._call_results import read_failure
from sopilot.runtime.session._leasing import _beating, when_free
from sopilot.runtime.session._loading import load
from sopilot.runtime.session._store import is_locked
from sopilot.runtime.session.errors import StoreCorrupt, TraceBroken
from sopilot.runtime.session.guards import _other_act
from sopilot.runtime.session.journal import PREFIX, entries, write
from sopilot.runtime.session.privacy import change_policy, load_policy, shred_wanted
from sopilot.runtime.session.protocols import ToolSchema, inputs_of, required_of
from sopilot.runtime.session.recovery import _replay
from sopilot.runtime.session.sealing import _differ, _is_under_key
from sopilot.runtime.session.secrets import Secrets, secret_places
from sopilot.runtime.session.user_questions import question_text, user_tools
from sopilot.runtime.trace import Head, SecretTexts, genesis, seal_all
from sopilot.runtime.vm import JSON, Configuration, Event, Limits, Machine, Note, Start, TraceError

DESK = """
handbook: desk
actions:
  login: {input: {user: string, password: {type: string, secret: true}}, changes: []}
  logout: {input: {user: string}, changes: [logins]}
  look: {input: {user: string}, reads: [money], not_found: result.error == 'none'}
  tell: {input: {user: string}, changes: [weather]}
  move: {input: {user: string}, changes: [money]}
  note: {input: {text: string}, read_only: true}
  pay: {input: {user: string, amount: number}, irreversible: true, confirm: "{amount} for {user}."}
  give: {input: {user: string}, irreversible: true}
predicates:
  known(user):
    says: K.
    established_by: login(user, password)
    closed_by: logout(user)
  fine(user): {says: F., verify: look(user), verdict: result.ok}
  wants(user): {says: W., verify: user, question: "Do you want it, {user}?"}
procedures:
  pay: {requires: {in_order: [known(user), fine(user)]}}
  give: {requires: wants(user)}
"""
PROGRAMS = {name: one.program for name, one in compile_handbook(load_handbook(DESK)).items()}
SET = ProgramSet(PROGRAMS)
HELD = HeldCall("c", "pay", {"user": "ann"}, "p1", ("boss",), 1, 0.0, None, 3)

Case = Callable[[MemoryStore, HandClock], Awaitable[None]]


def run(case: Case) -> None:
    asyncio.run(case(MemoryStore(), HandClock()))


async def opened(store: MemoryStore, clock: HandClock, **given: Any) -> Session:
    more: dict[str, Any] = {"tools": CountingTools(), "session_id": "s", **given}
    return await open_session(store, COUNTER, clock=clock, **more)


# --- people's word --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "guarded", "doubt", "serves"),
    [
        ({}, {}, "", True),
        ({}, {"roles": ("chief",)}, "", False),
        ({}, {"needed": 2}, "", False),
        ({"needed": 2}, {"needed": 2}, "", True),
        ({}, {"needed": 0, "roles": ("chief",)}, "", True),
        ({"roles": ("operator",)}, {"needed": 1, "roles": ()}, "", True),
        ({"roles": ("clerk",)}, {"needed": 1, "roles": ()}, "", False),
        ({}, {}, "#3 is old", False),
        ({"why": "#4 is old"}, {}, "#3 is old", True),
        ({"state": HeldState.EXPIRED}, {}, "", False),
        ({"state": HeldState.USED}, {}, "", False),
        ({"state": HeldState.REJECTED}, {}, "", True),
        ({"state": HeldState.APPROVED}, {}, "", True),
    ],
)
def test_a_request_that_people_amended(
    changed: Any, guarded: Any, doubt: str, serves: bool
) -> None:
    held = replace(HELD, **changed)
    stands: Any = SimpleNamespace(ledger=SimpleNamespace(held={"c": held}), events=())
    asks = replace(Guarded("pay", roles=("boss",), needed=1), **guarded)
    assert (_amended_request(stands, asks, "c", doubt) is held) is serves


@pytest.mark.parametrize(
    ("seq", "kind", "process", "same"),
    [
        (5, "amend", "p1", False), (4, "amend", "p1", False), (3, "amend", "p1", True),
        (5, "amend", "p2", True), (5, "note", "p1", True),
    ],
)  # fmt: skip
def test_the_values_that_people_saw(seq: int, kind: str, process: str, same: bool) -> None:
    event = Event(seq, 0.0, "model", kind, process, "", {})
    later = Event(9, 0.0, "model", "note", "p1", "", {})
    events = [SimpleNamespace(event=one) for one in (event, later)]
    stands: Any = SimpleNamespace(events=events)
    assert _same_values(stands, HELD) is same


def test_inputs_that_are_to_be_one() -> None:
    step = Act("act", "pay", (("a", Local("x")), ("b", Local("x")), ("c", Literal(1))), goal=True)
    assert _other_act(step, {"a": 1, "b": 1.0, "c": 9}) is None
    assert _other_act(step, {}) is None
    for given in ({"a": 1, "b": 2}, {"a": 1}):
        held = _other_act(step, given)
        assert held is not None
        assert (held.awaits, held.why) == (
            "root",
            "`b` of `pay` must be the same as another input of it: amend it so, or reject it",
        )


# --- while a guarded call is being carried out ----------------------------------------


@pytest.mark.parametrize(
    ("action", "may"),
    [
        ("move", True), ("tell", True), ("note", False), ("look", False), ("login", True),
        ("logout", True), ("pay", True), ("dance", True),
    ],
)  # fmt: skip
def test_what_may_unprove_something(action: str, may: bool) -> None:
    programs = Machine(PROGRAMS).programs
    assert _may_unprove(programs, action) is may
    busy = SimpleNamespace(action="pay")
    stands: Any = SimpleNamespace(
        machine=SimpleNamespace(programs=programs), programs=SET, in_flight={"c1"},
        configuration=SimpleNamespace(pending={"c1": busy, "c2": busy}),
    )  # fmt: skip
    held = under_way(stands, action)
    assert (held is not None) is may
    if held is not None:
        assert held.awaits == "outcome"
        said = f"`pay` is being carried out; call `{action}` again when it is answered"
        assert held.why == said
    busy.action = "look"
    assert under_way(stands, action) is None
    busy.action = "pay"
    stands.in_flight = {"c9"}
    assert under_way(stands, action) is None


@pytest.mark.parametrize(
    ("action", "ok", "value", "found"),
    [
        ("look", False, {"error": "none"}, True), ("look", False, {"error": "down"}, False),
        ("look", False, "none", False), ("move", False, {"error": "none"}, False),
        ("look", True, {"error": "none"}, True),
    ],
)  # fmt: skip
def test_a_failure_that_is_an_answer(action: str, ok: bool, value: JSON, found: bool) -> None:
    stands: Any = SimpleNamespace(programs=SET, judge=judge)
    result = read_failure(stands, action, ToolResult(ok, value))
    assert result.ok is found
    assert result.value == value


class Stubborn(CountingTools):
    """Fails and says so, the second time it is asked."""

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        if name == "find_account" and self.made(name):
            self.calls.append((name, dict(arguments), key))
            return ToolResult(False, {"error": "no"})
        return await super().call(name, arguments, key=key)


def test_what_fails_when_it_is_made_again_may_have_been_carried_out() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        tools = Stubborn()
        one = await opened(store, clock, tools=tools)
        await walk(one, "rename", stop_at_action="find_account")
        store_append, lost = store.append, []

        async def append(*given: Any, **more: Any) -> Any:
            if any(sealed.event.kind == "domain_result" for sealed in given[1].events) and not lost:
                lost.append(1)
                raise asyncio.CancelledError
            return await store_append(*given, **more)

        store.append = append  # type: ignore[method-assign]
        with pytest.raises(asyncio.CancelledError):
            await one.call_tool("find_account", {"username": "una"}, "c1")
        store.append = store_append  # type: ignore[method-assign]
        clock.advance(60)
        back = await resume_session(store, "s", tools=tools, clock=clock)
        assert back.retryable == ("c1",)
        answer = await back.retry("c1")
        assert answer.result is not None
        assert (answer.result.ok, answer.result.unknown) == (False, True)
        assert tools.made("find_account") == 2
        with pytest.raises(UserMistake, match="there is no such call `c1` here"):
            await back.retry("c1")

    run(case)


# --- waiting --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timeout", "poll", "slept"),
    [
        (0.0, 1.0, []),
        (2.0, 1.0, [1.0, 1.0]),
        (2.5, 1.0, [1.0, 1.0, 1.0]),
        (4000.0, 1800.0, [1800.0] * 3),
    ],
)
def test_how_long_a_decision_is_waited_for(timeout: float, poll: float, slept: list[float]) -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await opened(store, clock)
        await walk(one, "wire", stop_at_action="wire")
        held = (await one.call_tool("wire", ERRANDS["wire"], "w")).held
        assert held is not None
        naps: list[float] = []

        async def sleep(seconds: float) -> None:
            naps.append(seconds)
            clock.advance(seconds)

        end = await one.wait_for_decision(
            held.call_id, poll_seconds=poll, timeout_seconds=timeout, sleep=sleep
        )
        assert naps == slept
        assert end.state is (HeldState.EXPIRED if timeout > 3600 else HeldState.WAITING)
        with pytest.raises(UserMistake, match="there is no such call `x` here"):
            await one.wait_for_decision("x")

    run(case)


def test_who_waits_goes_on_waiting_while_another_has_the_session() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await opened(store, clock)
        await walk(one, "refund", stop_at_action="refund")
        held = (await one.call_tool("refund", ERRANDS["refund"], "w")).held
        assert held is not None
        naps: list[int] = []

        async def sleep(_: float) -> None:
            naps.append(len(naps))
            if len(naps) == 1:
                other = await resume_session(store, "s", tools=CountingTools(), clock=clock)
                await other.decide("approve", held.call_id, by="sue", role="supervisor")
            if len(naps) == 3:
                clock.advance(60)

        end = await one.wait_for_decision(
            held.call_id, poll_seconds=1.0, timeout_seconds=None, sleep=sleep
        )
        assert end.state is HeldState.APPROVED
        assert naps == [0, 1, 2]
        await go_on(one)

    run(case)


def test_patience_ends_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def case() -> None:
        loop, asked, naps = asyncio.get_running_loop(), [], []
        begun = loop.time()
        monkeypatch.setattr(loop, "time", lambda: begun + sum(naps))

        async def sleep(seconds: float) -> None:
            naps.append(seconds)

        async def attempt() -> None:
            asked.append(1)
            raise LeaseHeld("s", "other", 9.0, 0.0)

        monkeypatch.setattr("sopilot.runtime.session._leasing.asyncio.sleep", sleep)
        monkeypatch.setattr("sopilot.runtime.session._leasing.random.uniform", lambda *_: 1.0)
        with pytest.raises(LeaseHeld):
            await when_free(attempt, patience_seconds=0.5)
        assert [round(one, 2) for one in naps] == [0.03, 0.06, 0.12, 0.24, 0.05]
        assert len(asked) == 6

    asyncio.run(case())


class Beating:
    """A session whose lease is renewed, or not."""

    def __init__(self, problem: Exception | None) -> None:
        self.problem, self.renewed, self.taken = problem, 0, 0
        self.settings = Settings(lease_seconds=0.03)

    async def renew(self) -> None:
        self.renewed += 1
        if self.problem is not None:
            raise self.problem

    async def take_decisions(self) -> None:
        self.taken += 1


@pytest.mark.parametrize(
    ("problem", "again", "raised"),
    [(None, True, False), (RunEnded("away"), True, False), (LeaseLost("s"), False, False),
     (ValueError("odd"), False, True)],
)  # fmt: skip
def test_a_lease_is_kept_alive(problem: Exception | None, again: bool, raised: bool) -> None:
    async def case() -> None:
        one: Any = Beating(problem)
        with pytest.raises(ValueError, match="odd") if raised else nullcontext():
            async with _beating(one):
                await asyncio.sleep(0.2)
        assert (one.renewed > 1) is again
        assert (one.taken > 0) is (problem is None)
        before = one.renewed
        await asyncio.sleep(0.05)
        assert one.renewed == before

    asyncio.run(case())


# --- what is written ------------------------------------------------------------------


def test_a_batch_and_its_head() -> None:
    events = [Event(seq, 0.0, "runtime", "note", None, "", {"name": "n"}) for seq in range(2)]
    sealed = seal_all(events, genesis("s"))
    start = Head("s", -1, genesis("s"))
    batch = Batch(start, sealed)
    assert batch.head == Head("s", 1, sealed[1].hash)
    assert len(batch.encoded()) == 2
    assert all('"name":"n"' in line for line in batch.encoded())
    assert batch._replace(lines=["x"]).encoded() == ["x"]
    assert batch._replace(events=[]).head is start
    assert batch._replace(reached=start).head is start
    assert is_locked({"locked": "x"}) is True
    for other in ({"locked": "x", "a": 1}, {}, "locked", None):
        assert is_locked(other) is False


def test_an_event_that_does_not_fit_is_named_by_its_number_in_the_whole_trace() -> None:
    odd = Event(0, 0.0, "model", "complete", "p1", "", {})
    limits = Limits()
    for offset, index in ((0, 0), (7, 7)):
        with pytest.raises(TraceError) as refused:
            _replay(COUNTER, limits, Configuration(), [odd], offset)
        assert refused.value.index == index
    assert _replay(COUNTER, limits, Configuration(), [], 7) == Configuration()


def test_journals_that_somebody_touched() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        assert await entries(store, "diary") == []
        assert await write(store, "diary", "said", {"a": 1}, clock=clock) == 0
        assert await write(store, "diary", "kept", {}, clock=clock, beside={"b": 2}) == 1
        first, second = await entries(store, "diary")
        assert (first.number, first.name, dict(first.details)) == (0, "said", {"a": 1})
        assert {name: second.details["beside"][name] for name in ("b",)} == {"b": 2}
        assert len(second.details["beside"]["salt"]) == 32
        kept = store._sessions[PREFIX + "diary"]
        whole = list(kept.events)
        kept.events[:] = whole[:1]
        with pytest.raises(TraceBroken):
            await entries(store, "diary")
        kept.events[:] = whole
        odd = Event(0, 0.0, "model", "user_said", None, "", {"text": "x"})
        kept.events[:] = seal_all([odd], genesis(PREFIX + "diary"))
        kept.head = Head(PREFIX + "diary", 0, kept.events[0].hash)
        with pytest.raises(StoreCorrupt, match=r"event 0 of journal\.diary is no note"):
            await entries(store, "diary")
        lease = await store.acquire(PREFIX + "diary", owner="x", now=clock.now(), lease_seconds=99)
        naps: list[float] = []

        async def sleep(seconds: float) -> None:
            naps.append(seconds)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sopilot.runtime.session.journal.asyncio.sleep", sleep)
            with pytest.raises(RunEnded, match=r"journal.diary is being written by others"):
                await write(store, "diary", "said", {}, clock=clock)
        assert len(naps) > 3
        await store.release(lease)

    run(case)


def test_holds_are_set_lifted_and_forgotten() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        async def change(name: str, **details: JSON) -> None:
            await change_policy(store, name, details, who=None, clock=clock)

        for what in ("una", "una", "bob"):
            await change("hold_set", what=what, why="court")
        assert dict((await load_policy(store)).holds) == {"una": "court", "bob": "court"}
        with pytest.raises(UserMistake, match="there is no hold on `eve`"):
            await change("hold_lifted", what="eve")
        await change("hold_lifted", what="una")
        assert dict((await load_policy(store)).holds) == {"bob": "court"}
        lifted = (await entries(store, "privacy"))[-1]
        assert lifted.details["holds"] == [0, 1]
        one = await opened(store, clock, settings=Settings(private=True))
        await walk(one, "rename")
        await one.release()
        asked: dict[str, Any] = {
            "session_ids": (), "due": False, "who": None, "clock": clock,
        }  # fmt: skip
        with pytest.raises(UserMistake, match="names who is to be erased"):
            await shred_wanted(store, subjects=["una"], why="UNA asked", **asked)
        emptied: list[Any] = []
        shred = store.shred

        async def seen(metadata: Any) -> None:
            emptied.append(sorted(metadata))
            await shred(metadata)

        store.shred = seen  # type: ignore[method-assign]
        done = await shred_wanted(store, subjects=["una"], why="asked", **asked)
        assert (done.erased, emptied) == (("s",), [["s"]])
        words = [one.details["beside"] for one in (await entries(store, "privacy"))[:3]]
        assert [one.get("what") for one in words] == [None, None, "bob"]
        assert dict((await load_policy(store)).holds) == {"bob": "court"}
        await change("hold_lifted", what="bob")
        done = await shred_wanted(store, subjects=["7"], why="asked", **asked)
        assert emptied == [["s"]]  # a digest that has the text in it names nobody
        done = await shred_wanted(store, subjects=["BOB"], why="asked", **asked)
        assert (done.erased, emptied) == ((), [["s"], []])
        await change("hold_set", what="cy", why="court")
        store._sessions[PREFIX + "privacy"].payloads.clear()
        with pytest.raises(StoreCorrupt, match="a legal hold has lost its words"):
            await load_policy(store)

    run(case)


# --- what users are asked -------------------------------------------------------------


def test_the_words_of_a_question() -> None:
    programs = list(PROGRAMS.values())
    tools = {one.name: one for one in user_tools(programs)}
    assert sorted(tools) == ["ask_user", "confirm_with_user"]
    asked = tools["confirm_with_user"].parameters
    assert (asked["required"], asked["additionalProperties"]) == (["action"], False)
    subject = {name: {} for name in asked["properties"]}
    subject["action"] = {"type": "string"}
    assert asked["properties"] == subject
    names = [name for name in subject if name not in ("action", "procedure")]
    given: dict[str, JSON] = {"action": "pay"}
    if "procedure" in subject:
        given["procedure"] = "pay"
    for name in names:
        given[name] = 5 if name.endswith("amount") else "änn"
    text = question_text(programs, "confirm_with_user", given)
    assert text is not None
    first, second, third = text.split("\n")
    assert (first, third) == ("5 for änn.", "yes / no?")
    assert second.startswith("pay (")
    assert '"änn"' in second
    assert question_text(programs, "confirm_with_user", {**given, "action": "give"}) is None
    assert question_text(programs, "confirm_with_user", {**given, "more": 1}) is None
    wants = {"question": "wants", "user": "änn"}
    ask = tools["ask_user"].parameters
    assert ask["required"] == ["question"]
    exact = {name: wants.get(name, "änn") for name in ask["properties"]}
    assert question_text(programs, "ask_user", exact) == "Do you want it, änn?"
    assert question_text(programs, "ask_user", {**exact, "question": "odd"}) is None
    assert question_text(programs, "confirm_with_user", exact) is None


# --- secrets --------------------------------------------------------------------------


def test_a_decision_as_people_may_see_it() -> None:
    secrets = Secrets(SET, Configuration(), [])
    secrets.values = SecretTexts({"hunter22"})
    held = {"c": replace(HELD, action="login")}
    given: dict[str, JSON] = {"call_id": "c", "arguments": {"user": "ann", "password": "hunter22"}}
    shown = secrets.shown_decision(given, held)
    assert "hunter22" not in str(shown)
    assert shown["arguments"]["user"] == "ann"
    assert secrets.shown_decision({"reason": "hunter22 it is"}, {}) != {"reason": "hunter22 it is"}
    assert secrets.shown_decision({**given, "call_id": "x"}, held) == secrets.shown_decision(
        {**given, "call_id": "x"}, {}
    )
    assert secrets.shown_decision("approve", held) == "approve"
    none = Secrets(COUNTER, Configuration(), [])
    assert none.shown_decision(given, held) is given


def test_where_secrets_stand_in_what_nobody_could_read() -> None:
    places = secret_places(SET)

    def note(name: str, **details: JSON) -> Event:
        payload = {"name": name, "details": details}
        return Event(0, 0.0, "runtime", "note", None, "", payload)

    odd, plain = note("malformed_call", arguments={"a": 1}), note("seen", arguments={"a": 1})
    assert places.fields_in(odd) > places.names
    assert places.kept_back_in(odd) == places.kept_back_in(plain) | {"arguments"}
    assert "calls" in places.kept_back_in(plain)
    called = Event(0, 0.0, "model", "domain_call", None, "", {"name": "malformed"})
    assert "calls" not in places.kept_back_in(called)
    assert "arguments" not in places.kept_back_in(called)


# --- programs that others wrote -------------------------------------------------------


def test_other_programs_must_be_released_as_well() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        await opened(store, clock, handbook="desk")
        said: dict[str, JSON] = {"what": "sign-off", "on": True}
        await write(store, "people", "demanded", said, clock=clock)
        clock.advance(60)
        with pytest.raises(UserMistake, match="desk"):
            await resume_session(store, "s", clock=clock, programs=SET, accept_changed=True)
        assert (await resume_session(store, "s", clock=clock, programs=COUNTER)).head.seq == 0

    run(case)


def test_what_was_created_and_never_begun_is_begun_when_it_is_taken_up() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await opened(store, clock)
        kept = await store.record("s")
        other = NewSession("t", kept.metadata, {})
        lease = await store.create(other, owner="x", now=clock.now(), lease_seconds=1)
        await store.release(lease)
        seen: list[int] = []

        async def before(session: Session) -> None:
            seen.append(len(session.events))

        back = await resume_session(store, "t", tools=one.tools, clock=clock, before=before)
        assert (seen, back.events[0].event.payload["name"]) == ([1], "opened")
        await back.operate(Start("rename", ERRANDS["rename"]))

    run(case)


@pytest.mark.parametrize(
    ("clock", "when", "said", "needed"),
    [
        ("", None, False, 1), ("", "a", False, 0), ("", "a", True, 1), ("", "a", None, 1),
        ("noon", "a", False, 0), ("", "a", "odd", 1),
    ],
)  # fmt: skip
def test_whether_people_are_asked_for_it(
    clock: str, when: str | None, said: Any, needed: int
) -> None:
    asked: list[Any] = []

    def judged(expression: str, variables: Mapping[str, Any]) -> bool | None:
        asked.append((expression, dict(variables)))
        if said == "odd":
            raise UserMistake("odd")
        return bool(said) if said is not None else None

    process = SimpleNamespace(goal="pay")
    program = replace(PROGRAMS["pay"], constants={"limit": 5, "amount": 0})
    stands: Any = SimpleNamespace(
        configuration=SimpleNamespace(clock=clock, process=process), judge=judged,
        programs=SimpleNamespace(programs={"pay": program}),
    )  # fmt: skip
    guarded = Guarded("pay", roles=("boss",), needed=1, when=when)
    assert _asked_of_people(stands, guarded, {"amount": 7}).needed == needed
    now = {"now": clock} if clock else {}
    assert asked == ([] if when is None else [("a", {**now, "limit": 5, "amount": 7})])
    stands.configuration.process = None
    asked.clear()
    _asked_of_people(stands, guarded, {"amount": 7})
    assert asked == ([] if when is None else [("a", {**now, "amount": 7})])


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("model", "b", "the store says another `model` of session s than its trace"),
        ("handbook", "b", "the store says another `handbook` of session s than its trace"),
        ("requester", "b", "the store says another `requester` of session s than its trace"),
        ("goals", [], "the store says another `goals` of session s than its trace"),
        ("arm", None, ""),
        ("salt", "xyz", "the salt of session s is damaged"),
        ("programs", 5, "session s does not name its programs"),
        ("extra", {"a": 1}, ""),
    ],
)
def test_what_stands_beside_the_chain_is_what_it_began_with(
    name: str, value: JSON, says: str
) -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        await opened(store, clock, model="a")
        kept = store._sessions["s"]
        kept.metadata = {**kept.metadata, name: value}
        with pytest.raises(StoreCorrupt, match=says) if says else nullcontext():
            await load(store, "s")

    run(case)


async def nothing_runs(one: Session) -> None:
    await one.call_tool("rename", ERRANDS["rename"], "r")


async def ended(one: Session) -> None:
    await nothing_runs(one)
    await one.operate(Note(END_SESSION, {}))


async def only_ended(one: Session) -> None:
    await one.operate(Note(END_SESSION, {}))


@pytest.mark.parametrize(
    ("happens", "status", "goal"),
    [(nothing_runs, "running", "rename"), (ended, "ended", "rename"), (only_ended, "ended", "")],
)
def test_how_a_session_without_a_machine_stands(happens: Any, status: str, goal: str) -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await opened(store, clock)
        await happens(one)
        told = (await store.record("s")).summary
        assert (told["status"], told["goal"], told["frame"]) == (status, goal, "")

    run(case)


class Register:
    """A store's register, of which the rows differ for a while."""

    def __init__(self, wrong: int, moving: int) -> None:
        self.wrong, self.moving, self.read = wrong, moving, 0
        self.records = self

    async def digests(self) -> dict[str, str]:
        self.read += 1
        return {"s": "other" if self.read <= self.wrong else digest_of([])}

    async def record(self, _: str) -> Any:
        return SimpleNamespace(head=1 if self.read <= self.moving else 0)

    async def loaded(self, _: str) -> Any:
        return SimpleNamespace(record=SimpleNamespace(head=0))

    def rows_of(self, _: Any) -> list[Any]:
        return []


@pytest.mark.parametrize(
    ("wrong", "moving", "differ", "read"),
    [(0, 0, False, 1), (9, 0, True, 1), (3, 9, False, 4), (9, 3, True, 4), (99, 99, True, 20)],
)
def test_rows_are_read_again_while_somebody_goes_on(
    wrong: int, moving: int, differ: bool, read: int
) -> None:
    register: Any = Register(wrong, moving)
    assert asyncio.run(_differ(register, register, "s")) is differ
    assert register.read == read


def test_what_is_under_a_key_is_all_there() -> None:
    async def case(store: MemoryStore, clock: HandClock) -> None:
        one = await opened(store, clock, settings=Settings(private=True))
        await walk(one, "rename")
        loaded = await load(store, "s")
        kept = store._sessions["s"].payloads
        assert await _is_under_key(store, loaded) is False
        store._sessions["s"].payloads = {ref: {"locked": "x"} for ref in kept}
        assert await _is_under_key(store, loaded) is True
        store._sessions["s"].payloads.popitem()
        assert await _is_under_key(store, loaded) is False

    run(case)


def test_what_a_tool_takes() -> None:
    tool = ToolSchema("t", "", {"properties": {"a": {}}, "required": ["a", 5]})
    assert (dict(inputs_of(tool)), list(required_of(tool))) == ({"a": {}}, ["a", "5"])
    for odd in ({}, {"properties": 5, "required": "a"}, {"properties": None, "required": None}):
        other = ToolSchema("t", "", odd)
        assert (dict(inputs_of(other)), list(required_of(other))) == ({}, [])


def test_a_reading_that_breaks_off_is_no_answer() -> None:
    """What the machine reads again just before a call, and cannot reach, is not known."""

    async def case() -> None:
        steps: list[Any] = []

        async def step(operation: Any, actor: str = "") -> None:
            steps.append((operation, actor))

        async def broken(*_: Any, **__: Any) -> ToolResult:
            raise ConnectionError("reset")

        ledger = SimpleNamespace(fresh_id=lambda _: "c9", answered={"c9": 5})
        stands: Any = SimpleNamespace(
            tools=SimpleNamespace(call=broken), id="s", ledger=ledger, step=step, unrecorded={},
            programs=SET, judge=judge,
        )  # fmt: skip
        call: Any = SimpleNamespace(act=Act("look", "look"), arguments={"user": "ann"})
        await _read_again(stands, call)
        (asked, actor), (told, _) = steps
        assert (asked.action, dict(asked.arguments), str(actor)) == (
            "look", {"user": "ann"}, "machine",
        )  # fmt: skip
        assert (told.ok, told.unknown) == (False, True)
        assert told.value == {"error": "the tool could not be reached: reset"}
        stands.tools = None
        await _read_again(stands, call)
        assert len(steps) == 2

    asyncio.run(case())
