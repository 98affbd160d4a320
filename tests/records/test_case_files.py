"""Audits are records, and deviations have a life that a second person ends."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake
from sopilot.records.log import PREFIX
from sopilot.runner.audit_inputs import session_input
from sopilot.runner.audit_store import on_record
from sopilot.stores.open import open_store
from sopilot.trace.signing import generate_key, write_key


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{tmp_path}/store.db")
    return f"sqlite:{tmp_path}/store.db"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(sopilot, list(arguments))


def refused(*arguments: str) -> str:
    problem = run(*arguments).exception
    assert isinstance(problem, UserMistake), problem
    return problem.diagnostics[0].code


def bare_transfer() -> str:
    started = run("lab", "play", "start", "bank/transfer-rent-share", "--json")
    session = str(json.loads(started.stdout)["session"])
    run(
        "lab",
        "play",
        "call",
        session,
        "transfer",
        '{"username": "anna", "to": "ben", "amount": 200}',
    )
    run("lab", "play", "finish", session)
    return session


def listed(*more: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        run("records", "deviations", "list", "--json", *more).stdout
    )["deviations"]  # fmt: skip
    return found


def test_a_deviation_lives_from_the_audit_to_a_second_person(spec: str, tmp_path: Path) -> None:
    session = bare_transfer()
    key = tmp_path / "audit.key"
    write_key(generate_key(), key)
    assert "kept as audit 0" in run("audit", session, "--keep", "--key", str(key)).stdout
    assert [one["code"] for one in listed()] == ["premature-goal", *["skipped-check"] * 10]
    again = json.loads(run("audit", session, "--keep", "--json").stdout)
    assert again["kept"] == 1
    assert [one["differences"] for one in again["earlier_audits"]] == [[]]
    assert again["earlier_audits"][0]["signature_holds"] is True
    assert len(listed()) == 11  # each once
    first = str(listed()[0]["deviation"])
    late = ("assign", first, "--owner", "Olga", "--due", "2026-01-31", "--as", "Max")
    assert run("records", "deviations", *late).stdout == f"deviation {first}: open\n"
    assert [one["owner"] for one in listed("--overdue")] == ["Olga"]
    assert refused("records", "deviations", "close", first, "--as", "Cleo") == "not-judged"
    assert refused("records", "deviations", "comment", first, "seen") == "nobody"
    run("records", "deviations", "comment", first, "the agent skipped the login", "--as", "Olga")
    judged = ("judge", first, "true", "--cause", "no guard", "--remedy", "irreversible: true")
    run("records", "deviations", *judged, "--as", "Juno")
    assert refused("records", "deviations", "close", first, "--as", "ＪＵＮＯ") == "same-person"
    assert refused("records", "deviations", "close", first, "--as", "olga") == "same-person"
    run("records", "deviations", "close", first, "--as", "Cleo")
    (closed,) = listed("--state", "closed")
    assert (closed["disposition"], closed["cause"]) == ("true", "no guard")
    assert (closed["judged_by"], closed["closed_by"]) == ("Juno", "Cleo")
    assert [one["entry"] for one in closed["history"]] == [
        "deviation_assigned", "deviation_commented", "deviation_judged", "deviation_closed",
    ]  # fmt: skip
    assert {one["identity"] for one in closed["history"]} == {"unauthenticated"}
    assert (
        refused("records", "deviations", "judge", first, "true", "--cause", "x", "--as", "A")
        == "closed"
    )
    run("records", "deviations", "reopen", first, "--why", "it came back", "--as", "Cleo")
    assert len(listed("--state", "open")) == 11
    assert "11 of 11 deviations" in run("records", "deviations", "list").stdout


def test_a_release_that_judges_otherwise_says_so(spec: str) -> None:
    session = bare_transfer()

    async def judged() -> dict[str, Any]:
        store = open_store(spec)
        report = (await session_input(store, session, handbook=None, goal=None)).audit()[0].report
        milder = replace(report, findings=report.findings[:1])
        await on_record(store, milder, keep=True, release="0.0.1")
        found = await on_record(store, report, keep=False)
        await store.close()
        return found

    (earlier,) = asyncio.run(judged())["earlier_audits"]
    assert (earlier["release"], earlier["signature_holds"]) == ("0.0.1", None)
    assert len(earlier["differences"]) == 10
    assert all(one.startswith("newly found: skipped-check") for one in earlier["differences"])
    told = run("audit", session).stdout
    assert "judged otherwise than audit 0 of release 0.0.1: newly found: skipped-check" in told


def test_the_journals_are_sealed_and_verified_with_the_sessions(spec: str, tmp_path: Path) -> None:
    import sqlite3

    session = bare_transfer()
    run("audit", session, "--keep")
    run("trace", "keygen", str(tmp_path / "seal.key"))
    heads = str(tmp_path / "heads.jsonl")
    run("records", "seal", "--key", str(tmp_path / "seal.key"), "--to", heads)
    check = ("records", "verify", "--head", heads, "--key", str(tmp_path / "seal.key.pub"))
    whole = run(*check)
    assert (whole.exit_code, whole.exception) == (0, None), whole.stdout
    with sqlite3.connect(tmp_path / "store.db") as db:
        number = db.execute(
            "SELECT number FROM sessions WHERE id = ?", (f"{PREFIX}deviations",)
        ).fetchone()[0]
        db.execute("DELETE FROM events WHERE place / 4294967296 = ?", (number,))
        db.execute("DELETE FROM heads WHERE session = ?", (number,))
        db.execute("DELETE FROM sessions WHERE number = ?", (number,))
    gone = run(*check)
    assert gone.exit_code == 1
    assert f"{PREFIX}deviations is gone" in gone.stdout
