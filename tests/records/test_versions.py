"""Handbook versions: written, signed by somebody else, in force."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake

BOOK = """handbook: till
actions:
  look: {input: {who: string}, read_only: true}
  pay:
    input: {who: string, amount: integer}
    approval: {roles: [supervisor], needed: 1, expires: 1h}
predicates:
  known(who): {says: "{who} is known.", verify: look(who), verdict: result.known}
procedures:
  pay: {requires: known(who)}
"""


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{tmp_path}/store.db")
    path = tmp_path / "till.yaml"
    path.write_text(BOOK)
    (tmp_path / "results.yaml").write_text("look: {known: true}\npay: {paid: 5}\n")
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(sopilot, list(arguments))


def refused(result: Result) -> str:
    assert isinstance(result.exception, UserMistake), result.output
    return result.exception.diagnostics[0].code


def paid(book: Path) -> Result:
    results = str(book.parent / "results.yaml")
    return run("run", str(book), "--goal", "pay", "--results", results, "--input", "who=ann",
               "--input", "amount=5", "--json")  # fmt: skip


def test_nothing_runs_unsigned_where_the_store_demands_it(book: Path) -> None:
    assert "session" in json.loads(paid(book).stdout)
    assert run("people", "require", "sign-off").exit_code == 0
    assert refused(paid(book)) == "not-released"
    released = json.loads(run("handbooks", "release", str(book), "--as", "Ada", "--json").stdout)
    assert (released["version"], released["author"], released["difference"]) == (1, "Ada", {})
    assert refused(paid(book)) == "not-signed-off"
    assert refused(run("handbooks", "sign-off", "till", "1", "--as", "ＡＤＡ")) == "author"
    assert refused(run("handbooks", "sign-off", "till", "1")) == "nobody"
    assert refused(run("handbooks", "sign-off", "till", "7", "--as", "Bo")) == "unknown-version"
    assert run("handbooks", "sign-off", "till", "1", "--as", "Bo").exit_code == 0
    waiting = json.loads(paid(book).stdout)["session"]
    # Who wrote it does not decide in it.
    call = json.loads(run("approvals", "list", waiting, "--json").stdout)["held"][0]["call_id"]
    vote = ("approvals", "approve", waiting, call, "--role", "supervisor", "--as")
    assert refused(run(*vote, "Ada")) == "party"
    # Another text is another version; the session in flight keeps its own.
    book.write_text(BOOK.replace("is known.", "is known to us.").replace("known(who)}", "[]}"))
    assert refused(paid(book)) == "not-released"
    assert run(*vote, "Sue").exit_code == 0
    assert run("handbooks", "withdraw", "till", "1", "--as", "Bo").exit_code == 0
    went_on = run("resume", waiting, "--as-started", "--json")
    assert json.loads(went_on.stdout)["ending"] == "executed", went_on.output


def test_a_version_says_what_is_otherwise(book: Path) -> None:
    run("handbooks", "release", str(book), "--as", "Ada", "--from", "2020-01-01")
    changed = BOOK.replace("is known.", "is known to us.").replace("needed: 1,", "needed: 1, ")
    changed = changed.replace("expires: 1h", "expires: 2h")
    changed = changed.replace("  look:", "  peep: {input: {who: string}}\n  look:")
    book.write_text(changed)
    told = run("handbooks", "release", str(book), "--as", "Ada", "--from", "2020-02-01").stdout
    assert told.splitlines() == [
        "version 2 of till, by Ada (unauthenticated), not signed off",
        "sentences: 1 difference",
        "  predicate `known`: “{who} is known.” → “{who} is known to us.”",
        "structure: 2 differences",
        "  action `peep` is new",
        "  action `pay`: `approval` is another",
    ]
    listed = json.loads(run("handbooks", "list", "--json").stdout)["versions"]
    assert listed[0]["to"] is None  # what nobody has signed ends nothing
    run("handbooks", "sign-off", "till", "2", "--as", "Bo")
    listed = json.loads(run("handbooks", "list", "--json").stdout)["versions"]
    assert listed[0]["to"] > listed[1]["from"]
    assert "2020-02-01" in run("handbooks", "list").stdout
    assert json.loads(run("handbooks", "diff", "till", "1", "2", "--json").stdout)["sentences"]


def test_a_version_says_what_its_scenarios_reached(
    book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(book.parent)
    made = run("new", "desk")
    assert made.exit_code == 0, made.output
    told = run("handbooks", "release", "desk.yaml", "--as", "Ada", "--json").stdout
    coverage = json.loads(told)["coverage"]
    assert coverage["passed"] >= 1
    assert coverage["coverage"]


def test_who_starts_a_run_asks_for_it_and_does_not_decide(
    book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("Rita", "Sue"):
        run("people", "add", name, "--role", "supervisor")
    tokens = {
        name: run("people", "token", name, "--name", name).stdout.strip()
        for name in ("Rita", "Sue")
    }
    monkeypatch.setenv("SOPILOT_TOKEN", tokens["Rita"])
    session = json.loads(paid(book).stdout)["session"]
    call = json.loads(run("approvals", "list", session, "--json").stdout)["held"][0]["call_id"]
    vote = ("approvals", "approve", session, call, "--role", "supervisor", "--json")
    assert refused(run(*vote)) == "party"
    monkeypatch.setenv("SOPILOT_TOKEN", tokens["Sue"])
    assert json.loads(run(*vote).stdout)["state"] == "approved"
