"""Trace files and signed heads: how tampering shows, with its code and its place."""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from counter_desk import walk
from counter_sessions import opened
from sopilot.messages.errors import TraceError, UserMistake
from sopilot.records.loading import export_trace
from sopilot.records.store import Settings
from sopilot.stores.memory import MemoryStore
from sopilot.trace.chain import Head, genesis, head, seal_all, verify_chain
from sopilot.trace.files import (
    TraceFile,
    as_recorded,
    check_head,
    read_trace,
    verify_trace,
    write_trace,
)
from sopilot.trace.redaction import is_reference, reference
from sopilot.trace.signing import (
    SignedHead,
    generate_key,
    load_key,
    sign_head,
    signed_head_from_json,
    write_key,
)


def recorded(**settings: Any) -> TraceFile:
    """Export a session that renamed an account, with its payloads if it has any."""

    async def export() -> TraceFile:
        store = MemoryStore()
        about = {"handbook": "counter", "view": "pg", "model": "none"}
        session = await opened(store, settings=Settings(**settings), **about)
        await walk(session, "rename")
        return await export_trace(store, session.id, payloads=bool(settings))

    return asyncio.run(export())


TRACE = recorded()
BESIDE = recorded(by_reference=frozenset({"details"}))
KEY, OTHER = generate_key(), generate_key()
COUNT = len(TRACE.events)
LAST = TRACE.events[-1].hash


def signed(seq: int, digest: str, session_id: str = TRACE.session_id) -> SignedHead:
    return sign_head(KEY, Head(session_id, seq, digest), at=5.0)


WHOLE = signed(COUNT - 1, LAST)
EARLY = signed(4, TRACE.events[4].hash)
FIRST = signed(0, TRACE.events[0].hash)


def resealed(trace: TraceFile, number: int = 0, **changed: Any) -> TraceFile:
    """Change an event and rebuild the chain."""
    events = [sealed.event for sealed in trace.events]
    events[number] = events[number]._replace(**changed)
    return replace(trace, events=tuple(seal_all(events, genesis(trace.session_id))))


def problems(trace: TraceFile, *heads: SignedHead, **options: Any) -> list[tuple[str, int | None]]:
    return [(one.code, one.index) for one in verify_trace(trace, heads=heads, **options)]


def codes(trace: TraceFile, *heads: SignedHead, **options: Any) -> list[str]:
    return [code for code, _ in problems(trace, *heads, **options)]


# --- writing and reading --------------------------------------------------------------


@pytest.mark.parametrize("trace", [TRACE, replace(TRACE, signatures=(EARLY, WHOLE)), BESIDE])
def test_writing_then_reading_changes_nothing(trace: TraceFile) -> None:
    assert read_trace(write_trace(trace)) == trace
    assert problems(trace) == []
    beside = any(is_reference(one.event.payload.get("details")) for one in trace.events)
    assert beside is (trace is BESIDE)


def test_cut_at_every_byte_is_a_valid_prefix_or_a_refusal() -> None:
    text = write_trace(replace(TRACE, program_texts={}, signatures=(WHOLE,)))
    raw = text.encode()
    prefixes = 0
    for size in range(len(raw)):
        cut = raw[:size].decode("utf-8", "replace")
        try:
            trace = read_trace(cut)
        except TraceError:
            continue
        prefixes += 1
        assert verify_chain(trace.events, session_id=TRACE.session_id) is None
        assert trace.events == TRACE.events[: len(trace.events)]
        assert raw[size - 1 : size] == b"\n"
        # The end of a file is no evidence of its completeness: a signed head is.
        if len(trace.events) < len(TRACE.events):
            assert "truncated" in codes(trace, WHOLE)
    assert prefixes == text.count("\n") - 1


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bits_are_a_valid_prefix_or_a_refusal(seed: int) -> None:
    source = random.Random(seed)
    raw = write_trace(replace(TRACE, signatures=(WHOLE,))).encode()
    for _ in range(150):
        broken = bytearray(raw)
        broken[source.randrange(len(raw))] ^= 1 << source.randrange(8)
        try:
            text = bytes(broken).decode()
            trace = read_trace(text)
        except (UnicodeDecodeError, TraceError):
            continue
        assert trace == read_trace(raw.decode()) or codes(trace, WHOLE) != []


HEADER, EVENT = write_trace(TRACE).split("\n")[:2]
ODD = ("1e999", "-1e999", "NaN")
AT = f'"at":{TRACE.events[0].event.at}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "this line isn't JSON"),
        ("[]\n", "an object was expected"),
        ("null\n", "an object was expected"),
        ('{"sopilot_trace":2}\n', "the header says `2`"),
        ('{"sopilot_trace":1,"x":2}\n', "the header has `x`"),
        ('{"sopilot_trace":1}\n', "the header names no session"),
        (
            '{"programs":{"a":1},"session":"s","sopilot_trace":1}\n',
            "names and texts of programs must be strings",
        ),
        ('{"session":"s", "sopilot_trace":1}\n', "isn't in canonical form"),
        ('{"about":{"x":NaN},"session":"s","sopilot_trace":1}\n', "isn't in canonical form"),
        (f"{HEADER}\n{EVENT}", "line 2 is incomplete"),
        (f"{HEADER}\n{EVENT}\n\n", "line 3: "),
        (f"{HEADER}\n{EVENT} \n", "line 2: this line isn't in canonical form"),
        (f'{HEADER}\n{{"payloads":[]}}\n', "line 2: an object was expected"),
        *((HEADER + "\n" + EVENT.replace(AT, '"at":' + odd) + "\n", "line 2") for odd in ODD),
        (
            f'{HEADER}\n{{"payloads":{{"a":1}},"salt":""}}\n{EVENT}\n',
            "line 3: an event follows the end",
        ),
    ],
)
def test_a_file_that_is_refused_says_at_which_line(text: str, problem: str) -> None:
    with pytest.raises(TraceError) as refused:
        read_trace(text)
    assert problem in str(refused.value)


# --- what is wrong and where --------------------------------------------------------------


EVENTS = TRACE.events


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"events": ()}, [("no-events", None)]),
        ({"about": {**TRACE.about, "mood": "x"}}, [("wrong-header", None)]),
        ({"about": {**TRACE.about, "view": "x"}}, [("wrong-header", 0)]),
        ({"about": {**TRACE.about, "model": 1}}, [("wrong-header", 0)]),
        ({"programs": {}}, [("wrong-header", 0)]),
        ({"program_texts": {"ab" * 32: "x"}}, [("wrong-program", None)]),
        ({"salt": "no"}, [("wrong-payload", None)]),
        ({"payloads": {"ab" * 32: 1}}, [("wrong-payload", None)]),
        ({"events": resealed(TRACE, kind="user_said").events}, [("wrong-header", 0)]),
        ({"events": resealed(TRACE, payload={"name": "x"}).events}, [("wrong-header", 0)]),
        (
            {"events": (EVENTS[0], EVENTS[1]._replace(hash="x"), *EVENTS[2:])},
            [("broken-chain", 1)],
        ),
        ({"events": (EVENTS[0], *EVENTS[2:])}, [("broken-chain", 1)]),
    ],
)
def test_a_problem_has_a_code_and_a_place(
    changed: dict[str, Any], expected: list[tuple[str, int | None]]
) -> None:
    assert problems(replace(TRACE, **changed)) == expected


def test_the_opening_is_read_beside_the_trace() -> None:
    """Its value counts if it is what was recorded; else it says nothing."""
    assert problems(replace(BESIDE, programs={})) == [("wrong-header", 0)]
    assert problems(replace(BESIDE, programs={}, payloads={})) == []
    forged = {name: {"programs": {}} for name in BESIDE.payloads}
    wrong = problems(replace(BESIDE, programs={}, payloads=forged))
    assert wrong == [("wrong-payload", None)] * len(forged)
    assert problems(replace(BESIDE, salt="zz")) == [("wrong-payload", None)]


def test_as_recorded_leaves_out_what_was_not() -> None:
    assert as_recorded(BESIDE) == BESIDE
    strange = reference(1, bytes.fromhex(BESIDE.salt))["$ref"]
    more = replace(
        BESIDE,
        programs={"goal": "x"},
        payloads={**BESIDE.payloads, "ab" * 32: 1, str(strange): 1},
        program_texts={**BESIDE.program_texts, "cd" * 32: "text"},
    )
    result = as_recorded(more)
    assert result.programs == BESIDE.programs
    assert result.payloads == {**BESIDE.payloads, str(strange): 1}
    assert result.program_texts == BESIDE.program_texts
    unsalted = as_recorded(replace(more, salt="zz"))
    assert (unsalted.payloads, unsalted.programs) == ({}, {"goal": "x"})
    assert as_recorded(replace(TRACE, events=(), programs={"a": "b"})).programs == {"a": "b"}
    opening = {**EVENTS[0].event.payload, "details": {"programs": {"a": "b", "c": 1}}}
    named = resealed(TRACE, payload=opening)
    assert as_recorded(named).programs == {"a": "b"}


@pytest.mark.parametrize(
    ("signature", "keys", "expected"),
    [
        (WHOLE, None, None),
        (WHOLE, {KEY.public}, None),
        (WHOLE, {OTHER.public}, ("unknown-key", None)),
        (replace(WHOLE, at=6.0), None, ("bad-signature", None)),
        (replace(WHOLE, signature="zz"), None, ("bad-signature", None)),
        (replace(WHOLE, head=EARLY.head), None, ("bad-signature", None)),
        (signed(COUNT - 1, LAST, "other"), None, ("transplanted", None)),
        (signed(COUNT, LAST), None, ("truncated", COUNT)),
        (signed(COUNT + 4, LAST), None, ("truncated", COUNT)),
        (signed(1, LAST), None, ("rewritten", 1)),
        (FIRST, None, None),
        (signed(-1, genesis(TRACE.session_id)), None, None),
        (signed(-1, LAST), None, ("rewritten", -1)),
    ],
)
def test_a_trace_held_against_a_signed_head(
    signature: SignedHead, keys: set[str] | None, expected: tuple[str, int] | None
) -> None:
    problem = check_head(TRACE, signature, keys)
    assert (None if problem is None else (problem.code, problem.index)) == expected


def test_only_a_signed_head_shows_that_a_trace_was_cut_or_rewritten() -> None:
    cut = replace(TRACE, events=TRACE.events[:4])
    rewritten = resealed(TRACE, 3, at=9.0)
    other = recorded()
    transplanted = replace(other, session_id=TRACE.session_id)
    assert codes(cut) == codes(rewritten) == codes(TRACE, EARLY, WHOLE) == []
    assert codes(cut, EARLY) == ["truncated"]
    assert codes(rewritten, EARLY) == ["rewritten"]
    assert codes(other, EARLY) == ["transplanted"]
    assert codes(transplanted, EARLY) == ["broken-chain", "rewritten"]


def test_every_trusted_key_has_signed_the_last_event() -> None:
    unsigned, mine, both = ("unsigned-head", COUNT), {KEY.public}, {KEY.public, OTHER.public}
    assert problems(TRACE, WHOLE, keys=mine) == []
    assert problems(replace(TRACE, signatures=(EARLY, WHOLE)), keys=mine) == []
    assert problems(TRACE, FIRST, keys=mine) == [unsigned]
    assert problems(TRACE, WHOLE, keys=both) == [unsigned]
    assert problems(TRACE, keys=both) == [unsigned] * 2
    assert problems(TRACE, WHOLE, keys=set()) == [("unknown-key", None)]
    stranger = sign_head(OTHER, head(TRACE.session_id, TRACE.events), at=5.0)
    assert codes(TRACE, stranger, WHOLE, keys=mine) == ["unknown-key"]
    cut = replace(TRACE, events=TRACE.events[:5])
    assert codes(replace(cut, signatures=(EARLY,)), keys=mine) == []
    assert codes(replace(cut, signatures=(EARLY, WHOLE)), keys=mine) == ["truncated"]


# --- keys -----------------------------------------------------------------------------


def test_a_signed_head_as_json() -> None:
    assert signed_head_from_json(WHOLE.as_json()) == WHOLE
    with pytest.raises(TraceError):
        signed_head_from_json({**WHOLE.as_json(), "seq": True})


def test_only_its_owner_can_read_a_key(tmp_path: Path) -> None:
    path = tmp_path / "key"
    write_key(KEY, path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_key(path).public == KEY.public
    assert KEY.private_hex() not in repr(load_key(path))
    with pytest.raises(UserMistake, match="never overwrites a key"):
        write_key(KEY, path)
    os.chmod(path, 0o640)
    with pytest.raises(UserMistake, match="others may read this key"):
        load_key(path)
    os.chmod(path, 0o600)
    path.write_text("sopilot-ed25519 abc\n")
    with pytest.raises(UserMistake, match="this file isn't a signing key"):
        load_key(path)
    with pytest.raises(UserMistake, match="can't be read"):
        load_key(tmp_path / "missing")
