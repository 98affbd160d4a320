"""Every view through the three frameworks' hooks: what the loop shows, as far as a hook owns it.

A framework owns the list of messages, the tools of the domain and when calls are made:

- Its words and the user's never come to the session, so the trace has none of them, and no
  requests. Results are numbered by their place in the trace: they count otherwise.
- It spells the arguments of calls in its own way, and gives ids of its own.
- It sends the whole dialog, which the loop folds under `fused`: there the requests differ, and
  what the run comes to doesn't. Views without a machine guard nothing and are refused.

Everything else must be the loop's to the byte: the instructions, the slot, the bookkeeping
tool, the answers, and every other event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from framework_agents import EVERY_FRAMEWORK, FrameworkAgent
from hooked_desk import EXECUTED, REFUSED, HookedDesk, check_run, converse, desk_agent, opened
from looped import looped

from sopilot.messages.errors import UserMistake
from sopilot.protocols import Message
from sopilot.runner.hook import ProcedureHook
from sopilot.runner.sources import open_source
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Event
from sopilot.views.catalogue import VIEWS

HOOKED = [name for name, view in VIEWS.items() if view.has_steps and not view.in_order]
_NUMBERS = frozenset({"opened", "call", "evidence", "earlier", "result"})
"""Fields that hold numbers of events."""


class Numbers:
    """Numbers of events, by the order in which they are met."""

    def __init__(self) -> None:
        self._met: dict[str, int] = {}

    def of(self, number: object) -> int:
        return self._met.setdefault(str(number), len(self._met))

    def in_text(self, text: str) -> str:
        return re.sub(r"#(\d+)", lambda one: f"#{self.of(one[1])}", text)

    def in_value(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self.in_value(one, key) for key, one in sorted(value.items())}
        if isinstance(value, list):
            return [self.in_value(one, name) for one in value]
        if isinstance(value, str):
            return self.in_text(value)
        return self.of(value) if name in _NUMBERS and type(value) is int else value


def compared(messages: Sequence[Message]) -> list[tuple[Any, ...]]:
    """Without ids, and arguments by what they say."""
    numbers = Numbers()
    return [
        (
            message.role,
            numbers.in_text(message.content),
            [
                (call.name, numbers.in_value(json.loads(call.arguments or "{}")))
                for call in message.tool_calls
            ],
            message.name,
        )
        for message in messages
    ]


def owned(events: Iterable[Event]) -> list[tuple[Any, ...]]:
    """Without what was said and asked, which a hook does not hear."""
    numbers = Numbers()
    found = []
    for event in events:
        name = event.payload.get("name") if event.kind == "note" else None
        own_notes = ("model_request", "answers", "opened")
        if event.kind in ("user_said", "assistant_said") or name in own_notes:
            continue
        payload = {
            key: one
            for key, one in numbers.in_value(dict(event.payload)).items()
            if key != "call_id"
        }
        payload.get("details", {}).pop("call_id", None)
        where = (event.actor, event.kind, event.process, event.frame)
        found.append((numbers.of(event.seq), *where, payload))
    return found


async def hooked_run(
    framework: type[FrameworkAgent], view: str, case: tuple[str, str, str]
) -> HookedDesk:
    hooked = await opened(case, view)
    await converse(hooked, desk_agent(framework, hooked).say)
    assert hooked.over
    return hooked


@EVERY_FRAMEWORK
@pytest.mark.parametrize("view", HOOKED)
@pytest.mark.parametrize("case", [EXECUTED, REFUSED], ids=["executed", "refused"])
async def test_hooks(
    case: tuple[str, str, str], view: str, framework: type[FrameworkAgent]
) -> None:
    loop = looped(f"{case[0]}/{case[1]}", view)
    hooked = await hooked_run(framework, view, case)
    # A framework asks its model once more when all is done.
    assert len(hooked.requests) in (len(loop.requests), len(loop.requests) + 1)
    for seen, asked in zip(hooked.requests, loop.requests, strict=False):
        # Behind what the agent itself was told by its author.
        assert seen.messages[0].content.endswith(asked.messages[0].content)
        assert hooked.hook.instructions == asked.messages[0].content
        assert seen.tools[0] == asked.tools[0] == hooked.hook.own_tools[0]
        assert compared(seen.messages[1:]) == compared(asked.messages[1:])
    assert owned(hooked.hook.session.own_events) == owned(loop.events)


@EVERY_FRAMEWORK
@pytest.mark.parametrize("case", [EXECUTED, REFUSED], ids=["executed", "refused"])
async def test_fused(case: tuple[str, str, str], framework: type[FrameworkAgent]) -> None:
    hooked = await hooked_run(framework, "fused", case)
    check_run(hooked, case[2])


@pytest.mark.parametrize("view", [name for name, view in VIEWS.items() if not view.machine])
async def test_views_that_a_hook_cannot_keep_are_refused(view: str) -> None:
    with pytest.raises(UserMistake, match=r"choose `pg`|can't guard"):
        await ProcedureHook.open(MemoryStore(), open_source("bank").briefing(), VIEWS[view])
