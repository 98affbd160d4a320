"""A trace is held against the handbook that it is said to have run by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.program.model import Act
from sopilot.runner.same_programs import others
from sopilot.runner.sources import compile_source

STRICT = """\
handbook: till
actions:
  read_till: {input: {till: string}, read_only: true}
  count_till: {input: {till: string}, read_only: true}
  open_till: {input: {till: string}, irreversible: true}
predicates:
  free(till):
    says: Nobody is at {till}.
    verify: {any: [read_till(till), count_till(till)]}
    verdict: result.free
procedures:
  open_till: {requires: "free(till)"}
"""
LAX = """\
handbook: till
actions:
  open_till: {input: {till: string}, irreversible: true}
procedures:
  open_till: {}
"""
SCENARIO = """\
handbook: till
scenarios:
  opens:
    goal: open_till
    inputs: {till: a}
    tools:
      open_till: {open: true}
    expect: executed
"""


def call(*arguments: str) -> Result:
    return CliRunner().invoke(sopilot, list(arguments))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Of a session by a handbook that asks for nothing."""
    (tmp_path / "lax.yaml").write_text(LAX)
    (tmp_path / "lax.scenarios.yaml").write_text(SCENARIO)
    (tmp_path / "strict.yaml").write_text(STRICT)
    done = call("run", str(tmp_path / "lax.yaml"), "--json")
    assert done.exit_code == 0, done.output
    exported = tmp_path / "trace.jsonl"
    session = json.loads(done.stdout)["session"]
    assert call("trace", "export", session, "-o", str(exported)).exit_code == 0
    return exported


def test_a_program_without_checks_does_not_pass_for_the_handbooks(trace: Path) -> None:
    assert call("audit", str(trace)).exit_code == 0
    own, strict = str(trace.with_name("lax.yaml")), str(trace.with_name("strict.yaml"))
    assert call("audit", str(trace), "--handbook", own).exit_code == 0
    judged = call("audit", str(trace), "--handbook", strict, "--json")
    assert judged.exit_code == 1
    first = json.loads(judged.stdout)["findings"][0]
    assert first["code"] == "other-program"
    assert first["severity"] == "error"
    assert "`open_till` did not run by" in first["explanation"]
    shown = call("audit", str(trace), "--handbook", strict).stdout
    assert "other-program" in shown


def test_another_handbook_is_the_wrong_one(trace: Path) -> None:
    judged = call("audit", str(trace), "--handbook", "bank", "--json")
    assert judged.exit_code == 1
    assert "it has no such goal" in json.loads(judged.stdout)["findings"][0]["explanation"]


def test_a_session_in_the_store_is_held_against_a_handbook_that_is_named(trace: Path) -> None:
    session = json.loads(trace.read_text().split("\n")[0])["session"]
    assert call("audit", session).exit_code == 0
    strict = str(trace.with_name("strict.yaml"))
    assert call("audit", session, "--handbook", strict).exit_code == 1


@pytest.mark.parametrize(
    ("offered", "same"),
    [
        (("read_till", "count_till", "open_till"), True),
        (("count_till", "open_till"), True),
        (("open_till",), False),
    ],
)
def test_a_gateway_had_fewer_tools(tmp_path: Path, offered: tuple[str, ...], same: bool) -> None:
    """Its program is the handbook's while everything can still be verified."""
    book = tmp_path / "strict.yaml"
    book.write_text(STRICT)
    handbook = load_handbook(STRICT, str(book))
    compiled = compile_handbook(handbook, offered=frozenset(offered), tools="gateway")
    programs = {goal: one.program for goal, one in compiled.items()}
    assert (others(str(book), {0: programs}) == []) is same


def test_no_program_is_no_program_of_the_handbook() -> None:
    (finding,) = others("bank", {0: {}})
    assert "no program at all" in finding.explanation


def test_a_reader_of_the_full_state_is_taken_first_by_its_tool_list_alone() -> None:
    """Bundled desks name one beside narrower verifiers; only a benchmark's list prefers it."""

    def verified_by(tools: str | None) -> set[str]:
        return {
            step.action
            for unit in compile_source("bank", tools=tools)
            for function in unit.program.functions.values()
            for step in function.steps
            if isinstance(step, Act)
        }

    assert "read_ledger" in verified_by("full-state")
    assert "read_ledger" not in verified_by("official") >= {"find_account", "read_balance"}
    assert "read_ledger" not in verified_by(None)


def test_a_guard_view_guards_more_than_the_handbook(trace: Path) -> None:
    """There each procedure's action is guarded, and the program is the handbook's all the same."""
    free = trace.with_name("lax.yaml")
    free.write_text(LAX.replace(", irreversible: true", ""))
    session = json.loads(call("run", str(free), "--view", "guard", "--json").stdout)["session"]
    assert call("audit", session, "--handbook", str(free)).exit_code == 0
    assert call("audit", session, "--handbook", str(trace.with_name("strict.yaml"))).exit_code == 1
