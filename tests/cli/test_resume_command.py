"""`sopilot resume`: the same program, or a word about it; budgets; from anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake

HANDBOOK = """
handbook: refunds
parameters: {largest: 200}
actions:
  find_order: {input: {order: string}}
  refund: {input: {order: string, amount: number}, irreversible: true, approval: manager}
predicates:
  delivered(order):
    says: The order {order} was delivered.
    verify: find_order(order)
    verdict: result.state == 'delivered'
  small(amount):
    says: The amount {amount} is at most {largest}.
    verify: arguments
    verdict: amount <= largest
procedures:
  refund:
    requires: [small(amount), delivered(order)]
"""


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SOPILOT_STORE", raising=False)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(sopilot, list(arguments))


def done(result: Result) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(result.stdout)
    codes = {"refused": 3, "waiting": 4}
    expected = codes.get(document.get("ending", ""), 0)
    assert result.exit_code == expected, (result.output, result.exception)
    return document


def waiting(tmp_path: Path, *options: str) -> str:
    """A session that waits for the manager, who has approved by now."""
    (tmp_path / "refunds.yaml").write_text(HANDBOOK)
    (tmp_path / "results.yaml").write_text("{find_order: {state: delivered}, refund: ok}")
    document = done(
        call(
            "run", str(tmp_path / "refunds.yaml"), "--results", str(tmp_path / "results.yaml"),
            "--input", "order=o-1", "--input", "amount=100", "--json", *options,
        )
    )  # fmt: skip
    assert document["ending"] == "waiting"
    session = str(document["session"])
    held = json.loads(call("approvals", "list", session, "--json").stdout)["held"][0]
    done(
        call(
            "approvals", "approve", session, held["call_id"], "--role", "manager",
            "--as", "desk-manager", "--json",
        )
    )  # fmt: skip
    return session


def change(tmp_path: Path, largest: int = 5) -> None:
    changed = HANDBOOK.replace("largest: 200", f"largest: {largest}")
    (tmp_path / "refunds.yaml").write_text(changed)


def test_the_approved_call_is_counted(tmp_path: Path) -> None:
    document = done(call("resume", waiting(tmp_path), "--json"))
    assert document["ending"] == "executed"
    assert document["domain_calls"] == document["audit"]["score_card"]["domain_calls"] == 2


def test_a_changed_handbook_is_refused(tmp_path: Path) -> None:
    session = waiting(tmp_path)
    change(tmp_path)
    refused = call("resume", session, "--json")
    assert isinstance(refused.exception, UserMistake)
    found = refused.exception.diagnostics[0]
    assert found.code == "program-changed"
    assert found.place.source == str(tmp_path / "refunds.yaml")
    assert "--as-started" in found.help
    assert "--accept-changed" in found.help


@pytest.mark.parametrize("view", ["pg", "full-cursor", "flat-protocol"])
def test_as_started_goes_on_with_the_program_and_the_text_of_then(
    tmp_path: Path, view: str
) -> None:
    session = waiting(tmp_path, "--view", view)
    change(tmp_path)
    resumed = call("resume", session, "--as-started", "--frames")
    assert resumed.exit_code == 0, resumed.output
    assert "as started: the model is shown the handbook as it stood then" in resumed.stderr
    assert "executed" in resumed.output
    assert "at most 5" not in resumed.output


def test_accepted_the_goal_is_started_again_under_the_new_program(tmp_path: Path) -> None:
    session = waiting(tmp_path)
    change(tmp_path)
    document = done(call("resume", session, "--accept-changed", "--json"))
    assert document["ending"] == "refused"
    assert document["refusals"][-1]["sentence"] == "The amount 100 is at most 5."
    assert document["domain_calls"] == 1
    assert done(call("audit", session, "--json"))["clean"]
    assert done(call("resume", session, "--json"))["ending"] == "refused"


def test_accepted_and_proven_under_the_new_program_it_runs(tmp_path: Path) -> None:
    session = waiting(tmp_path)
    change(tmp_path, 150)
    document = done(call("resume", session, "--accept-changed", "--json"))
    assert document["ending"] == "executed"
    assert document["audit"]["clean"]
    assert document["domain_calls"] == 3


def test_both_ways_at_once_are_a_mistake(tmp_path: Path) -> None:
    refused = call("resume", waiting(tmp_path), "--as-started", "--accept-changed")
    assert isinstance(refused.exception, UserMistake)


def test_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "refunds.yaml").write_text(HANDBOOK)
    (tmp_path / "results.yaml").write_text("{find_order: {state: delivered}, refund: ok}")
    monkeypatch.chdir(tmp_path)
    given = ("--results", "results.yaml", "--input", "order=o-1", "--input", "amount=100")
    session = done(call("run", "refunds.yaml", *given, "--json"))["session"]
    monkeypatch.chdir(tmp_path / "home")
    assert done(call("resume", session, "--json"))["ending"] == "waiting"


def test_a_session_that_a_budget_ended_can_go_on() -> None:
    ended = call("run", "bank", "--goal", "transfer", "--budget", "agent_turns=3", "--json")
    session = json.loads(ended.stdout)["session"]
    assert json.loads(call("resume", session, "--json").stdout)["ending"] == "budget"
    document = done(call("resume", session, "--budget", "agent_turns=150", "--deep", "--json"))
    assert document["ending"] == "executed"


def test_results_for_a_desk_are_refused(tmp_path: Path) -> None:
    results = tmp_path / "results.yaml"
    results.write_text("read_ledger: {balance: 1}")
    refused = call("run", "bank", "--results", str(results))
    assert isinstance(refused.exception, UserMistake)
    assert refused.exception.diagnostics[0].code == "results-unused"
    assert "--task" in refused.exception.diagnostics[0].help
