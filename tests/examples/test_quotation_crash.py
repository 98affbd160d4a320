"""A run that is killed, at whatever moment, goes on and releases nothing twice."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from quotation_runs import EXAMPLE

from quotation.checking import read_cells

PATIENCE = 120.0


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "sopilot.cli.main", *arguments]


def events(database: Path) -> int:
    if not database.exists():
        return 0
    try:
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        try:
            [row] = connection.execute("SELECT count(*) FROM events")
            return int(row[0])
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return 0


def killed_and_resumed(tmp_path: Path, after: int) -> dict[str, object]:
    database, out = tmp_path / "sessions.db", tmp_path / "out"
    store = ("--store", f"sqlite:{database}")
    run = subprocess.Popen(
        command("run", str(EXAMPLE), "--task", "1", "--out", str(out), "--json", *store),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + PATIENCE
    while events(database) < after and run.poll() is None and time.monotonic() < until:
        time.sleep(0.002)
    assert run.poll() is None, "the run was over before it could be killed"
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    connection = sqlite3.connect(database)
    [(session_id,)] = connection.execute("SELECT id FROM sessions")
    connection.close()
    resumed = subprocess.run(
        command("resume", str(session_id), "--take-over", "--json", *store),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert resumed.returncode == 0, resumed.stderr
    document: dict[str, object] = json.loads(resumed.stdout)
    return document


def check(tmp_path: Path, document: dict[str, object]) -> None:
    assert document["ending"] == "executed"
    out = tmp_path / "out"
    made = json.loads((out / "case.json").read_text(encoding="utf-8"))["made"]
    assert len(made) == 1
    assert [path.name for path in (out / "outbox").glob("*.xlsx")] == ["Q-2041.xlsx"]
    assert read_cells(out / "outbox" / "Q-2041.xlsx") == read_cells(out / "Q-2041.xlsx")


def test_killed_in_the_middle(tmp_path: Path) -> None:
    check(tmp_path, killed_and_resumed(tmp_path, after=60))


@pytest.mark.slow
@pytest.mark.parametrize("after", [3, 20, 45, 80, 100, 110, 115, 120, 125])
def test_killed_anywhere(after: int, tmp_path: Path) -> None:
    check(tmp_path, killed_and_resumed(tmp_path, after=after))
