"""`sopilot resume`: the same program, or a word about it; budgets; from anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from called_commands import as_json, call

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


GIVEN = ("--results", "results.yaml", "--input", "order=o-1", "--input", "amount=100")


@pytest.fixture(autouse=True)
def refunds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "refunds.yaml").write_text(HANDBOOK)
    (tmp_path / "results.yaml").write_text("{find_order: {state: delivered}, refund: ok}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def waiting(*options: str) -> str:
    """A session that waits for the manager, who has approved by now."""
    session = str(as_json("run", "refunds.yaml", *GIVEN, *options)["session"])
    (held,) = as_json("approvals", "list", session)["held"]
    by = ("--role", "manager", "--as", "desk-manager")
    as_json("approvals", "approve", session, held["call_id"], *by)
    return session


def change(largest: int = 5) -> None:
    Path("refunds.yaml").write_text(HANDBOOK.replace("largest: 200", f"largest: {largest}"))


def test_the_approved_call_is_counted() -> None:
    document = as_json("resume", waiting())
    assert document["ending"] == "executed"
    assert document["domain_calls"] == document["audit"]["score_card"]["domain_calls"] == 2


def test_a_changed_handbook_is_refused() -> None:
    session = waiting()
    change()
    refused = call("resume", session, "--json")
    assert isinstance(refused.exception, UserMistake)
    found = refused.exception.diagnostics[0]
    assert found.code == "program-changed"
    assert found.place.source == str(Path("refunds.yaml").resolve())
    assert "--as-started" in found.help
    assert "--accept-changed" in found.help


@pytest.mark.parametrize("view", ["pg", "full-cursor", "flat-protocol"])
def test_as_started_goes_on_with_the_program_and_the_text_of_then(view: str) -> None:
    session = waiting("--view", view)
    change()
    resumed = call("resume", session, "--as-started", "--frames")
    assert resumed.exit_code == 0, resumed.output
    assert "as started: the model sees the handbook as it was then" in resumed.stderr
    assert "executed" in resumed.output
    assert "at most 5" not in resumed.output


def test_accepted_the_goal_is_started_again_under_the_new_program() -> None:
    session = waiting()
    change()
    document = as_json("resume", session, "--accept-changed")
    assert document["ending"] == "refused"
    assert document["refusals"][-1]["sentence"] == "The amount 100 is at most 5."
    assert document["domain_calls"] == 1
    assert as_json("audit", session)["clean"]
    assert as_json("resume", session)["ending"] == "refused"


def test_accepted_and_proven_under_the_new_program_it_runs() -> None:
    session = waiting()
    change(150)
    document = as_json("resume", session, "--accept-changed")
    assert document["ending"] == "executed"
    assert document["audit"]["clean"]
    assert document["domain_calls"] == 3


def test_both_ways_at_once_are_a_mistake() -> None:
    refused = call("resume", waiting(), "--as-started", "--accept-changed")
    assert isinstance(refused.exception, UserMistake)


def test_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = as_json("run", "refunds.yaml", *GIVEN)["session"]
    monkeypatch.chdir(tmp_path / "home")
    assert as_json("resume", session)["ending"] == "waiting"


def test_sessions_are_listed_and_resumable() -> None:
    document = as_json("run", "bank", "--goal", "transfer")
    again = as_json("resume", document["session"][:8])
    assert again["ending"] == "executed"
    assert again["domain_calls"] == document["domain_calls"]
    assert document["session"] in call("sessions", "list").output


def test_a_session_that_a_budget_ended_can_go_on() -> None:
    ended = call("run", "bank", "--goal", "transfer", "--budget", "agent_turns=3", "--json")
    assert ended.exit_code == 1
    assert '"ending": "budget"' in call("resume", "last", "--json").stdout
    document = as_json("resume", "last", "--budget", "agent_turns=150")
    assert document["ending"] == "executed"
