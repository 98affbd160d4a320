"""A handbook of one's own and its scenarios are tasks like any other, at every door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake
from sopilot.runner.sources import named_task, open_source
from sopilot.tasks.starter import starter

FOLDER = Path(__file__).parents[2] / "examples" / "quotation"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SOPILOT_STORE", raising=False)
    handbook, scenarios = starter("my-desk")
    (tmp_path / "my-desk.yaml").write_text(handbook, encoding="utf-8")
    (tmp_path / "my-desk.scenarios.yaml").write_text(scenarios, encoding="utf-8")
    return str(tmp_path / "my-desk.yaml")


def command(*arguments: str) -> Any:
    done = CliRunner().invoke(sopilot, [*arguments, "--json"])
    assert done.exit_code in (0, 1, 3, 4), done.output or done.exception
    return json.loads(done.stdout)


def opening(session: str) -> str:
    done = CliRunner().invoke(sopilot, ["trace", "export", session])
    events = [json.loads(line) for line in done.stdout.splitlines()[1:]]
    said = [one for one in events if one.get("kind") == "user_said"]
    return str(said[0]["payload"]["text"])


def test_a_scenario_opens_with_the_same_words_everywhere(path: str, tmp_path: Path) -> None:
    # With a secret among the inputs a trace keeps what the user says by reference alone.
    text = Path(path).read_text(encoding="utf-8")
    secret = "{type: string, secret: true}"
    assert secret in text
    Path(path).write_text(text.replace(secret, "string"), encoding="utf-8")
    task = open_source(path).tasks()[0]
    ran = command("run", path, "--task", task.name)
    played = command("lab", "play", "start", f"{path}#{task.name}")
    traces = tmp_path / "traces"
    CliRunner().invoke(sopilot, ["test", path, "--only", task.name, "--traces", str(traces)])
    (trace,) = traces.glob("*.jsonl")
    tested = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()[1:]]
    first = next(one for one in tested if one["kind"] == "user_said")["payload"]["text"]
    assert task.request == first == opening(ran["session"]) == opening(played["session"])


def test_played_from_process_to_process_and_scored(path: str, tmp_path: Path) -> None:
    name = open_source(path).tasks()[0].name
    played = command("lab", "play", "start", f"{path}#{name}", "--view", "flat")
    session = played["session"]
    assert played["task"] == f"{Path(path).resolve()}#{name}"
    assert {tool["name"] for tool in played["tools"]} >= set(open_source(path).handbook.actions)
    command("lab", "play", "call", session, "end_session", '{"outcome": "refused", "reason": "no"}')
    score = command("lab", "play", "finish", session)
    assert score["passed"] is False
    assert "expected `executed`" in score["verdict"]["reasons"][0]


def test_every_scenario_of_the_starter_passes_as_a_task_under_run(path: str) -> None:
    for task in open_source(path).tasks():
        done = command("run", path, "--task", task.name)
        assert done["task"]["passed"], (task.name, done["task"])


def test_what_names_no_task(path: str) -> None:
    for reference, told in (
        ("bank", "isn't the name of a task"),
        (path, "isn't the name of a task"),
        (f"{path}#nothing", "there is no scenario `nothing`"),
        ("bank/nothing", "has no task `nothing`"),
        ("nowhere.yaml#x", "neither a file nor a bundled handbook"),
        (f"{FOLDER}#1", "run, not played"),
    ):
        with pytest.raises(UserMistake, match=told):
            named_task(reference)
