"""Handbook versions: written, signed by somebody else, in force."""

from __future__ import annotations

from pathlib import Path

import pytest
from till import APPROVED, Till

from commands import WAITING, ran, refused, shown, token
from sopilot.messages.errors import UserMistake
from sopilot.records.log import Entry
from sopilot.records.versions import RELEASED, SIGNED_OFF, fold_versions


@pytest.fixture
def till(tmp_path: Path) -> Till:
    return Till(tmp_path, APPROVED)


def test_nothing_runs_unsigned_where_the_store_demands_it(till: Till) -> None:
    assert "session" in shown(*till.run(), code=WAITING)
    ran("people", "require", "sign-off")
    assert refused(*till.run()) == "not-released"
    backwards = ("--from", "2026-02-01", "--to", "2026-01-01")
    assert refused("handbooks", "release", till.book, "--as", "Ada", *backwards) == "no-time"
    released = shown("handbooks", "release", till.book, "--as", "Ada")
    assert (released["version"], released["author"], released["difference"]) == (1, "Ada", {})
    assert refused(*till.run()) == "not-signed-off"
    assert refused("handbooks", "sign-off", "till", 1, "--as", "ＡＤＡ") == "author"
    assert refused("handbooks", "sign-off", "till", 1) == "nobody"
    assert refused("handbooks", "sign-off", "till", 7, "--as", "Bo") == "unknown-version"
    ran("handbooks", "sign-off", "till", 1, "--as", "Bo")
    waiting = shown(*till.run(), code=WAITING)["session"]
    # Who wrote it does not decide in it.
    call = shown("approvals", "list", waiting)["held"][0]["call_id"]
    vote = ("approvals", "approve", waiting, call, "--role", "supervisor", "--as")
    assert refused(*vote, "Ada") == "party"
    # Another text is another version; the session in flight keeps its own.
    changed = till.text.replace("is known.", "is known to us.").replace("known(who)}", "[]}")
    till.book.write_text(changed)
    assert refused(*till.run()) == "not-released"
    ran(*vote, "Sue")
    ran("handbooks", "withdraw", "till", 1, "--as", "Bo")
    old_book = till.book.with_name("old.yaml")
    old_book.write_text(till.text)
    assert refused(*till.run(book=old_book)) == "not-in-force"
    assert shown("resume", waiting, "--as-started")["ending"] == "executed"


def test_a_version_says_what_is_otherwise(till: Till) -> None:
    ran("handbooks", "release", till.book, "--as", "Ada", "--from", "2020-01-01")
    changed = till.text.replace("is known.", "is known to us.").replace(
        "expires: 1h", "expires: 2h"
    )
    changed = changed.replace("  look:", "  peep: {input: {who: string}}\n  look:")
    till.book.write_text(changed)
    told = ran("handbooks", "release", till.book, "--as", "Ada", "--from", "2020-02-01")
    assert told.splitlines() == [
        "version 2 of till, by Ada (unauthenticated), not signed off",
        "sentences: 1 difference",
        "  predicate `known`: “{who} is known.” → “{who} is known to us.”",
        "structure: 2 differences",
        "  action `peep` is new",
        "  action `pay`: `approval` has changed",
    ]
    assert shown("handbooks", "list")["versions"][0]["to"] is None  # unsigned ends nothing
    ran("handbooks", "sign-off", "till", 2, "--as", "Bo")
    first, second = shown("handbooks", "list")["versions"]
    assert first["to"] > second["from"]
    assert "2020-02-01" in ran("handbooks", "list")
    assert shown("handbooks", "diff", "till", 1, 2)["sentences"]


def test_a_version_says_what_its_scenarios_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran("new", "desk")
    coverage = shown("handbooks", "release", "desk.yaml", "--as", "Ada")["coverage"]
    assert coverage["passed"] >= 1
    assert coverage["coverage"]


def test_who_starts_a_run_asks_for_it_and_does_not_decide(till: Till) -> None:
    tokens = {name: token(name, "supervisor") for name in ("Rita", "Sue")}
    session = shown(*till.run(), token=tokens["Rita"], code=WAITING)["session"]
    call = shown("approvals", "list", session)["held"][0]["call_id"]
    vote = ("approvals", "approve", session, call, "--role", "supervisor")
    assert refused(*vote, token=tokens["Rita"]) == "party"
    assert shown(*vote, token=tokens["Sue"])["state"] == "approved"


# --- from when to when ----------------------------------------------------------------------

FIRST, SECOND = {"pay": "hash 1"}, {"pay": "hash 2"}


def released(version: int, at: float, begin: float) -> Entry:
    programs = {"pay": f"hash {version}"}
    details = {"handbook": "till", "by": "Ada", "text": "", "programs": programs, "from": begin}
    return Entry(0, at, RELEASED, details)


def signed(version: int, at: float) -> Entry:
    return Entry(0, at, SIGNED_OFF, {"handbook": "till", "version": version, "by": "Bo"})


def test_a_session_without_programs_is_no_version() -> None:
    versions = fold_versions([released(1, 0, 0), signed(1, 1)])
    versions.require_in_force("till", FIRST, 2)
    with pytest.raises(UserMistake, match="not-released"):
        versions.require_in_force("till", {}, 2)


def test_a_release_that_nobody_signed_stops_nothing() -> None:
    entries = [released(1, 0, 0), signed(1, 1), released(2, 10, 5)]
    fold_versions(entries).require_in_force("till", FIRST, 20)
    versions = fold_versions([*entries, signed(2, 30)])
    assert versions.of["till"][0].end == 30  # it held until the other was signed off
    versions.require_in_force("till", SECOND, 31)
    with pytest.raises(UserMistake, match="not-in-force"):
        versions.require_in_force("till", FIRST, 31)


def test_an_older_version_signed_late_ends_where_the_newer_begins() -> None:
    versions = fold_versions([released(1, 0, 0), released(2, 1, 50), signed(2, 2), signed(1, 3)])
    first, second = versions.of["till"]
    assert (first.holds_at(10), first.holds_at(60), second.holds_at(60)) == (True, False, True)
