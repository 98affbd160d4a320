"""A customer's data is erased: no byte is left, and chain, heads and register still verify. Who
reads contents is on record."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from till import APPROVED, Till

from commands import WAITING, ran, refused, run, shown, token
from sopilot.messages.errors import RunEnded, StoreCorrupt, UserMistake
from sopilot.protocols import SystemClock
from sopilot.records.log import Entry, SealFile
from sopilot.records.privacy import change_policy, fold_policy, load_policy, sessions_with
from sopilot.records.sealing import seal_store, verify_store
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.signing import generate_key

CLOCK = SystemClock()
ERASE = ("privacy", "erase", "--why", "request 7")


@pytest.fixture
def pay(tmp_path: Path) -> Callable[[str, int], str]:
    return Till(tmp_path).pay


def readings() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shown("privacy", "log")["readings"]
    return found


def files_with(text: str, folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if text.encode() in path.read_bytes().lower()]


# --- erasing --------------------------------------------------------------------------------


def test_erasing_leaves_everything_verifiable_and_no_byte_of_a_person(
    pay: Callable[[str, int], str], tmp_path: Path
) -> None:
    seal = ("records", "seal", "--key", tmp_path / "k", "--to", tmp_path / "heads.jsonl")

    def check() -> None:
        keys = ("--head", tmp_path / "heads.jsonl", "--key", tmp_path / "k.pub")
        assert "complete" in ran("records", "verify", *keys)

    ran("people", "require", "privacy")
    ran("privacy", "set", "columns", "amount")
    hers, his = pay("Zelda-Quast", 1200), pay("Otto", 30)
    ran("audit", hers, "--keep")
    ran("trace", "keygen", tmp_path / "k")
    ran(*seal)
    check()
    page = tmp_path / "before.html"
    ran("audit", hers, "--html", page)
    assert "Zelda-Quast" in page.read_text()
    page.unlink()
    question = ("--where", "amount>1000", "--columns", "amount")
    rows = ran("records", "actions", *question)
    assert "1 of 2 actions" in rows
    assert shown(*ERASE, "--subject", "zelda-quast")["erased"] == [hers]
    ran("trace", "export", hers, "-o", tmp_path / "trace.jsonl", "--payloads")
    run("audit", hers, "--html", page)
    ran("privacy", "log")
    assert files_with("zelda", tmp_path) == []
    check()
    assert ran("records", "actions", *question) == rows
    assert ran("records", "actions", "--rebuild", *question).endswith(rows[-40:])
    ran("trace", "verify", tmp_path / "trace.jsonl")
    ran(*seal)
    check()
    assert isinstance(run("resume", hers).exception, RunEnded | UserMistake)
    assert "Otto" in ran("trace", "export", his, "--payloads")


def test_holds_periods_and_sessions_without_privacy_are_respected(
    pay: Callable[[str, int], str],
) -> None:
    bare = pay("Zelda", 1)
    ran("people", "require", "privacy")
    held, free = pay("Zelda", 2), pay("Zelda", 3)
    ran("privacy", "hold", held, "--why", "case 7")
    done = run(*ERASE, "--subject", "Zelda", "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert (told["erased"], told["held"]) == ([free], {held: "case 7"})
    assert told["inside_the_chain"] == [bare]
    ran("privacy", "lift", held)
    ran("privacy", "set", "retain", "till", "3650")
    assert shown(*ERASE, "--due")["erased"] == []
    ran("privacy", "set", "retain", "till", "0")
    due = run(*ERASE, "--due", "--json")
    assert json.loads(due.stdout)["erased"] == [held]


def test_a_session_that_waits_is_not_erased_without_a_word(tmp_path: Path) -> None:
    ran("people", "require", "privacy")
    session = shown(*Till(tmp_path, APPROVED).run(), code=WAITING)["session"]
    told = run(*ERASE, "--session", session)
    assert told.exit_code == 1
    assert "waits for people" in told.stdout
    assert "pay" in ran("approvals", "list", session), "it can still be decided"
    ran(*ERASE, "--session", session[:12], "--unfinished")
    for words in (
        ("records", "actions", "--json"),
        ("records", "actions", "--csv"),
        ("approvals", "list"),
    ):
        assert "'$ref'" not in ran(*words), "a digest is data, and no words"


def test_under_keys_no_copy_holds_a_byte_and_a_simulated_world_goes_too(
    pay: Callable[[str, int], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "elsewhere"
    monkeypatch.setenv("SOPILOT_KEYS", str(keys))
    ran("people", "require", "keys")
    session = pay("Zelda-Quast", 1200)
    assert files_with("zelda", tmp_path) == []
    assert "Zelda-Quast" in ran("audit", session)
    ran(*ERASE, "--subject", "zelda")
    assert [path for path in keys.rglob("*") if path.is_file()] == []
    bank = shown("run", "bank", "--task", "transfer-rent-share")["session"]
    world = tmp_path / "simulators" / f"{bank}.json"
    assert world.exists()
    ran(*ERASE, "--session", bank)
    assert not world.exists()
    monkeypatch.delenv("SOPILOT_KEYS")
    assert refused("run", "bank", "--task", "transfer-rent-share") == "no-keys"


def test_no_byte_of_a_person_stays_in_what_is_written_about_a_store(tmp_path: Path) -> None:
    """Holds and questions name people; what is erased is erased there as well, or named."""
    ran("people", "require", "privacy")
    ran("run", "bank", "--task", "transfer-rent-share")
    ran("records", "actions", "--where", "username=anna")
    for _ in range(2):
        ran("privacy", "hold", "anna", "--why", "anna ./. ben")
    wanted = (*ERASE, "--subject", "Anna")
    assert [*json.loads(run(*wanted, "--json").stdout)["held"].values()] == ["anna ./. ben"]
    assert refused("privacy", "lift", "ann") == "no-hold"
    ran("privacy", "lift", "anna")
    assert refused(*wanted, "--why", "ANNA asked for it") == "reason-names-subject"
    assert shown(*wanted)["noted"] == []
    assert [path for path in files_with("anna", tmp_path) if "store.db" in path.name] == []
    # What people say about the store itself is part of a chain, and is told.
    ran("people", "add", "Anna Bell")
    again = run(*wanted, "--json")
    assert (again.exit_code, json.loads(again.stdout)["noted"]) == (1, ["journal.people"])


@pytest.mark.parametrize("name", ['O"Brien', "back\\slash", "two\nlines", "Zo\u0308e", "İpek"])
async def test_a_person_is_found_however_their_name_is_spelled(name: str) -> None:
    store = MemoryStore()
    session = await open_session(store, {}, extra={"customer": {"name": name}})
    await session.user_said(f"I am {name}.")
    await open_session(store, {}, extra={"customer": json.dumps({"name": name})})
    await open_session(store, {})
    found = [len(await sessions_with(store, [text])) for text in (name, name.upper(), "nobody")]
    assert found == [2, 2, 0]


@pytest.mark.parametrize(
    "text", ["it is Zoë", '{"name": ["zoë", 1]}', '{"zoë": 1}', '"zo\\u00eb"', '["{no", "ＺＯË"]']
)
async def test_a_person_is_found_wherever_the_name_stands(text: str) -> None:
    store = MemoryStore()
    session = await open_session(store, {})
    await session.user_said(text)
    assert [one.id for one in await sessions_with(store, ["zoë"])] == [session.id]
    assert await sessions_with(store, ["zoe1", ""]) == []


def test_the_narrowest_class_says_how_long_contents_are_kept() -> None:
    days = {"*": 9, "till": 5, "till@refused": 1, "till/pay": 7, "*@refused": 2}
    entries = [
        Entry(n, 0.0, "period_set", {"handbook": name, "seconds": float(n)})
        for name, n in days.items()
    ]
    policy = fold_policy(entries)

    def kept(handbook: str, goal: str, status: str) -> int:
        due = (n for n in range(20) if policy.due(handbook, 0.0, n, goal=goal, status=status))
        return next(due)

    assert kept("till", "pay", "completed") == kept("till", "pay", "refused") == 7
    assert (kept("till", "look", "refused"), kept("till", "look", "completed")) == (1, 5)
    assert (kept("desk", "pay", "refused"), kept("desk", "pay", "ended")) == (2, 9)
    assert not fold_policy([]).due("till", 0.0, 1e12)
    ran("privacy", "set", "retain", "till/pay@completed", "10")
    for wrong in ("till@refusde", "@refused", ""):
        assert refused("privacy", "set", "retain", wrong, "1") == "no-class"


# --- reading --------------------------------------------------------------------------------


def test_contents_are_shown_by_role_and_reading_is_on_record(
    pay: Callable[[str, int], str], tmp_path: Path
) -> None:
    ran("people", "require", "privacy")
    session = pay("Zelda", 2)
    ada, bo = token("Ada", "auditor"), token("Bo", "clerk")
    ran("privacy", "set", "readers", "auditor")
    assert "Zelda" in run("audit", session, token=ada).stdout
    page = tmp_path / "page.html"
    masked = run("audit", session, "--html", page, token=bo)
    assert "Zelda" not in masked.stdout + page.read_text()
    assert refused("trace", "export", session, "--payloads", token=bo) == "not-entitled"
    disclose = ("privacy", "disclose", "--subject", "Zelda", "-o", tmp_path / "told.json")
    assert refused(*disclose) == "not-entitled"
    ran(*disclose, token=ada)
    (about,) = json.loads((tmp_path / "told.json").read_text())["sessions"]
    assert about["session"] == session
    log = readings()
    assert [(one["what"], one["by"], one["contents"]) for one in log] == [
        ("audit", "Ada", True), ("audit", "Bo", False), ("export", "Bo", False),
        ("disclose", "", False), ("disclose", "Ada", True),
    ]  # fmt: skip
    assert [one.get("refused", False) for one in log] == [False, False, True, True, False]


def test_looking_at_what_waits_the_register_and_a_copy_is_on_record(
    pay: Callable[[str, int], str], tmp_path: Path
) -> None:
    session, copy = pay("Zelda", 2), tmp_path / "copy.db"
    ran("records", "actions")
    assert readings() == [], "not required"
    ran("people", "require", "privacy")
    ada = token("Ada", "auditor")
    ran("privacy", "set", "readers", "privacy")
    ran("approvals", "list", session, token=ada)
    ran("approvals", "list")
    ran("records", "actions", "--action", "pay", "--where", "amount>1", "--json", token=ada)
    ran("store", "backup", copy, token=ada)
    assert [(one["what"], one["sessions"], one["by"], one["contents"]) for one in readings()] == [
        ("approvals list", [session], "Ada", True),
        ("approvals list", [], "", True),
        ("records actions", ["pay", "amount>1", "ever to now"], "Ada", True),
        ("backup", [str(copy)], "Ada", True),
    ]


@pytest.fixture
def tokens() -> Mapping[str, str]:
    """A store with readers and an administrator; who → token."""
    ran("people", "require", "privacy")
    ran("privacy", "set", "readers", "reader")
    root = token("Root", "administrator")
    others = {"Rita": "reader", "Mo": "clerk"}
    return {"Root": root, **{name: token(name, role, by=root) for name, role in others.items()}}


def test_resuming_shows_contents_to_readers_alone(tokens: Mapping[str, str]) -> None:
    session = shown("run", "bank", "--task", "transfer-rent-share")["session"]
    denied = run("resume", session, token=tokens["Mo"])
    assert isinstance(denied.exception, UserMistake)
    assert "anna" not in denied.output
    assert "anna" in ran("resume", session, token=tokens["Rita"])
    assert [(one["what"], one["by"], one["contents"]) for one in readings()] == [
        ("resume", "Mo", False),
        ("resume", "Rita", True),
    ]


def test_only_a_person_who_may_erase_learns_which_sessions_name_somebody(
    tokens: Mapping[str, str],
) -> None:
    for words in ((*ERASE, "--subject", "anna"), ("privacy", "set", "readers", "clerk")):
        assert refused(*words, token=tokens["Mo"]) == "not-entitled"
    ran(*ERASE, "--subject", "anna", token=tokens["Root"])


# --- somebody who can write to the database -------------------------------------------------


async def test_a_hold_whose_words_are_gone_is_missed() -> None:
    store, key = MemoryStore(), generate_key()
    hold = {"what": "anna", "why": "a suit"}
    await change_policy(store, "hold_set", hold, who=None, clock=CLOCK)
    assert (await load_policy(store)).holds == {"anna": "a suit"}
    seals = SealFile(((await seal_store(store, key, at=1.0)).seal,))
    assert (await verify_store(store, seals, [key.public])).complete
    await store.erase_payloads("journal.privacy", list(await store.payloads("journal.privacy")))
    with pytest.raises(StoreCorrupt, match="legal hold"):
        await load_policy(store)
    gaps = (await verify_store(store, seals, [key.public])).gaps
    assert [gap.code for gap in gaps] == ["unreadable-session"]
