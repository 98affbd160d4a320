"""`sopilot lab lens` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake
from sopilot_lab.lens.moments import sweep_moments


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path))
    return f"sqlite:{tmp_path / 'sessions.db'}"


def session(store: str) -> str:
    made = CliRunner().invoke(sopilot, ["run", "bank", "--store", store, "--json"])
    assert made.exit_code == 0, made.output
    listed = CliRunner().invoke(sopilot, ["sessions", "list", "--store", store, "--json"])
    return str(json.loads(listed.output)["sessions"][0]["id"])


def test_weights_that_are_not_there_are_named(store: str) -> None:
    arguments = ["lab", "lens", session(store), "--store", store, "--model", "no/such/folder"]
    found = CliRunner().invoke(sopilot, arguments)
    assert isinstance(found.exception, UserMistake)
    assert "`no/such/folder` is neither `local`, a GGUF file nor a folder" in str(found.exception)


def test_a_trace_needs_its_handbook(store: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    exported = ["trace", "export", session(store), "--store", store, "-o", str(trace)]
    assert CliRunner().invoke(sopilot, exported).exit_code == 0
    found = CliRunner().invoke(sopilot, ["lab", "lens", str(trace)])
    assert isinstance(found.exception, UserMistake)
    assert "--handbook" in str(found.exception)
    found = CliRunner().invoke(sopilot, ["lab", "lens", str(trace), "--handbook", "bank"])
    assert isinstance(found.exception, UserMistake)
    assert "withholds text" in str(found.exception), "a password was said in it"


@pytest.mark.slow
def test_the_local_model_on_a_recorded_session(store: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `lens`")
    pytest.importorskip("transformers", reason="needs the extra `lens`")
    picture = tmp_path / "lens.svg"
    arguments = ["lab", "lens", session(store), "--store", store, "--moments", "1", "--json"]
    found = CliRunner().invoke(sopilot, [*arguments, "--plot", str(picture)])
    assert found.exit_code == 0, found.output
    report = json.loads(found.stdout)
    for presented in ("own", "clean"):
        lines = [one for one in report["regions"] if one["presentation"] == presented]
        assert sum(one["attention_share"] for one in lines) == pytest.approx(1.0)
        assert all(one["parity"] > 0 for one in lines)
    assert report["removed"]["nothing"]["nats"] == 0.0
    assert len(report["parity_by_layer_and_head"]) == 30
    assert report["peak_memory_mib"] < 3_000
    assert picture.read_text(encoding="utf-8").count("<title>layer") == 30 * 9


def test_a_sweep_is_looked_at_through_its_passing_runs(store: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "runs")
    swept = CliRunner().invoke(
        sopilot,
        ["lab", "run", "--source", "bank", "--arm", "pg", "--runner", "plain",
         "--traces", "--limit", "3", "-o", folder],
    )  # fmt: skip
    assert swept.exit_code == 0, swept.output
    moments, sessions = sweep_moments(Path(folder), None, 2, 3)
    assert (len(moments), sessions) == (6, 2)
    assert all(one.move for one in moments)
    found = CliRunner().invoke(sopilot, ["lab", "lens", folder, "--model", "no/such/folder"])
    assert "neither `local`" in str(found.exception)
    for trace in (tmp_path / "runs" / "traces").iterdir():
        trace.unlink()
    found = CliRunner().invoke(sopilot, ["lab", "lens", folder])
    assert "`--traces`" in str(found.exception)
