"""Trace files and signed heads: what tampering looks like from outside."""

from __future__ import annotations

import asyncio
import json
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from counter_desk import COUNTER, CountingTools, HandClock, walk
from sopilot.machine.replay import replay
from sopilot.messages.errors import TraceError, UserMistake
from sopilot.records.loading import export_trace
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.chain import Head, head, seal_all, verify_chain
from sopilot.trace.files import TraceFile, read_trace, verify_trace, write_trace
from sopilot.trace.signing import (
    SignedHead,
    SigningKey,
    generate_key,
    load_key,
    sign_head,
    signed_head_from_json,
    verify_head,
    write_key,
)


def recorded(goal: str = "rename") -> TraceFile:
    async def case() -> TraceFile:
        store = MemoryStore()
        session = await open_session(
            store,
            COUNTER,
            tools=CountingTools(),
            clock=HandClock(),
            handbook="counter",
            view="pg",
            model="none",
        )
        await walk(session, goal)
        return await export_trace(store, session.id)

    return asyncio.run(case())


TRACE = recorded()
KEY: SigningKey = generate_key()


def signed(trace: TraceFile, upto: int | None = None) -> SignedHead:
    events = trace.events if upto is None else trace.events[:upto]
    return sign_head(KEY, head(trace.session_id, events), at=5.0)


def codes(trace: TraceFile, *heads: SignedHead, key: SigningKey | None = None) -> list[str]:
    keys = {key.public} if key is not None else None
    return [problem.code for problem in verify_trace(trace, heads=heads, keys=keys)]


def test_writing_then_reading_changes_nothing() -> None:
    whole = replace(TRACE, signatures=(signed(TRACE),), payloads={}, salt="")
    assert read_trace(write_trace(whole)) == whole
    assert codes(whole, key=KEY) == []


def test_a_trace_file_replays_with_the_programs_it_carries() -> None:
    from sopilot.machine.program_set import ProgramSet

    programs = ProgramSet.from_texts(TRACE.programs, TRACE.program_texts)
    configuration = replay(programs.programs, TRACE.events)
    assert configuration.processes["p1"].status == "completed"


def test_cut_at_every_byte_is_a_valid_prefix_or_a_refusal() -> None:
    text = write_trace(replace(TRACE, program_texts={}, signatures=(signed(TRACE),)))
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
            assert "truncated" in codes(trace, signed(TRACE))
    assert prefixes == text.count("\n") - 1


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bits_are_a_valid_prefix_or_a_refusal(seed: int) -> None:
    source = random.Random(seed)
    raw = write_trace(replace(TRACE, signatures=(signed(TRACE),))).encode()
    for _ in range(150):
        broken = bytearray(raw)
        broken[source.randrange(len(raw))] ^= 1 << source.randrange(8)
        try:
            text = bytes(broken).decode()
            trace = read_trace(text)
        except (UnicodeDecodeError, TraceError):
            continue
        assert trace == read_trace(raw.decode()) or codes(trace, signed(TRACE)) != []


def test_what_a_signed_head_shows() -> None:
    early = signed(TRACE, 5)
    assert codes(TRACE, early, signed(TRACE)) == []
    tail = replace(TRACE, events=TRACE.events[:4])
    assert codes(tail) == []
    assert codes(tail, early) == ["truncated"]
    forged = [
        one.event._replace(at=9.0) if one.event.seq == 3 else one.event for one in TRACE.events
    ]
    rewritten = replace(TRACE, events=tuple(seal_all(forged, TRACE.events[0].previous)))
    assert codes(rewritten) == []
    assert codes(rewritten, early) == ["rewritten"]
    other = recorded()
    assert codes(other, early) == ["transplanted"]
    transplanted = replace(other, session_id=TRACE.session_id)
    assert codes(transplanted, early) == ["broken-chain", "rewritten"]


def test_signatures_of_strangers_and_forgeries_do_not_count() -> None:
    stranger = sign_head(generate_key(), head(TRACE.session_id, TRACE.events), at=5.0)
    assert verify_head(stranger)
    assert codes(TRACE, stranger, signed(TRACE), key=KEY) == ["unknown-key"]
    good = signed(TRACE)
    moved = replace(good, head=Head(TRACE.session_id, 2, TRACE.events[2].hash))
    assert codes(TRACE, moved) == ["bad-signature"]
    assert codes(TRACE, replace(good, at=6.0)) == ["bad-signature"]
    assert codes(TRACE, replace(good, signature="zz")) == ["bad-signature"]
    assert signed_head_from_json(good.as_json()) == good
    with pytest.raises(TraceError):
        signed_head_from_json({**good.as_json(), "seq": True})


def test_keys_are_their_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "key"
    write_key(KEY, path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_key(path).public == KEY.public
    assert KEY.private_hex() not in repr(load_key(path))
    with pytest.raises(UserMistake, match="not overwritten"):
        write_key(KEY, path)
    os.chmod(path, 0o640)
    with pytest.raises(UserMistake, match="others may read this key"):
        load_key(path)
    os.chmod(path, 0o600)
    path.write_text("sopilot-ed25519 abc\n")
    with pytest.raises(UserMistake, match="is not a signing key"):
        load_key(path)
    with pytest.raises(UserMistake, match="cannot be read"):
        load_key(tmp_path / "missing")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN"])
def test_a_number_that_cannot_be_spelled_again_is_no_event(number: str) -> None:
    header, first, *rest = write_trace(TRACE).split("\n")
    at = json.loads(first)["at"]
    forged = first.replace(f'"at":{json.dumps(at)}', f'"at":{number}')
    assert forged != first
    with pytest.raises(TraceError, match="line 2"):
        read_trace("\n".join((header, forged, *rest)))
