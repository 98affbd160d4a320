"""``sopilot lab play``: bring your own agent to a task, one move at a time."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, TypeVar

import click

from sopilot.cli.options import IN_STORE, LANGUAGE, SESSION, TOOLS, all_of, option
from sopilot.cli.output import Exit, Output
from sopilot.messages.errors import UserMistake
from sopilot.models.replay import reply_from_json
from sopilot.protocols import ModelReply, ToolCall
from sopilot.records.store import Store
from sopilot.runner.play import (
    PlayedTurn,
    Player,
    PlayScore,
    resume_play,
    score_lines,
    screen,
    screen_lines,
    start_play,
)
from sopilot.runner.store_access import StoreAccess
from sopilot.values.text import Lines
from sopilot.views.catalogue import VIEWS

Answer = TypeVar("Answer")

_AT_SESSION = all_of(SESSION, IN_STORE)


@click.group()
def command() -> None:
    """Let any agent play a task: see what a model would see, send its moves, get the score.

    TASK is a bundled task (bank/TASK), a scenario of a handbook (my-desk.yaml#SCENARIO) or
    a SOPBench task (sopbench:bank/get_loan#3). Every move may come from another process.
    """


@command.command()
@click.argument("task")
@option("--view", f"One of: {', '.join(VIEWS)}.", default="pg", show_default=True)
@TOOLS
@LANGUAGE
@option("--model", "Name to record for the agent.", default="played")
@IN_STORE
def start(task: str, tools: str | None, store: StoreAccess, **how: str) -> Output:
    """Begin TASK; print the session's id and everything a model would receive."""
    begin = {"tools": tools or "official", **how}
    return _screen(store, task, begin)


@command.command()
@_AT_SESSION
def show(session_id: str, store: StoreAccess) -> Output:
    """Print everything a model would receive now."""
    return _screen(store, session_id)


@command.command()
@_AT_SESSION
@click.argument("tool")
@click.argument("arguments", default="{}", metavar="JSON")
@option("--say", "Text that the agent says in the same message.", "beside", default="")
def call(tool: str, arguments: str, beside: str, **where: Any) -> Output:
    """Call TOOL with a JSON object of arguments, as the model would."""
    return _move(ModelReply(beside, (ToolCall("", tool, arguments),)), **where)


@command.command("say")
@_AT_SESSION
@click.argument("text")
def say_(text: str, **where: Any) -> Output:
    """Say TEXT to the user; print the answer."""
    return _move(ModelReply(text), **where)


@command.command()
@_AT_SESSION
@click.argument("message", metavar="JSON")
def reply(message: str, **where: Any) -> Output:
    """Send a whole message of the model: {content, tool_calls: [{name, arguments}]}."""
    try:
        whole = reply_from_json(json.loads(message))
    except (ValueError, RecursionError) as error:
        raise UserMistake(f"the message isn't JSON ({error})") from error
    return _move(whole, **where)


@command.command()
@_AT_SESSION
def finish(session_id: str, store: StoreAccess) -> Output:
    """End the session and print its score: the evaluator's verdict and the audit's findings.

    Exit 1 if the task wasn't passed.
    """
    score: PlayScore = _with_play(store, session_id, Player.finish)
    return Output(score.as_json(), score_lines(score), Exit.if_any(not score.passed))


def _with_play(
    store: StoreAccess,
    name: str,
    use: Callable[[Player], Awaitable[Answer]],
    begin: dict[str, str] | None = None,
) -> Answer:
    """Use the session of that id, or ``begin`` one with the task of that name."""

    async def play(opened: Store) -> Answer:
        if begin is None:
            player = await resume_play(opened, name, token_file=store.token_file)
        else:
            player = await start_play(opened, name, token_file=store.token_file, **begin)
        try:
            return await use(player)
        finally:
            await player.close()

    return store.write(play)


def _move(move: ModelReply, session_id: str, store: StoreAccess) -> Output:
    turn: PlayedTurn = _with_play(store, session_id, lambda player: player.reply(move))
    frame = ["", Lines(turn.frame_text)] if turn.frame_text else []
    return Output(asdict(turn), [Lines(turn.answer), *frame])


def _screen(store: StoreAccess, name: str, begin: dict[str, str] | None = None) -> Output:
    shown = _with_play(store, name, screen, begin)
    return Output(shown, screen_lines(shown))
