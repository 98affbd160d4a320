"""A example task in the agent loop, kept whole: what every other door is compared with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from sopilot.agent.loop import open_run, run_session
from sopilot.agent.reference.executor import Reference
from sopilot.agent.result import SessionResult
from sopilot.machine.replay import whole_events
from sopilot.models.replay import ReplayModel
from sopilot.protocols import Message, Model, ModelReply, ModelRequest
from sopilot.records.store import Store
from sopilot.runner.play import PLAY_ENDED, playable_task, resume_play
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.examples.example import load_example
from sopilot.trace.events import Event
from sopilot.views.catalogue import view_named

REFUSED = "bank/transfer-wrong-password"
APPROVED = "bank/close-empty"
TWO_REQUESTS = "bank/transfer-instead-of-closing"
TASKS = (REFUSED, APPROVED, TWO_REQUESTS)
UNREADABLE = ("official", "official-code", "official-recipes", "prose", "checklist", "retrieval")
"""Views of which the reference executor cannot read the text: they get the moves of `flat`."""

Trim = Callable[[ModelReply], ModelReply]


@dataclass
class Looped:
    """``requests`` and ``replies`` belong together, one by one."""

    requests: list[ModelRequest] = field(default_factory=list)
    replies: list[ModelReply] = field(default_factory=list)
    result: SessionResult = field(default_factory=lambda: SessionResult("", None))  # type: ignore[arg-type]
    session: Session = field(default=None)  # type: ignore[assignment]

    @property
    def dialog(self) -> list[Message]:
        return list(self.result.messages[1:])

    @property
    def events(self) -> list[Event]:
        """As they happened: what is kept beside the trace has a name of its own in each session."""
        return list(self.session.own_events)


class Listening:
    def __init__(self, inner: Model, kept: Looped, trim: Trim) -> None:
        self._inner, self._kept, self._trim = inner, kept, trim

    @property
    def name(self) -> str:
        return self._inner.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = self._trim(await self._inner.complete(request))
        self._kept.requests.append(request)
        self._kept.replies.append(reply)
        return reply


def whole(reply: ModelReply) -> ModelReply:
    return reply


def one_call(reply: ModelReply) -> ModelReply:
    """What an MCP client can send: one call without an id, and no words beside it."""
    calls = tuple(replace(call, id="") for call in reply.tool_calls[:1])
    return ModelReply("" if calls else reply.content, calls)


@cache
def looped(reference: str, view_name: str, trim: Trim = whole) -> Looped:
    task = playable_task(reference)
    view = view_named(view_name)
    kept = Looped()
    if view_name in UNREADABLE:
        model: Model = ReplayModel(looped(reference, "flat", trim).replies)
    else:
        model = Reference(load_example(reference.partition("/")[0]).reader)
    assert task.simulation.user is not None
    user = task.simulation.user

    async def run() -> None:
        kept.session = await open_run(
            MemoryStore(), task.briefing, view, tools=task.simulation.tools, unguarded=True
        )
        kept.result = await run_session(
            kept.session,
            task.briefing,
            view=view,
            model=Listening(model, kept, trim),
            user=user,
            budgets=task.simulation.budgets,
            operator=task.simulation.operator,
        )

    with ThreadPoolExecutor(1) as thread:  # the tests have a loop of their own
        thread.submit(asyncio.run, run()).result()
    assert len(kept.requests) >= 3
    return kept


async def compare_record(store: Store, session_id: str, loop: Looped) -> None:
    events = whole_events(await store.events(session_id), await store.payloads(session_id))
    assert but_for_ids_and_times(events) == but_for_ids_and_times(loop.events)
    play = await resume_play(store, session_id)
    await play.close()
    assert play.driver.dialog == loop.dialog


def but_for_ids_and_times(events: Iterable[Event]) -> list[tuple[Any, ...]]:
    """A play also leaves a note of its end for the next process; the loop returns it."""
    return [
        tuple(event._replace(at=0.0, payload=_timeless(event.payload)))
        for event in events
        if not (event.kind == "note" and event.payload["name"] == PLAY_ENDED)
    ]


def _timeless(payload: Mapping[str, Any]) -> dict[str, Any]:
    details = payload.get("details")
    if not isinstance(details, Mapping):
        return dict(payload)
    own = {
        name: one for name, one in details.items() if name not in ("seconds", "session", "model")
    }
    return {**payload, "details": own}


def answers(dialog: Sequence[Message]) -> list[str]:
    """What came back for each message of the model: of a tool, of the user, or of the runtime."""
    found: list[str] = []
    for message in dialog:
        if message.role == "assistant":
            found.append("")
        elif found and message.role in ("tool", "user", "system"):
            found[-1] = f"{found[-1]}\n{message.content}" if found[-1] else message.content
    return found
