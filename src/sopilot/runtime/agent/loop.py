"""The loop: what the arm shows goes to the model, what the model asks for is done."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from time import monotonic

from sopilot.language.diagnostics import InternalBug, RunEnded
from sopilot.runtime.agent.arms import Arm, View
from sopilot.runtime.agent.arms.offers import offered
from sopilot.runtime.agent.briefing import Briefing
from sopilot.runtime.agent.budgets import Budgets
from sopilot.runtime.agent.calls import CallHandler, Ended, Waiting
from sopilot.runtime.agent.dialog import MODEL_REQUEST, awaits_user, calls_done, rebuild
from sopilot.runtime.agent.operators import Operator
from sopilot.runtime.agent.progress import Progress, Watch, nobody_watches
from sopilot.runtime.agent.providers import (
    Attempts,
    InfrastructureFailure,
    Retries,
    Sleep,
    complete_with_retries,
)
from sopilot.runtime.agent.recovery import SkipsTurns, must_start_again, recover
from sopilot.runtime.agent.refusals import refusals
from sopilot.runtime.agent.result import Ending, RequestRecord, SessionResult
from sopilot.runtime.agent.spending import BudgetSpent, Spending
from sopilot.runtime.agent.step_tool import short_step_tool
from sopilot.runtime.agent.toolbox import STEP_TOOL, Toolbox
from sopilot.runtime.session import Session
from sopilot.runtime.session.protocols import Message, Model, ModelReply, ModelRequest, User

NOT_OFFERED = "not_offered"
"""Notes the goal actions that no tool carries out: who refuses there has a cause."""
EMPTY_REPLY = "Your last message was empty. Speak to the user or call a tool."
MOST_EMPTY_REPLIES = 3


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
    sleep: Sleep = asyncio.sleep,
) -> SessionResult:
    """Run a session to its end, from wherever its trace stands.

    Raises only what concerns the store or the caller; whatever the model, the
    user or the provider does ends in a result.
    """
    run = Run(
        session, briefing, arm, model, user, budgets or Budgets(), retries or Retries(),
        operator, watch, sleep,
    )  # fmt: skip
    async with session.keep_alive():
        return await run.to_the_end()


class Run:
    """One run in one process; the session outlives it."""

    def __init__(
        self,
        session: Session,
        briefing: Briefing,
        arm: Arm,
        model: Model,
        user: User,
        budgets: Budgets,
        retries: Retries,
        operator: Operator | None,
        watch: Watch,
        sleep: Sleep,
    ) -> None:
        if session.tools is None:
            raise InternalBug("a run needs a session with tools")
        self._session = session
        self._briefing = briefing
        self._arm = arm
        self._model = model
        self._user = user
        self._budgets = budgets
        self._retries = retries
        self._watch = watch
        self._sleep = sleep
        self._spending = Spending.of(session, budgets)
        step = short_step_tool(briefing.programs.values()) if arm.short_step else STEP_TOOL
        self._toolbox = Toolbox(session.tools.schemas(), machine=arm.machine, step=step)
        self._calls = CallHandler(
            session, self._toolbox, self._spending, operator, watch, briefing.goal_actions(),
            terse=arm.terse, in_order=arm.in_order,
        )  # fmt: skip
        self._first = Message("system", arm.first_message(briefing))
        self._dialog: list[Message] = []
        self._since_refresh = 0
        self._empty_replies = 0
        self._answering_seconds = 0.0

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
            await self._session.note("budget", {"budget": spent.budget, "limit": spent.limit})
            self._watch(Progress("note", f"the budget {spent.budget} is spent"))
            return self._result(Ending.BUDGET, str(spent), budget=spent.budget)
        except InfrastructureFailure as failure:
            details = {"problem": str(failure), "attempts": failure.attempts}
            await self._session.note("infrastructure_failure", details)
            return self._result(Ending.INFRASTRUCTURE_FAILURE, str(failure))

    # --- the beginning --------------------------------------------------------------

    async def _begin(self) -> None:
        session = self._session
        absent = sorted(self._briefing.goal_actions() - self._toolbox.names)
        if absent:
            await session.note(NOT_OFFERED, {"actions": absent})
        if not any(sealed.event.kind == "user_said" for sealed in session.events):
            opening = self._user.opening()
            await session.user_said(opening)
            self._watch(Progress("user", opening))
            self._dialog = rebuild(session)
            return
        await session.note("run_resumed", {"events": len(session.events)})
        await recover(session)
        # An approved call may have been made, which is one more.
        self._spending.domain_calls = len(session.ledger.made)
        if isinstance(self._user, SkipsTurns):
            self._user.skip(self._spending.user_turns)
        self._dialog = rebuild(session)
        if session.unknown_outcomes:
            raise Waiting(f"nobody knows how call {session.unknown_outcomes[0]} ended")
        if not must_start_again(session):
            self._calls.raise_if_over()
        unanswered = awaits_user(session)
        if unanswered is not None:
            await self._user_turn(unanswered)

    # --- one turn -------------------------------------------------------------------

    async def _turn(self) -> None:
        self._spending.spend_agent_turn()
        reply = await self._ask_model()
        self._dialog.append(Message("assistant", reply.content, reply.tool_calls))
        if reply.content.strip():
            await self._session.assistant_said(reply.content)
            self._watch(Progress("assistant", reply.content))
        if reply.tool_calls:
            self._empty_replies = 0
            broken = False
            for call in reply.tool_calls:
                if broken:
                    text = await self._calls.leave_out(call)
                else:
                    text = await self._calls.handle(call)
                    broken = self._arm.in_order and not self._calls.fitted
                self._dialog.append(Message("tool", text, tool_call_id=call.id, name=call.name))
                self._since_refresh += 1
                self._calls.raise_if_over()
        elif reply.content.strip():
            self._empty_replies = 0
            await self._user_turn(reply.content)
        else:
            await self._empty_reply()
        if self._since_refresh >= self._budgets.refresh_actions:
            await self._refresh()

    async def _ask_model(self) -> ModelReply:
        """One request, accounted for, within what is left of the wall clock."""
        view = self._view()
        slot = self._arm.slot(view)
        folded = self._arm.fold(self._dialog) if self._arm.fold else self._dialog
        messages = [self._first, *folded]
        if slot:
            messages.append(Message("system", slot))
        left = self._spending.seconds_left()
        request = ModelRequest(
            messages,
            offered(view, self._toolbox.schemas, self._arm.offer, slot),
            temperature=self._budgets.temperature,
            timeout_seconds=self._budgets.request_seconds,
        )
        self._watch(Progress("request", self._model.name, slot))
        attempts = Attempts()
        begun = monotonic()
        try:
            async with asyncio.timeout(left):
                reply, _ = await complete_with_retries(
                    self._model, request, self._retries, sleep=self._sleep, attempts=attempts
                )
        except TimeoutError:
            raise self._out_of_time(attempts, monotonic() - begun) from None
        self._answering_seconds += monotonic() - begun
        record = RequestRecord(
            prompt_tokens=reply.usage.prompt_tokens,
            cached_tokens=reply.usage.cached_tokens,
            completion_tokens=reply.usage.completion_tokens,
            tool_calls=len(reply.tool_calls),
            attempts=attempts.made,
            seconds=round(monotonic() - begun, 6),
            messages=len(messages),
            characters=sum(len(message.content) for message in messages),
        )
        self._spending.requests.append(record)
        await self._session.note(MODEL_REQUEST, asdict(record))
        return reply

    def _out_of_time(self, attempts: Attempts, silent: float) -> RunEnded:
        """Whose failure it is that the wall clock fired during a request.

        The provider's if the request had failed before, or was silent for longer than all
        answers of this process took together: a dead endpoint must not be booked as the
        model's failure. The model's if it is merely slow.
        """
        spent = self._spending.spent("wall_seconds")
        problem = attempts.problem
        if problem is None and silent <= self._answering_seconds:
            return spent
        said = problem or f"no answer within {silent:.3g} s"
        return InfrastructureFailure(f"{self._model.name}: {said}; {spent}", attempts.made)

    def _view(self) -> View:
        session = self._session
        return View(
            self._briefing,
            session.machine,
            session.configuration,
            self._dialog,
            () if self._arm.machine else calls_done(session),
            session.settings.automation,
            session.judge,
        )

    async def _user_turn(self, said: str) -> None:
        answer = await self._user.reply(said)
        if answer is None:
            raise await self._calls.user_leaves()
        self._spending.spend_user_turn()
        await self._session.user_said(answer)
        self._watch(Progress("user", answer))
        self._dialog.append(Message("user", answer))

    async def _empty_reply(self) -> None:
        self._empty_replies += 1
        await self._session.note("malformed_call", {"tool": "", "problem": "an empty message"})
        if self._empty_replies >= MOST_EMPTY_REPLIES:
            raise Ended(Ending.ABANDONED, "the model has nothing to say")
        self._dialog[-1] = Message("system", EMPTY_REPLY)

    async def _refresh(self) -> None:
        self._since_refresh = 0
        await self._session.note("refresh", {"messages": len(self._dialog)})
        self._dialog = rebuild(self._session)

    # --- the end --------------------------------------------------------------------

    def _result(self, ending: Ending, reason: str, *, budget: str | None = None) -> SessionResult:
        spending = self._spending
        return SessionResult(
            session_id=self._session.id,
            ending=ending,
            reason=reason,
            budget=budget,
            messages=(self._first, *self._dialog),
            requests=tuple(spending.requests),
            domain_calls=spending.domain_calls,
            agent_turns=spending.agent_turns,
            user_turns=spending.user_turns,
            refusals=refusals(self._session) if ending is Ending.REFUSED else (),
        )
