"""`sessions`, `approve` and `trace`, as a person uses them."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from counter_desk import HANDBOOK
from counter_sessions import attempt, opened, run, waiting_wire
from sopilot.messages.errors import UserMistake
from sopilot.stores.open import data_folder, open_store
from sopilot.stores.sqlite import SQLiteStore


@pytest.fixture
async def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a session in the default store, whose wire waits for two people."""
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path))
    store = open_store()
    session = await waiting_wire(store, clock=None, handbook="counter", model="none")
    await session.release()
    await store.close()
    return session.id


def test_sessions_lists_what_is_kept(waiting: str, tmp_path: Path) -> None:
    text = run("sessions", "list").output
    assert text.startswith("ID")
    assert waiting in text
    assert "waiting" in text
    (found,) = json.loads(run("sessions", "list", "--json").output)["sessions"]
    assert (found["id"], found["status"], found["goal"]) == (waiting, "waiting", "wire")
    assert (found["handbook"], found["owner"], found["waiting"]) == ("counter", None, ["w"])
    elsewhere = run("sessions", "list", "--store", f"sqlite:{tmp_path}/other.db")
    assert elsewhere.output == "no sessions\n"


async def test_a_row_of_the_list_says_where_a_session_stands(waiting: str) -> None:
    """A session that hasn't begun has neither goal nor handbook."""
    store = open_store()
    await (await opened(store, session_id="fresh", clock=None)).release()
    events = len(await store.events(waiting))
    await store.close()
    text = (await asyncio.to_thread(run, "sessions", "list")).output
    _, _, *rows = (re.split(" {2,}", line) for line in text.splitlines())
    cells = {name: row for name, *row, _ in rows}
    assert cells == {
        "fresh": ["new", "-", "-", "-", "1"],
        waiting: ["waiting", "wire", "counter", "none", str(events)],
    }
    shown = (await asyncio.to_thread(run, "sessions", "list", "--limit", "1")).output
    assert "fresh" in shown
    assert waiting not in shown
    assert "1 of 2 sessions" in shown


def test_people_approve_amend_and_reject(waiting: str) -> None:
    listed = json.loads(run("approvals", "list", waiting, "--json").output)
    assert [one["call_id"] for one in listed["held"]] == ["w"]
    first = run("approvals", "approve", waiting, "w", "--role", "auditor", "--as", "ann")
    assert "1 of 2" in first.output
    wrong = run("approvals", "approve", waiting, "w", "--role", "auditer", "--as", "bo")
    assert wrong.exit_code == 2
    assert "did you mean `auditor`" in wrong.output
    amended = run(
        "approvals", "amend", waiting, "w", "--role", "officer", "--as", "cy",
        "--arguments", '{"username": "una", "amount": 5}', "--json",
    )  # fmt: skip
    assert json.loads(amended.output)["arguments"]["amount"] == 5
    assert json.loads(amended.output)["approvals"] == 1
    rejected = run("approvals", "reject", waiting, "w", "--role", "officer", "--as", "di")
    assert "rejected" in rejected.output
    late = run("approvals", "approve", waiting, "w", "--role", "auditor", "--as", "ann")
    assert late.exit_code == 2
    assert "is already rejected" in late.output
    assert run("approvals", "list", waiting).output == "no calls are waiting\n"


@pytest.mark.parametrize("text", ["[]", "{", "3"])
def test_amending_with_nonsense_is_misuse(waiting: str, text: str) -> None:
    done = run(
        "approvals", "amend", waiting, "w", "--role", "officer", "--as", "cy", "--arguments", text
    )
    assert done.exit_code == 2


def test_unknown_sessions_and_stores_are_misuse(waiting: str) -> None:
    gone = run("approvals", "list", "nope")
    assert gone.exit_code == 2
    assert "there is no session `nope`" in gone.output
    assert run("sessions", "list", "--store", "mysql:here").exit_code == 2
    with pytest.raises(UserMistake, match="isn't the address of a store"):
        open_store("sqlite:")


def test_export_sign_and_verify(waiting: str, tmp_path: Path) -> None:
    key, head, trace = (str(tmp_path / name) for name in ("key", "head.json", "trace.jsonl"))
    public = run("trace", "keygen", key).output.strip()
    assert len(public) == 64
    assert run("trace", "sign", waiting, "--key", key, "-o", head).exit_code == 0
    assert run("trace", "export", waiting, "-o", trace).exit_code == 0
    good = run("trace", "verify", trace, "--head", head, "--key", public, "--json")
    assert good.exit_code == 0
    assert json.loads(good.output)["verified"] is True
    assert json.loads(good.output)["signatures"] == 2
    lines = Path(trace).read_text().splitlines(keepends=True)
    unsigned = [line for line in lines if not line.startswith('{"at":')]
    Path(trace).write_text("".join(unsigned))
    stripped = run("trace", "verify", trace, "--key", public)
    assert stripped.exit_code == 1
    assert "unsigned-head" in stripped.output
    assert run("trace", "verify", trace, "--key", "abc").exit_code == 2
    Path(trace).write_text("".join(unsigned[:-1]))
    assert run("trace", "verify", trace).exit_code == 0
    cut = run("trace", "verify", trace, "--head", head)
    assert cut.exit_code == 1
    assert "truncated" in cut.output
    Path(trace).write_bytes(b"\xff" + "".join(lines).encode()[1:])
    torn = run("trace", "verify", trace, "--json")
    assert torn.exit_code == 1
    assert json.loads(torn.output)["problems"][0].startswith("unreadable")
    assert run("trace", "verify", str(tmp_path / "none")).exit_code == 2
    assert run("trace", "verify", trace, "--head", trace).exit_code == 2


def test_the_data_folder_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path / "a"))
    assert data_folder() == tmp_path / "a"
    monkeypatch.delenv("SOPILOT_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "sopilot"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert data_folder() == Path.home() / ".local" / "share" / "sopilot"
    store = open_store(f"sqlite:{tmp_path}/x.db")
    assert isinstance(store, SQLiteStore)


@pytest.fixture
async def without_a_machine(waiting: str) -> str:
    """Another session beside the one that waits, in which an account was renamed."""
    store = open_store()
    session = await opened(store, clock=None, view="flat")
    await attempt(session, "rename")
    await session.release()
    await (await opened(store, clock=None)).release()
    await store.close()
    return session.id


def test_a_list_that_is_cut_says_of_how_many(without_a_machine: str) -> None:
    assert "2 of 3 sessions" in run("sessions", "list", "--limit", "2").output
    assert " of 3" not in run("sessions", "list").output
    assert json.loads(run("sessions", "list", "--limit", "1", "--json").output)["of"] == 3


def test_a_session_without_a_machine_says_what_was_done(without_a_machine: str) -> None:
    listed = json.loads(run("sessions", "list", "--json").output)["sessions"]
    [found] = [one for one in listed if one["id"] == without_a_machine]
    assert (found["status"], found["goal"]) == ("running", "rename")


def test_a_second_approval_by_one_person_says_that_it_adds_nothing(waiting: str) -> None:
    vote = ("approvals", "approve", waiting, "w", "--as")
    assert run(*vote, "Ann", "--role", "supervisor").exit_code == 0
    again = run(*vote, "ann ", "--role", "auditor")
    assert again.exit_code == 1
    assert "still 1 of 2 approvals: another person in another role must approve" in again.output
    twice = run(*vote, "ANN", "--role", "supervisor")
    assert twice.exit_code == 2
    assert "has already approved as supervisor" in twice.output
    assert run(*vote, "Bo", "--role", "auditor").exit_code == 0


def test_an_audit_names_another_handbook_and_what_waits(waiting: str, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(HANDBOOK.replace("limit: 500", "limit: 900"))
    other = run("audit", waiting, "--handbook", str(tmp_path / "other.yaml"))
    assert other.exit_code == 1
    assert "other-program" in other.output
    assert "no findings so far" in run("audit", waiting).output
    page = tmp_path / "page.html"
    run("audit", waiting, "--html", str(page))
    assert "still waiting" in page.read_text()
    assert ">clean<" not in page.read_text()
    assert "domain call" not in page.read_text()
