"""Every arm through `play`, from other processes, and under the lens: the loop's own requests."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from looped import APPROVED, REFUSED, TASKS, answers, but_for_ids_and_times, looped

from sopilot.adapters.sqlite_store import SQLiteStore
from sopilot.doors.mcp import open_task, resume_play, start_play
from sopilot.doors.mcp.playing import Play
from sopilot.lab.lens import moments_of
from sopilot.runtime.agent import ARMS, Request, arm_named
from sopilot.runtime.session import Store
from sopilot.runtime.session.protocols import Message, ModelReply, ToolSchema
from sopilot.runtime.vm import Event

Shown = tuple[list[Message], str, list[ToolSchema]]


def in_a_process_of_its_own(path: Path, work: Callable[[Store], Coroutine[Any, Any, Any]]) -> Any:
    """Nothing is carried over but what stands in the store."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:

            async def use() -> Any:
                store = SQLiteStore(path, synchronous="NORMAL")
                try:
                    return await work(store)
                finally:
                    await store.close()

            with os.fdopen(write, "wb") as out:
                pickle.dump(asyncio.run(use()), out)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as given:
        sent = given.read()
    _, status = os.waitpid(child, 0)
    assert status == 0
    return pickle.loads(sent)


def shown(request: Request) -> Shown:
    return request.messages, request.slot, list(request.tools)


async def move(play: Play, reply: ModelReply) -> tuple[Shown, str, str | None]:
    try:
        before = shown(play.player.driver.request())
        turn = await play.player.reply(reply)
        return before, turn.answer, turn.ending
    finally:
        await play.close()


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("task", TASKS)
def test_play(task: str, arm: str, tmp_path: Path) -> None:
    loop = looped(task, arm)
    path = tmp_path / "s.db"

    async def begin(store: Store) -> str:
        play = await start_play(store, task, arm=arm)
        await play.close()
        return play.id

    session_id = in_a_process_of_its_own(path, begin)
    came_back: list[str] = []
    ending = None
    for request, reply in zip(loop.requests, loop.replies, strict=True):

        async def make(store: Store, reply: ModelReply = reply) -> Any:
            return await move(await resume_play(store, session_id), reply)

        before, answer, ending = in_a_process_of_its_own(path, make)
        came_back.append(answer)
        slot = request.messages[-1].content if before[1] else ""
        assert before == (list(request.messages), slot, list(request.tools))
    assert ending == loop.result.ending
    # The last answer of a play says that it is over.
    assert came_back[:-1] == answers(loop.dialog)[: len(came_back) - 1]

    async def end(store: Store) -> tuple[list[Event], list[Message]]:
        play = await resume_play(store, session_id)
        await play.close()
        return [sealed.event for sealed in await store.events(session_id)], play.player.driver.dialog

    events, dialog = in_a_process_of_its_own(path, end)
    assert but_for_ids_and_times(events) == but_for_ids_and_times(loop.events)
    assert dialog == loop.dialog


@pytest.mark.parametrize("arm", ["fused"])
def test_play_by_command(arm: str, tmp_path: Path) -> None:
    """The same through the command line: `show` prints the request, `reply` takes the message."""
    loop = looped(REFUSED, arm)

    def sopilot(*arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "sopilot.doors.cli.main", "play", *arguments, "--json"],
            env={**os.environ, "SOPILOT_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    printed = sopilot("start", REFUSED, "--arm", arm)
    for request, reply in zip(loop.requests, loop.replies, strict=True):
        messages = [{"role": "system", "content": printed["system"]}, *printed["messages"]]
        if printed["slot"]:
            messages.append({"role": "system", "content": printed["slot"]})
        wanted = json.loads(json.dumps([asdict(message) for message in request.messages]))
        empty = json.loads(json.dumps(asdict(Message("system"))))
        assert [{**empty, **one} for one in messages] == [{**empty, **one} for one in wanted]
        assert printed["tools"] == json.loads(json.dumps([asdict(one) for one in request.tools]))
        told = {"content": reply.content, "tool_calls": [asdict(one) for one in reply.tool_calls]}
        turn = sopilot("reply", printed["session"], json.dumps(told))
        printed = sopilot("show", printed["session"])
    assert turn["ending"] == printed["ending"] == loop.result.ending


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("task", [APPROVED, *TASKS[2:]])
def test_lens(task: str, arm: str) -> None:
    """A recording is all that the lens has."""
    loop = looped(task, arm)
    opened = open_task(task)
    moments = moments_of(
        loop.session.machine,
        loop.events,
        opened.briefing,
        arm_named(arm),
        opened.world.tools.schemas(),
    )
    assert len(moments) == len(loop.requests)
    for moment, request in zip(moments, loop.requests, strict=True):
        assert moment.request.messages == list(request.messages)
        assert list(moment.request.tools) == list(request.tools)
