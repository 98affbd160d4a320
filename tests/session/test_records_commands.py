"""`register`, `seal`, `verify` and `prove`, as a person uses them."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from counter_sessions import attempt, opened, run

from counter_desk import COUNTER, HandClock, walk
from sopilot.records.journal import write
from sopilot.stores.open import open_store
from sopilot.trace.signing import generate_key, write_key

KEY = generate_key()


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of two sessions in the default store: a transfer, and a wire that waits."""
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path))
    monkeypatch.delenv("SOPILOT_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    write_key(KEY, tmp_path / "seal.key")

    async def prepare() -> list[str]:
        store, ids = open_store(), []
        for goal in ("transfer", "wire"):
            clock = HandClock(1_783_000_000.0)
            session = await opened(store, clock=clock, handbook="counter", model="m", view="pg")
            await walk(session, goal, stop_at_action="wire")
            if goal == "wire":
                await attempt(session, "wire", "w")
            await session.release()
            ids.append(session.id)
        await store.close()
        return ids

    return asyncio.run(prepare())


def test_the_register_answers_and_counts(kept: list[str]) -> None:
    text = run("records", "actions", "--where", "amount>=100", "--columns", "amount,to").output
    assert "1 × transfer carried out" in text
    assert "amount of what was carried out: 100" in text
    assert "2 of 3 actions in the register" in text or "2 of 2 actions" in text
    assert "2026-07-02" in text
    assert "proven" in text
    whole = json.loads(run("records", "actions", "--action", "wire", "--json").output)
    [wire] = whole["actions"]
    assert (wire["session"], wire["outcome"], wire["awaits"]) == (kept[1], "expired", "approval")
    assert whole["counts"] == [{"action": "wire", "outcome": "expired", "count": 1}]
    assert "1 × wire expired" in run("records", "actions", "--action", "wire").output
    assert wire["program"] == COUNTER.hashes["wire"]
    rows = list(
        csv.DictReader(io.StringIO(run("records", "actions", "--csv", "--columns", "to").output))
    )
    assert {row["action"] for row in rows} >= {"transfer", "wire"}
    assert [row["to"] for row in rows if row["action"] == "transfer"] == ["bob"]
    assert run("records", "actions", "--from", "2026-08-01").output.startswith("0 of ")
    assert (
        run("records", "actions", "--to", "2026-07-02", "--action", "transfer").output.count("bob")
        == 1
    )
    assert (
        run("records", "actions", "--to", "2026-07-01", "--action", "transfer").output.count("bob")
        == 0
    )


def test_a_condition_that_is_none_is_refused(kept: list[str]) -> None:
    answer = run("records", "actions", "--where", "amount")
    assert answer.exit_code == 2
    assert "amount>1000" in answer.output


def test_customers_cannot_write_formulas_into_a_csv(kept: list[str]) -> None:
    from sopilot.records.selection import _harmless

    assert _harmless("=cmd()") == "'=cmd()"
    assert _harmless("-5.20") == "-5.20"
    assert _harmless("") == ""


def test_a_register_that_was_altered_is_made_anew(kept: list[str], tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "sessions.db") as db:
        db.execute("DELETE FROM actions")
    db.close()
    assert run("records", "actions").output.startswith("0 of 0")
    assert "1 × transfer carried out" in run("records", "actions", "--rebuild").output


def test_seal_verify_prove_and_what_is_missing(kept: list[str], tmp_path: Path) -> None:
    sealed = run("records", "seal", "--key", "seal.key", "--to", "heads.jsonl")
    assert sealed.exit_code == 0, sealed.output
    good = ("records", "verify", "--head", "heads.jsonl", "--key", KEY.public)
    told = run(*good).output
    assert told.startswith("complete: all 2 sessions")
    assert "not proven by this" in told
    quick = json.loads(run(*good, "--without-events", "--json").output)
    assert (quick["complete"], quick["events_read"], quick["sessions"]) == (True, 0, 2)
    Path("proof.json").write_text(run("records", "prove", kept[0], "--head", "heads.jsonl").output)
    proof = run("records", "verify", "--proof", "proof.json", "--key", KEY.public)
    assert proof.output.startswith(f"proven: session {kept[0]}")
    assert run("records", "verify", "--proof", "proof.json", "--key", "00" * 32).exit_code == 1
    again = run("records", "seal", "--key", "seal.key", "--to", "heads.jsonl", "--json")
    assert json.loads(again.output)["added"] == 0
    assert run(*good).exit_code == 0
    with sqlite3.connect(tmp_path / "sessions.db") as db:
        for table in ("events", "actions", "heads", "payloads"):
            column = "place / 4294967296" if table == "events" else "session"
            db.execute(f"DELETE FROM {table} WHERE {column} = 1")
        db.execute("DELETE FROM sessions WHERE number = 1")
    db.close()
    answer = run(*good)
    assert answer.exit_code == 1
    assert f"deleted-session: session {kept[0]} is gone" in answer.output
    refused = run("records", "seal", "--key", "seal.key")
    assert refused.exit_code == 1
    assert "nothing was sealed" in refused.output


def test_a_long_log_is_verified_by_two_processes_with_the_same_answer(
    kept: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sopilot.cli.records._LONG_LOG", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    run("records", "seal", "--key", "seal.key", "--to", "heads.jsonl")
    good = (
        "records",
        "verify",
        "--head",
        "heads.jsonl",
        "--key",
        KEY.public,
        "--without-events",
        "--json",
    )
    whole = run(*good)
    assert (whole.exit_code, json.loads(whole.output)["sessions"]) == (0, 2)
    with sqlite3.connect(tmp_path / "sessions.db") as db:
        db.execute("UPDATE actions SET arguments = '{}'")
    db.close()
    gaps = json.loads(run(*good).output)["gaps"]
    assert {gap["code"] for gap in gaps} == {"register-differs"}


def test_a_second_store_keeps_heads_and_proves_the_first(kept: list[str], tmp_path: Path) -> None:
    keeper = f"sqlite:{tmp_path}/elsewhere/keeper.db#ours"
    seal = ("records", "seal", "--key", "seal.key", "--to", keeper, "--to", "heads.jsonl")
    assert "sent to sqlite:" in run(*seal).output
    assert json.loads(run(*seal, "--json").output)["added"] == 0
    good = ("records", "verify", "--head", keeper, "--key", KEY.public)
    assert run(*good).output.startswith("complete: all 2 sessions")
    Path("proof.json").write_text(run("records", "prove", kept[0], "--head", keeper).output)
    assert run("records", "verify", "--proof", "proof.json", "--key", KEY.public).exit_code == 0
    assert (
        "no sealed heads"
        in run("records", "verify", "--head", keeper + "x", "--key", KEY.public).output
    )
    with sqlite3.connect(tmp_path / "sessions.db") as db:
        db.execute("DELETE FROM log WHERE number = 1")
        db.execute("UPDATE log SET number = number - 1 WHERE number > 1")
    db.close()
    told = run(*good)
    assert told.exit_code == 1
    assert "rewritten-entry" in told.output
    assert "other entries than the log" in run(*seal).output, "nothing is sealed over it"
    of_keeper = ("--store", f"sqlite:{tmp_path}/elsewhere/keeper.db")
    assert (
        run("records", "seal", "--key", "seal.key", "--to", "keeper.jsonl", *of_keeper).exit_code
        == 0
    )
    own = run("records", "verify", "--head", "keeper.jsonl", "--key", KEY.public, *of_keeper)
    assert own.exit_code == 0, "what it keeps stands in its own log"


def test_the_register_has_what_audits_found(kept: list[str]) -> None:
    asyncio.run(_found_wrong(kept[0]))
    text = run("records", "actions", "--action", "transfer").output
    assert "FINDINGS" in text
    assert "early-action (open)" in text
    (row,) = csv.DictReader(
        io.StringIO(run("records", "actions", "--action", "transfer", "--csv").output)
    )
    assert row["findings"] == "early-action (open); late-check (open)"
    (one,) = json.loads(run("records", "actions", "--action", "wire", "--json").output)["actions"]
    assert one["findings"] == []


async def _found_wrong(session_id: str) -> None:
    store = open_store()
    for code in ("early-action", "late-check"):
        found = {"session": session_id, "code": code, "event": 3, "explanation": "", "sentence": ""}
        opened = {**found, "by": "Ada", "identity": "unauthenticated"}
        await write(store, "deviations", "deviation_opened", opened, clock=HandClock())
    await store.close()


def test_a_head_is_posted_with_its_entries(kept: list[str]) -> None:
    bodies: list[dict[str, object]] = []

    class Keeper(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200 if len(bodies) == 1 else 500)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = HTTPServer(("127.0.0.1", 0), Keeper)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/heads"
        assert run("records", "seal", "--key", "seal.key", "--to", url).exit_code == 0
        assert len(bodies[0]["entries"]) == 4  # type: ignore[arg-type]
        refused = run("records", "seal", "--key", "seal.key", "--to", url)
        assert refused.exit_code == 1
        assert "status 500" in refused.output
        assert bodies[1]["entries"] == []
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
