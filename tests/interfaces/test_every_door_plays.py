"""Every view through `play`, from other processes, and under the lens: the loop's own requests."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from looped import APPROVED, REFUSED, TASKS, TWO_REQUESTS, answers, compare_record, looped

from sopilot.protocols import Message, ModelReply, ModelRequest
from sopilot.records.store import Store
from sopilot.runner.play import playable_task, resume_play, start_play
from sopilot.stores.sqlite import SQLiteStore
from sopilot.views.catalogue import VIEWS, view_named
from sopilot_lab.lens.moments import moments_of
from warm import warm_python

MOST = [
    pytest.param(task, view, marks=[pytest.mark.slow] if task == TWO_REQUESTS and far else [])
    for task in TASKS
    for view in VIEWS
    for far in [view not in ("pg", "fused", "flat", "chunk")]
]
FORKED = ("pg", "fused")
"""Views that a process of its own plays for every message; the others open the store anew."""


def anew(path: Path, work: Callable[[Store], Coroutine[Any, Any, Any]]) -> Any:
    """Nothing comes over from one to the next but what stands in the store."""

    async def use() -> Any:
        store = SQLiteStore(path, synchronous="NORMAL")
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(use())


def in_a_process_of_its_own(path: Path, work: Callable[[Store], Coroutine[Any, Any, Any]]) -> Any:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with os.fdopen(write, "w") as out:
                json.dump(anew(path, work), out)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as given:
        sent = given.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, "see the traceback of the child"
    return json.loads(sent)


async def moved(store: Store, session_id: str, request: ModelRequest, reply: ModelReply) -> Any:
    play = await resume_play(store, session_id)
    try:
        shown = play.driver.request()
        assert shown.messages == list(request.messages)
        assert shown.frame_text == (request.messages[-1].content if shown.frame_text else "")
        assert list(shown.tools) == list(request.tools)
        turn = await play.reply(reply)
        return turn.answer, turn.ending
    finally:
        await play.close()


@pytest.mark.parametrize(("task", "view"), MOST)
def test_play(task: str, view: str, tmp_path: Path) -> None:
    loop = looped(task, view)
    path = tmp_path / "s.db"
    play_in = in_a_process_of_its_own if view in FORKED else anew

    async def begin(store: Store) -> str:
        play = await start_play(store, task, view=view)
        await play.close()
        return play.id

    session_id = play_in(path, begin)
    came_back: list[str] = []
    ending = None
    for request, reply in zip(loop.requests, loop.replies, strict=True):
        answer, ending = play_in(
            path, lambda store, asked=request, reply=reply: moved(store, session_id, asked, reply)
        )
        came_back.append(answer)
    assert ending == loop.result.ending
    # The last answer of a play says that it is over.
    assert came_back[:-1] == answers(loop.dialog)[: len(came_back) - 1]

    anew(path, lambda store: compare_record(store, session_id, loop))


@pytest.mark.parametrize("view", ["fused"])
def test_play_by_command(view: str, tmp_path: Path) -> None:
    """The same through the command line: `show` prints the request, `reply` takes the message."""
    loop = looped(REFUSED, view)

    def sopilot(*arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            [*warm_python(), "-m", "sopilot.cli.main", "lab", "play", *arguments, "--json"],
            env={**os.environ, "SOPILOT_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    printed = sopilot("start", REFUSED, "--view", view)
    for request, reply in zip(loop.requests, loop.replies, strict=True):
        messages = [{"role": "system", "content": printed["system"]}, *printed["messages"]]
        if printed["frame"]:
            messages.append({"role": "system", "content": printed["frame"]})
        wanted = json.loads(json.dumps([asdict(message) for message in request.messages]))
        empty = json.loads(json.dumps(asdict(Message("system"))))
        assert [{**empty, **one} for one in messages] == [{**empty, **one} for one in wanted]
        assert printed["tools"] == json.loads(json.dumps([asdict(one) for one in request.tools]))
        told = {"content": reply.content, "tool_calls": [asdict(one) for one in reply.tool_calls]}
        turn = sopilot("reply", printed["session"], json.dumps(told))
        printed = sopilot("show", printed["session"])
    assert turn["ending"] == printed["ending"] == loop.result.ending


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("task", [APPROVED, TWO_REQUESTS])
def test_lens(task: str, view: str) -> None:
    """A recording is all that the lens has."""
    loop = looped(task, view)
    opened = playable_task(task)
    moments = moments_of(
        loop.session.machine,
        loop.events,
        opened.briefing,
        view_named(view),
        opened.simulation.tools.schemas(),
    )
    assert len(moments) == len(loop.requests)
    for moment, request in zip(moments, loop.requests, strict=True):
        assert moment.request.messages == list(request.messages)
        assert list(moment.request.tools) == list(request.tools)
