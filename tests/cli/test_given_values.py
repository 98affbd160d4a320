"""What people give that no tool could have answered is told, with its place and its cure."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.messages.errors import SopilotError, UserMistake


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SOPILOT_STORE", raising=False)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(sopilot, list(arguments))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("find: {due: 2026-03-01}", "`find.due`: a value of the kind date is not JSON"),
        ("find: {due: 2026-13-01}", "is not YAML"),
        ("find: [1, .nan]", "`find.1`: nan is no JSON number"),
        ("find: -.inf", "`find`: -inf is no JSON number"),
        ("find: {1: a}", "`find`: the name 1 is not a text"),
        ("find: {~: a}", "`find`: the name None is not a text"),
        ("find: &a {again: *a}", "nested too deeply, or holds itself"),
        (
            "a: &a [1, 1]\n" + "".join(f"{x}: &{x} [*{y}, *{y}, *{y}, *{y}]\n"
            for y, x in zip("abcdefghij", "bcdefghijk", strict=True)),
            "nested too deeply, or holds itself",
        ),
        ("find: !!binary aGk=", "a value of the kind bytes is not JSON"),
    ],
)  # fmt: skip
def test_results_that_are_not_json(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "results.yaml"
    path.write_text(text)
    refused = call("run", "desk.yaml", "--results", str(path))
    assert isinstance(refused.exception, UserMistake)
    assert problem in str(refused.exception)
    assert str(path) in str(refused.exception)


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("--budget=wall_seconds=NaN", "nan is no JSON number"),
        ("--budget=wall_seconds=Infinity", "inf is no JSON number"),
        ("--budget=wall_seconds=1e999", "inf is no JSON number"),
        ("--budget=wall_seconds=-1", "the budget `wall_seconds` cannot be `-1`"),
        ("--budget=agent_turns=" + "9" * 400, "is at most"),
        ("--budget=agent_turns=many", "the budget `agent_turns` cannot be `many`"),
        ("--input=amount=NaN", "`amount`: nan is no JSON number"),
        ("--input=amount=" + "[" * 100 + "]" * 100, "nested too deeply"),
    ],
)
def test_values_that_are_no_values(option: str, problem: str) -> None:
    refused = call("run", "bank", option)
    assert isinstance(refused.exception, UserMistake)
    assert problem in str(refused.exception)


def test_a_store_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for where in ("/proc/x.db", str(tmp_path / "file" / "x.db")):
        refused = call("run", "bank", "--store", f"sqlite:{where}")
        assert isinstance(refused.exception, SopilotError), refused.exception
        assert "SOPILOT_HOME" in str(refused.exception)


def test_a_damaged_simulator_is_reported(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    ran = call("run", "bank", "--goal", "transfer", "--store", store)
    session = ran.output.split("sopilot trace export ")[1].split()[0]
    (tmp_path / "simulators" / f"{session}.json").write_text("{")
    refused = call("resume", session, "--store", store)
    assert isinstance(refused.exception, UserMistake)
    assert "the desk's state" in str(refused.exception)


def test_what_only_a_gate_asks_for_is_known_and_typed(tmp_path: Path) -> None:
    desk, results = tmp_path / "desk.yaml", tmp_path / "results.yaml"
    desk.write_text("""
handbook: desk
actions:
  check_in: {input: {who: string, pin: {type: string, secret: true}}}
  hand_out: {input: {who: string}, irreversible: true, confirm: false}
predicates:
  known(who): {says: "{who} is known.", established_by: "check_in(who, pin)"}
procedures:
  hand_out: {requires: known(who)}
""")
    results.write_text("{check_in: {}, hand_out: {}}")
    run = ("run", str(desk), "--results", str(results), "--input", "who=Ann", "--input")
    ran = call(*run, "pin=0471")
    assert (ran.exit_code, ran.stderr) == (0, "")
    ran = call(*run, "pin=4711")
    assert (ran.exit_code, ran.stderr) == (0, ""), ran.output
    assert "did you mean `pin`?" in call(*run, "pim=4711").stderr
