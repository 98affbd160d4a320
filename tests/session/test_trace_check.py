"""Every way in which a trace file is not what was recorded, with its code and its place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from counter_desk import COUNTER, CountingTools, HandClock, walk
from sopilot.messages.errors import TraceBroken, TraceError
from sopilot.records.loading import export_trace, replay_trace
from sopilot.records.store import Settings
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.chain import Head, genesis, head, seal_all
from sopilot.trace.events import Event
from sopilot.trace.files import (
    TraceFile,
    as_recorded,
    check_head,
    read_trace,
    verify_trace,
    write_trace,
)
from sopilot.trace.redaction import is_reference, reference
from sopilot.trace.signing import generate_key, sign_head


def recorded(**kept: Any) -> TraceFile:
    async def case() -> TraceFile:
        session = await open_session(
            store := MemoryStore(),
            COUNTER,
            tools=CountingTools(),
            clock=HandClock(),
            handbook="counter",
            view="pg",
            model="none",
            settings=Settings(**kept),
        )
        await walk(session, "rename")
        return await export_trace(store, session.id, payloads=bool(kept))

    return asyncio.run(case())


TRACE = recorded()
BESIDE = recorded(by_reference=frozenset({"details"}))
KEY, OTHER = generate_key(), generate_key()


def resealed(trace: TraceFile, change: Callable[[Event], Event]) -> TraceFile:
    """With another first event, and a chain that holds."""
    first, *others = [sealed.event for sealed in trace.events]
    return replace(
        trace, events=tuple(seal_all([change(first), *others], genesis(trace.session_id)))
    )


def told(trace: TraceFile, **asked: Any) -> list[tuple[str, int | None]]:
    return [(one.code, one.index) for one in verify_trace(trace, **asked)]


def test_what_is_whole_has_no_problem() -> None:
    assert told(TRACE) == told(BESIDE) == []
    assert read_trace(write_trace(BESIDE)) == BESIDE
    assert any(is_reference(one.event.payload.get("details")) for one in BESIDE.events)


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        (lambda it: replace(it, events=()), [("no-events", None)]),
        (lambda it: replace(it, about={**it.about, "mood": "x"}), [("wrong-header", None)]),
        (lambda it: replace(it, about={**it.about, "view": "x"}), [("wrong-header", 0)]),
        (lambda it: replace(it, programs={}), [("wrong-header", 0)]),
        (lambda it: replace(it, about={**it.about, "model": 1}), [("wrong-header", 0)]),
        (lambda it: replace(it, program_texts={"ab" * 32: "x"}), [("wrong-program", None)]),
        (lambda it: replace(it, salt="no"), [("wrong-payload", None)]),
        (lambda it: replace(it, payloads={"ab" * 32: 1}), [("wrong-payload", None)]),
        (
            lambda it: resealed(it, lambda one: one._replace(kind="user_said")),
            [("wrong-header", 0)],
        ),
        (
            lambda it: resealed(it, lambda one: one._replace(payload={"name": "x"})),
            [("wrong-header", 0)],
        ),
        (
            lambda it: replace(
                it, events=(it.events[0], it.events[1]._replace(hash="x"), *it.events[2:])
            ),
            [("broken-chain", 1)],
        ),
        (
            lambda it: replace(it, events=(it.events[0], *it.events[2:])),
            [("broken-chain", 1)],
        ),
    ],
)
def test_what_is_wrong_and_where(
    change: Callable[[TraceFile], TraceFile], problems: list[tuple[str, int | None]]
) -> None:
    assert told(change(TRACE)) == problems


def test_the_opening_is_read_where_it_is_kept() -> None:
    """Beside the trace, if its value is what was recorded; else it says nothing."""
    assert told(replace(BESIDE, programs={})) == [("wrong-header", 0)]
    assert told(replace(BESIDE, programs={}, payloads={})) == []
    forged = {name: {"programs": {}} for name in BESIDE.payloads}
    wrong = told(replace(BESIDE, programs={}, payloads=forged))
    assert wrong == [("wrong-payload", None)] * len(forged)
    assert told(replace(BESIDE, salt="zz")) == [("wrong-payload", None)]


def test_as_recorded_leaves_out_what_was_not() -> None:
    kept = as_recorded(BESIDE)
    assert kept == BESIDE
    strange = reference(1, bytes.fromhex(BESIDE.salt))["$ref"]
    more = replace(
        BESIDE,
        programs={"goal": "x"},
        payloads={**BESIDE.payloads, "ab" * 32: 1, str(strange): 1},
        program_texts={**BESIDE.program_texts, "cd" * 32: "text"},
    )
    found = as_recorded(more)
    assert found.programs == BESIDE.programs
    assert found.payloads == {**BESIDE.payloads, str(strange): 1}
    assert found.program_texts == BESIDE.program_texts
    unsalted = as_recorded(replace(more, salt="zz"))
    assert (unsalted.payloads, unsalted.programs) == ({}, {"goal": "x"})
    assert as_recorded(replace(TRACE, events=(), programs={"a": "b"})).programs == {"a": "b"}
    named = resealed(
        TRACE,
        lambda one: one._replace(
            payload={**one.payload, "details": {"programs": {"a": "b", "c": 1}}}
        ),
    )
    assert as_recorded(named).programs == {"a": "b"}


def signed(seq: int, digest: str, session_id: str = TRACE.session_id) -> Any:
    return sign_head(KEY, Head(session_id, seq, digest), at=5.0)


COUNT = len(TRACE.events)
LAST = TRACE.events[-1].hash


@pytest.mark.parametrize(
    ("one", "keys", "found"),
    [
        (signed(COUNT - 1, LAST), None, None),
        (signed(COUNT - 1, LAST), {KEY.public}, None),
        (signed(COUNT - 1, LAST), {OTHER.public}, ("unknown-key", None)),
        (replace(signed(COUNT - 1, LAST), at=6.0), None, ("bad-signature", None)),
        (signed(COUNT - 1, LAST, "other"), None, ("transplanted", None)),
        (signed(COUNT, LAST), None, ("truncated", COUNT)),
        (signed(COUNT + 4, LAST), None, ("truncated", COUNT)),
        (signed(1, LAST), None, ("rewritten", 1)),
        (signed(0, TRACE.events[0].hash), None, None),
        (signed(-1, genesis(TRACE.session_id)), None, None),
        (signed(-1, LAST), None, ("rewritten", -1)),
    ],
)
def test_one_signed_head(one: Any, keys: set[str] | None, found: tuple[str, int] | None) -> None:
    problem = check_head(TRACE, one, keys)
    assert (None if problem is None else (problem.code, problem.index)) == found


def test_who_is_trusted_has_signed_the_last_event() -> None:
    last, earlier = signed(COUNT - 1, LAST), signed(0, TRACE.events[0].hash)
    both = {KEY.public, OTHER.public}
    assert told(TRACE, heads=[last], keys={KEY.public}) == []
    assert told(TRACE, heads=[earlier], keys={KEY.public}) == [("unsigned-head", COUNT)]
    assert told(TRACE, heads=[last], keys=both) == [("unsigned-head", COUNT)]
    assert told(TRACE, keys=both) == [("unsigned-head", COUNT)] * 2
    assert told(replace(TRACE, signatures=(last,)), keys={KEY.public}) == []
    assert told(TRACE, heads=[last], keys=set()) == [("unknown-key", None)]


# --- reading and replaying ------------------------------------------------------------


def test_a_trace_replays_as_it_is_or_not_at_all() -> None:
    found = replay_trace(TRACE)
    assert found.configuration.processes
    assert head(TRACE.session_id, TRACE.events).seq == COUNT - 1
    digest = TRACE.programs["rename"]
    texts = {name: one for name, one in TRACE.program_texts.items() if name != digest}
    without = replace(TRACE, program_texts=texts)
    with pytest.raises(TraceError, match="the program of `rename` did not come along"):
        replay_trace(without)
    torn = (*TRACE.events[:2], *TRACE.events[3:])
    with pytest.raises(TraceBroken) as broken:
        replay_trace(replace(TRACE, events=torn))
    assert broken.value.index == 2


def note(payload: Mapping[str, Any], actor: str = "runtime", kind: str = "note") -> Event:
    return TRACE.events[0].event._replace(kind=kind, actor=actor, payload=payload)


GOOD = write_trace(TRACE)
HEADER, EVENT = GOOD.split("\n")[:2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "this is not a line of JSON"),
        ("[]\n", "an object was expected"),
        ('{"sopilot_trace":2}\n', "the header says `2`"),
        ('{"sopilot_trace":1,"x":2}\n', "the header has `x`"),
        ('{"sopilot_trace":1}\n', "the header names no session"),
        ('{"programs":{"a":1},"session":"s","sopilot_trace":1}\n', "must name programs by text"),
        ('{"session":"s", "sopilot_trace":1}\n', "not spelled as it was written"),
        ('{"about":{"x":NaN},"session":"s","sopilot_trace":1}\n', "not spelled as it was written"),
        (f"{HEADER}\n{EVENT}", "line 2 is torn"),
        (f"{HEADER}\n{EVENT}\n\n", "line 3: "),
        (f"{HEADER}\n{EVENT} \n", "line 2: this line is not spelled"),
        (f'{HEADER}\n{{"payloads":[]}}\n', "line 2: an object was expected"),
        (
            f'{HEADER}\n{{"payloads":{{"a":1}},"salt":""}}\n{EVENT}\n',
            "line 3: an event stands behind the end",
        ),
    ],
)
def test_a_file_that_is_refused_says_at_which_line(text: str, said: str) -> None:
    with pytest.raises(TraceError) as refused:
        read_trace(text)
    assert said in str(refused.value)
