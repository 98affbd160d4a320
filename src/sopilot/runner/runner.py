"""A runner: a compiled handbook that serves people."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from inspect import isawaitable
from os import PathLike, fspath
from typing import Any, Concatenate, ParamSpec, TypeVar

from sopilot.agent.approvers import Operator, RoleApprovers, ScriptedUser
from sopilot.agent.budgets import Budgets
from sopilot.agent.calls import Waiting
from sopilot.agent.reference.judging import VerdictJudge
from sopilot.agent.result import Watch, nobody_watches
from sopilot.audit.report import Report
from sopilot.handbook.model import BUILT_IN, Handbook
from sopilot.machine.call_ledger import HeldCall, HeldState
from sopilot.messages.errors import UserMistake
from sopilot.models.open import close_model, make_model
from sopilot.program.model import Program
from sopilot.protocols import Model, Tools, User
from sopilot.records.store import Store
from sopilot.runner.audit_inputs import session_input
from sopilot.runner.hook import JudgeResult, ProcedureHook, always_ok
from sopilot.runner.options import check_inputs
from sopilot.runner.sign_in import who_asks
from sopilot.runner.sources import FolderSource, TaskSource, open_source
from sopilot.runner.store_access import store_or_memory
from sopilot.runner.tools import ToolsLike, as_tools
from sopilot.session.opening import attach_session
from sopilot.tasks.run import Conditions, RunnerSession, open_task, run_task
from sopilot.tasks.task import Result, Simulation, Task
from sopilot.values.json import JSON, Fields
from sopilot.views.catalogue import view_named

SERVED = "served"
"""Key of the request in a session's record."""

Reply = Callable[[str], str | Awaitable[str | None] | None]
P = ParamSpec("P")
Answer = TypeVar("Answer")


def load(
    source: str | PathLike[str], *, store: Store | str | None = None, language: str = "en"
) -> Runner:
    """Compile a handbook file, or the bundled example of that name. ``store`` is ``sqlite:PATH``,
    ``postgres:DSN`` or a store; without one, sessions live in memory."""
    opened = open_source(fspath(source))
    if isinstance(opened, FolderSource):
        raise UserMistake("a workflow folder has tools of its own: use `sopilot run`")
    return Runner(opened, store_or_memory(store), language)


def _blocking(
    method: Callable[Concatenate[Runner, P], Coroutine[Any, Any, Answer]],
) -> Callable[Concatenate[Runner, P], Answer]:
    @functools.wraps(method)
    def wait(runner: Runner, /, *args: P.args, **named: P.kwargs) -> Answer:
        return asyncio.run(method(runner, *args, **named))

    return wait


class Runner:
    """Runs sessions of one handbook. ``run`` runs a whole session; ``session`` also gives access to
    it while it is open. Methods that end in ``_sync`` are for programs without an event loop."""

    def __init__(self, source: TaskSource, store: Store, language: str = "en") -> None:
        self._source = source
        self._language = language
        self.store = store
        self.briefing = source.briefing(language=language)

    @property
    def handbook(self) -> Handbook:
        return self._source.handbook

    @property
    def programs(self) -> Mapping[str, Program]:
        return self.briefing.programs

    def session(
        self,
        request: str = "",
        *,
        tools: ToolsLike,
        model: Model | str = "reference",
        inputs: Mapping[str, JSON] | None = None,
        goal: str | None = None,
        user: User | Reply | None = None,
        operator: Operator | None = None,
        approvers: tuple[str, ...] = (),
        view: str = "pg",
        budgets: Budgets | None = None,
        watch: Watch = nobody_watches,
        resume: str | None = None,
        message: str | None = None,
        wait_for_user: bool = False,
        token: str = "",
    ) -> AbstractAsyncContextManager[RunnerSession]:
        """Open a new session, or resume the one that ``resume`` names.

        ``tools`` are functions with the names of the handbook's actions, or an object with such
        methods. The user opens with ``request`` and gives ``inputs``, or the function ``user``
        answers. Without it, a question of the runtime ends the run as ``waiting``. ``operator``
        decides about calls that need an approval; ``approvers`` are roles that approve at once.
        Without either, the session ends as ``waiting``.
        ``token`` proves the requester's identity (default: ``SOPILOT_TOKEN``).

        With ``wait_for_user``, the run ends as ``waiting`` when the user must answer, and
        ``reason`` is the agent's message. Resume it with the user's ``message``, in any process.
        """
        offered = as_tools(tools, self.handbook.actions)
        programs = self.programs
        if goal is not None and goal in programs:
            programs = {goal: programs[goal]}
        check_inputs(inputs or {}, programs, "inputs")
        decides = operator or (RoleApprovers(approvers) if approvers else None)
        fields: Fields = {
            "request": request,
            "inputs": dict(inputs or {}),
            "goal": goal,
            "arm": view,
            "wait": wait_for_user,
        }

        @asynccontextmanager
        async def opened() -> AsyncIterator[RunnerSession]:
            about = fields if resume is None else await self._request_of(resume)
            task = self._task(about, offered, decides)
            own = make_model(model, judge=task.reader) if isinstance(model, str) else model
            conditions = Conditions(
                view_named(about["arm"]),
                own,
                model_name=model if isinstance(model, str) else model.name,
                user=self._user(about, user, message, wait_for_user),
                budgets=budgets,
                watch=watch,
            )
            simulation = task.open()
            try:
                who = await who_asks(self.store, None, token)
                async with open_task(
                    task, simulation, conditions, store=self.store, session_id=resume,
                    extra={SERVED: about}, requester=who, resume=None if resume is None else {},
                ) as session:  # fmt: skip
                    if isinstance(conditions.user, _AbsentUser):
                        pending = session.session.configuration.pending.values()
                        conditions.user.is_asked = any(call.action in BUILT_IN for call in pending)
                    yield session
            finally:
                if isinstance(model, str):
                    await close_model(own)

        return opened()

    async def _request_of(self, session_id: str) -> Fields:
        stored = (await self.store.record(session_id)).metadata.get("extra", {}).get(SERVED)
        if not isinstance(stored, Mapping):
            raise UserMistake(
                f"session `{session_id}` wasn't started by a runner: "
                f"use `sopilot resume {session_id}`"
            )
        return stored

    def _user(
        self, fields: Fields, user: User | Reply | None, message: str | None, wait: bool
    ) -> User:
        if user is not None and (wait or message is not None):
            raise UserMistake("pass either `user`, or `wait_for_user` and `message`")
        request: str = fields["request"]
        if wait or message is not None or (user is None and fields.get("wait")):
            return _AbsentUser(request, message)
        if user is None:
            return _UserWithInputs(request, fields["inputs"], goal=fields["goal"])
        return _FunctionUser(request, user) if callable(user) else user

    def _task(self, fields: Fields, tools: Tools, operator: Operator | None) -> Task:
        return Task(
            source=self.handbook.name,
            name="",
            goal=fields["goal"] or "",
            briefing=self.briefing,
            surround=lambda keep: Simulation(tools),
            request=fields["request"],
            reader=VerdictJudge(self.handbook),
            inputs=fields["inputs"],
            operator=operator,
            simulated=False,
        )

    async def run(
        self,
        request: str,
        *,
        tools: ToolsLike,
        model: Model | str = "reference",
        inputs: Mapping[str, JSON] | None = None,
        goal: str | None = None,
        user: User | Reply | None = None,
        operator: Operator | None = None,
        approvers: tuple[str, ...] = (),
        view: str = "pg",
        budgets: Budgets | None = None,
        wait_for_user: bool = False,
        token: str = "",
    ) -> Result:
        """Run one session from the request to its audit. Takes the arguments of ``session``."""
        async with self.session(
            request, tools=tools, model=model, inputs=inputs, goal=goal, user=user,
            operator=operator, approvers=approvers, view=view, budgets=budgets,
            wait_for_user=wait_for_user, token=token,
        ) as session:  # fmt: skip
            return await session.run()

    async def resume(
        self,
        session: Result | str,
        *,
        tools: ToolsLike,
        model: Model | str = "reference",
        user: User | Reply | None = None,
        operator: Operator | None = None,
        budgets: Budgets | None = None,
        message: str | None = None,
        token: str = "",
    ) -> Result:
        """Resume at the end of the trace, with the user's ``message`` if the run waits for one.
        Irreversible calls are never repeated."""
        async with self.session(
            tools=tools, model=model, user=user, operator=operator, budgets=budgets,
            resume=_id(session), message=message, token=token,
        ) as again:  # fmt: skip
            return await again.run()

    async def decide(
        self,
        session: Result | str,
        decision: str = "approve",
        *,
        by: str,
        role: str,
        call_id: str | None = None,
        arguments: Mapping[str, JSON] | None = None,
        reason: str = "",
        token: str = "",
    ) -> HeldCall:
        """Record a person's decision on a waiting call: ``approve``, ``reject`` or ``amend``.
        Without ``call_id``, the decision is for the only waiting call."""
        async with await attach_session(self.store, _id(session)) as attached:
            waiting = [
                held_call
                for held_call in attached.held_calls
                if held_call.state is HeldState.WAITING
            ]
            if call_id is None and len(waiting) != 1:
                raise UserMistake(f"{len(waiting)} calls wait for people: name one by its id")
            decided = await attached.decide(
                decision, call_id or waiting[0].call_id,
                by=by, role=role, arguments=arguments, reason=reason,
                who=await who_asks(self.store, None, token),
            )  # fmt: skip
            return attached.secrets.shown_call(decided)

    async def audit(self, session: Result | str, *, goal: str | None = None) -> Report:
        """Judge a stored session."""
        value = await session_input(self.store, _id(session), handbook=self._source.name, goal=goal)
        return value.audit()[0].report

    def tasks(self) -> list[Task]:
        """Tasks of a bundled example, or scenarios of another handbook."""
        return self._source.tasks(language=self._language)

    async def run_task(
        self, task: Task | str, *, model: Model | str = "reference", view: str = "pg"
    ) -> Result:
        """Run a task in its simulator; the result has its verdict."""
        own = self._source.task(task, language=self._language) if isinstance(task, str) else task
        simulation = own.open()
        player = make_model(model, judge=own.reader) if isinstance(model, str) else model
        try:
            who = await who_asks(self.store, None)
            conditions = Conditions(view_named(view), player)
            return await run_task(own, simulation, conditions, store=self.store, requester=who)
        finally:
            await simulation.close()
            if isinstance(model, str):
                await close_model(player)

    def hook(
        self,
        *,
        view: str = "pg",
        operator: Operator | None = None,
        is_ok: JudgeResult = always_ok,
        reader: ToolsLike | None = None,
        token: str = "",
    ) -> OpenHook:
        """Guard the agent of a framework: use the result with ``with`` or ``async with``.
        ``reader`` makes the read-only calls of an action with ``recheck``; ``token`` proves the
        requester's identity."""
        return OpenHook(
            lambda: ProcedureHook.open(
                self.store,
                self.briefing,
                view_named(view),
                is_ok=is_ok,
                operator=operator,
                token=token,
                reader=as_tools(reader, self.handbook.actions) if reader is not None else None,
            )
        )

    async def close(self) -> None:
        await self.store.close()

    run_sync = _blocking(run)
    resume_sync = _blocking(resume)
    decide_sync = _blocking(decide)
    audit_sync = _blocking(audit)
    run_task_sync = _blocking(run_task)


class OpenHook:
    """A hook that is open while the block runs."""

    def __init__(self, make: Callable[[], Awaitable[ProcedureHook]]) -> None:
        self._make = make
        self._hook: ProcedureHook | None = None

    async def __aenter__(self) -> ProcedureHook:
        self._hook = await self._make()
        return self._hook

    async def __aexit__(self, *raised: object) -> None:
        if self._hook is not None:
            await self._hook.close()

    def __enter__(self) -> ProcedureHook:
        return asyncio.run(self.__aenter__())

    def __exit__(self, *raised: object) -> None:
        asyncio.run(self.__aexit__())


class _AbsentUser:
    """Says one message, or none; after that the run waits for another. The message answers no
    question of the runtime that the user hasn't seen: ``is_asked`` if one is open."""

    def __init__(self, request: str, message: str | None) -> None:
        self._request = request
        self._messages = [] if message is None else [message]
        self.is_asked = False

    def opening(self) -> str:
        return self._request

    async def reply(self, message: str) -> str:
        return self._next(message)

    async def answer(self, about: str, question: str) -> str:
        if not self.is_asked:
            raise _waiting(question, is_question=True)
        return self._next(question, is_question=True)

    def _next(self, shown: str, *, is_question: bool = False) -> str:
        if self._messages:
            return self._messages.pop()
        raise _waiting(shown, is_question)


class _UserWithInputs(ScriptedUser):
    """Gives the inputs. The runtime's own questions wait for a person: inputs are no consent."""

    async def answer(self, about: str, question: str) -> str:
        raise _waiting(question, is_question=True)


def _waiting(shown: str, is_question: bool) -> Waiting:
    text = f"The user is asked: {shown}\nCall it again after the answer."
    return Waiting(shown, text, is_question=is_question)


class _FunctionUser:
    """A function in the user's place."""

    def __init__(self, request: str, answer: Reply) -> None:
        self._request = request
        self._answer = answer

    def opening(self) -> str:
        return self._request

    async def reply(self, message: str) -> str | None:
        answer = self._answer(message)
        return await answer if isawaitable(answer) else answer


def _id(session: Result | str) -> str:
    return session if isinstance(session, str) else session.session_id
