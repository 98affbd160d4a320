"""What a compliance officer once read and should not have, each as it is read now."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake
from sopilot.records.selection import read_condition

ORDER = '{"username": "anna", "to": "ben", "amount": 200}'


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{tmp_path}/store.db")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(sopilot, list(arguments))


def bare_transfer(view: str) -> tuple[str, list[str]]:
    """Money moved with nothing checked: the session, and what the oracle misses."""
    started = run("lab", "play", "start", "bank/transfer-rent-share", "--view", view, "--json")
    session = str(json.loads(started.stdout)["session"])
    run("lab", "play", "call", session, "transfer", ORDER)
    score = json.loads(run("lab", "play", "finish", session, "--json").stdout)
    return session, score["verdict"]["reasons"]


@pytest.mark.parametrize("view", ["pg", "flat"])
def test_the_audit_names_every_requirement_that_the_oracle_misses(view: str) -> None:
    session, missed = bare_transfer(view)
    told = run("audit", session, *(["--handbook", "bank"] if view == "flat" else [])).stdout
    assert len(missed) == 8
    for sentence in (
        "The customer anna has logged in",
        "The customer anna has confirmed the one-time code.",
        "There is an account under the name anna",
        "There is an account under the name ben",
        "The balance of anna is at least 200.",
        "The balance of anna together with the agreed overdraft is at least 200.",
        "The account anna is not frozen.",
        "The account ben is not frozen.",
    ):
        assert f"the SOP says: {sentence}" in told


def test_what_is_recorded_and_not_held_is_listed(tmp_path: Path) -> None:
    assert "nothing holds `transfer`, `dispute_payment`" in run("check", "bank").stdout
    session, _ = bare_transfer("pg")
    page = tmp_path / "page.html"
    assert "recorded, not held: transfer" in run("audit", session, "--html", str(page)).stdout
    assert "recorded, not held: transfer" in page.read_text("utf-8")


def test_no_raw_words_stand_in_front_of_people(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ran = json.loads(run("run", "bank", "--task", "transfer-rent-share", "--json").stdout)
    told = run("audit", ran["session"], "--html", str(page)).stdout + page.read_text("utf-8")
    bare, _ = bare_transfer("flat")
    told += run("audit", bare, "--handbook", "bank").stdout
    for raw in ("all_of_", "any_of_", "p1 ", "domain call", "domain_call", "R2", "evidence: none"):
        assert raw not in told
    assert "evidence for 8 of the 8 that need it" in told
    assert "transfer › logged in" in told


def test_moments_are_dates(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ran = json.loads(run("run", "bank", "--task", "wire-rent-lyon", "--json").stdout)
    run("audit", ran["session"], "--html", str(page))
    text = page.read_text("utf-8")
    assert re.search(r"expires_at: 2\d{3}-\d\d-\d\dT", text)
    assert not re.search(r"\b1[678]\d{8}\.\d", text)


@pytest.mark.parametrize("written", ["amount<<5", "amount<=5,000", "amount>>100", "amount=="])
def test_a_condition_that_nobody_can_mean_is_refused(written: str) -> None:
    with pytest.raises(UserMistake, match="no condition"):
        read_condition(written)


def test_what_waits_is_told_without_a_date(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    found = CliRunner().invoke(sopilot, ["approvals", "list", "--store", store])
    assert "inf" not in found.output + str(found.exception)
