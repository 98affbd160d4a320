"""`sopilot audit --all`: every session of a store, in parts, by several processes."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from counter_desk import HandClock, walk
from counter_sessions import opened
from sopilot.cli.main import sopilot
from sopilot.runner import audit_store
from sopilot.stores.sqlite import SQLiteStore

EXPECTED = {"outcomes": {"abandoned": 1, "completed": 5}, "sessions": 6, "clean": 6}
_IDS = [f"{number:032x}" for number in range(1, 7)]


@pytest.fixture
async def store(tmp_path: Path) -> str:
    """Five sessions that completed on five days, and one in which nothing happened."""
    database = SQLiteStore(tmp_path / "s.db")
    for number, session_id in enumerate(_IDS):
        clock = HandClock(1_800_000_000.0 + number * 86_400)
        session = await opened(database, clock=clock, session_id=session_id)
        if number < 5:
            await walk(session, "transfer")
        await session.release()
    await database.close()
    return f"sqlite:{tmp_path / 's.db'}"


def audit_all(store: str, *more: str) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(sopilot, ["audit", "--all", "--store", store, "--json", *more])
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_every_session_is_judged_whatever_the_number_of_workers(
    store: str, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_store, "_PART", 4)
    code, report = audit_all(store, "--workers", workers)
    assert code == 0
    assert report["clean"] is True
    assert (report["found"], report["not_judged"]) == ({}, {})
    assert {name: report["batch"][name] for name in EXPECTED} == EXPECTED
    assert report["batch"]["grades"] == {"proven": 15}


@pytest.mark.parametrize(
    ("period", "sessions"),
    [
        (["--from", "2027-01-16"], 5),
        (["--to", "2027-01-16"], 2),
        (["--from", "2027-01-17", "--to", "2027-01-18"], 2),
        (["--from", "2028-01-01"], 0),
    ],
)
def test_a_period_selects_sessions(store: str, period: Sequence[str], sessions: int) -> None:
    code, report = audit_all(store, *period)
    assert (code, report["batch"]["sessions"]) == (0, sessions)


def test_altered_and_unreadable_sessions_are_named(store: str) -> None:
    with sqlite3.connect(store.removeprefix("sqlite:")) as database:
        for sql, session_id in (
            ("UPDATE events SET line = replace(line, 'domain_call', 'domain_wall')", _IDS[1]),
            ("DELETE FROM events", _IDS[2]),
        ):
            inside = "place >> 32 = (SELECT number FROM sessions WHERE id = ?)"
            assert database.execute(f"{sql} WHERE {inside}", [session_id]).rowcount
    code, report = audit_all(store)
    assert code == 1
    assert report["clean"] is False
    assert set(report["found"]) | set(report["not_judged"]) == {_IDS[1], _IDS[2]}
    assert report["batch"]["sessions"] + len(report["not_judged"]) == 6
    result = CliRunner().invoke(sopilot, ["audit", "--all", "--store", store])
    assert result.exit_code == 1
    assert _IDS[1] in result.output
    assert _IDS[2] in result.output
    assert _IDS[0] not in result.output
    assert any(line.startswith("outcomes: ") for line in result.output.splitlines())


def test_the_audit_is_stored_with_each_session(store: str) -> None:
    assert audit_all(store, "--keep", "--workers", "1")[0] == 0
    result = CliRunner().invoke(sopilot, ["audit", _IDS[0], "--store", store, "--json"])
    assert len(json.loads(result.stdout)["earlier_audits"]) == 1


@pytest.mark.parametrize(
    "arguments", [[], ["--all", "ID"], ["--all", "--goal", "g"], ["ID", "--workers", "2"]]
)
def test_either_one_session_or_all(store: str, arguments: Sequence[str]) -> None:
    result = CliRunner().invoke(sopilot, ["audit", "--store", store, *arguments])
    assert result.exit_code == 2


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra `ray`")
def test_on_ray(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_store, "_PART", 2)
    code, report = audit_all(store, "--on", "ray", "--workers", "2")
    assert code == 0
    assert {name: report["batch"][name] for name in EXPECTED} == EXPECTED
