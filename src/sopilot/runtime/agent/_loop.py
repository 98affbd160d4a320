"""The loop: a model is asked what the driver shows, and the driver does what it says."""

from __future__ import annotations

import asyncio
from time import monotonic

from sopilot.language.diagnostics import InternalBug, RunEnded
from sopilot.runtime.agent._budgets import Budgets
from sopilot.runtime.agent._driver import Driver, without_secrets
from sopilot.runtime.agent._providers import (
    CONTEXT,
    Attempts,
    InfrastructureFailure,
    Retries,
    complete_with_retries,
)
from sopilot.runtime.agent._recovery import must_start_again, recover
from sopilot.runtime.agent._refusals import refusals
from sopilot.runtime.agent._result import Ending, Refusal, SessionResult
from sopilot.runtime.agent.arms import Arm
from sopilot.runtime.agent.briefing import Briefing
from sopilot.runtime.agent.calls import Ended, Waiting
from sopilot.runtime.agent.dialog import BUDGET, RUN_RESUMED
from sopilot.runtime.agent.operators import Operator
from sopilot.runtime.agent.progress import Progress, Watch, nobody_watches
from sopilot.runtime.agent.spending import BudgetSpent, Spending
from sopilot.runtime.session import Session
from sopilot.runtime.session.protocols import JSON, Model, ModelRequest, Usage, User


async def run_session(
    session: Session,
    briefing: Briefing,
    *,
    arm: Arm,
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
        session, briefing, arm, user=user, budgets=budgets, operator=operator, watch=watch
    )
    run = Run(driver, model, retries or Retries(), without_secrets(session, watch))
    async with session.keep_alive():
        return await run.to_the_end()


class Run:
    """One run in one process; the session outlives it."""

    def __init__(self, driver: Driver, model: Model, retries: Retries, watch: Watch) -> None:
        self._driver = driver
        self._session = driver.session
        self._model = model
        self._retries = retries
        self._watch = watch
        self._answering_seconds = 0.0
        self._lost = Usage()

    async def to_the_end(self) -> SessionResult:
        try:
            await self._begin()
            while True:
                await self._turn()
        except Ended as ended:
            return self._result(ended.ending, ended.reason)
        except Waiting as waiting:
            return self._result(Ending.WAITING, str(waiting))
        except BudgetSpent as spent:
            await self._session.note(BUDGET, {"budget": spent.budget, "limit": spent.limit})
            self._watch(Progress("note", f"the budget {spent.budget} is spent"))
            return self._result(Ending.BUDGET, str(spent), budget=spent.budget)
        except InfrastructureFailure as failure:
            details: dict[str, JSON] = {"problem": str(failure), "attempts": failure.attempts}
            await self._session.note("infrastructure_failure", details)
            return self._result(Ending.INFRASTRUCTURE_FAILURE, str(failure), fault=failure.kind)

    async def _begin(self) -> None:
        driver, session = self._driver, self._session
        resumed = any(sealed.event.kind == "user_said" for sealed in session.events)
        if resumed:
            await session.note(RUN_RESUMED, {"events": len(session.events)})
            await recover(session, self._watch)
            # An approved call may have been made, which is one more.
            counted = Spending.of(session, driver.spending.budgets)
            driver.spending.domain_calls = counted.domain_calls
        await driver.begin()
        if not resumed:
            return
        if session.unknown_outcomes:
            raise Waiting(f"nobody knows how call {session.unknown_outcomes[0]} ended")
        if not must_start_again(session):
            driver.calls.raise_if_over()
        if driver.unanswered:
            await driver.user_turn(driver.unanswered)

    async def _turn(self) -> None:
        """One request, within what is left of the wall clock, and what comes of it."""
        driver = self._driver
        asked = driver.turn()
        budgets = driver.spending.budgets
        left = driver.spending.seconds_left()
        driver.spending.check_context(sum(len(one.content) for one in asked.messages))
        request = ModelRequest(
            asked.messages,
            asked.tools,
            temperature=budgets.temperature,
            timeout_seconds=budgets.request_seconds,
            seed=budgets.seed,
            reply_tokens=budgets.reply_tokens,
        )
        self._watch(Progress("request", self._model.name, asked.slot))
        attempts = Attempts()
        begun = monotonic()
        try:
            async with asyncio.timeout(left):
                reply, _ = await complete_with_retries(
                    self._model, request, self._retries, attempts=attempts
                )
        except TimeoutError:
            self._lost = attempts.discarded
            raise self._out_of_time(attempts, monotonic() - begun) from None
        except InfrastructureFailure as failure:
            self._lost = failure.usage
            if failure.kind == CONTEXT:  # the model's limit, whoever enforces it
                raise driver.spending.spent("context_tokens") from failure
            raise
        seconds = monotonic() - begun
        self._answering_seconds += seconds
        await driver.handle(reply, attempts, seconds=seconds)

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
        said = problem or f"no answer within {silent:.3g} s"
        return InfrastructureFailure(
            f"{self._model.name}: {said}; {spent}",
            attempts.made,
            kind="timeout" if problem is None else problem.kind,
        )

    def _result(
        self, ending: Ending, reason: str, *, budget: str | None = None, fault: str = ""
    ) -> SessionResult:
        driver, spending = self._driver, self._driver.spending
        return SessionResult(
            session_id=self._session.id,
            ending=ending,
            reason=self._session.secrets.masked(reason),
            budget=budget,
            messages=(driver.first, *driver.dialog),
            requests=tuple(spending.requests),
            domain_calls=spending.domain_calls,
            agent_turns=spending.agent_turns,
            user_turns=spending.user_turns,
            refusals=refusals(self._session, driver.briefing.language)
            if ending is Ending.REFUSED
            else (),
            fault=fault,
            lost=self._lost,
        )

    def _refusals(self) -> tuple[Refusal, ...]:
        return refusals(self._session, self._driver.briefing.language)
