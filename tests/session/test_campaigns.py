"""The campaigns of `benchmarks/`, small every day and whole on request."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(script: str, *arguments: str, report: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *arguments, "--json", str(report)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    return found


@pytest.mark.parametrize(
    ("kills", "stops", "lanes"),
    [(40, 2, 1), pytest.param(10_000, 500, 4, marks=pytest.mark.slow)],
)
def test_crashes_lose_and_repeat_nothing(
    kills: int, stops: int, lanes: int, tmp_path: Path
) -> None:
    counts = ("--kills", str(kills), "--stops", str(stops), "--lanes", str(lanes))
    report = run("crashes.py", "sessions", *counts, report=tmp_path / "r.json")
    assert report["sqlite"]["crashes"] >= kills
    assert report["postgres"]["crashes"] >= stops
    for store in ("sqlite", "postgres"):
        assert report[store]["acknowledgements"] > 0
        assert report[store]["fault_count"] == 0


@pytest.mark.parametrize("races", [21, pytest.param(1000, marks=pytest.mark.slow)])
def test_every_race_has_one_owner(races: int, tmp_path: Path) -> None:
    report = run("crashes.py", "duels", "--races", str(races), report=tmp_path / "r.json")
    assert report["one_owner"] == races


@pytest.mark.parametrize("tamperings", [1500, pytest.param(100_000, marks=pytest.mark.slow)])
def test_every_tampering_is_detected(tamperings: int, tmp_path: Path) -> None:
    report = run("tamper.py", "traces", "--tamperings", str(tamperings), report=tmp_path / "r.json")
    assert report["detected"] == tamperings
    assert len(report["by_class"]) == 9


@pytest.mark.parametrize("count", [75, pytest.param(100_000, marks=pytest.mark.slow)])
def test_every_manipulation_of_a_store_is_found_and_named(count: int, tmp_path: Path) -> None:
    report = run("tamper.py", "store", "--manipulations", str(count), report=tmp_path / "r.json")
    assert report["manipulations"] == count
    assert (report["missed"], report["unnamed"]) == (0, 0)
    assert len(report["by kind"]) == 22


@pytest.mark.parametrize("count", [40, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_regulators_question_is_answered_on_both_stores(count: int, tmp_path: Path) -> None:
    """How fast, only the whole campaign says: it exits 1 beyond two seconds a command."""
    script = [sys.executable, str(BENCHMARKS / "scale.py"), "records", "--sessions", str(count)]
    report = tmp_path / "r.json"
    done = subprocess.run(
        [*script, "--rounds", "3" if count > 1000 else "1", "--json", str(report)],
        capture_output=True,
        text=True,
        timeout=3600 if count > 1000 else 120,
    )
    assert report.exists(), done.stdout + done.stderr
    figures = json.loads(report.read_text())
    for store in (figures["sqlite"], figures["postgres"]):
        assert store["sessions"] == count
        assert 0 < store["selected"] <= store["of"] * 0.3
    assert count < 1000 or done.returncode == 0


def test_chaos_on_both_stores(tmp_path: Path) -> None:
    found = run(
        "crashes.py",
        "chaos",
        "--minutes",
        "0.01",
        "--round-seconds",
        "1",
        report=tmp_path / "r.json",
    )
    assert found["faults"] == 0
    assert found["did"]["kills"] >= 60
    assert found["sqlite"]["acknowledgements"] > 0
    assert found["postgres"]["acknowledgements"] > 0
