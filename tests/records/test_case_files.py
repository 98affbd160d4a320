"""Audits are records, and deviations have a life that a second person ends."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from commands import bare_transfer, ran, refused, run, shown
from sopilot.runner.audit_inputs import session_input
from sopilot.runner.audit_store import on_record
from sopilot.stores.open import open_store
from sopilot.trace.signing import generate_key, write_key


def deviations(*words: object) -> str:
    return ran("records", "deviations", *words)


def listed(*more: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shown("records", "deviations", "list", *more)["deviations"]
    return found


def test_a_deviation_lives_from_the_audit_to_a_second_person(tmp_path: Path) -> None:
    session, _ = bare_transfer()
    key = tmp_path / "audit.key"
    write_key(generate_key(), key)
    assert "kept as audit 0" in run("audit", session, "--keep", "--key", key).stdout
    assert [one["code"] for one in listed()] == ["premature-goal", *["skipped-check"] * 10]
    again = json.loads(run("audit", session, "--keep", "--json").stdout)
    assert again["kept"] == 1
    assert [one["differences"] for one in again["earlier_audits"]] == [[]]
    assert again["earlier_audits"][0]["signature_holds"] is True
    assert len(listed()) == 11  # each once
    first = listed()[0]["deviation"]
    step = ("records", "deviations")
    late = ("assign", first, "--owner", "Olga", "--due", "2026-01-31", "--as", "Max")
    assert deviations(*late) == f"deviation {first}: open\n"
    assert [one["owner"] for one in listed("--overdue")] == ["Olga"]
    assert " 2026-01-31 late" in deviations("list", "--overdue")
    assert refused(*step, "close", first, "--as", "Cleo") == "not-judged"
    assert refused(*step, "comment", first, "seen") == "nobody"
    deviations("comment", first, "the agent skipped the login", "--as", "Olga")
    deviations("judge", first, "true", "--cause", "no guard", "--remedy", "mend", "--as", "Juno")
    assert refused(*step, "close", first, "--as", "ＪＵＮＯ") == "same-person"
    assert refused(*step, "close", first, "--as", "olga") == "same-person"
    deviations("close", first, "--as", "Cleo")
    (closed,) = listed("--state", "closed")
    assert (closed["disposition"], closed["cause"]) == ("true", "no guard")
    assert (closed["judged_by"], closed["closed_by"]) == ("Juno", "Cleo")
    assert [one["entry"] for one in closed["history"]] == [
        "deviation_assigned", "deviation_commented", "deviation_judged", "deviation_closed",
    ]  # fmt: skip
    assert {one["identity"] for one in closed["history"]} == {"unauthenticated"}
    assert refused(*step, "judge", first, "true", "--cause", "x", "--as", "A") == "closed"
    deviations("reopen", first, "--why", "it came back", "--as", "Cleo")
    assert len(listed("--state", "open")) == 11


def test_a_release_that_judges_otherwise_says_so(own_store: str) -> None:
    session, _ = bare_transfer()

    async def judged() -> dict[str, Any]:
        store = open_store(own_store)
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
    assert "judged differently from audit 0 of release 0.0.1: newly found: skipped-check" in told
