"""`register`, `seal`, `verify` and `prove`, as a person uses them."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from counter_desk import COUNTER, ERRANDS, HandClock, walk
from counter_sessions import attempt, opened, run
from sopilot.records.journal import write
from sopilot.stores.open import open_store
from sopilot.trace.signing import generate_key, write_key

KEY = generate_key()


@pytest.fixture
async def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of two sessions in the default store: a transfer, and a wire that waits."""
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path))
    monkeypatch.delenv("SOPILOT_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    write_key(KEY, tmp_path / "seal.key")
    monkeypatch.setitem(ERRANDS, "transfer", {**ERRANDS["transfer"], "to": "=bob"})

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


def actions(*options: str) -> str:
    return run("records", "actions", *options).output


def test_the_register_answers_and_counts(sessions: list[str]) -> None:
    text = actions("--where", "amount>=100", "--columns", "amount,to")
    for part in (
        "1 × transfer carried out", "amount of what was carried out: 100", "2 of 3 actions",
        "2026-07-02", "proven",
    ):  # fmt: skip
        assert part in text
    whole = json.loads(actions("--action", "wire", "--json"))
    [wire] = whole["actions"]
    assert (wire["session"], wire["outcome"]) == (sessions[1], "expired")
    assert (wire["awaits"], wire["program"]) == ("approval", COUNTER.hashes["wire"])
    assert whole["counts"] == [{"action": "wire", "outcome": "expired", "count": 1}]
    assert "1 × wire expired" in actions("--action", "wire")
    assert actions("--from", "2026-08-01").startswith("0 of ")
    for day, count in (("2026-07-02", 1), ("2026-07-01", 0)):
        assert actions("--to", day, "--action", "transfer").count("bob") == count


def test_customers_cannot_write_formulas_into_a_csv(sessions: list[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(actions("--csv", "--columns", "to,amount"))))
    assert {row["action"] for row in rows} == {"login", "transfer", "wire"}
    transfers = [row for row in rows if row["action"] == "transfer"]
    assert [(row["to"], row["amount"]) for row in transfers] == [("'=bob", "100")]


def test_a_condition_that_is_none_is_refused(sessions: list[str]) -> None:
    answer = run("records", "actions", "--where", "amount")
    assert answer.exit_code == 2
    assert "amount>1000" in answer.output


def test_a_register_that_was_altered_is_made_anew(sessions: list[str], tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "sessions.db") as db:
        db.execute("DELETE FROM actions")
    db.close()
    assert actions().startswith("0 of 0")
    assert "1 × transfer carried out" in actions("--rebuild")


def test_seal_verify_prove_and_what_is_missing(sessions: list[str], tmp_path: Path) -> None:
    sealed = run("records", "seal", "--key", "seal.key", "--to", "heads.jsonl")
    assert sealed.exit_code == 0, sealed.output
    good = ("records", "verify", "--head", "heads.jsonl", "--key", KEY.public)
    result = run(*good).output
    assert result.startswith("complete: all 2 sessions")
    assert "not proven by this" in result
    quick = json.loads(run(*good, "--without-events", "--json").output)
    assert (quick["complete"], quick["events_read"], quick["sessions"]) == (True, 0, 2)
    proof = run("records", "prove", sessions[0], "--head", "heads.jsonl")
    Path("proof.json").write_text(proof.output)
    proof = run("records", "verify", "--proof", "proof.json", "--key", KEY.public)
    assert proof.output.startswith(f"proven: session {sessions[0]}")
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
    assert f"deleted-session: session {sessions[0]} is gone" in answer.output
    refused = run("records", "seal", "--key", "seal.key")
    assert refused.exit_code == 1
    assert "nothing was sealed" in refused.output


def test_an_altered_row_is_named_without_reading_events(
    sessions: list[str], tmp_path: Path
) -> None:
    run("records", "seal", "--key", "seal.key", "--to", "heads.jsonl")
    head = ("--head", "heads.jsonl", "--key", KEY.public)
    good = ("records", "verify", *head, "--without-events", "--json")
    whole = run(*good)
    assert (whole.exit_code, json.loads(whole.output)["sessions"]) == (0, 2)
    with sqlite3.connect(tmp_path / "sessions.db") as db:
        db.execute("UPDATE actions SET arguments = '{}'")
    db.close()
    gaps = json.loads(run(*good).output)["gaps"]
    assert {gap["code"] for gap in gaps} == {"register-differs"}


def test_a_second_store_has_heads_and_proves_the_first(sessions: list[str], tmp_path: Path) -> None:
    keeper = f"sqlite:{tmp_path}/elsewhere/keeper.db#ours"
    seal = ("records", "seal", "--key", "seal.key", "--to", keeper, "--to", "heads.jsonl")
    assert "sent to sqlite:" in run(*seal).output
    assert json.loads(run(*seal, "--json").output)["added"] == 0
    good = ("records", "verify", "--head", keeper, "--key", KEY.public)
    assert run(*good).output.startswith("complete: all 2 sessions")
    Path("proof.json").write_text(run("records", "prove", sessions[0], "--head", keeper).output)
    assert run("records", "verify", "--proof", "proof.json", "--key", KEY.public).exit_code == 0
    nothing = run("records", "verify", "--head", keeper + "x", "--key", KEY.public)
    assert "no sealed heads" in nothing.output
    with sqlite3.connect(tmp_path / "sessions.db") as db:
        db.execute("DELETE FROM log WHERE number = 1")
        db.execute("UPDATE log SET number = number - 1 WHERE number > 1")
    db.close()
    result = run(*good)
    assert result.exit_code == 1
    assert "rewritten-entry" in result.output
    assert "differ from the log" in run(*seal).output, "nothing is sealed over it"
    of_keeper = ("--store", f"sqlite:{tmp_path}/elsewhere/keeper.db")
    sealed = run("records", "seal", "--key", "seal.key", "--to", "keeper.jsonl", *of_keeper)
    assert sealed.exit_code == 0
    own = run("records", "verify", "--head", "keeper.jsonl", "--key", KEY.public, *of_keeper)
    assert own.exit_code == 0, "what it keeps stands in its own log"


def test_the_register_has_what_audits_found(sessions: list[str], deviations: None) -> None:
    text = actions("--action", "transfer")
    assert "FINDINGS" in text
    assert "early-action (open)" in text
    (row,) = csv.DictReader(io.StringIO(actions("--action", "transfer", "--csv")))
    assert row["findings"] == "early-action (open); late-check (open)"
    (one,) = json.loads(actions("--action", "wire", "--json"))["actions"]
    assert one["findings"] == []


@pytest.fixture
async def deviations(sessions: list[str]) -> None:
    store = open_store()
    for code in ("early-action", "late-check"):
        finding = {"session": sessions[0], "code": code, "event": 3, "explanation": ""}
        details = {**finding, "sentence": "", "by": "Ada", "identity": "unauthenticated"}
        await write(store, "deviations", "deviation_opened", details, clock=HandClock())
    await store.close()


def test_a_head_is_posted_with_its_entries(sessions: list[str]) -> None:
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
