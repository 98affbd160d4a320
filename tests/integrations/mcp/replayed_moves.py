"""The moves of a finished run, sent one by one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sopilot.protocols import Message
from sopilot.runner.play import PlayScore, resume_play, start_play
from sopilot.stores.sqlite import SQLiteStore


@dataclass(frozen=True)
class Move:
    """A call, or without a tool a message to the user."""

    tool: str = ""
    arguments: str = "{}"
    say: str = ""
    number: str = ""
    """The number that the call's result had, such as `#12`."""


class Renumbered:
    """Between the results of a play stand other events than in the run that it repeats, so
    they count otherwise; who plays reads the numbers there."""

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    def arguments(self, move: Move) -> str:
        return re.sub(r"#\d+", lambda one: self._numbers.get(one[0], one[0]), move.arguments)

    def answered(self, move: Move, answer: str) -> None:
        if move.number and answer.startswith("#"):
            self._numbers[move.number] = answer.split()[0]


def moves_of(messages: Sequence[Message]) -> list[Move]:
    found: list[Move] = []
    numbers = {
        message.tool_call_id: message.content.split()[0]
        for message in messages
        if message.role == "tool" and message.content.startswith("#")
    }
    for message in messages:
        if message.role != "assistant":
            continue
        said = message.content
        for call in message.tool_calls:
            found.append(Move(call.name, call.arguments, said, numbers.get(call.id, "")))
            said = ""
        if not message.tool_calls:
            found.append(Move(say=said))
    return found


async def play_in_pieces(
    path: Path, task: str, moves: Sequence[Move], *, view: str, tools: str = "official"
) -> PlayScore:
    """Every move with a store, a world and a session of its own, as another process has."""
    store = SQLiteStore(path)
    play = await start_play(store, task, view=view, tools=tools)
    session_id = play.id
    await play.close()
    await store.close()
    renumbered = Renumbered()
    for move in moves:
        store = SQLiteStore(path)
        play = await resume_play(store, session_id)
        if move.tool:
            arguments = renumbered.arguments(move)
            turn = await play.call(move.tool, arguments, say=move.say)
            renumbered.answered(move, turn.answer)
        else:
            await play.say(move.say)
        await play.close()
        await store.close()
    store = SQLiteStore(path)
    play = await resume_play(store, session_id)
    score = await play.finish()
    await play.close()
    await store.close()
    return score


def in_pieces(path: Path, task: str, moves: Sequence[Move], **options: Any) -> PlayScore:
    return asyncio.run(play_in_pieces(path, task, moves, **options))
