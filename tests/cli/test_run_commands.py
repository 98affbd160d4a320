"""`sopilot run` and `chat`, as a person calls them."""

from __future__ import annotations

from pathlib import Path

import pytest
from called_commands import as_json, call, mistake

from sopilot.agent.result import RETRY, Progress
from sopilot.cli.watch import Watcher
from sopilot.messages.errors import SopilotError, UserMistake

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
def tea_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A handbook with scenarios beside it, and what the tools return."""
    (tmp_path / "tea.yaml").write_text(HANDBOOK, encoding="utf-8")
    (tmp_path / "tea.scenarios.yaml").write_text(SCENARIOS, encoding="utf-8")
    (tmp_path / "results.yaml").write_text("read_stock: {cups: 2}\npour: {poured: true}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


WITH_RESULTS = ("run", "tea.yaml", "--results", "results.yaml", "--input")


# --- the demo ---------------------------------------------------------------------------------


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
    steps = as_json("demo")["steps"]
    assert [step["done"] for step in steps[:5]] == [False, True, True, True, False]


# --- endings ----------------------------------------------------------------------------------


def test_a_refusal_names_rule_evidence_and_remedy() -> None:
    done = call("run", "bank", "--task", "transfer-to-frozen")
    assert done.exit_code == 3
    assert "not met: The account greta is frozen." in done.output
    assert "shown by #" in done.output
    assert "find_account" in done.output, "the narrowest verifier"
    assert "read_ledger" not in done.output
    assert "what you could do: The holder of the account must speak" in done.output


def test_results_are_in_chinese() -> None:
    done = call("run", "bank", "--task", "transfer-to-frozen", "--language", "zh")
    assert done.exit_code == 3
    for part in ("已拒绝：", "不满足：", "可以这样做：", "符合任务预期", "审计", "轨迹："):
        assert part in done.output


def test_waiting_for_an_approval_is_called_waiting() -> None:
    done = call("run", "bank", "--task", "wire-boat-yard", "--approve", "auditor")
    assert done.exit_code == 4, done.output
    assert "waiting: `wire_abroad` is waiting for approval: 1 of 2" in done.stdout
    assert ": waiting, no findings so far, chain verified" in done.stdout
    assert ": waiting, no findings" in call("audit", "last").stdout


def test_a_spent_budget_is_a_failed_run() -> None:
    done = call("run", "bank", "--budget", "agent_turns=3")
    assert done.exit_code == 1
    assert "budget: the budget of 3 agent turns is spent" in done.output


def test_a_request_of_ones_own_is_not_about_the_tasks_goal() -> None:
    done = call("run", "bank", "--request", "Hello.")
    assert done.exit_code == 1
    assert "budget: the budget of 3 user turns is spent" in done.output


@pytest.mark.parametrize("view", ["flat", "state-only"])
def test_views(view: str) -> None:
    document = as_json("run", "it", "--task", "reset-own", "--view", view)
    assert document["task"] == {"passed": True, "expected": "executed", "reasons": []}
    assert document["audit"]["clean"]


def test_a_retry_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    Watcher(quiet=True)(Progress(RETRY, "m: HTTP 503; retrying in 1 s"))
    assert capfd.readouterr().err == "m: HTTP 503; retrying in 1 s\n"


# --- chat -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "typed",
    [
        'refund_dispute\nusername: "farid"\npassword: "copper-lake"\namount: 420\n',
        "refund_dispute\nfarid\ncopper-lake\n420\n",
    ],
)
def test_chat_waits_for_an_approval_and_is_resumed(typed: str) -> None:
    """A person is served, so nobody approves automatically. Bare answers count."""
    request = "I would like a refund.\n"
    done = call("chat", "bank", "--task", "refund-unknown-shop", typed=request + typed)
    assert done.exit_code == 4, done.output
    assert "first it asks for the `goal`, one of: transfer, " in done.output.lower()
    assert "waiting: `refund_dispute` is waiting for approval" in done.output
    assert "refund_dispute" in call("approvals", "list", "last").output
    assert as_json("resume", "last")["ending"] == "waiting"


def test_chat_without_a_word() -> None:
    assert "ended before the first request" in mistake("chat", "bank")


# --- a handbook of one's own ------------------------------------------------------------------


def test_results_of_tools_from_a_file(tea_room: Path) -> None:
    assert as_json(*WITH_RESULTS, "tea=assam")["ending"] == "executed"
    for number in ("007", "17"):
        assert as_json(*WITH_RESULTS, f"tea={number}")["ending"] == "executed", "a text is wanted"
    assert '`tea` must be of type string, not ["assam"]' in mistake(*WITH_RESULTS, 'tea=["assam"]')
    (tea_room / "results.yaml").write_text("read_stock: {cups: 0}\n")
    (refusal,) = as_json(*WITH_RESULTS, "tea=assam")["refusals"]
    assert refusal["sentence"] == "There is no assam left."
    assert refusal["remedy"] == "Choose another tea."


def test_scenarios_are_tasks(tea_room: Path) -> None:
    done = call("run", "tea.yaml")
    assert done.exit_code == 0, done.output
    assert "the tools answer as in the scenario `there is tea`" in done.stderr
    assert "executed, as the task expects" in done.stdout
    assert "completed, no findings, chain verified" in done.stdout
    document = as_json("run", "tea.yaml", "--task", "there is none")
    assert (document["task"]["passed"], document["task"]["expected"]) == (True, "refused")
    assert as_json("resume", document["session"])["ending"] == "refused"


def test_a_verdict_that_cannot_be_judged_is_told(tea_room: Path) -> None:
    text = SCENARIOS.replace("  read_stock: {cups: 3}", "  pour: ok")
    (tea_room / "tea.scenarios.yaml").write_text(text, encoding="utf-8")
    done = call("run", "tea.yaml")
    assert done.exit_code == 1
    assert "the verdict of `in_stock` cannot be judged" in done.stdout
    assert "give `read_stock` a result under `tools`" in done.stdout


def test_an_input_that_only_a_gate_needs_is_known_and_typed(tea_room: Path) -> None:
    (tea_room / "desk.yaml").write_text("""
handbook: desk
actions:
  check_in: {input: {who: string, pin: {type: string, secret: true}}}
  hand_out: {input: {who: string}, irreversible: true, confirm: false}
predicates:
  known(who): {says: "{who} is known.", established_by: "check_in(who, pin)"}
procedures:
  hand_out: {requires: known(who)}
""")
    (tea_room / "results.yaml").write_text("{check_in: true, hand_out: {}}")
    run = ("run", "desk.yaml", "--results", "results.yaml", "--input", "who=Ann", "--input")
    for pin in ("pin=0471", "pin=4711"):
        ran = call(*run, pin)
        assert (ran.exit_code, ran.stderr) == (0, ""), ran.output
    assert "did you mean `pin`?" in call(*run, "pim=4711").stderr


# --- mistakes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("run bank-dask", "did you mean `bank`"),
        ("run bank --task transfer-rent", "did you mean `transfer-rent-share`"),
        ("run bank --view pgg", "there is no view `pgg`"),
        ("run bank --model gpt", "there is no model `gpt`"),
        ("run bank --view prose", "acts on frames and programs, not on prose"),
        ("run bank --input x", "NAME=VALUE"),
        ("run bank --input amount=NaN", "`amount`: nan isn't a JSON number"),
        (f"run bank --input amount={'[' * 100}{']' * 100}", "nested too deeply"),
        ("run bank --budget turns=3", "`turns` isn't a budget"),
        ("run bank --budget wall_seconds=NaN", "nan isn't a JSON number"),
        ("run bank --budget wall_seconds=1e999", "inf isn't a JSON number"),
        ("run bank --budget wall_seconds=-1", "the budget `wall_seconds` cannot be `-1`"),
        (f"run bank --budget agent_turns={'9' * 400}", "is at most"),
        ("run bank --budget agent_turns=many", "the budget `agent_turns` cannot be `many`"),
        ("run bank --task wire-boat-yard --approve supervisr", "did you mean `supervisor`?"),
        ("run bank --results results.yaml", "--results: error[results-unused]"),
        ("run tea.yaml --goal poor", "did you mean `pour`?"),
        ("run tea.yaml --approve boss", "no action requests an approval"),
        ("run tea.yaml --task nothing", "there is no scenario `nothing`"),
        ("run tea.yaml --results tea.scenarios.yaml", "error[scenarios-as-results]"),
        ("run tea.scenarios.yaml", "help: name `tea.yaml`"),
    ],
)
def test_a_mistake_is_named(tea_room: Path, arguments: str, problem: str) -> None:
    assert problem in mistake(*arguments.split())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("find: {due: 2026-03-01}", "`find.due`: a value of the type date isn't JSON"),
        ("find: {due: 2026-13-01}", "isn't YAML"),
        ("find: [1, .nan]", "`find.1`: nan isn't a JSON number"),
        ("find: -.inf", "`find`: -inf isn't a JSON number"),
        ("find: {1: a}", "`find`: the name 1 isn't a string"),
        ("find: {~: a}", "`find`: the name None isn't a string"),
        ("find: &a {again: *a}", "nested too deeply, or holds itself"),
        (
            "a: &a [1, 1]\n" + "".join(f"{x}: &{x} [*{y}, *{y}, *{y}, *{y}]\n"
            for y, x in zip("abcdefghij", "bcdefghijk", strict=True)),
            "nested too deeply, or holds itself",
        ),
        ("find: !!binary aGk=", "a value of the type bytes isn't JSON"),
        ("read_stok: {cups: 1}", "did you mean `read_stock`?"),
    ],
)  # fmt: skip
def test_results_that_no_tool_could_return(tea_room: Path, text: str, problem: str) -> None:
    (tea_room / "results.yaml").write_text(text)
    told = mistake("run", "tea.yaml", "--results", "results.yaml")
    assert problem in told
    assert "results" in told


def test_a_handbook_without_tools(tea_room: Path) -> None:
    (tea_room / "results.yaml").write_text("read_stock: {cups: 1}")
    done = call(*WITH_RESULTS, "tea=assam")
    assert "no result is given for `pour`: calls of it fail" in done.stderr
    (tea_room / "tea.scenarios.yaml").unlink()
    told = mistake("run", "tea.yaml")
    for part in ("has no tools", "--results", "`sopilot test`"):
        assert part in told


def test_a_store_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for where in ("/proc/x.db", str(tmp_path / "file" / "x.db")):
        refused = call("run", "bank", "--store", f"sqlite:{where}")
        assert isinstance(refused.exception, SopilotError), refused.exception
        assert "SOPILOT_HOME" in str(refused.exception)


def test_a_damaged_simulator_is_reported(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    session = as_json("run", "bank", "--goal", "transfer", "--store", store)["session"]
    (tmp_path / "simulators" / f"{session}.json").write_text("{")
    refused = call("resume", session, "--store", store)
    assert isinstance(refused.exception, UserMistake)
    assert "the example's state" in str(refused.exception)
