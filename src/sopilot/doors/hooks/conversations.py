"""A session for each conversation of a service that has many."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

from sopilot.doors.hooks.hook import HookOptions, ProcedureHook
from sopilot.runtime.agent import Arm, Briefing, run_programs
from sopilot.runtime.agent.toolbox import Toolbox
from sopilot.runtime.session import Settings, Store
from sopilot.runtime.session.protocols import ToolSchema

if TYPE_CHECKING:
    from sopilot.adapters.telemetry import Telemetry

_POLL_SECONDS = 0.01


class ConversationOptions(HookOptions, total=False):
    """Of every hook that is made here; as ``ProcedureHook.for_conversation`` takes them."""

    model: str
    settings: Settings | None
    accept_changed: bool


class Conversations:
    """Hooks by the framework's own name of a conversation (LangGraph's ``thread_id``), found or
    opened when the first message of one comes. At most ``most`` are kept at hand; those that were
    not used for longest are given up, and found again in the store. For any number of threads
    and event loops."""

    def __init__(
        self,
        store: Store,
        briefing: Briefing,
        arm: Arm,
        *,
        most: int = 1000,
        telemetry: Telemetry | None = None,
        **options: Unpack[ConversationOptions],
    ) -> None:
        self._store = store
        self._briefing = briefing
        self._arm = arm
        self._options = options
        self._most = most
        self._telemetry = telemetry
        self._programs = run_programs(briefing, arm)
        self._hooks: dict[str, ProcedureHook] = {}
        self._opening: set[str] = set()
        self._lock = threading.Lock()
        self.instructions = arm.first_message(briefing)
        self.step_tool: ToolSchema = Toolbox(arm, briefing, ()).schemas[0]

    def using(self, conversation: str) -> AbstractAsyncContextManager[ProcedureHook]:
        """The conversation's hook, which is not given up meanwhile."""
        return _Using(self, conversation)

    async def let_go(self, hook: ProcedureHook) -> None:
        with self._lock:
            hook.busy -= 1
        if len(self._hooks) > self._most:
            await self._make_room()

    async def found(self, conversation: str) -> ProcedureHook:
        with self._lock:
            known = None
            if conversation not in self._opening:
                known = self._hooks.pop(conversation, None)
            if known is not None:
                return self._kept(conversation, known)
        while True:
            async with self._turn(conversation) as mine:
                if not mine:
                    continue  # another message of it has come first
                with self._lock:
                    found = self._hooks.pop(conversation, None)
                    if found is not None:
                        return self._kept(conversation, found)
                made = await ProcedureHook.for_conversation(
                    self._store, conversation, self._briefing, self._arm,
                    programs=self._programs, **self._options,
                )  # fmt: skip
                with self._lock:
                    return self._kept(conversation, made)

    def _kept(self, conversation: str, hook: ProcedureHook) -> ProcedureHook:
        hook.busy += 1
        hook.telemetry = self._telemetry
        self._hooks[conversation] = hook  # the last to give way
        return hook

    async def close(self) -> None:
        """Gives every session up; whoever comes next finds them."""
        hooks, self._hooks = self._hooks, {}
        for one in hooks.values():
            await one.close()

    @asynccontextmanager
    async def _turn(self, conversation: str) -> AsyncIterator[bool]:
        with self._lock:
            mine = conversation not in self._opening
            self._opening.add(conversation)
        if not mine:
            await asyncio.sleep(_POLL_SECONDS)
            yield False
            return
        try:
            yield True
        finally:
            with self._lock:
                self._opening.discard(conversation)

    async def _make_room(self) -> None:
        with self._lock:
            idle = (name for name, hook in self._hooks.items() if not hook.busy)
            leaving = list(islice(idle, max(0, len(self._hooks) - self._most)))
            hooks = [self._hooks.pop(name) for name in leaving]
        for one in hooks:
            await one.close()


class _Using(AbstractAsyncContextManager[ProcedureHook]):
    """Written out by hand: every call of a model or a tool comes through here, and what waits
    for one should be little where hundreds do."""

    __slots__ = ("_conversation", "_conversations", "_hook")

    def __init__(self, conversations: Conversations, conversation: str) -> None:
        self._conversations = conversations
        self._conversation = conversation

    async def __aenter__(self) -> ProcedureHook:
        self._hook = await self._conversations.found(self._conversation)
        return self._hook

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._conversations.let_go(self._hook)
