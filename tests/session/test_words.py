"""What people and scripts read about sessions, word for word, and the errors they meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import pytest

from sopilot.machine.automation import Automation
from sopilot.machine.layout import Limits
from sopilot.messages.errors import (
    UserMistake,
)
from sopilot.records.store import SessionRecord, Settings, settings_from_json
from sopilot.trace.chain import Head
from sopilot.values.json import JSON

RECORD = SessionRecord(
    "s1",
    0.0,
    60.0,
    {"handbook": "bank", "model": "m", "salt": "ab"},
    {"status": "running", "goal": "pay"},
    Head("s1", 4, "h"),
)


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


# --- a store held against a seal ------------------------------------------------------


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
