"""What the three frameworks' tests share: a example, a hook, and the reference as the model."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from sopilot.agent.approvers import RoleApprovers, ScriptedUser
from sopilot.agent.reference.executor import Reference
from sopilot.audit.audit import audit_trace
from sopilot.protocols import Message, ModelReply, ModelRequest, ToolCall, ToolSchema
from sopilot.runner.conversation import ProcedureHook
from sopilot.runner.sources import open_source
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.examples.example import Example, load_example
from sopilot.tasks.examples.judge import example_judge
from sopilot.tasks.examples.simulator import Simulator
from sopilot.tasks.examples.task import ExampleTask
from sopilot.values.json import JSON
from sopilot.views.catalogue import view_named

EXECUTED = ("bank", "close-empty", "completed")
REFUSED = ("bank", "close-in-debt", "refused")


def no_error(name: str, value: JSON) -> bool:
    return not (isinstance(value, dict) and "error" in value)


@dataclass
class HookedDesk:
    example: Example
    task: ExampleTask
    world: Simulator
    hook: ProcedureHook
    user: ScriptedUser
    premature: bool = True
    requests: list[ModelRequest] = field(default_factory=list)
    _keys: itertools.count[int] = field(default_factory=itertools.count)

    async def perform(self, name: str, arguments: dict[str, JSON]) -> JSON:
        """The agent's own tool."""
        return self.world.perform(name, arguments, key=str(next(self._keys))).value

    async def reply(self, messages: Sequence[Message], slot: str) -> ModelReply:
        """The model: hasty once, then the reference executor."""
        tools = [self.hook.own_tools[0], *self.world.schemas()]
        last = [Message("system", slot)] if slot else []
        shown = self.hook.driver.shown()
        request = ModelRequest([*messages, *last], tools, shown=shown)
        self.requests.append(request)
        if self.premature and len(self.requests) == 1:
            arguments = '{"username": "carla", "payout_to": "anna"}'
            return ModelReply("", (ToolCall("hasty", self.task.goal, arguments),))
        if self.over:
            return ModelReply("That is all.")
        kept = [m for m in messages if m.tool_call_id != "hasty"]
        kept = [m for m in kept if not any(call.id == "hasty" for call in m.tool_calls)]
        return await Reference(example_judge(self.example)).complete(
            ModelRequest([*kept, *last], tools, shown=shown)
        )

    def split(self, text: str) -> tuple[str, str]:
        """Instructions and slot, where a framework has one text for both."""
        at = text.index(self.hook.instructions) + len(self.hook.instructions)
        return text[:at], text[at:].lstrip("\n")

    @property
    def over(self) -> bool:
        configuration = self.hook.session.configuration
        return bool(configuration.processes) and configuration.active is None

    @property
    def schemas(self) -> Sequence[ToolSchema]:
        return self.world.schemas()


Talk = Callable[[HookedDesk, str], Awaitable[str]]
"""Gives the framework's agent one message of the user; what the agent says at the end."""
BlockingTalk = Callable[[HookedDesk, str], str]


async def opened(
    case: tuple[str, str, str], view: str = "pg", *, premature: bool = True
) -> HookedDesk:
    example = load_example(case[0])
    task = example.task(case[1])
    hook = await ProcedureHook.open(
        MemoryStore(),
        open_source(example.name).briefing(),
        view_named(view),
        is_ok=no_error,
        operator=RoleApprovers(task.approvers),
    )
    user = ScriptedUser(
        task.request, task.inputs, goal=task.goal, late=task.late, follow_ups=task.follow_ups
    )
    return HookedDesk(example, task, example.make_tools(task), hook, user, premature)


def run_task(case: tuple[str, str, str], make_talk: Callable[[HookedDesk], Talk]) -> HookedDesk:
    """The whole task, then what must hold of it whatever the framework."""

    async def run() -> HookedDesk:
        hooked = await opened(case)
        talk = make_talk(hooked)
        message: str | None = hooked.user.opening()
        while message is not None and not hooked.over:
            message = await hooked.user.reply(await talk(hooked, message))
        await hooked.hook.close()
        return hooked

    hooked = asyncio.run(run())
    _check(hooked, case[2])
    return hooked


def run_task_blocking(
    case: tuple[str, str, str], make_talk: Callable[[HookedDesk], BlockingTalk]
) -> HookedDesk:
    """The same for agents that are not asynchronous: no event loop runs around them. Some
    libraries go on with the thread's own loop, and would make one that nobody closes."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        hooked = loop.run_until_complete(opened(case))
        talk = make_talk(hooked)
        message: str | None = hooked.user.opening()
        while message is not None and not hooked.over:
            said = talk(hooked, message)
            message = loop.run_until_complete(hooked.user.reply(said))
        loop.run_until_complete(hooked.hook.close())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    _check(hooked, case[2])
    return hooked


def _check(hooked: HookedDesk, outcome: str) -> None:
    example, task = hooked.example, hooked.task
    session = hooked.hook.session
    report = audit_trace(session.programs.programs, session.events, session_id=session.id)
    # The talks begin with the goal itself, on purpose: that was held, and is told.
    assert [finding.code for finding in report.findings] == ["premature-goal"]
    assert report.score_card.outcome == outcome
    judgement = example.judge(task, hooked.world.calls, hooked.world.state)
    assert judgement.reasons == ()
    held = [
        sealed.event.payload["details"]
        for sealed in session.events
        if sealed.event.kind == "note" and sealed.event.payload["name"] == "held_call"
    ]
    assert (held[0]["action"], held[0]["awaits"]) == (task.goal, "root")
    assert all(
        request.messages[-1].content and request.messages[0].content.endswith(hook_text(hooked))
        for request in hooked.requests
    )


def hook_text(hooked: HookedDesk) -> str:
    return hooked.hook.instructions


async def bare_hook() -> ProcedureHook:
    """A hook at a example where nothing has happened yet."""
    return await ProcedureHook.open(MemoryStore(), open_source("bank").briefing(), view_named("pg"))


def last_result(hook: ProcedureHook) -> tuple[bool, JSON]:
    last = hook.session.own_events[-1]
    assert last.kind == "domain_result"
    return last.payload["ok"], last.payload["value"]
