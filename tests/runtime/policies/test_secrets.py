"""A secret stands in clear in nothing that is kept or shown, and the tool still gets it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sopilot.adapters.memory_store import MemoryStore
from sopilot.language.compiler import compile_handbook
from sopilot.language.handbook import load_handbook
from sopilot.runtime.agent import Briefing, ScriptedUser, arm_named, audit_session
from sopilot.runtime.agent._driver import Driver
from sopilot.runtime.agent.progress import Progress
from sopilot.runtime.session import (
    Settings,
    export_trace,
    open_session,
    resume_session,
    write_trace,
)
from sopilot.runtime.session.protocols import ToolCall, ToolResult, ToolSchema
from sopilot.runtime.vm import Automation, Fail, Start

BOOK = load_handbook("""
handbook: vault-desk
actions:
  login: {input: {user: string, code: {type: string, secret: true}}}
  open_box: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  known(user):
    says: The customer {user} is known.
    established_by: login(user, code=pass_phrase)
procedures:
  open_box: {requires: known(user)}
""")
PROGRAMS = {name: one.program for name, one in compile_handbook(BOOK).items()}
SECRET = "hunter2-swordfish"
SCHEMA = {"type": "object", "properties": {"user": {}, "code": {}}}


class Doors:
    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []

    def schemas(self) -> Sequence[ToolSchema]:
        return [ToolSchema(name, "", SCHEMA) for name in ("login", "open_box")]

    async def call(self, name: str, arguments: Mapping[str, Any], *, key: str) -> ToolResult:
        self.got.append(dict(arguments))
        if arguments.get("code") == SECRET + "!":
            return ToolResult(False, {"error": f"`{arguments['code']}` is wrong"})
        return ToolResult(True, {"ok": True})


def test_nothing_that_is_kept_or_shown_has_it() -> None:
    async def case() -> None:
        store, tools = MemoryStore(), Doors()
        settings = Settings(automation=Automation(enter_calls=True, machine_verdicts=True))
        session = await open_session(store, PROGRAMS, tools=tools, settings=settings)
        told: list[Progress] = []
        user = ScriptedUser(f"I am ann, and the pass phrase is {SECRET}", {})
        arm = arm_named("pg")
        driver = Driver(session, Briefing(BOOK, PROGRAMS), arm, user=user, watch=told.append)
        await driver.begin()
        await session.operate(Start("open_box", {"user": "ann"}))
        broken = ToolCall("x", "login", f'{{"user": "ann", "code": "{SECRET}')
        await driver.call(broken)
        wrong = {"user": "ann", "code": SECRET + "!"}
        await driver.call(ToolCall("y", "login", json.dumps(wrong)))
        right = {"user": "ann", "code": SECRET}
        answer = await driver.call(ToolCall("z", "login", json.dumps(right)))
        assert "ok" in answer
        assert tools.got[-1] == right
        await driver.call(ToolCall("b", "open_box", json.dumps({"user": "ann"})))
        assert tools.got[-1] == {"user": "ann"}
        await session.operate(Fail(f"the phrase {SECRET} did not help"))
        report = await audit_session(session, BOOK, arm)
        exports = [
            write_trace(await export_trace(store, session.id, payloads=kept))
            for kept in (False, True)
        ]
        shown = [
            *exports,
            json.dumps(report.as_json()),
            repr(await session.shown_events()),
            repr(session.events),
            repr(told[2:]),
        ]
        for text in shown:
            assert SECRET not in text
        # The vault has it: a session goes on after a restart.
        await session.release()
        later = await resume_session(store, session.id, tools=tools)
        assert later.secrets.values == {SECRET, SECRET + "!"}
        whole = repr(await later.whole_events())
        assert SECRET in whole

    asyncio.run(case())


def test_a_program_names_what_is_secret_under_every_name() -> None:
    assert PROGRAMS["open_box"].secrets == ("code", "pass_phrase")
