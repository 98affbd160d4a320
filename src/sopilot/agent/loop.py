"""Open the session of a run, and run it: ask the model, do what it says, until the run ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Unpack

from sopilot.agent.approvers import Operator
from sopilot.agent.budgets import Budgets, BudgetSpent, Spending
from sopilot.agent.calls import Ended, Waiting
from sopilot.agent.dialog import BUDGET, RUN_RESUMED
from sopilot.agent.driver import Driver
from sopilot.agent.refusals import refusals
from sopilot.agent.result import RETRY, Ending, Progress, SessionResult, Watch, nobody_watches
from sopilot.agent.resume import must_start_again, recover
from sopilot.agent.retries import (
    CONTEXT,
    Attempts,
    InfrastructureFailure,
    Retries,
    complete_with_retries,
)
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import InternalBug, RunEnded, mistake
from sopilot.program.model import Program
from sopilot.protocols import Model, ModelReply, ModelRequest, Usage, User
from sopilot.records.store import Settings, Store
from sopilot.session.opening import SessionOptions, open_session
from sopilot.session.session import Session
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.view import View


async def run_session(
    session: Session,
    briefing: Briefing,
    *,
    view: View,
    model: Model,
    user: User,
    budgets: Budgets | None = None,
    retries: Retries | None = None,
    operator: Operator | None = None,
    watch: Watch = nobody_watches,
) -> SessionResult:
    """Run a session to its end, from wherever its trace stands.

    Raises only what concerns the store or the caller; whatever the model, the
    user or the provider does ends in a result.
    """
    if session.tools is None:
        raise InternalBug("a run needs a session with tools")
    driver = Driver(
        session, briefing, view, user=user, budgets=budgets, operator=operator, watch=watch
    )
    requests = _Requests(driver, model, retries or Retries())
    ended: Callable[..., SessionResult] = partial(_result, driver, requests)
    async with session.keep_alive():
        try:
            await _begin(driver)
            while True:
                reply, attempts, seconds = await requests.next_reply()
                await driver.handle(reply, attempts, seconds=seconds)
        except Ended as end:
            return ended(end.ending, end.reason)
        except Waiting as waiting:
            return ended(Ending.WAITING, str(waiting), is_question=waiting.is_question)
        except BudgetSpent as spent:
            await session.note(BUDGET, {"budget": spent.budget, "limit": spent.limit})
            driver.watch(Progress("note", f"the budget {spent.budget} is spent"))
            return ended(Ending.BUDGET, str(spent), budget=spent.budget)
        except InfrastructureFailure as failure:
            details: dict[str, JSON] = {"problem": str(failure), "attempts": failure.attempts}
            await session.note("infrastructure_failure", details)
            return ended(Ending.INFRASTRUCTURE_FAILURE, str(failure), fault=failure.kind)


async def _begin(driver: Driver) -> None:
    session = driver.session
    resumed = any(sealed.event.kind == "user_said" for sealed in session.events)
    if resumed:
        await session.note(RUN_RESUMED, {"events": len(session.events)})
        await recover(session, driver.watch)
        # An approved call may have been made, which is one more.
        counted = Spending.of(session, driver.spending.budgets)
        driver.spending.domain_calls = counted.domain_calls
    await driver.begin()
    if not resumed:
        return
    if session.open_guarded:
        raise Waiting(f"the outcome of call {session.open_guarded[0]} is unknown")
    if not must_start_again(session):
        driver.calls.raise_if_over()
    if driver.unanswered:
        await driver.user_turn(driver.unanswered)


class _Requests:
    """The requests of one run in one process; the session outlives it."""

    def __init__(self, driver: Driver, model: Model, retries: Retries) -> None:
        self._driver = driver
        self._model = model
        self._retries = retries
        self._answering_seconds = 0.0
        self.lost = Usage()

    async def next_reply(self) -> tuple[ModelReply, Attempts, float]:
        """The reply to one request, within what is left of the wall clock; what it took."""
        driver = self._driver
        turn = driver.turn()
        budgets = driver.spending.budgets
        left = driver.spending.seconds_left()
        driver.spending.check_context(sum(len(message.content) for message in turn.messages))
        request = ModelRequest(
            turn.messages,
            turn.tools,
            temperature=budgets.temperature,
            timeout_seconds=budgets.request_seconds,
            seed=budgets.seed,
            reply_tokens=budgets.reply_tokens,
            shown=turn.shown,
        )
        driver.watch(Progress("request", self._model.name, turn.frame_text))
        attempts = Attempts()
        begun = monotonic()

        async def pause(seconds: float) -> None:
            why = f"{self._model.name}: {attempts.problem}; retrying in {seconds:g} s"
            driver.watch(Progress(RETRY, why))
            await asyncio.sleep(seconds)

        try:
            async with asyncio.timeout(left):
                reply = await complete_with_retries(
                    self._model, request, self._retries, sleep=pause, attempts=attempts
                )
        except TimeoutError:
            self.lost = attempts.discarded
            raise self._out_of_time(attempts, monotonic() - begun) from None
        except InfrastructureFailure as failure:
            self.lost = attempts.discarded
            if failure.kind == CONTEXT:  # the model's limit
                raise driver.spending.spent("context_tokens") from failure
            raise
        seconds = monotonic() - begun
        self._answering_seconds += seconds
        return reply, attempts, seconds

    def _out_of_time(self, attempts: Attempts, silent: float) -> RunEnded:
        """Whose failure it is that the wall clock fired during a request.

        The provider's if the request had failed before, or was silent for longer than all
        answers of this process took together: a dead endpoint must not be booked as the
        model's failure. The model's if it is merely slow.
        """
        spent = self._driver.spending.spent("wall_seconds")
        problem = attempts.problem
        if problem is None and silent <= self._answering_seconds:
            return spent
        reply = problem or f"no answer within {silent:.3g} s"
        return InfrastructureFailure(
            f"{self._model.name}: {reply}; {spent}",
            attempts.made,
            kind="timeout" if problem is None else problem.kind,
        )


def _result(
    driver: Driver,
    requests: _Requests,
    ending: Ending,
    reason: str,
    *,
    budget: str | None = None,
    fault: str = "",
    is_question: bool = False,
) -> SessionResult:
    session, spending = driver.session, driver.spending
    refused = ending is Ending.REFUSED
    return SessionResult(
        session_id=session.id,
        ending=ending,
        # The user agrees to what a question shows: the model may have passed a value as a secret.
        reason=reason if is_question else session.secrets.masked(reason),
        budget=budget,
        messages=(driver.first, *driver.dialog),
        requests=tuple(spending.requests),
        domain_calls=spending.domain_calls,
        agent_turns=spending.agent_turns,
        user_turns=spending.user_turns,
        refusals=refusals(session, driver.briefing.language) if refused else (),
        fault=fault,
        lost=requests.lost,
    )


async def open_run(
    store: Store,
    briefing: Briefing,
    view: View,
    *,
    settings: Settings | None = None,
    unguarded: bool = False,
    programs: ProgramSet | None = None,
    **options: Unpack[SessionOptions],
) -> Session:
    """Open a session for this view. Without a machine nothing can accept an irreversible action:
    such programs are refused unless ``unguarded`` says that the tools are simulated.
    ``programs`` is for many runs of the same briefing and view: ``run_programs`` made once."""
    return await open_session(
        store,
        programs if programs is not None else run_programs(briefing, view, unguarded=unguarded),
        handbook=briefing.handbook.name,
        view=view.name,
        settings=replace(settings or Settings(), automation=view.automation, guard=view.guard),
        **options,
    )


def run_programs(briefing: Briefing, view: View, *, unguarded: bool = False) -> ProgramSet:
    chosen: Mapping[str, Program] = briefing.programs
    if not chosen:
        # Without a program, nothing would guard an irreversible action.
        actions = briefing.handbook.actions.items()
        guarded = sorted(name for name, item in actions if item.is_guarded)
        if guarded:
            message = f"the handbook has no procedure, so nothing licenses `{guarded[0]}`"
            raise mistake("no-procedures", message, help="write a procedure under `procedures`")
    if not view.machine:
        if not unguarded:
            _refuse_guarded(briefing, view)
        chosen = briefing.unguarded()
    elif view.guard:
        chosen = briefing.guarding()
    return ProgramSet.of(chosen)


def _refuse_guarded(briefing: Briefing, view: View) -> None:
    goals = briefing.goal_actions()
    guarded = sorted(
        {
            item.action
            for program in briefing.programs.values()
            for item in program.guarded
            if item.action in goals
        }
    )
    if guarded:
        named = ", ".join(f"`{action}`" for action in guarded)
        raise mistake(
            "unguarded-view",
            f"the view `{view.name}` doesn't track the position, so it can't guard {named}",
            help="choose a view that tracks it, such as `pg`",
        )
