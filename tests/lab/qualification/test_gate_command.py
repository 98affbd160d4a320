"""``sopilot qualify`` as a person calls it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path))
    return tmp_path


def gate(*arguments: str) -> Result:
    return CliRunner().invoke(sopilot, ["qualify", "--model", "reference", *arguments])


def test_a_check_of_the_reference_executor(home: Path) -> None:
    result = gate("--handbook", "bank", "--cases", "3", "--html", str(home / "page.html"))
    assert result.exit_code == 0, result.output
    assert "allowed: 20000 requests, 25 minutes" in result.output
    assert "verdict for reference: too few" in result.output
    assert "NOT MET  enough           3 pairs, 20 needed" in result.output
    page = (home / "page.html").read_text()
    assert "<svg" in page
    assert "too few" in page
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")


def test_json_is_one_object_and_a_second_call_spends_nothing_more() -> None:
    first = json.loads(gate("--handbook", "it", "--cases", "2", "--json").stdout)
    assert (first["page"], first["planned"], first["complete"]) == (False, 2, True)
    assert set(first["arms"]) == {"flat", "pg", "fused", "full-cursor"}
    assert first["arms"]["pg"]["pass"] == 2
    assert first["natural"]["delta"] == 0.0
    assert first["probe"]["localisation"] is None
    records = sorted(Path(first["report"]).parent.glob("runs/*/records/*"))
    before = [file.read_bytes() for file in records]
    assert sum(text.count(b"\n") for text in before) == 8
    again = json.loads(gate("--handbook", "it", "--cases", "2", "--json").stdout)
    later = sorted(Path(first["report"]).parent.glob("runs/*/records/*"))
    assert b"".join(file.read_bytes() for file in later) == b"".join(before)
    assert again["used"]["requests"] == first["used"]["requests"]


def test_the_estimate_comes_alone(home: Path) -> None:
    found = json.loads(gate("--handbook", "bank", "--cases", "2", "--estimate", "--json").stdout)
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
    from sopilot.protocols import ModelReply, ModelRequest

    class Mute:
        name = "mute"

        async def complete(self, request: ModelRequest) -> ModelReply:
            return ModelReply("I do not know.")

    monkeypatch.setattr("sopilot.models.open.make_model", lambda name, **how: Mute())
    arguments = ["--model", "mute/one", "--handbook", "bank", "--cases", "2", "--probe", "3"]
    result = CliRunner().invoke(sopilot, ["qualify", *arguments, "--json"])
    found = json.loads(result.stdout)
    assert found["page"] is False
    assert found["arm"] == "prose"
    assert found["probe"]["questions"] == 3
    assert found["probe"]["score"] == 0.0
    assert {"official", "prose", "flat", "pg", "full-cursor"} <= set(found["arms"])


def test_run_takes_the_verdict_as_its_default_arm(home: Path) -> None:

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(sopilot, ["run", "it", "--task", "reset-own", *arguments])

    assert "the last check" not in run().stderr
    gate("--handbook", "it", "--cases", "1")
    assert "the last check" not in run().stderr  # too few: no finding
    gate("--cases", "59", "--arm", "flat", "--arm", "pg", "--arm", "fused")
    checked = run("--json")
    assert "view fused: the last check of `reference` says may page (59 of 59 cases)" in (
        checked.stderr
    )
    assert json.loads(checked.stdout)["audit"]["clean"]
    assert "the last check" not in run("--view", "pg").stderr


@contextmanager
def answered(box: Path) -> Iterator[None]:
    """Report one wrong place to every question of the probe; end every conversation at once."""
    position = {"function": "nowhere", "step": "1", "results": {}, "callers": [],
                "next": {"operation": "ask", "name": ""}}  # fmt: skip
    report = {"id": "1", "name": "report_position", "arguments": json.dumps(position)}
    stop = threading.Event()

    def answer() -> None:
        while not stop.wait(0.01):
            for request in box.glob("*/*/requests/*.json"):
                reply = request.parents[1] / "replies" / request.name
                if not reply.exists():
                    is_probe = "report_position" in request.read_text("utf-8")
                    said = {"content": "I can't help.", "tool_calls": []}
                    made = {"content": "", "tool_calls": [report]} if is_probe else said
                    draft = reply.with_suffix(".draft")
                    draft.write_text(json.dumps(made), "utf-8")
                    draft.replace(reply)

    answering = threading.Thread(target=answer)
    answering.start()
    try:
        yield
    finally:
        stop.set()
        answering.join()


def test_a_mailbox_has_a_folder_per_arm_and_task_and_is_probed(home: Path) -> None:
    arguments = ["--handbook", "bank", "--cases", "2", "--arm", "flat", "--arm", "pg", "--probe",
                 "3", "--parallel", "4", "--timeout", "5"]  # fmt: skip
    with answered(home / "box"):
        model = f"mailbox:{home}/box/{{arm}}/{{task}}"
        result = CliRunner().invoke(sopilot, ["qualify", "--model", model, *arguments])
    assert result.exit_code == 0, result.output
    assert "probe: localisation 0.00" in result.output
    (verdict,) = home.glob("checks/*/*/verdict.json")
    probe = json.loads(verdict.read_text())["probe"]
    assert (probe["questions"], probe["answered"], probe["localisation"]) == (3, 3, 0.0)
    assert probe["score"] is not None
    assert {path.parent.name for path in home.glob("box/*/*")} == {"flat", "pg", "probe"}
    assert len(list(home.glob("box/flat/*"))) == 2
    for request in home.glob("box/*/*/requests/*.json"):
        assert json.loads(request.read_text())["about"]["arm"] == request.parents[2].name


def test_an_unknown_field_of_a_mailbox_is_named_before_the_check(home: Path) -> None:
    arguments = ["--model", f"mailbox:{home}/{{view}}", "--handbook", "bank", "--cases", "2"]
    result = CliRunner().invoke(sopilot, ["qualify", *arguments])
    assert "`{view}` in mailbox:DIR isn't known here; known: task, arm, tools" in str(
        result.exception
    )
