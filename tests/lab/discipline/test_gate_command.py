"""``sopilot gate`` as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sopilot.doors.cli.gate import command


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path))
    return tmp_path


def gate(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["--model", "reference", *arguments])


def test_a_check_of_the_reference_executor(home: Path) -> None:
    result = gate("--handbook", "bank-desk", "--cases", "3", "--html", str(home / "page.html"))
    assert result.exit_code == 0, result.output
    assert "allowed: 20000 requests, 25 minutes" in result.output
    assert "verdict for reference: too few" in result.output
    assert "NOT MET  enough           3 pairs, 20 needed" in result.output
    page = (home / "page.html").read_text()
    assert "<svg" in page
    assert "too few" in page
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")


def test_json_is_one_object_and_a_second_call_spends_nothing_more() -> None:
    first = json.loads(gate("--handbook", "it-desk", "--cases", "2", "--json").stdout)
    assert (first["page"], first["planned"], first["complete"]) == (False, 2, True)
    assert set(first["arms"]) == {"flat", "pg", "fused", "full-cursor"}
    assert first["arms"]["pg"]["pass"] == 2
    assert first["natural"]["delta"] == 0.0
    assert first["probe"]["localisation"] is None
    runs = Path(first["report"]).parent / "runs.jsonl"
    before = runs.read_bytes()
    again = json.loads(gate("--handbook", "it-desk", "--cases", "2", "--json").stdout)
    assert runs.read_bytes() == before
    assert again["used"]["requests"] == first["used"]["requests"]


def test_the_estimate_comes_alone(home: Path) -> None:
    found = json.loads(
        gate("--handbook", "bank-desk", "--cases", "2", "--estimate", "--json").stdout
    )
    assert found["cases"] == 2
    assert found["requests"] == sum(found["arms"].values()) > 0
    assert not (home / "checks").exists()


def test_misuse_is_explained(home: Path) -> None:
    assert "needs --price" in str(gate("--money", "3").exception)
    book = home / "book.yaml"
    book.write_text("handbook: b\nactions: {a: {}}\nprocedures: {a: {}}\n")
    assert "no such scenario file" in str(gate("--handbook", str(book)).exception)


def test_a_model_that_says_nothing_useful_is_not_paged(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sopilot.lab.discipline import whole_check as module
    from sopilot.runtime.session.protocols import ModelReply, ModelRequest

    class Mute:
        name = "mute"

        async def complete(self, request: ModelRequest) -> ModelReply:
            return ModelReply("I do not know.")

    monkeypatch.setattr(module, "make_model", lambda name: Mute())
    arguments = ["--model", "mute/one", "--handbook", "bank-desk", "--cases", "2", "--probe", "3"]
    result = CliRunner().invoke(command, [*arguments, "--json"])
    found = json.loads(result.stdout)
    assert found["page"] is False
    assert found["arm"] == "prose"
    assert found["probe"]["questions"] == 3
    assert found["probe"]["score"] == 0.0
    assert {"official", "prose", "flat", "pg", "full-cursor"} <= set(found["arms"])


def test_run_takes_the_verdict_as_its_default_arm(home: Path) -> None:
    from sopilot.doors.cli.main import sopilot

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(sopilot, ["run", "it-desk", "--task", "reset-own", *arguments])

    assert "the last check" not in run().stderr
    gate("--handbook", "it-desk", "--cases", "1")
    assert "the last check" not in run().stderr  # too few: no finding
    gate("--cases", "59", "--arm", "flat", "--arm", "pg", "--arm", "fused")
    checked = run("--json")
    assert "arm fused: the last check of `reference` says may page (59 of 59 cases)" in (
        checked.stderr
    )
    assert json.loads(checked.stdout)["audit"]["clean"]
    assert "the last check" not in run("--arm", "pg").stderr
