"""What the three frameworks' tests share: an example, a hook, and the reference as the model."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from framework_agents import FrameworkAgent, Reply

from sopilot.agent.approvers import RoleApprovers, ScriptedUser
from sopilot.agent.reference.executor import Reference
from sopilot.audit.audit import audit_trace
from sopilot.protocols import Message, ModelReply, ModelRequest, ToolCall, ToolResult
from sopilot.runner.hook import ProcedureHook
from sopilot.runner.sources import open_source
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.examples.example import Example, load_example
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
    requests: list[ModelRequest] = field(default_factory=list)
    _keys: itertools.count[int] = field(default_factory=itertools.count)

    def perform(self, name: str, arguments: dict[str, JSON]) -> ToolResult:
        """The agent's own tool. Its values alone say whether it failed."""
        return ToolResult(
            True, self.world.perform(name, arguments, key=str(next(self._keys))).value
        )

    async def reply(
        self, messages: Sequence[Message], slot: str, names: Sequence[str]
    ) -> ModelReply:
        """The model is the reference executor."""
        assert self.hook.own_tools[0].name in names
        first, *rest = messages
        if not slot and self.hook.instructions in first.content:
            # The frame is at the beginning, behind the instructions.
            before, own, slot = first.content.partition(self.hook.instructions)
            messages, slot = [Message("system", before + own), *rest], slot.lstrip("\n")
        tools = [self.hook.own_tools[0], *self.world.schemas()]
        last = [Message("system", slot)] if slot else []
        shown = self.hook.driver.shown()
        request = ModelRequest([*messages, *last], tools, shown=shown)
        self.requests.append(request)
        if self.over:
            return ModelReply("That is all.")
        return await Reference(self.example.reader).complete(request)

    @property
    def over(self) -> bool:
        configuration = self.hook.session.configuration
        return bool(configuration.processes) and configuration.active is None


Talk = Callable[[str], Awaitable[str]]
"""One message of the user to the framework's agent, and its answer."""


async def opened(case: tuple[str, str, str], view: str = "pg") -> HookedDesk:
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
    return HookedDesk(example, task, example.make_tools(task), hook, user)


def desk_agent(kind: type[FrameworkAgent], hooked: HookedDesk, **options: Any) -> FrameworkAgent:
    tools = [kind.described(schema, hooked.perform) for schema in hooked.world.schemas()]
    return kind(hooked.hook, tools, hooked.reply, **options)


async def converse(hooked: HookedDesk, talk: Talk) -> None:
    """The whole task, with its user."""
    message: str | None = hooked.user.opening()
    while message is not None and not hooked.over:
        message = await hooked.user.reply(await talk(message))
    await hooked.hook.close()


def check_run(hooked: HookedDesk, outcome: str) -> None:
    session = hooked.hook.session
    report = audit_trace(session.programs.programs, session.events, session_id=session.id)
    assert (report.findings, report.score_card.outcome) == ((), outcome)
    judgement = hooked.example.judge(hooked.task, hooked.world.calls, hooked.world.state)
    assert judgement.reasons == ()
    assert all(request.messages[-1].content for request in hooked.requests)


async def bare_hook() -> ProcedureHook:
    """A hook at an example where nothing has happened yet."""
    return await ProcedureHook.open(MemoryStore(), open_source("bank").briefing(), view_named("pg"))


def one_call(name: str, **arguments: JSON) -> Reply:
    """A model that makes one call, and is done."""

    async def reply(dialog: Sequence[Message], slot: str, names: Sequence[str]) -> ModelReply:
        if any(message.role == "tool" for message in dialog):
            return ModelReply("done")
        return ModelReply("", (ToolCall("c1", name, json.dumps(arguments)),))

    return reply


def last_result(hook: ProcedureHook) -> tuple[bool, JSON]:
    last = hook.session.own_events[-1]
    assert last.kind == "domain_result"
    return last.payload["ok"], last.payload["value"]
