"""What people and scripts read about sessions, word for word, and the errors they meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

import pytest

from sopilot.machine.approvals import HeldCall, Ruling
from sopilot.machine.automation import Automation
from sopilot.machine.layout import Limits
from sopilot.messages.errors import (
    Conflict,
    LeaseHeld,
    ProgramChanged,
    Pruned,
    TraceBroken,
    UserMistake,
)
from sopilot.records.completeness import Gap
from sopilot.records.log import SealedHead, head_of, seal_head
from sopilot.records.pruning import Pruning
from sopilot.records.reminders import DueCall, due_lines
from sopilot.records.sealing import Verified, verified_json, verified_lines
from sopilot.records.store import SessionRecord, Settings, settings_from_json
from sopilot.session.orphans import LeftOpen, Waiting, session_lines, waiting_lines
from sopilot.trace.chain import Head
from sopilot.trace.files import Problem
from sopilot.trace.signing import generate_key
from sopilot.values.json import JSON

RECORD = SessionRecord(
    "s1",
    0.0,
    60.0,
    {"handbook": "bank", "model": "m", "salt": "ab"},
    {"status": "running", "goal": "pay"},
    Head("s1", 4, "h"),
)


def test_a_record_as_scripts_read_it() -> None:
    told = RECORD.as_json()
    assert {name: told[name] for name in ("id", "events", "head", "created_at", "updated_at")} == {
        "id": "s1", "events": 5, "head": "h", "created_at": 0.0, "updated_at": 60.0,
    }  # fmt: skip
    assert (told["owner"], told["lease_expires_at"], told["goal"]) == (None, None, "pay")
    assert (told["handbook"], told["model"], "salt" in told) == ("bank", "m", False)
    owned = replace(RECORD, owner="me", lease_expires_at=7.0).as_json()
    assert (owned["owner"], owned["lease_expires_at"]) == ("me", 7.0)


@pytest.mark.parametrize(
    ("summary", "unfinished"),
    [
        ({}, False),
        ({"status": "unknown"}, True),
        ({"status": "running", "waiting": ["a"]}, True),
        ({"status": "running", "open": ["a"]}, True),
        ({"status": "completed", "waiting": [], "open": []}, False),
    ],
)
def test_what_keeps_a_session_from_being_over(
    summary: Mapping[str, JSON], unfinished: bool
) -> None:
    assert replace(RECORD, summary=summary).is_unfinished is unfinished


def test_what_a_record_says_of_its_contents() -> None:
    assert (RECORD.is_erased, RECORD.is_pruned, RECORD.is_locked) == (False, False, False)
    erased = replace(RECORD, metadata=RECORD.metadata_when_erased(5.0))
    pruned = replace(RECORD, metadata=RECORD.metadata_when_pruned(5.0))
    assert (erased.is_erased, erased.is_pruned) == (True, False)
    assert (pruned.is_erased, pruned.is_pruned) == (False, True)
    for one in (erased, pruned):
        assert (one.metadata["salt"], one.metadata["extra"]) == ("", {})


def rows(records: Iterable[SessionRecord], count: int) -> list[list[str]]:
    lines = "\n".join(session_lines(list(records), count)).splitlines()
    return [line.split() for line in lines]


def test_sessions_in_a_table() -> None:
    assert list(session_lines([], 0)) == ["no sessions"]
    bare = SessionRecord("s2", 0.0, 60.0, {}, {}, Head("s2", -1, ""))
    head, *_, first, second = rows([RECORD, bare], 2)
    assert head == ["ID", "STATUS", "GOAL", "HANDBOOK", "MODEL", "EVENTS", "UPDATED"]
    assert first[:6] == ["s1", "running", "pay", "bank", "m", "5"]
    assert second[:6] == ["s2", "new", "-", "-", "-", "0"]
    assert first[6].startswith("1970-01-01")
    more = "\n".join(session_lines([RECORD], 3))
    assert more.endswith("\n1 of 3 sessions, the newest: --limit for more")
    assert "--limit" not in "\n".join(session_lines([RECORD], 1))


HELD = HeldCall(
    "c", "wire", {"amount": 1}, "p1", ("boss", "head"), 2, 0.0, None, 3,
    rulings=(Ruling("approve", "ann", "boss", "fine", 4),),
)  # fmt: skip


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (Waiting((), (), False), ["nothing waits"]),
        (
            Waiting((HELD,), (), True),
            [
                'c  waiting  wire {"amount": 1}  1 of 2 from boss, head',
                "  approve by ann as boss (unauthenticated)",
            ],
        ),
        (
            Waiting((replace(HELD, why="`a` is not proven", rulings=()),), (), True),
            [
                'c  waiting  wire {"amount": 1}  0 of 2 from boss, head',
                "  not proven: `a` is not proven",
            ],
        ),
        (
            Waiting((), (LeftOpen("s", "d", "wire"),), False, ({"by": "ann"},)),
            [
                "d  outcome unknown: settle it with `sopilot approvals resolve`",
                'left for the running session, not on record yet: {"by": "ann"}',
            ],
        ),
        (
            Waiting((), (), False, ({"by": "ann"},)),
            [
                'left for the running session, not on record yet: {"by": "ann"}',
                "nothing waits",
            ],
        ),
    ],
)
def test_what_waits_for_people(found: Waiting, lines: list[str]) -> None:
    assert list(waiting_lines(found)) == lines


def test_what_waits_as_scripts_read_it() -> None:
    found = Waiting((HELD,), (LeftOpen("s", "d", "wire"),), True, ({"by": "ann"},)).as_json()
    assert (found["unknown"], found["running"], found["left"]) == (["d"], True, [{"by": "ann"}])
    assert found["held"] == [HELD.as_json()]
    assert LeftOpen("s", "d", "wire").as_json() == {
        "session": "s", "call_id": "d", "action": "wire",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (Problem("code", "wrong"), "code: wrong"),
        (Problem("code", "wrong", 0), "code: wrong (event 0)"),
        (Problem("code", "wrong", 7), "code: wrong (event 7)"),
    ],
)
def test_a_problem_says_where(problem: Problem, words: str) -> None:
    assert str(problem) == words


def test_errors_say_whose_move_it_is() -> None:
    held = LeaseHeld("s", "me", 12.0, 9.5)
    assert (held.seconds_left, held.expires_at, held.owner) == (2.5, 12.0, "me")
    assert "owned by `me` for another 2 s; wait" in str(held)
    assert LeaseHeld("s", "me", 9.0, 9.5).seconds_left == 0.0
    assert "stands at event 3, not at 5" in str(Conflict("s", 5, 3))
    assert TraceBroken("s", 4).index == 4
    assert "broken at event 4" in str(TraceBroken("s", 4))
    assert Pruned("s").session_id == "s"
    changed = ProgramChanged({"b": (None, "1234567890abcdef"), "a": ("fedcba0987654321", None)})
    assert isinstance(changed, UserMistake)
    assert [one.message.partition("(")[2] for one in changed.diagnostics] == [
        "fedcba098765 then, none now)",
        "none then, 1234567890ab now)",
    ]
    assert changed.changes["a"] == ("fedcba0987654321", None)


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (Pruning((), {}, (), 0), ["0 events of 0 sessions were deleted"]),
        (Pruning(("a",), {}, (), 1, True), ["1 event of 1 session would be deleted"]),
        (
            Pruning(("a", "b"), {"c": "a case"}, ("d",), 9),
            ["9 events of 2 sessions were deleted", "c is on hold: a case", "d is running"],
        ),
    ],
)
def test_what_was_pruned(found: Pruning, lines: list[str]) -> None:
    assert found.lines() == lines
    told = found.as_json()
    assert (told["pruned"], told["events"]) == (list(found.pruned), found.events)
    assert (told["held"], told["running"]) == (dict(found.held), list(found.running))
    assert told["dry_run"] is found.dry


def test_who_can_decide_in_time() -> None:
    due = DueCall("s", "c", "wire", 1, 2, None, {"boss": ["ann"], "head": []}, {"head": "boss"})
    assert list(due_lines([due])) == [
        "s c  wire  1 of 2 without an end",
        "  boss: ann",
        "  head, or boss in its place: nobody is named",
    ]
    (first, *_) = due_lines([replace(due, expires_at=60.0)])
    assert first.startswith("s c  wire  1 of 2 until 1970-01-01")
    assert list(due_lines([])) == ["nothing waits"]
    assert due.as_json() == {
        "session": "s", "call_id": "c", "action": "wire", "approvals": 1, "needed": 2,
        "expires_at": None, "people": {"boss": ["ann"], "head": []}, "escalated": {"head": "boss"},
    }  # fmt: skip
    assert due.noted_as == "s c head"
    assert replace(due, escalated={"b": "x", "a": "y"}).noted_as == "s c a,b"


# --- a store held against a seal ------------------------------------------------------


def seal() -> SealedHead:
    return seal_head(generate_key(), head_of((), 60.0))


@pytest.mark.parametrize(
    ("counts", "without_events", "said", "unsaid"),
    [
        (
            {"sessions": 3},
            False,
            ["all 3 sessions that", "unaltered: every event"],
            ["not covered"],
        ),
        ({"sessions": 3, "journals": 1}, False, ["all 2 sessions and 1 journal that"], []),
        (
            {"sessions": 3, "events_read": 1},
            True,
            ["not read: the events of 2 sessions, whose"],
            ["unaltered", "pruned"],
        ),
        ({"sessions": 3, "pruned": 1}, False, ["pruned: the events of 1 session were"], []),
        ({"sessions": 3, "moved": 2}, False, ["journals 2 went on, 0 began since"], ["pruned"]),
        ({"sessions": 3, "unsealed": ["x"]}, False, ["journals 0 went on, 1 began since"], []),
    ],
)
def test_a_store_that_is_complete(
    counts: dict[str, Any], without_events: bool, said: list[str], unsaid: list[str]
) -> None:
    found = Verified([], seal(), **counts)
    text = "\n".join(verified_lines(found, without_events))
    assert all(one in text for one in said), text
    assert not any(one in text for one in unsaid), text
    assert text.startswith("complete: ")
    assert text.endswith("that everything was recorded")
    told: Any = verified_json(found, without_events)
    assert told["complete"] is True
    assert told["without_events"] is without_events
    assert told["sessions"] == found.sessions - found.journals
    assert told["not_covered"] == {"entries": 0, "sessions": len(found.unsealed)}
    assert (told["events_read"], told["pruned"]) == (found.events_read, found.pruned)
    assert (told["journals"], told["gone_on"]) == (found.journals, found.moved)


def test_gaps_are_all_that_is_said() -> None:
    gaps = [Gap("missing", "session s is gone", "s", 4), Gap("bad", "not signed")]
    found = Verified(gaps, seal())
    (first, second, third) = verified_lines(found, False)
    assert (first, second) == ("missing: session s is gone", "bad: not signed")
    assert third.startswith("2 gaps against the head of 1970-01-01")
    told: Any = verified_json(found, False)
    assert (told["complete"], [one["entry"] for one in told["gaps"]]) == (False, [4, None])
    assert (found.sessions, found.events_read, found.moved, found.later) == (0, 0, 0, 0)


# --- settings -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(inline_limit=None, lease_seconds=1.5),
        Settings(by_reference=frozenset({"b", "a"}), inline_limit=10),
        Settings(private=True, columns=frozenset({"y", "x"})),
    ],
)
def test_settings_come_back_as_they_were(settings: Settings) -> None:
    told = settings.as_json()
    assert settings_from_json(told) == settings
    assert ("private" in told) is settings.private
    assert told["by_reference"] == sorted(settings.by_reference)


@pytest.mark.parametrize(
    "wrong",
    [
        "text",
        {"inline_limit": "many"},
        {"inline_limit": True},
        {"lease_seconds": None},
        {"lease_seconds": False},
        {"by_reference": "name"},
        {"columns": {"a": 1}},
        {"automation": {next(iter(asdict(Automation()))): 1}},
        {"limits": {next(iter(asdict(Limits()))): True}},
    ],
)
def test_settings_of_the_wrong_kind_are_refused(wrong: Any) -> None:
    with pytest.raises(UserMistake):
        settings_from_json(wrong)


def test_what_settings_do_not_say_is_as_ever() -> None:
    assert settings_from_json({}) == Settings()
    assert settings_from_json({"later": 1, "private": 1, "limits": None}) == Settings()
    assert (Settings().inline_limit, Settings().lease_seconds) == (16_384, 3.0)
