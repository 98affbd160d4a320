"""Planted secrets, and every command that shows or writes something about sessions, traces,
transcripts or records: no output has one of them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import sopilot as product
from small_desks import AnsweringTools, programs_of
from sopilot.agent.resume import _recalled
from sopilot.cli.main import sopilot
from sopilot.machine.automation import Automation
from sopilot.records.store import Settings
from sopilot.session.opening import open_session
from sopilot.stores.open import open_store
from sopilot.trace.events import Complete, Fail, Start

PASSWORD, PIN, DIAGNOSIS = "hunter2-swordfish", 73914_2886_0417_55, "fracture-of-the-shin"
SECRETS = (PASSWORD, str(PIN), DIAGNOSIS)
BOOK = """
handbook: vault-desk
actions:
  login: {input: {user: string, password: {type: string, secret: true}}}
  read_file: {input: {user: string}, read_only: true, secret: [diagnosis]}
  open_box:
    input: {user: string, pin: {type: integer, secret: true}}
    irreversible: true
    confirm: false
    approval: {roles: [manager]}
  close_box: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  known(user):
    says: The customer {user} is known.
    established_by: login(user, password=password)
  healthy(user):
    says: The file of {user} is in order.
    verify: read_file(user)
    verdict: result.ok
procedures:
  open_box: {requires: [known(user), healthy(user)]}
  close_box: {requires: known(user)}
"""
GATEWAYS = {"chat", "demo", "serve", "gateway", "guard"}
"""`chat` is a conversation: whoever types a secret there sees it on their own terminal. `demo` and
`mcp` have tests of their own below."""
AUTHORS = {"new", "compile", "check", "test", "format", "show", "handbooks"}
STUDIES = {"lab", "qualify"}


def careless(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Echo the arguments, as careless tools do."""
    shown = {"diagnosis": DIAGNOSIS} if name == "read_file" else {"echo": dict(arguments)}
    return {"ok": True, **shown}


async def _sessions(spec: str, settings: Settings) -> list[str]:
    programs, store, made = programs_of(BOOK), open_store(spec), []
    pin = {"user": "ann", "pin": PIN}
    for ending in ("held", "approved", "failed", "unread"):
        session = await open_session(
            store, programs, tools=AnsweringTools(careless), settings=settings
        )
        await session.user_said(f"I am ann, the password is {PASSWORD}, the pin is {PIN}")
        await session.operate(Start("open_box", pin))
        await session.call_tool("login", {"user": "ann", "password": PASSWORD})
        await session.call_tool("read_file", {"user": "ann"})
        if ending == "unread":
            await session.call_tool("login", {"user": "ann", "passwort": PASSWORD})
            await session.operate(Fail(f"{PASSWORD} is not it"))
        elif ending == "failed":
            await session.assistant_said(f"Your pin {PIN} is no good; {DIAGNOSIS}.")
            await session.operate(Fail(f"the pin {PIN} and {DIAGNOSIS}"))
        else:
            await session.call_tool("open_box", pin, "c")
        if ending == "approved":
            why = f"the pin is {PIN}"
            await session.decide("approve", "c", by="Mia", role="manager", reason=why)
            await session.run_held("c")
            await session.operate(Complete(f"opened with {PIN}"))
        await session.release()
        made.append(session.id)
    await store.close()
    return made


TRANSCRIPT = [
    {"role": "user", "content": f"I am ann, my password is {PASSWORD}."},
    {"role": "assistant", "tool_calls": [
        {"id": "1", "function": {"name": "login", "arguments": json.dumps(
            {"user": "ann", "password": PASSWORD})}}]},
    {"role": "tool", "tool_call_id": "1", "content": json.dumps({"ok": True, "was": PASSWORD})},
    {"role": "assistant", "tool_calls": [
        {"id": "2", "function": {"name": "open_box", "arguments": json.dumps(
            {"user": "ann", "pin": PIN})}}]},
    {"role": "tool", "tool_call_id": "2", "content": json.dumps({"ok": True, "was": PIN})},
]  # fmt: skip


def _commands(folder: Path, ids: Sequence[str]) -> list[list[str]]:
    """Every command, with every form of its output; later ones read files of earlier ones."""
    held, _, failed, unread = ids
    book, trace, key = str(folder / "vault.yaml"), folder / "trace.jsonl", str(folder / "k")
    talk = str(folder / "talk.json")
    day = ["--from", "2000-01-01", "--to", "2100-01-01"]
    knows = ["--input", "user=ann", "--input", f"password={PASSWORD}", "--input", f"pin={PIN}"]
    commands = [["trace", "keygen", key]]
    for number, one in enumerate(ids):
        commands += [
            ["trace", "export", one],
            ["trace", "export", one, "--payloads"],
            ["trace", "export", one, "--payloads", "-o", f"{trace}.{number}"],
            ["trace", "verify", f"{trace}.{number}"],
            ["trace", "sign", one, "--key", key],
            ["audit", one, "--keep"],
            ["audit", one, "--json"],
            ["audit", one, "--html", str(folder / f"page{number}.html")],
            ["audit", f"{trace}.{number}", "--json"],
            ["audit", f"{trace}.{number}", "--html", str(folder / f"file{number}.html")],
            ["audit", one, "--verify"],
            ["approvals", "list", one],
            ["approvals", "list", one, "--json"],
        ]
    return [
        *commands,
        ["audit", "--all", "--workers", "1"],
        ["audit", "--all", "--workers", "1", "--json"],
        *(
            ["audit", talk, "--handbook", book, "--goal", goal, *form]
            for goal in ("open_box", "close_box")
            for form in ([], ["--json"], ["--html", str(folder / f"talk-{goal}.html")])
        ),
        ["sessions", "list"],
        ["sessions", "list", "--json"],
        ["sessions", "list", "--orphaned", "--json"],
        ["records", "actions"],
        ["records", "actions", "--json", "--columns", "user,pin"],
        ["records", "actions", "--csv", "--columns", "user,pin"],
        ["records", "actions", "--rebuild", "--json"],
        ["records", "deviations", "list"],
        ["records", "deviations", "list", "--json"],
        ["records", "seal", "--key", key, "--to", str(folder / "heads.jsonl")],
        ["records", "verify", "--head", str(folder / "heads.jsonl"), "--key", f"{key}.pub",
            "--json"],
        ["records", "prove", failed, "--head", str(folder / "heads.jsonl")],
        ["records", "export", *day, "-o", str(folder / "bundle")],
        ["records", "export", *day, "--payloads", "-o", str(folder / "whole")],
        ["people", "list"],
        ["privacy", "log"],
        ["privacy", "log", "--json"],
        ["store", "size"],
        ["sessions", "sweep", "--json"],
        ["approvals", "amend", held, "c", "--role", "manager", "--as", "Mia",
         "--arguments", json.dumps({"user": "ann", "pin": f"{PIN}"})],
        ["approvals", "approve", held, "c", "--role", "manager", "--as", "Mia",
         "--reason", f"the pin is {PIN}"],
        ["resume", held],
        ["resume", unread, "--json"],
        ["run", book, "--goal", "close_box", *knows, "--request", "Close my box.",
         "--results", str(folder / "results.yaml")],
        ["run", book, "--goal", "close_box", *knows, "--request", "Close my box.", "--json",
         "--results", str(folder / "results.yaml")],
        ["run", book, "--goal", "open_box", "--input", "user=ann", "--input", f"pin={PASSWORD}"],
        ["lab", "play", "show", failed],
    ]  # fmt: skip


@pytest.mark.parametrize("private", [False, True])
def test_no_output_has_a_planted_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private: bool
) -> None:
    spec = f"sqlite:{tmp_path / 'store' / 's.db'}"
    monkeypatch.setenv("SOPILOT_STORE", spec)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    settings = Settings(
        private=private, automation=Automation(enter_calls=True, machine_verdicts=True)
    )
    ids = asyncio.run(_sessions(spec, settings))
    (tmp_path / "vault.yaml").write_text(BOOK, "utf-8")
    (tmp_path / "talk.json").write_text(json.dumps(TRANSCRIPT), "utf-8")
    (tmp_path / "results.yaml").write_text("login: {ok: true}\nclose_box: {ok: true}\n", "utf-8")
    inputs = {"vault.yaml", "talk.json", "results.yaml"}
    commands = _commands(tmp_path, ids)
    for command in commands:
        result = CliRunner().invoke(sopilot, command)
        text = result.output + repr(result.exception)
        assert "Usage:" not in result.output, (command, result.output)
        for secret in SECRETS:
            assert secret not in text, (command, text)
    written = [one for one in tmp_path.rglob("*") if one.is_file() and one.name not in inputs]
    assert len(written) > 20
    for file in written:
        if "store" not in file.parts and "data" not in file.parts:
            content = file.read_bytes()
            assert not any(secret.encode() in content for secret in SECRETS), file
    named = {command[0] for command in commands}
    assert set(sopilot.list_commands(None)) == named | GATEWAYS | AUTHORS | STUDIES  # type: ignore[arg-type]


OF_THE_BANK = ("heron-42", "118204")
"""Password and code of a customer of the bundled bank."""


@pytest.mark.parametrize("form", [[], ["--verbose"], ["--json"]])
def test_the_demo_shows_no_secret(tmp_path: Path, form: list[str]) -> None:
    command = ["demo", "--store", f"sqlite:{tmp_path / 's.db'}", *form]
    result = CliRunner().invoke(sopilot, command)
    assert result.exit_code == 0, result.output
    assert "login" in result.output or form
    assert not any(secret in result.output for secret in OF_THE_BANK)


def test_a_server_logs_and_answers_no_secret(tmp_path: Path) -> None:
    """A right password, a wrong one, and one in the wrong place."""
    pytest.importorskip("mcp", reason="needs the extra `mcp`")
    from mcp_servers import HELLO

    attempts = [
        {"username": "anna", "password": OF_THE_BANK[0]},
        {"username": "anna", "password": "heron-24"},
        {"username": [OF_THE_BANK[0]]},
        {"username": "anna", "passwort": OF_THE_BANK[0]},
    ]
    messages: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
    ]
    messages += [
        {"id": number, "method": "tools/call", "params": {"name": "login", "arguments": given}}
        for number, given in enumerate(attempts, 1)
    ]
    command = [sys.executable, "-m", "sopilot.cli.main", "serve", "bank", "--log", "json"]
    server = subprocess.Popen(
        [*command, "--store", f"sqlite:{tmp_path / 's.db'}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    answers = ""
    for message in messages:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        server.stdin.flush()
        answers += server.stdout.readline() if "id" in message else ""
    rest, log = server.communicate(timeout=60)
    assert '"tool": "login"' in log
    assert '"id":4' in answers + rest
    for secret in (*OF_THE_BANK, "heron-24"):
        assert secret not in log
        assert secret not in answers + rest


CHECKED = """
handbook: box
actions:
  check_pin: {input: {user: string, pin: {type: integer, secret: true}}, read_only: true}
  open_box: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  right(user, pin):
    says: "{pin} is the pin of {user}."
    verify: check_pin(user, pin)
    verdict: result.ok
procedures:
  open_box: {inputs: {pin: integer}, requires: "right(user, pin)"}
"""


async def test_the_guard_tells_no_agent_what_the_application_supplied(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither missing nor refused, by plain functions or over HTTP."""
    pytest.importorskip("starlette", reason="needs the extra `mcp`")
    import httpx2

    from sopilot.integrations.decision_service import decision_app

    caplog.set_level(0)
    book = tmp_path / "box.yaml"
    book.write_text(CHECKED, "utf-8")

    async def check_pin(user: str, pin: int) -> dict[str, bool]:
        return {"ok": False}

    async def open_box(user: str) -> None:
        raise AssertionError

    read, act = product.guard(book, check_pin, open_box)
    heard: list[str] = []
    async with product.conversation("c-1") as talk:
        talk.tell(pin=PIN)
        for _ in range(2):
            with pytest.raises(product.NotCarriedOut) as blocked:
                await act("ann")
            heard.append(repr(vars(blocked.value)) + str(blocked.value))
            await read("ann", PIN)
    token = "a-token-of-the-test"
    http = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(decision_app(book, token=token)),
        base_url="http://guard",
        headers={"authorization": f"Bearer {token}"},
    )
    tools = [("open_box", {"user": "ann"}), ("check_pin", {"user": "ann", "pin": PIN})] * 2
    async with http:
        for number, (tool, arguments) in enumerate(tools):
            bound = {"conversation": "c-1", "id": str(number)}
            call = {**bound, "tool": tool, "arguments": arguments, "tell": {"pin": PIN}}
            decided = (await http.post("/before", json=call)).json()
            if decided["decision"] == "carry_out":
                bound["digest"] = decided["digest"]
                await http.post("/after", json={**bound, "ok": True, "value": {"ok": False}})
            else:
                heard.append(json.dumps(decided))
    assert ["check_pin" in text for text in heard] == [True] * 4
    assert not any(str(PIN) in text for text in [*heard, caplog.text])


class Forgetful:
    async def recall(self, key: str) -> object:
        raise ValueError(f"no call of {PASSWORD}")


async def test_no_log_has_a_secret_that_a_broken_tool_quotes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names the tool, the type of its exception and the place."""
    caplog.set_level(0)
    (tmp_path / "box.yaml").write_text(CHECKED, "utf-8")

    def check_pin(user: str, pin: int) -> None:
        raise ValueError(f"{user} has another pin than {pin}")

    def open_box(user: str) -> None:
        raise AssertionError

    result = await product.load(tmp_path / "box.yaml").run(
        "Open my box.",
        tools=[check_pin, open_box],
        inputs={"user": "ann", "pin": PIN},
        goal="open_box",
    )
    assert not result.executed
    assert await _recalled(Forgetful(), "login:digest") is None
    for about in ("the tool `check_pin` raised", "`recall` failed for the call `login`:"):
        assert f"{about} ValueError (test_no_secret_in_any_output.py:" in caplog.text
    assert not any(secret in caplog.text for secret in SECRETS)
