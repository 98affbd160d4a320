"""The commands that run sessions, as a person calls them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sopilot.agent.result import RETRY, Progress
from sopilot.cli.main import sopilot
from sopilot.cli.watch import Watcher
from sopilot.messages.errors import UserMistake

HANDBOOK = """
handbook: tea-room
actions:
  read_stock: {input: {tea: string}}
  pour: {input: {tea: string}}
predicates:
  in_stock(tea):
    says: There is {tea} left.
    says_not: There is no {tea} left.
    verify: read_stock(tea)
    verdict: result.cups > 0
    remedy: Choose another tea.
procedures:
  pour:
    requires: in_stock(tea)
"""


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SOPILOT_STORE", raising=False)


def call(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(sopilot, list(arguments), input=typed)


def as_json(*arguments: str) -> dict[str, Any]:
    """The exit code tells executed, refused and waiting apart."""
    done = call(*arguments, "--json")
    document: dict[str, Any] = json.loads(done.stdout)
    codes = {"refused": 3, "waiting": 4}
    assert done.exit_code == codes.get(document.get("ending", ""), 0), done.output
    return document


def test_the_demo_blocks_proves_refuses_and_detects() -> None:
    done = call("demo")
    assert done.exit_code == 0, done.output
    assert len(done.output.splitlines()) <= 30
    for part in (
        'blocked; first: login(customer="anna", password=…)',
        '{"refunded": 120}',
        "A manager decides about larger amounts.",
        "0 findings",
        "broken-chain",
        "1 refund, 120 euros",
    ):
        assert part in done.output
    assert "call `refund` again" in call("demo", "--verbose").output


def test_demo_as_json() -> None:
    document = as_json("demo")
    assert [step["done"] for step in document["steps"][:5]] == [False, True, True, True, False]


def test_a_refusal_names_rule_evidence_and_remedy() -> None:
    done = call("run", "bank", "--task", "transfer-to-frozen")
    assert done.exit_code == 3
    assert "not met: The account greta is frozen." in done.output
    assert "shown by #" in done.output
    assert "find_account" in done.output, "the narrowest verifier"
    assert "read_ledger" not in done.output
    assert "what you could do: The holder of the account must speak" in done.output


@pytest.mark.parametrize("view", ["flat", "state-only"])
def test_views(view: str) -> None:
    document = as_json("run", "it", "--task", "reset-own", "--view", view)
    assert document["task"] == {"passed": True, "expected": "executed", "reasons": []}
    assert document["audit"]["clean"]


def test_sessions_are_listed_and_resumable() -> None:
    document = as_json("run", "bank", "--goal", "transfer")
    again = as_json("resume", document["session"])
    assert again["ending"] == "executed"
    assert again["domain_calls"] == document["domain_calls"]
    assert document["session"] in call("sessions", "list").output


def test_waiting_for_approval_and_going_on() -> None:
    # A person is served, so nobody approves by himself.
    typed = 'username: "farid"\npassword: "copper-lake"\namount: 420\n'
    done = call(
        "chat", "bank", "--task", "refund-unknown-shop", "--goal", "refund_dispute",
        typed="I would like a refund.\n" + typed,
    )  # fmt: skip
    assert "waiting: " in done.output, done.output
    session = done.output.split("sopilot resume ")[1].split()[0]
    listed = call("approvals", "list", session)
    assert "refund_dispute" in listed.output
    waiting = as_json("resume", session)
    assert waiting["ending"] == "waiting"


def test_a_handbook_of_ones_own(tmp_path: Path) -> None:
    handbook, results = tmp_path / "tea.yaml", tmp_path / "results.yaml"
    handbook.write_text(HANDBOOK)
    results.write_text("read_stock: {cups: 2}\npour: {poured: true}\n")
    run = ("run", str(handbook), "--results", str(results), "--input", "tea=assam")
    assert as_json(*run)["ending"] == "executed"
    results.write_text("read_stock: {cups: 0}\n")
    document = as_json(*run)
    assert document["ending"] == "refused"
    assert document["refusals"][0]["sentence"] == "There is no assam left."
    assert document["refusals"][0]["remedy"] == "Choose another tea."


def test_a_number_on_the_command_line_is_a_text_where_the_handbook_wants_one(
    tmp_path: Path,
) -> None:
    handbook, results = tmp_path / "tea.yaml", tmp_path / "results.yaml"
    handbook.write_text(HANDBOOK)
    results.write_text("read_stock: {cups: 2}\npour: {poured: true}\n")
    run = ("run", str(handbook), "--results", str(results), "--input")
    assert as_json(*run, "tea=007")["ending"] == "executed"
    assert as_json(*run, "tea=17")["ending"] == "executed"
    done = call(*run, 'tea=["assam"]')
    assert '`tea` must be of type string, not ["assam"]' in str(done.exception)


def test_a_budget_that_fires_is_not_good() -> None:
    done = call("run", "bank", "--budget", "agent_turns=3")
    assert done.exit_code == 1
    assert "budget: the budget of 3 agent turns is spent" in done.output


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["run", "bank-dask"], "did you mean `bank`"),
        (["run", "bank", "--task", "transfer-rent"], "did you mean `transfer-rent-share`"),
        (["run", "bank", "--view", "pgg"], "there is no view `pgg`"),
        (["run", "bank", "--model", "gpt"], "there is no model `gpt`"),
        (["run", "bank", "--budget", "turns=3"], "`turns` is none of"),
        (["run", "bank", "--input", "x"], "NAME=VALUE"),
        (["run", "bank", "--view", "prose"], "acts on frames and programs, not on prose"),
    ],
)
def test_mistakes(arguments: list[str], problem: str) -> None:
    done = call(*arguments)
    assert isinstance(done.exception, UserMistake)
    assert problem in str(done.exception)


def test_a_handbook_without_tools(tmp_path: Path) -> None:
    path = tmp_path / "tea.yaml"
    path.write_text(HANDBOOK)
    done = call("run", str(path))
    assert isinstance(done.exception, UserMistake)
    assert "has no tools" in str(done.exception)
    assert "--results" in str(done.exception)


SCENARIOS = """
handbook: tea-room
tools:
  read_stock: {cups: 3}
scenarios:
  there is tea:
    goal: pour
    inputs: {tea: assam}
    expect: executed
  there is none:
    goal: pour
    inputs: {tea: assam}
    tools: {read_stock: {cups: 0}}
    expect: {refused: in_stock}
"""


@pytest.fixture
def tea_room(tmp_path: Path) -> str:
    (tmp_path / "tea.yaml").write_text(HANDBOOK, encoding="utf-8")
    (tmp_path / "tea.scenarios.yaml").write_text(SCENARIOS, encoding="utf-8")
    return str(tmp_path / "tea.yaml")


def mistake(*arguments: str) -> str:
    done = call(*arguments)
    assert isinstance(done.exception, UserMistake), done.output
    return str(done.exception)


def test_a_handbook_of_ones_own_plays_its_scenarios(tea_room: str) -> None:
    done = call("run", tea_room)
    assert done.exit_code == 0, done.output
    assert "the tools answer as in the scenario `there is tea`" in done.stderr
    assert "executed, as the task expects" in done.stdout
    assert "completed, no findings, chain verified" in done.stdout
    document = as_json("run", tea_room, "--task", "there is none")
    assert document["ending"] == "refused"
    assert (document["task"]["passed"], document["task"]["expected"]) == (True, "refused")
    again = as_json("resume", document["session"])
    assert again["ending"] == "refused"


def test_mistakes_with_scenarios_and_results(tea_room: str, tmp_path: Path) -> None:
    scenarios = str(tmp_path / "tea.scenarios.yaml")
    assert "did you mean `there is none`?" in mistake("run", tea_room, "--task", "there is non")
    told = mistake("run", tea_room, "--results", scenarios)
    assert "--results: error[scenarios-as-results]" in told
    assert "`sopilot test` runs them all" in told
    assert "help: name `" + tea_room in mistake("run", scenarios)
    results = tmp_path / "results.yaml"
    results.write_text("read_stok: {cups: 1}", encoding="utf-8")
    told = mistake("run", tea_room, "--results", str(results))
    assert "--results: error[unknown-action]: there is no action `read_stok`" in told
    assert "did you mean `read_stock`?" in told
    results.write_text("read_stock: {cups: 1}", encoding="utf-8")
    done = call("run", tea_room, "--results", str(results), "--input", "tea=assam")
    assert "no result is written down for `pour`: a call of it fails" in done.stderr
    (tmp_path / "tea.scenarios.yaml").unlink()
    told = mistake("run", tea_room)
    assert "--results" in told
    assert "`sopilot test`" in told


def test_a_verdict_that_cannot_be_judged_is_told(tea_room: str, tmp_path: Path) -> None:
    told = SCENARIOS.replace("  read_stock: {cups: 3}", "  pour: ok")
    (tmp_path / "tea.scenarios.yaml").write_text(told, encoding="utf-8")
    done = call("run", tea_room)
    assert done.exit_code == 1
    assert "the verdict of `in_stock` cannot be judged" in done.stdout
    assert "give `read_stock` a result under `tools`" in done.stdout


def test_a_goal_that_is_not_there(tea_room: str) -> None:
    assert "did you mean `pour`?" in mistake("run", tea_room, "--goal", "poor")


def test_a_role_that_nobody_asks_for(tea_room: str) -> None:
    told = mistake("run", "bank", "--task", "wire-boat-yard", "--approve", "supervisr")
    assert "--approve: error[unknown-role]" in told
    assert "did you mean `supervisor`?" in told
    assert "no action asks for an approval" in mistake("run", tea_room, "--approve", "boss")


def test_waiting_for_an_approval_is_called_waiting() -> None:
    done = call("run", "bank", "--task", "wire-boat-yard", "--approve", "auditor")
    assert done.exit_code == 4, done.output
    assert "waiting: `wire_abroad` waits for approval: 1 of 2" in done.stdout
    assert ": waiting, no findings so far, chain verified" in done.stdout
    session = done.stdout.rsplit("trace export ", 1)[1].strip()
    assert f"session {session}: waiting, no findings" in call("audit", session).stdout


def test_chat_without_a_word() -> None:
    assert "before anybody asked for anything" in mistake("chat", "bank")


def test_chat_with_the_reference_executor_names_the_goals() -> None:
    result = CliRunner().invoke(sopilot, ["chat", "bank"], input="hello\n")
    assert "one of: transfer, " in result.output


def test_chat_takes_a_bare_answer() -> None:
    typed = "I would like a refund.\nrefund_dispute\nfarid\ncopper-lake\n420\n"
    done = call("chat", "bank", "--task", "refund-unknown-shop", typed=typed)
    assert done.exit_code == 4, done.output
    assert "waiting: `refund_dispute` waits for approval" in done.output


def test_results_are_in_chinese() -> None:
    done = call("run", "bank", "--task", "transfer-to-frozen", "--language", "zh")
    assert done.exit_code == 3
    for part in ("已拒绝：", "不满足：", "可以这样做：", "符合任务预期", "审计", "轨迹："):
        assert part in done.output


def test_a_retry_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    Watcher(quiet=True)(Progress(RETRY, "m: HTTP 503; retrying in 1 s"))
    assert capfd.readouterr().err == "m: HTTP 503; retrying in 1 s\n"
