"""``sopilot lab play``: bring your own agent to a task, one move at a time."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, TypeVar

import click

from sopilot.cli.options import LANGUAGE, SESSION, STORE, TOOLS, all_of, json_option
from sopilot.cli.output import Exit, give
from sopilot.messages.errors import UserMistake
from sopilot.models.replay import reply_from_json
from sopilot.protocols import ModelReply, ToolCall
from sopilot.runner.play import (
    Play,
    PlayedTurn,
    PlayScore,
    on_play,
    score_lines,
    screen,
    screen_lines,
)
from sopilot.runner.store_access import StoreAccess
from sopilot.values.text import Lines
from sopilot.views.catalogue import VIEWS

Answer = TypeVar("Answer")

_AT_SESSION = all_of(SESSION, STORE, json_option)


@click.group()
def command() -> None:
    """Let any agent play a task: see what a model would see, send its moves, get the score.

    TASK is a bundled task (bank/TASK), a scenario of a handbook (my-desk.yaml#SCENARIO) or
    a SOPBench task (sopbench:bank/get_loan#3). Every move may come from another process.
    """


@command.command()
@click.argument("task")
@click.option("--view", default="pg", show_default=True, help=f"One of: {', '.join(VIEWS)}.")
@TOOLS
@LANGUAGE
@click.option("--model", default="played", help="Name of the agent to record.")
@STORE
@json_option
def start(task: str, tools: str | None, store: StoreAccess, as_json: bool, **how: str) -> None:
    """Begin TASK; print the session's id and everything a model would receive."""
    begin = {"tools": tools or "official", **how}
    _print_screen(_with_play(store, task, screen, begin), as_json)


@command.command()
@_AT_SESSION
def show(session_id: str, store: StoreAccess, as_json: bool) -> None:
    """Print everything a model would receive now."""
    _print_screen(_with_play(store, session_id, screen), as_json)


@command.command()
@_AT_SESSION
@click.argument("tool")
@click.argument("arguments", default="{}", metavar="JSON")
@click.option("--say", "beside", default="", help="Text of the agent in the same message.")
def call(tool: str, arguments: str, beside: str, **where: Any) -> None:
    """Call TOOL with a JSON object of arguments, as the model would."""
    _move(ModelReply(beside, (ToolCall("", tool, arguments),)), **where)


@command.command("say")
@_AT_SESSION
@click.argument("text")
def say_(text: str, **where: Any) -> None:
    """Say TEXT to the user; print the answer."""
    _move(ModelReply(text), **where)


@command.command()
@_AT_SESSION
@click.argument("message", metavar="JSON")
def reply(message: str, **where: Any) -> None:
    """Send a whole message of the model: {content, tool_calls: [{name, arguments}]}."""
    try:
        whole = reply_from_json(json.loads(message))
    except (ValueError, RecursionError) as error:
        raise UserMistake(f"the message isn't JSON ({error})") from error
    _move(whole, **where)


@command.command()
@_AT_SESSION
def finish(session_id: str, store: StoreAccess, as_json: bool) -> None:
    """End the session and print its score: the evaluator's verdict and the audit's findings.

    Exit 1 if the task wasn't passed.
    """
    score: PlayScore = _with_play(store, session_id, Play.finish)
    give(as_json, score.as_json(), score_lines(score))
    if not score.passed:
        raise SystemExit(Exit.FINDINGS)


def _with_play(
    store: StoreAccess,
    name: str,
    use: Callable[[Play], Awaitable[Answer]],
    begin: dict[str, str] | None = None,
) -> Answer:
    return store.write(
        lambda opened: on_play(opened, name, use, begin, token_file=store.token_file)
    )


def _move(move: ModelReply, session_id: str, store: StoreAccess, as_json: bool) -> None:
    turn: PlayedTurn = _with_play(store, session_id, lambda play: play.player.reply(move))
    frame = ["", Lines(turn.frame_text)] if turn.frame_text else []
    give(as_json, asdict(turn), [Lines(turn.answer), *frame])


def _print_screen(shown: dict[str, object], as_json: bool) -> None:
    give(as_json, shown, screen_lines(shown))
