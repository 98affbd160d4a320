"""What newcomers to the records stumbled over, each once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, walk
from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake
from sopilot.records.loading import register
from sopilot.records.people import (
    change_people,
    fold_people,
    issue_token,
    load_people,
    token_digest,
)
from sopilot.records.privacy import fold_policy
from sopilot.records.selection import Wanted, register_lines
from sopilot.session.decisions import resolve_when_free
from sopilot.session.opening import open_session
from sopilot.session.orphans import resolve_orphan
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore

WIRE = ERRANDS["wire"]


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{tmp_path}/store.db")


def run(*arguments: str, said: str = "") -> Result:
    return CliRunner().invoke(sopilot, list(arguments), input=said)


def refused(result: Result) -> str:
    assert isinstance(result.exception, UserMistake), result.output
    return result.exception.diagnostics[0].code


def people() -> dict[str, dict[str, list[str]]]:
    found = json.loads(run("people", "list", "--json").stdout)["people"]
    return {one["name"]: one for one in found}


def test_adding_somebody_again_keeps_what_they_are() -> None:
    run("people", "add", "Sue", "--role", "supervisor", "--alias", "s.huber")
    run("people", "add", "SUE", "--role", "auditor")
    sue = people()["Sue"]
    assert (sue["roles"], sue["aliases"]) == (["supervisor", "auditor"], ["s.huber"])
    run("people", "add", "Sue", "--role", "clerk", "--anew")
    assert (people()["Sue"]["roles"], people()["Sue"]["aliases"]) == (["clerk"], [])


@pytest.mark.parametrize(
    "given", [("",), (" \u200b",), ("Sue", "--role", ""), ("Sue", "--alias", " ")]
)
def test_nobody_has_an_empty_name(given: tuple[str, ...]) -> None:
    assert refused(run("people", "add", *given)) == "empty-name"
    assert people() == {}


def test_who_was_removed_and_comes_back_has_no_token_of_before() -> None:
    def entry(name: str, **details: object) -> tuple[str, dict[str, object]]:
        return name, details

    person = {"person": "Sue", "roles": ["boss"], "aliases": [], "subjects": []}
    found = fold_people(
        [
            entry("person_added", **person),
            entry("token_issued", person="Sue", token="t", sha256=token_digest("sop_x")),
            entry("person_removed", person="sue"),
            entry("person_added", **person),
        ]  # type: ignore[arg-type]
    )
    assert getattr(found.of_token("sop_x", 0.0), "code", "") == "revoked-token"


async def held_wire(store: MemoryStore, clock: HandClock) -> Session:
    session = await open_session(store, COUNTER, tools=CountingTools(), clock=clock)
    await walk(session, "wire", stop_at_action="wire")
    await session.call_tool("wire", WIRE, "w")
    return session


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({**WIRE, "amuont": 3}, "unknown-argument"),
        ({**WIRE, "amount": "plenty"}, "wrong-type"),
        ({name: WIRE[name] for name in WIRE if name != "amount"}, "missing-argument"),
    ],
)
async def test_an_amendment_has_the_arguments_that_the_action_takes(
    arguments: dict[str, object], code: str
) -> None:
    store, clock = MemoryStore(), HandClock()
    session = await held_wire(store, clock)
    with pytest.raises(UserMistake) as found:
        await session.decide("amend", "w", by="Sue", role="supervisor", arguments=arguments)  # type: ignore[arg-type]
    assert found.value.diagnostics[0].code == code
    fine = await session.decide(
        "amend", "w", by="Sue", role="supervisor", arguments={**WIRE, "amount": 7}
    )
    assert fine.arguments["amount"] == 7


async def test_a_rejected_call_was_approved_by_nobody() -> None:
    store, clock = MemoryStore(), HandClock()
    session = await held_wire(store, clock)
    lines = "\n".join(register_lines(await register(store, Wanted()), 9, (), clock.now()))
    assert "held, waits for people" in lines
    await session.decide("approve", "w", by="Sue", role="supervisor")
    await session.decide("reject", "w", by="Ada", role="auditor")
    (entry,) = (await register(store, Wanted(action="wire"))).entries(None)
    assert entry.approvers == ()
    assert [one["decision"] for one in entry.decisions] == ["approve", "reject"]


async def test_who_settles_proves_who_they_are() -> None:
    class Broken(CountingTools):
        async def call(self, name: str, *given: object, **named: object) -> object:  # type: ignore[override]
            if name == "transfer":
                raise OSError("gone")
            return await super().call(name, *given, **named)  # type: ignore[arg-type]

    store, clock = MemoryStore(), HandClock()
    session = await open_session(store, COUNTER, tools=Broken(), clock=clock)
    await walk(session, "transfer")
    await session.release()
    await resolve_orphan(store, session.id, clock=clock)
    (entry,) = (await register(store, Wanted(outcome="unknown"))).entries(None)
    person = {"person": "Dana", "roles": [], "aliases": [], "subjects": []}
    await change_people(store, "person_added", person, who=None, clock=clock)
    demand = {"what": "identity", "on": True}
    await change_people(store, "demanded", demand, who=None, clock=clock)
    details = {"person": "Dana", "token": "dana-1", "expires_at": None}
    token = await issue_token(store, "token_issued", details, who=None, clock=clock)
    who = (await load_people(store)).of_token(token, clock.now())
    with pytest.raises(UserMistake, match="prove who they are"):
        await resolve_when_free(store, session.id, entry.call_id, ok=True, by="Dana")
    await resolve_when_free(store, session.id, entry.call_id, ok=True, by="", who=who)  # type: ignore[arg-type]
    (said,) = [
        one
        for entry in (await register(store, Wanted(action="transfer"))).entries(None)
        for one in entry.decisions
    ]
    assert (said["decision"], said["by"], said["principal"]["proof"]) == (
        "settle", "Dana", "dana-1",
    )  # fmt: skip


def test_a_folder_is_checked_for_what_is_a_handbook_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    book = "handbook: till\nactions:\n  look: {read_only: true}\nprocedures:\n  look: {}\n"
    (folder / "till.yaml").write_text(book)
    (folder / "results.yaml").write_text("look: {known: true}\n")
    (folder / "list.yaml").write_text("- 1\n")
    told = run("check", str(folder))
    assert (told.exit_code, "1 file checked" in told.stdout) == (0, True), told.output
    (folder / "broken.yaml").write_text("look: [\n")
    assert run("check", str(folder)).exit_code == 1, "what is no YAML is told of"
    for file in folder.iterdir():
        file.unlink()
    (folder / "results.yaml").write_text("look: {known: true}\n")
    assert isinstance(run("check", str(folder)).exception, UserMistake)


def test_a_bundle_goes_into_an_empty_folder_and_over_nothing(tmp_path: Path) -> None:
    run("run", "bank", "--task", "transfer-rent-share")
    run("trace", "keygen", str(tmp_path / "k"))
    run("records", "seal", "--key", str(tmp_path / "k"))
    out = tmp_path / "bundle"
    out.mkdir()
    wanted = ("records", "export", "--from", "2020-01-01", "--to", "2099-01-01", "-o", str(out))
    assert run(*wanted).exit_code == 0
    assert (out / "verify.pyz").exists()
    assert refused(run(*wanted)) == "exists"


def test_the_narrowest_class_says_how_long_contents_are_kept() -> None:
    days = {"*": 9, "till": 5, "till@refused": 1, "till/pay": 7, "*@refused": 2}
    said = [("period_set", {"handbook": name, "seconds": float(n)}) for name, n in days.items()]
    policy = fold_policy(said)  # type: ignore[arg-type]

    def kept(handbook: str, goal: str, status: str) -> int:
        due = (n for n in range(20) if policy.due(handbook, 0.0, n, goal=goal, status=status))
        return next(due)

    assert kept("till", "pay", "completed") == kept("till", "pay", "refused") == 7
    assert (kept("till", "look", "refused"), kept("till", "look", "completed")) == (1, 5)
    assert (kept("desk", "pay", "refused"), kept("desk", "pay", "ended")) == (2, 9)
    assert not fold_policy([]).due("till", 0.0, 1e12)
    assert run("privacy", "set", "retain", "till/pay@completed", "10").exit_code == 0
    for wrong in ("till@refusde", "@refused", ""):
        assert refused(run("privacy", "set", "retain", wrong, "1")) == "no-class"


def test_help_and_greeting_say_what_there_is() -> None:
    assert "#SCENARIO" in run("lab", "play", "--help").stdout
    assert "asks for the `goal`" not in run("chat", "bank", "--goal", "transfer").stdout
    assert "asks for the `goal`" in run("chat", "bank").stdout
    run("run", "bank", "--task", "transfer-rent-share")
    assert (
        "not guarded" in run("records", "actions").stdout
        or "proven" in run("records", "actions").stdout
    )


def test_what_is_refused_names_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    run("people", "add", "Sue", "--role", "supervisor", "--alias", "s.huber")
    assert "s.huber" in run("people", "list").stdout
    run("people", "require", "identity")
    for wanted, cure in [
        (("handbooks", "release", "bank", "--as", "Ada"), "give --token-file"),
        (("handbooks", "diff", "bank", "1", "2"), "`sopilot handbooks list` has them"),
        (
            ("records", "deviations", "comment", "7", "--as", "Ada", "hm"),
            "`sopilot records deviations list`",
        ),
    ]:
        told = run(*wanted).exception
        assert isinstance(told, UserMistake), wanted
        assert cure in told.diagnostics[0].help, (wanted, told)
    # The run does not break off: it waits for somebody who can show who they are.
    token = run("people", "token", "Sue", "--name", "desk").stdout.split()[-1]
    monkeypatch.setenv("SOPILOT_TOKEN", token)
    waits = run("run", "bank", "--task", "wire-rent-lyon").stdout
    assert "neither `--approve` nor a scenario's `approvals` can" in waits
    assert "waiting" in waits


def test_journals_are_not_counted_as_sessions(tmp_path: Path) -> None:
    run("run", "bank", "--task", "transfer-rent-share")
    run("people", "add", "Sue")
    key, heads = str(tmp_path / "k"), str(tmp_path / "heads.jsonl")
    run("trace", "keygen", key)
    run("records", "seal", "--key", key, "--to", heads)
    good = ("records", "verify", "--head", heads, "--key", f"{key}.pub")
    assert run(*good).stdout.startswith("complete: all 1 session and 1 journal that were sealed")
    found = json.loads(run(*good, "--json").stdout)
    assert (found["sessions"], found["journals"]) == (1, 1)
