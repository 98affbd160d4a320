"""``conversation`` names the conversation around a call; ``Conversations`` has their sessions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar, Token
from itertools import islice
from os import PathLike, fspath
from typing import TYPE_CHECKING, Unpack

from sopilot.agent.loop import run_programs
from sopilot.agent.toolbox import Toolbox
from sopilot.messages.errors import UserMistake, mistake
from sopilot.records.store import Settings, Store
from sopilot.runner.hook import (
    AskUser,
    HookOptions,
    ProcedureHook,
    actions_by_alias,
    asker_of,
    conversation_id,
    own_tools,
    require_guardable,
)
from sopilot.runner.loop_thread import caller
from sopilot.runner.sources import open_source
from sopilot.runner.store_access import store_or_memory
from sopilot.stores.open import open_store
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import view_named
from sopilot.views.guard_answers import JUDGE_TOOL, VALUE_TOOL
from sopilot.views.view import View

if TYPE_CHECKING:
    from sopilot.integrations.telemetry import Telemetry

_POLL_SECONDS = 0.01


class Conversation:
    """The calls of one customer's conversation, in order, in one session per handbook.

    Use it with ``with`` or ``async with``. Several conversations can run side by side in threads
    and tasks; each guarded call belongs to the conversation around it.
    """

    def __init__(
        self,
        id: str,
        *,
        store: Store | str | None = None,
        user: AskUser | None = None,
        token: str = "",
    ) -> None:
        if user is not None and not callable(user):
            raise UserMistake("user: pass a function that shows a question and returns the reply")
        self.id = id
        self.user = user
        self.store = open_store(store) if isinstance(store, str) else store
        self.token = token
        self._values: dict[str, JSON] = {}
        self._spoken: list[str | tuple[str, dict[str, JSON]]] = []
        """Messages of the user, and calls of the guard's own tools."""
        self._heard: dict[str, int] = {}
        """How many of them each session has."""
        self._named: str | None = None
        self._used: dict[Conversations, None] = {}
        self._entered: list[Token[Conversation | None]] = []

    def tell(self, **values: JSON) -> None:
        """Supply values that the agent doesn't pass: inputs of a procedure, or secrets that open a
        gate. Call it from your application, and never pass text of the model."""
        self._values.update(values)

    def user_said(self, text: str) -> None:
        """Record a message of the user. The next guarded call may repeat an earlier one."""
        self._spoken.append(text)

    def judge(self, check: str, holds: bool) -> None:
        """Record the model's judgement of a check that blocks a guarded call. Then make that call
        again."""
        self._spoken.append((JUDGE_TOOL, {"check": check, "holds": holds}))

    def give_values(self, **values: JSON) -> None:
        """Pass inputs of the procedure that the guarded call doesn't take, as the model claims
        them. Then make that call again. Values from ``tell`` take precedence."""
        self._spoken.append((VALUE_TOOL, values))

    def session_ids(self) -> dict[str, str]:
        """The session of each handbook, for ``sopilot audit`` and ``sopilot approvals``."""
        return {used.name: conversation_id(used.name, self.id) for used in self._used}

    def _require_name(self, name: str) -> None:
        """Refuse a run of another conversation inside this one."""
        if self._named is None:
            self._named = name
        elif self._named != name:
            message = f"the conversation `{self.id}` is `{self._named}`, not `{name}`"
            cure = "wrap each conversation's runs in their own `with sopilot.conversation(ID):`"
            raise mistake("mixed-conversations", message, help=cure)

    async def _attend(self, hook: ProcedureHook) -> None:
        """Pass on to a session what the application supplied."""
        session = hook.session
        session.supplied.update(self._values)
        session.asker = asker_of(session, self.user) if self.user is not None else None
        while (heard := self._heard.get(session.id, 0)) < len(self._spoken):
            self._heard[session.id] = heard + 1
            spoken = self._spoken[heard]
            if isinstance(spoken, str):
                await session.user_said(spoken)
            else:
                tool, arguments = spoken
                await hook.step(arguments, tool)

    async def close(self) -> None:
        """Release the sessions; another process may continue them."""
        for conversations in self._used:
            await conversations.release(self)

    def __enter__(self) -> Conversation:
        self._entered.append(CURRENT.set(self))
        return self

    def __exit__(self, *raised: object) -> None:
        self._leave()
        if self._used:
            caller().wait(self.close())

    async def __aenter__(self) -> Conversation:
        return self.__enter__()

    async def __aexit__(self, *raised: object) -> None:
        self._leave()
        await self.close()

    def _leave(self) -> None:
        for token in tuple(self._entered)[::-1]:
            with suppress(ValueError):  # another thread's or task's block of this conversation
                CURRENT.reset(token)
                self._entered.remove(token)
                break


CURRENT: ContextVar[Conversation | None] = ContextVar("sopilot_conversation", default=None)


def conversation(
    id: str, *, store: Store | str | None = None, user: AskUser | None = None, token: str = ""
) -> Conversation:
    """Open the conversation that guarded calls inside the block belong to.

    ``store`` keeps its sessions (by default the guard's, in memory). ``user`` shows a question of
    the handbook to the user and returns the reply.
    """
    return Conversation(id, store=store, user=user, token=token)


class ConversationOptions(HookOptions, total=False):
    """Options of ``ProcedureHook.open``."""

    model: str
    settings: Settings | None
    accept_changed: bool
    token: str


_Key = tuple[int, str]
"""A store and the name of a conversation in it."""


class Conversations:
    """One session per conversation, opened or resumed when its first message comes.

    The block ``with sopilot.conversation(ID):`` names the conversation; without one, the
    framework's own name does (LangGraph's ``thread_id``, ``RunConfig.group_id``, Pydantic AI's
    ``conversation_id``). At most ``most`` stay open; the least recently used are released, and
    resumed from the store. For any number of threads and event loops.
    """

    def __init__(
        self,
        store: Store,
        briefing: Briefing,
        view: View,
        *,
        most: int = 1000,
        telemetry: Telemetry | None = None,
        **options: Unpack[ConversationOptions],
    ) -> None:
        if view.guard:
            require_guardable(briefing)
        actions_by_alias(briefing.handbook.actions)
        self.handbook = briefing.handbook
        self.name = briefing.handbook.name
        self.view = view
        self.own_tools = own_tools(view, Toolbox(view, briefing, ()))
        self._store = store
        self._briefing = briefing
        self._options = options
        self._most = most
        self._telemetry = telemetry
        self._programs = run_programs(briefing, view)
        self.can_read = options.get("reader") is not None
        """Whether the runtime can make calls by itself, without the agent's tools."""
        rechecked = any(action.recheck for action in self._programs.guarded.values())
        self.reads = rechecked or view.guard == "auto"
        """Whether it wants to."""
        self._hooks: dict[_Key, ProcedureHook] = {}
        self._opening: set[_Key] = set()
        self._lock = threading.Lock()

    @classmethod
    def of(
        cls,
        handbook: str | PathLike[str],
        *,
        view: str = "guard",
        store: Store | str | None = None,
        language: str = "en",
        most: int = 1000,
        telemetry: Telemetry | None = None,
        **options: Unpack[ConversationOptions],
    ) -> Conversations:
        """The conversations of a handbook file or a bundled example; in memory by default."""
        briefing = open_source(fspath(handbook)).briefing(language=language)
        opened, shown = store_or_memory(store), view_named(view)
        return cls(opened, briefing, shown, most=most, telemetry=telemetry, **options)

    def using(self, conversation: str | None = None) -> AbstractAsyncContextManager[ProcedureHook]:
        """The hook of the conversation around the call, else of the one that the framework
        names. It isn't released meanwhile. Call it where the conversation's block is visible."""
        current = CURRENT.get()
        if current is not None and conversation is not None:
            current._require_name(conversation)
        name = current.id if current is not None else conversation
        if name is None:
            message = "a guarded call was made outside a conversation"
            cure = "wrap it in `with sopilot.conversation(ID):`, or pass the framework's own"
            ids = "`thread_id`, `group_id` or `conversation_id`"
            raise mistake("no-conversation", message, help=f"{cure} {ids}")
        return self._using(name, current)

    @asynccontextmanager
    async def _using(self, name: str, current: Conversation | None) -> AsyncIterator[ProcedureHook]:
        key = self._key(name, current)
        hook = await self._take(key, current)
        try:
            await hook.asked_by(self._store_of(current), self._token(current))
            if current is not None:
                await current._attend(hook)
            yield hook
        finally:
            await self._give_back(key, hook)

    def _key(self, name: str, current: Conversation | None) -> _Key:
        return id(self._store_of(current)), name

    def _store_of(self, current: Conversation | None) -> Store:
        return (current.store if current is not None else None) or self._store

    def _token(self, current: Conversation | None) -> str:
        return (current.token if current is not None else "") or self._options.get("token", "")

    async def _take(self, key: _Key, current: Conversation | None) -> ProcedureHook:
        while True:
            with self._lock:
                mine = key not in self._opening
                if mine and (hook := self._hooks.pop(key, None)) is not None:
                    return self._in_use(key, hook)
                if mine:
                    self._opening.add(key)
            if mine:
                break
            await asyncio.sleep(_POLL_SECONDS)  # another message of it has come first
        options: ConversationOptions = {**self._options, "token": self._token(current)}
        if current is not None:
            current._used[self] = None
        try:
            hook = await ProcedureHook.open(
                self._store_of(current), self._briefing, self.view,
                conversation=key[1], programs=self._programs, **options,
            )  # fmt: skip
            hook.telemetry = self._telemetry
            with self._lock:
                return self._in_use(key, hook)
        finally:
            with self._lock:
                self._opening.discard(key)

    def _in_use(self, key: _Key, hook: ProcedureHook) -> ProcedureHook:
        hook.busy += 1
        self._hooks[key] = hook  # the last to give way
        return hook

    async def _give_back(self, key: _Key, hook: ProcedureHook) -> None:
        """A session that waits for people is released: they decide in another process."""
        leaving = []
        with self._lock:
            hook.busy -= 1
            waits = not hook.busy and bool(hook.session.held_calls)
            if waits and self._hooks.get(key) is hook:
                leaving.append(self._hooks.pop(key))
            idle = (known for known, other in self._hooks.items() if not other.busy)
            surplus = list(islice(idle, max(0, len(self._hooks) - self._most)))
            leaving += [self._hooks.pop(known) for known in surplus]
        for other in leaving:
            await other.close()

    async def release(self, conversation: Conversation) -> None:
        """Release the conversation's session, unless a call is still using it."""
        key = self._key(conversation.id, conversation)
        with self._lock:
            hook = self._hooks.get(key)
            if hook is None or hook.busy:
                return
            del self._hooks[key]
        await hook.close()

    async def close(self) -> None:
        """Release every session; the next message resumes it."""
        hooks, self._hooks = self._hooks, {}
        for hook in hooks.values():
            await hook.close()


class OneConversation:
    """A single hook in place of ``Conversations``: a second conversation is refused."""

    def __init__(self, hook: ProcedureHook) -> None:
        self._hook = hook
        self.view, self.own_tools, self.handbook = hook.view, hook.own_tools, hook.handbook

    def using(self, conversation: str | None = None) -> AbstractAsyncContextManager[ProcedureHook]:
        current = CURRENT.get()
        name = current.id if current is not None else conversation
        if name is not None:
            self._hook.belongs_to(name)
        return self._using(current)

    @asynccontextmanager
    async def _using(self, current: Conversation | None) -> AsyncIterator[ProcedureHook]:
        if current is not None:
            await current._attend(self._hook)
        yield self._hook


Hooks = ProcedureHook | Conversations | str | PathLike[str]
"""An integration takes a handbook, or the sessions of a handbook."""


def hooks_of(hooks: Hooks) -> Conversations | OneConversation:
    """A handbook alone is guarded with the view `guard`, in memory."""
    if isinstance(hooks, ProcedureHook):
        return OneConversation(hooks)
    return hooks if isinstance(hooks, Conversations) else Conversations.of(hooks)
