"""What a compliance officer once read and should not have, each as it is read now."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from commands import bare_transfer, run


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


def test_what_is_recorded_and_not_held_is_listed() -> None:
    assert "sopilot doesn't guard `transfer`, `dispute_payment`" in run("check", "bank").stdout
    session, _ = bare_transfer()
    assert "recorded, not blocked: transfer" in run("audit", session).stdout


def test_no_raw_words_and_numbers_stand_in_front_of_people(tmp_path: Path) -> None:
    ran = json.loads(run("run", "bank", "--task", "wire-rent-lyon", "--json").stdout)
    told = run("audit", ran["session"], "--html", tmp_path / "page.html").stdout
    bare, _ = bare_transfer("flat")
    told += run("audit", bare, "--handbook", "bank").stdout
    for raw in ("all_of_", "any_of_", "p1 ", "domain call", "domain_call", "R2", "evidence: none"):
        assert raw not in told
    # A time is a date, also on the page.
    assert not re.search(r"\b1[678]\d{8}\.\d", told + (tmp_path / "page.html").read_text("utf-8"))
