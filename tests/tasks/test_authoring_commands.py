"""``new``, ``test``, ``format`` and ``schema`` as a person calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake
from sopilot.trace.files import read_trace, verify_trace


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(sopilot, [str(argument) for argument in arguments])


def mistakes(*arguments: str | Path) -> list[str]:
    result = run(*arguments)
    assert isinstance(result.exception, UserMistake)
    return [str(one) for one in result.exception.diagnostics]


@pytest.fixture
def starter(tmp_path: Path) -> Path:
    assert run("new", "shop-desk", "--in", tmp_path).exit_code == 0
    return tmp_path / "shop-desk.yaml"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_starter_is_right_in_every_way(starter: Path) -> None:
    scenarios = starter.with_suffix(".scenarios.yaml")
    checked = run("check", starter, scenarios, starter.parent)
    assert (checked.exit_code, checked.stdout) == (0, "4 files checked: 0 errors, 0 warnings\n")
    assert run("format", "--check", starter, scenarios).exit_code == 0
    tested = run("test", starter)
    assert tested.exit_code == 0
    assert "5 scenarios: 5 passed, 0 failed" in tested.stdout
    # One branch is left to the author, and the report says which.
    assert "refund@check_small: no scenario in which this fails (small false)" in tested.stdout
    assert "refund: 18 of 18 steps, 9 of 10 branches" in tested.stdout


def test_new_overwrites_nothing_unless_told(starter: Path) -> None:
    starter.write_text("mine", encoding="utf-8")
    assert len(mistakes("new", "shop-desk", "--in", starter.parent)) == 2
    assert starter.read_text(encoding="utf-8") == "mine"
    assert run("new", "shop-desk", "--in", starter.parent, "--force").exit_code == 0
    assert run("check", starter).exit_code == 0


@pytest.mark.parametrize(
    ("name", "help"),
    [("Shop Desk", "shop-desk"), ("shop.yaml", "shop"), ("../x", "x"), ("-", "")],
)
def test_new_refuses_a_name_that_no_handbook_can_have(name: str, help: str, tmp_path: Path) -> None:
    (told,) = mistakes("new", "--in", tmp_path, "--", name)
    assert f"`{name}` cannot name a handbook" in told
    assert (f"for example `{help}`" in told) is bool(help)
    assert list(tmp_path.iterdir()) == []


def test_a_changed_handbook_fails_its_scenarios(starter: Path) -> None:
    edit(starter, "results.find_order.days <=", "results.find_order.days >")
    result = run("test", starter)
    assert result.exit_code == 1
    assert "FAILED  a fresh order is refunded" in result.stdout
    assert (
        "expected `executed`, but the request was refused because of `in_time` and `damaged`"
        in result.stdout
    )


def test_results_as_json(starter: Path) -> None:
    summary = json.loads(run("test", starter, "--json").stdout)
    assert (summary["n"], summary["passed"], summary["failed"]) == (5, 5, 0)
    assert summary["coverage"]["refund"]["branches"] == {"all": 10, "reached": 9}
    assert summary["coverage"]["refund"]["not_reached"] == [
        {"function": "refund", "step": "check_small", "branch": "unmet"}
    ]
    causes = [one["causes"] for one in summary["scenarios"]]
    assert causes == [[], [], ["in_time", "damaged"], ["logged_in"], ["delivered"]]


def test_complete_asks_for_every_branch(starter: Path) -> None:
    assert run("test", starter, "--complete").exit_code == 1
    with starter.with_suffix(".scenarios.yaml").open("a", encoding="utf-8") as file:
        file.write(
            "  too much:\n    goal: refund\n    expect: {refused: small}\n"
            "    inputs: {customer: Ada, password: pw, order: o-1, amount: 900, reason: x}\n"
        )
    assert run("test", starter, "--complete").exit_code == 0


def test_one_scenario_alone_and_watched(starter: Path) -> None:
    name = "a wrong password opens nothing"
    only = run("test", starter, "--only", name)
    assert only.stdout == f"passed  {name}\n\n1 scenario: 1 passed, 0 failed\n"
    watched = run("test", starter, "--watch", name)
    assert "│ gate logged_in(customer)" in watched.stdout
    assert 'login(customer="Ada", password="•••")' in watched.stdout
    (told,) = mistakes("test", starter, "--only", "a wrong pasword opens nothing")
    assert f"did you mean `{name}`?" in told


def test_traces_are_whole(starter: Path, tmp_path: Path) -> None:
    assert run("test", starter, "--traces", tmp_path / "traces").exit_code == 0
    files = sorted((tmp_path / "traces").iterdir())
    assert len(files) == 5
    for file in files:
        trace = read_trace(file.read_text(encoding="utf-8"))
        assert verify_trace(trace) == []
        assert trace.about["handbook"] == "shop-desk"


def test_misuse_is_told_without_running_anything(starter: Path, tmp_path: Path) -> None:
    (told,) = mistakes("test", tmp_path / "none.yaml")
    assert "is neither a file nor a bundled handbook" in told
    starter.with_suffix(".scenarios.yaml").rename(tmp_path / "other.yaml")
    (told,) = mistakes("test", starter)
    assert "there is no such scenario file" in told
    assert run("test", starter, "--scenarios", tmp_path / "other.yaml").exit_code == 0


def test_check_reads_scenarios_by_the_handbook_beside_them(starter: Path) -> None:
    scenarios = starter.with_suffix(".scenarios.yaml")
    edit(scenarios, "expect: {refused: delivered}", "expect: {refused: deliverd}")
    result = run("check", starter.parent)
    assert result.exit_code == 1
    assert "error[unknown-predicate]: there is no predicate `deliverd`" in result.stdout
    starter.unlink()
    assert "unreadable-file" in run("check", scenarios).stdout


def test_format_writes_checks_and_prints(starter: Path) -> None:
    before = starter.read_text(encoding="utf-8")
    edit(starter, "  largest_refund: 200", "      largest_refund:   200")
    assert run("format", "--check", starter).exit_code == 1
    assert starter.read_text(encoding="utf-8") != before
    assert run("format", "--stdout", starter).stdout == before
    starter.chmod(0o640)
    result = run("format", starter)
    assert result.stdout == f"formatted {starter}\n1 file: 1 changed\n"
    assert starter.read_text(encoding="utf-8") == before
    assert starter.stat().st_mode & 0o777 == 0o640
    assert {path.name for path in starter.parent.iterdir()} == {
        "shop-desk.yaml",
        "shop-desk.scenarios.yaml",
    }


def test_format_changes_no_file_when_one_is_broken(starter: Path, tmp_path: Path) -> None:
    edit(starter, "  largest_refund: 200", "      largest_refund:   200")
    before = starter.read_text(encoding="utf-8")
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [", encoding="utf-8")
    assert "yaml-syntax" in mistakes("format", starter, broken)[0]
    assert starter.read_text(encoding="utf-8") == before


def test_schema_is_the_published_one() -> None:
    schema = json.loads(run("check", "--schema").stdout)
    assert schema["title"] == "sopilot handbook"
    assert set(schema["properties"]) >= {"handbook", "actions", "predicates", "procedures"}
