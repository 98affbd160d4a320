"""The chain of hashes, its lines, and traces that are not what they say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vm_programs import ERRAND, PROGRAMS
from vm_runs import decided, lines_of, read_lines

from sopilot.machine.replay import replay
from sopilot.messages.errors import TraceError
from sopilot.trace.chain import (
    Head,
    decode_line,
    encode_line,
    genesis,
    head,
    seal,
    seal_all,
    verify_chain,
)
from sopilot.trace.redaction import redact, restore

RUN = decided()
SEALED = seal_all(RUN.events, genesis("session-1"))


def test_a_whole_trace_verifies_against_session_and_head() -> None:
    top = head("session-1", SEALED)
    assert top == Head("session-1", len(SEALED) - 1, SEALED[-1].hash)
    assert verify_chain(SEALED, head=top) is None
    assert verify_chain(SEALED) is None
    assert verify_chain(SEALED, "session-2") == 0
    assert verify_chain([], head=head("session-1", [])) is None


def test_a_cut_tail_shows_only_against_a_head() -> None:
    cut = SEALED[:-2]
    assert verify_chain(cut, "session-1") is None
    assert verify_chain(cut, head=head("session-1", SEALED)) == len(cut)
    assert verify_chain(SEALED, head=head("session-1", cut)) == len(cut) - 1


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_one_flipped_bit_of_the_file_never_passes(data: st.DataObject) -> None:
    lines = lines_of(SEALED)
    raw = bytearray(lines.encode())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= 1 << data.draw(st.integers(0, 7))
    text = raw.decode("utf-8", "replace")
    try:
        events = read_lines(text)
    except TraceError:
        return
    # A flipped line feed may leave blank space only; then nothing was changed.
    assert verify_chain(events, head=head("session-1", SEALED)) is not None or events == SEALED


def test_lines_round_trip_and_are_canonical() -> None:
    text = lines_of(SEALED)
    assert read_lines(text) == SEALED
    assert text == lines_of(read_lines(text))
    assert "\n" not in encode_line(SEALED[0])


def test_signs_that_end_lines_elsewhere_do_not_end_them_here() -> None:
    event = SEALED[0].event._replace(payload={"text": "a\u2028b\x85c\x0bd"})
    sealed = [seal(event, genesis("s"))]
    assert read_lines(lines_of(sealed)) == sealed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "unknown trace format `2`"),
        ({"seq": "1"}, "`seq` has the wrong type"),
        ({"seq": True}, "`seq` has the wrong type"),
        ({"payload": []}, "`payload` has the wrong type"),
        ({"extra": 1}, "`extra` is missing or not expected"),
    ],
)
def test_lines_that_are_no_events(change: dict[str, object], message: str) -> None:
    entry = {**json.loads(encode_line(SEALED[0])), **change}
    with pytest.raises(TraceError, match=message):
        decode_line(json.dumps(entry))


@pytest.mark.parametrize("line", ["", "[]", "{", '{"a":1,"a":2}', '{"a":NaN}', "[" * 100_000])
def test_lines_that_are_no_json_objects(line: str) -> None:
    with pytest.raises(TraceError):
        decode_line(line)


# --- replay against the wrong thing ---------------------------------------------------


def test_replay_refuses_events_the_program_would_not_make() -> None:
    returned = next(event for event in RUN.events if event.kind == "return")
    claimed = {**returned.payload, "bound": {**returned.payload["bound"], "evidence": [0]}}
    forged = returned._replace(payload=claimed)
    events = [*RUN.events[: returned.seq], forged]
    with pytest.raises(TraceError, match=r"`payload.bound` differs") as caught:
        replay(PROGRAMS, events)
    assert caught.value.index == returned.seq


def test_replay_refuses_other_programs_and_orders() -> None:
    with pytest.raises(TraceError, match="`kind` would be `rejected`, not `start`"):
        replay({"errand": ERRAND}, RUN.events)
    with pytest.raises(TraceError, match="`seq`"):
        replay(PROGRAMS, RUN.events[1:])
    resumed = RUN.events[0]._replace(kind="resumed", payload={})
    with pytest.raises(TraceError, match="wasn't due"):
        replay(PROGRAMS, [resumed])
    odd = RUN.events[0]._replace(kind="sing", payload={})
    with pytest.raises(TraceError, match="unknown operation `sing`"):
        replay(PROGRAMS, [odd])
    refused = RUN.events[0]._replace(kind="rejected", payload={"operation": "start"})
    with pytest.raises(TraceError, match="`operation` must be an object"):
        replay(PROGRAMS, [refused])


# --- references -----------------------------------------------------------------------


def test_a_redacted_trace_verifies_and_replays() -> None:
    kept: dict[str, object] = {}
    events = []
    for event in RUN.events:
        small, values = redact(event, names=frozenset({"password"}), salt=b"pepper")
        kept.update(values)
        events.append(small)
    text = lines_of(seal_all(events, genesis("s")))
    assert "hunter2" not in text.replace("it is hunter2", "")
    assert list(kept.values()) == ["hunter2"]
    again = read_lines(text)
    assert verify_chain(again, "s") is None
    configuration = replay(PROGRAMS, again)
    assert configuration.frame == RUN.configuration.frame
    assert configuration != RUN.configuration
    restored = [restore(sealed.event, kept) for sealed in again]
    assert restored == RUN.events
    assert replay(PROGRAMS, restored) == RUN.configuration


def test_large_fields_become_references_and_come_back() -> None:
    result = next(event for event in RUN.events if event.payload.get("action") == "read_balance")
    result = result._replace(payload={**result.payload, "value": "x" * 1000})
    small, values = redact(result, limit=100)
    assert small.payload["value"]["bytes"] == 1002
    assert redact(small, limit=100, names=frozenset({"value"})) == (small, {})
    assert restore(small, values) == result
    assert restore(small, {}) == small
    salted, _ = redact(result, limit=100, salt=b"pepper")
    assert salted.payload["value"] != small.payload["value"]


def test_withheld_arguments_cannot_be_replayed_and_it_says_so() -> None:
    events = [redact(event, limit=5)[0] for event in RUN.events]
    with pytest.raises(TraceError, match="`arguments` is withheld"):
        replay(PROGRAMS, events)
