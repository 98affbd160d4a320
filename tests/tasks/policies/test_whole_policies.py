"""Two policies as a compliance office writes them, an insurer's claims desk and a clinic's
prescription line: nothing to warn of, every scenario as expected, honest runs without findings."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.messages.diagnostic import Severity
from sopilot.runner.check_findings import check_text
from sopilot.runner.sources import open_source
from sopilot.tasks.scenarios import read_scenarios
from sopilot.tasks.testing import run_scenarios

HERE = Path(__file__).parent


@pytest.mark.parametrize(("name", "count"), [("claims", 22), ("clinic", 12)])
def test_every_scenario_of_a_whole_policy(name: str, count: int) -> None:
    path = HERE / f"{name}.yaml"
    found = check_text(path.read_text("utf-8"), path.name)
    assert [one for one in found if one.severity is not Severity.NOTE] == []
    source = open_source(str(path))
    text = (HERE / f"{name}.scenarios.yaml").read_text("utf-8")
    suite, wrong = read_scenarios(text, source.handbook, name)
    assert suite is not None
    assert wrong == []
    results = asyncio.run(run_scenarios(source.briefing(), suite.scenarios)).results
    assert [(one.name, result.verdict) for one, result in results if not result.passed] == []
    assert len(results) == count


def test_a_scenario_that_waits_is_taken_up_again(tmp_path: Path) -> None:
    """Who approved is not asked twice, what was approved is shown when it is made, and that it
    was made is no failure of a scenario that expects to wait."""
    store = ("--store", f"sqlite:{tmp_path / 's.db'}")

    def run(*words: str) -> Result:
        return CliRunner().invoke(sopilot, [*words, *store], catch_exceptions=False)

    task = ("--task", "a large one/one approves")
    begun = run("run", str(HERE / "claims.yaml"), *task, "--json")
    session = json.loads(begun.stdout)["session"]
    again = run("resume", session)
    assert again.exit_code == 4, again.output
    assert "1 of 2 from handler, controller" in again.output
    (held,) = json.loads(run("approvals", "list", session, "--json").stdout)["held"]
    run("approvals", "approve", session, held["call_id"], "--as", "Carl", "--role", "controller")
    done = run("resume", session)
    assert done.exit_code == 0, done.output
    assert 'call pay_claim(amount=5750, claim="c-2", iban="DE01")' in done.output
    assert "executed" in done.output


def test_where_people_must_show_who_they_are_a_simulated_approver_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ("--store", f"sqlite:{tmp_path / 's.db'}")

    def run(*words: str) -> Result:
        return CliRunner().invoke(sopilot, [*words, *store], catch_exceptions=False)

    run("people", "add", "Kim")
    token = run("people", "token", "Kim", "--name", "desk").stdout.split()[-1]
    run("people", "require", "identity")
    monkeypatch.setenv("SOPILOT_TOKEN", token)
    task = ("--task", "a large one/both approve")
    done = run("run", str(HERE / "claims.yaml"), *task)
    assert "the handler may not decide here" in done.output
    assert "waiting" in done.output


def test_the_register_shows_people_nothing_of_a_secret(tmp_path: Path) -> None:
    store = ("--store", f"sqlite:{tmp_path / 's.db'}")

    def run(*words: str) -> Result:
        return CliRunner().invoke(sopilot, [*words, *store], catch_exceptions=False)

    assert run("run", str(HERE / "claims.yaml"), "--task", "pay/the holder").exit_code == 0
    rows = run("records", "actions").output
    assert '{"birth_date": "•••", "code_word": "•••", "person": "Ann"}' in rows
    assert "bytes" not in rows
    assert "$ref" in run("records", "actions", "--csv").output
