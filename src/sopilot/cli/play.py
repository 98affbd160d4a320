"""``sopilot lab play``: bring your own agent to a task, one move at a time."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TypeVar

import click

from sopilot.cli.output import give, json_option
from sopilot.cli.stores import STORE
from sopilot.messages.errors import UserMistake
from sopilot.models.replay import reply_from_json
from sopilot.protocols import ModelReply, ToolCall
from sopilot.runner.opened_stores import with_store
from sopilot.runner.play import (
    Play,
    PlayedTurn,
    PlayScore,
    on_play,
    score_lines,
    screen,
    screen_lines,
)
from sopilot.runner.sources import TOOL_LISTS
from sopilot.values.text import Lines
from sopilot.views.catalogue import VIEWS

Answer = TypeVar("Answer")


@click.group()
def command() -> None:
    """Let any agent play a task: see what a model would see, send its moves, get the score.

    TASK is a bundled task (bank/TASK), a scenario of a handbook (my-desk.yaml#SCENARIO) or
    a SOPBench task (sopbench:bank/get_loan#3). Every move may come from another process.
    """


@command.command()
@click.argument("task")
@click.option("--view", default="pg", show_default=True, help=f"One of: {', '.join(VIEWS)}.")
@click.option("--tools", type=click.Choice(TOOL_LISTS), default="official", show_default=True)
@click.option("--language", type=click.Choice(["en", "zh"]), default="en", show_default=True)
@click.option("--model", default="played", help="The name to keep with the session.")
@STORE
@json_option
def start(task: str, store_spec: str | None, as_json: bool, **how: str) -> None:
    """Begin TASK; prints the session's id and everything a model would be sent."""
    shown = with_store(store_spec, lambda store: on_play(store, task, screen, how))
    give(as_json, shown, screen_lines(shown))


@command.command()
@click.argument("session_id", metavar="ID")
@STORE
@json_option
def show(session_id: str, store_spec: str | None, as_json: bool) -> None:
    """What a model would be sent now."""
    shown = _with_play(store_spec, session_id, screen)
    give(as_json, shown, screen_lines(shown))


@command.command()
@click.argument("session_id", metavar="ID")
@click.argument("tool")
@click.argument("arguments", default="{}", metavar="JSON")
@click.option("--say", "beside", default="", help="What the agent says in the same message.")
@STORE
@json_option
def call(
    session_id: str, tool: str, arguments: str, beside: str, store_spec: str | None, as_json: bool
) -> None:
    """Call TOOL with a JSON object of arguments, as the model would."""
    whole = ModelReply(beside, (ToolCall("", tool, arguments),))
    _print_turn(_with_play(store_spec, session_id, lambda play: play.player.reply(whole)), as_json)


@command.command("say")
@click.argument("session_id", metavar="ID")
@click.argument("text")
@STORE
@json_option
def say_(session_id: str, text: str, store_spec: str | None, as_json: bool) -> None:
    """Say TEXT to the user; prints the answer."""
    _print_turn(_with_play(store_spec, session_id, lambda play: play.player.say(text)), as_json)


@command.command()
@click.argument("session_id", metavar="ID")
@click.argument("message", metavar="JSON")
@STORE
@json_option
def reply(session_id: str, message: str, store_spec: str | None, as_json: bool) -> None:
    """Send a whole message of the model: {content, tool_calls: [{name, arguments}]}."""
    try:
        whole = reply_from_json(json.loads(message))
    except (ValueError, RecursionError) as error:
        raise UserMistake(f"the message is not JSON ({error})") from error
    _print_turn(_with_play(store_spec, session_id, lambda play: play.player.reply(whole)), as_json)


@command.command()
@click.argument("session_id", metavar="ID")
@STORE
@json_option
def finish(session_id: str, store_spec: str | None, as_json: bool) -> None:
    """End the session and score it: the oracle's verdict, and the audit's findings.

    Exit code 1 for a task that was not passed.
    """
    score: PlayScore = _with_play(store_spec, session_id, Play.finish)
    give(as_json, score.as_json(), score_lines(score))
    if not score.passed:
        raise SystemExit(1)


def _with_play(
    store_spec: str | None, session_id: str, use: Callable[[Play], Awaitable[Answer]]
) -> Answer:
    return with_store(store_spec, lambda store: on_play(store, session_id, use))


def _print_turn(turn: PlayedTurn, as_json: bool) -> None:
    slot = ["", Lines(turn.slot)] if turn.slot else []
    give(as_json, asdict(turn), [Lines(turn.answer), *slot])
