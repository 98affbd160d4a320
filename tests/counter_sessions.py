"""Sessions at the counter of `counter_desk`: the builders that the tests of this folder share."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, next_move, walk
from sopilot.cli.main import main
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ToolResult
from sopilot.records.store import Store
from sopilot.session.opening import open_session
from sopilot.session.questions import CannotAsk, UserAnswer
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Call, Return, SelectBranch, Start
from sopilot.values.json import JSON
from sopilot.views.step_answers import CallAnswer


async def opened(store: Store | None = None, **options: Any) -> Session:
    """Open a session with counting tools and a clock by hand, unless ``options`` say otherwise."""
    options = {"tools": CountingTools(), "clock": HandClock(), **options}
    programs = options.pop("programs", COUNTER)
    return await open_session(store or MemoryStore(), programs, **options)


async def ready_for(goal: str, store: Store | None = None, **options: Any) -> Session:
    """Open a session and follow its program up to the call of the goal's action."""
    session = await opened(store, **options)
    await walk(session, goal, stop_at_action=goal)
    return session


async def attempt(session: Session, goal: str, call_id: str = "c", **changed: JSON) -> CallAnswer:
    return await session.call_tool(goal, {**ERRANDS[goal], **changed}, call_id)


async def waiting_wire(store: Store | None = None, **options: Any) -> Session:
    """Open a session in which the wire `w` waits for two people, for an hour."""
    session = await ready_for("wire", store, **options)
    assert (await attempt(session, "wire", "w")).held is not None
    return session


async def claim_every_check(session: Session, goal: str) -> None:
    """Start the goal and return true from every check, without looking anything up."""
    await session.operate(Start(goal, ERRANDS[goal]))
    while True:
        move = next_move(session.machine, session.configuration)
        if isinstance(move, tuple):
            if move[0] == goal:
                return
            move = Return(True)
        assert isinstance(move, Call | Return | SelectBranch)
        await session.operate(move)


async def replying(session: Session, *replies: str) -> list[str]:
    """Let the user reply to the runtime's questions with these in turn, over and over. Return the
    questions. `an earlier yes` is a message from before them."""
    early = (await session.user_said("yes")).events[0].seq
    shown: list[str] = []

    async def asker(text: str, about: str, closed: bool) -> UserAnswer | None:
        shown.append(text)
        reply = replies[(len(shown) - 1) % len(replies)]
        if reply == "not shown":
            raise CannotAsk
        if reply == "silence":
            return None
        if reply == "an earlier yes":
            return UserAnswer("yes", early)
        return UserAnswer(reply, (await session.user_said(reply)).events[0].seq)

    session.asker = asker if replies else None
    return shown


def tools_of(session: Session) -> CountingTools:
    assert isinstance(session.tools, CountingTools)
    return session.tools


def clock_of(session: Session) -> HandClock:
    assert isinstance(session.clock, HandClock)
    return session.clock


class InterruptedTools(CountingTools):
    """The process is killed while one of its tools is at work."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        result = await super().call(name, arguments, key=key)
        if name == self.name:
            raise Killed
        return result


class Killed(BaseException):
    """Nothing in a session may catch it, as with a real kill."""


def programs_of(text: str) -> ProgramSet:
    compiled = compile_handbook(load_handbook(text))
    return ProgramSet({name: result.program for name, result in compiled.items()})


def code_of(refused: pytest.ExceptionInfo[UserMistake]) -> str:
    return refused.value.diagnostics[0].code


def run(*arguments: str) -> Result:
    """Run a command through ``main``, so that exit codes are the real ones."""

    @click.command(context_settings={"ignore_unknown_options": True})
    @click.argument("rest", nargs=-1, type=click.UNPROCESSED)
    def whole(rest: tuple[str, ...]) -> None:
        sys.exit(main(list(rest)))

    return CliRunner().invoke(whole, ["--", *arguments])
