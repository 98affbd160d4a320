"""A session under a view: the requests to the model, and the moves that it makes.

The loop, `play`, MCP and the framework hooks all use a ``Driver``: they get the same messages,
frame message and tools from ``request``, and the same moves from ``handle``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Protocol, runtime_checkable

from sopilot.agent.approvers import Operator
from sopilot.agent.budgets import Budgets, BudgetSpent, Spending
from sopilot.agent.calls import Answered, CallHandler, Ended, Waiting
from sopilot.agent.dialog import (
    ANSWERS,
    MALFORMED_CALL,
    MODEL_REQUEST,
    REFRESH,
    USER_SILENT,
    RecordedDialog,
    empty_reply,
    refreshed,
    user_silent,
)
from sopilot.agent.result import Ending, Progress, RequestRecord, Watch, nobody_watches
from sopilot.agent.resume import SkipsTurns, recover
from sopilot.agent.retries import Attempts
from sopilot.agent.toolbox import Toolbox
from sopilot.messages.catalogue import sentence
from sopilot.protocols import Message, ModelReply, ToolCall, ToolSchema, User
from sopilot.session.questions import UserAnswer
from sopilot.session.session import Session
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.moment import Moment
from sopilot.views.moves import Shown
from sopilot.views.view import Request, View

NOT_OFFERED = "not_offered"
"""Notes the goal actions that no tool carries out: who refuses there has a cause."""
MOST_EMPTY_REPLIES = 3


@runtime_checkable
class AnswersQuestions(Protocol):
    """A simulated user who learns the subject of the runtime's question."""

    async def answer(self, about: str, question: str) -> str | None: ...


class Driver:
    """A session under a view. ``user`` answers the agent; without a user its words are only
    recorded. ``tools`` are the domain's, the session's own by default. Moves raise ``Ended``,
    ``Waiting`` and ``BudgetSpent``; the session can continue after them."""

    def __init__(
        self,
        session: Session,
        briefing: Briefing,
        view: View,
        *,
        user: User | None = None,
        budgets: Budgets | None = None,
        operator: Operator | None = None,
        watch: Watch = nobody_watches,
        tools: Sequence[ToolSchema] | None = None,
    ) -> None:
        if tools is None:
            tools = session.tools.schemas() if session.tools is not None else ()
        self.session = session
        self.briefing = briefing
        self.view = view
        self.user = user
        session.asker = self._ask_user if user is not None else None
        session.language = briefing.language
        tools = (*tools, *briefing.user_tools())
        self.toolbox = Toolbox(view, briefing, tools)
        self.spending = Spending.of(session, budgets or Budgets())
        self.dialog: list[Message] = []
        self._shown = 0
        """Calls in the dialog."""
        self.first = Message("system", view.first_message(briefing))
        self.watch = without_secrets(session, watch)
        self.calls = CallHandler(
            session, briefing, view, self.toolbox, self.spending, operator, self.watch
        )
        self.unanswered = ""
        """A message to the user that an interruption left unanswered."""
        self._since_refresh = 0
        self._pending_request: Request | None = None

    async def begin(self) -> None:
        """Before the first request, and after every interruption."""
        session = self.session
        absent = sorted(self.briefing.goal_actions() - self.toolbox.names)
        note = {"name": NOT_OFFERED, "details": {"actions": absent}}
        if absent and all(event.payload != note for event in session.own_events):
            await session.note(NOT_OFFERED, {"actions": absent})
        reply = any(sealed.event.kind == "user_said" for sealed in session.events)
        if self.user is not None:
            if not reply:
                opening = self.user.opening()
                await session.user_said(opening)
                self.watch(Progress("user", opening))
            elif isinstance(self.user, SkipsTurns):
                self.user.skip(self.spending.user_turns)
        if session.retryable or session.unknown_outcomes:
            await recover(session)
        await self.catch_up()

    async def catch_up(self) -> None:
        """The dialog as the trace has it: another process may have written."""
        recorded = RecordedDialog(
            answers=self.view.answers,
            language=self.briefing.language,
            steps=self.view.has_steps,
            step_tool=self.toolbox.step,
        )
        for event in self.session.own_events:
            recorded.take(event)
        self._show(recorded.messages)
        self._since_refresh = recorded.since_refresh
        self.unanswered = recorded.unanswered

    def _show(self, messages: list[Message]) -> None:
        self.dialog = messages
        self._shown = sum(len(message.tool_calls) for message in messages)

    # --- requests ------------------------------------------------------------------

    def request(self) -> Request:
        return self.view.request(self._moment(), self.first, self.toolbox.schemas)

    def shown(self) -> Shown:
        """For a client that keeps the dialog itself."""
        return self.view.shown(self._moment())

    def _moment(self) -> Moment:
        session = self.session
        return Moment(
            self.briefing,
            session.machine,
            session.configuration,
            self.dialog,
            session.settings.automation,
            session.judge,
            self.toolbox.step,
        )

    def turn(self) -> Request:
        """The request, at the price of one turn: its reply is handled next."""
        self.spending.spend_agent_turn()
        self._pending_request = self.request()
        return self._pending_request

    # --- moves ----------------------------------------------------------------------

    async def handle(
        self, reply: ModelReply, attempts: Attempts | None = None, *, seconds: float = 0.0
    ) -> Sequence[Answered]:
        """The model's whole message, done; the answers to its calls, or the user's."""
        content = reply.content if reply.content.strip() else ""
        calls = self._numbered(reply.tool_calls)
        move = (self._pending_request or self.request()).shown.move
        self.calls.move, self.calls.words = lambda: move, content
        await self._note_request(reply, calls, attempts or Attempts(1), seconds)
        await self._said(content, calls)
        if not calls:
            text = await (self.user_turn(content) if content else self._empty_reply())
            answers = [Answered(text)]
        else:
            answers = []
            noted: list[JSON] = []
            broken, ended = False, None
            try:
                for call in calls:
                    answer = await (
                        self.calls.leave_out(call) if broken else self.calls.handle(call)
                    )
                    self._show_answer(call, answer.text)
                    answers.append(answer)
                    noted.append(answer.text if answer.seq is None else answer.seq)
                    broken = broken or (self.view.in_order and not self.calls.fitted)
                    self._since_refresh += 1
                    self.calls.raise_if_over()
            except (Ended, BudgetSpent, Waiting) as problem:
                ended = problem
                if isinstance(problem, Waiting):
                    self._show_answer(call, problem.text)
                    noted.append(problem.text)
            waits = {"waits": True} if isinstance(ended, Waiting) else {}
            await self.session.note(ANSWERS, {"answers": noted, **waits})
            if ended is not None:
                raise ended
        if self._since_refresh >= self.spending.budgets.refresh_actions:
            self._since_refresh = 0
            await self.session.note(REFRESH, {"messages": len(self.dialog)})
            self._show(refreshed(self.dialog, self.view.answers))
        return answers

    async def call(self, call: ToolCall, text: str = "") -> Answered:
        """Make one call of a client that keeps the dialog itself; ``text`` came with the call."""
        calls = self._numbered((call,))
        self.calls.move, self.calls.words = lambda: self.shown().move, text
        await self._said(text if text.strip() else "", calls)
        try:
            answer = await self.calls.handle(calls[0])
        except Waiting as problem:
            self._show_answer(calls[0], problem.text)
            raise
        self._show_answer(calls[0], answer.text)
        return answer

    async def say(self, text: str) -> str:
        await self._said(text, ())
        return await self.user_turn(text)

    async def user_turn(self, text: str) -> str:
        if self.user is None:
            return "Said."
        answer = await self.user.reply(text)
        if answer is None:
            return await self._silence()
        self.spending.spend_user_turn()
        await self.session.user_said(answer)
        self.watch(Progress("user", answer))
        self.dialog.append(Message("user", answer))
        return answer

    async def _ask_user(self, question: str, about: str, closed: bool) -> UserAnswer | None:
        """Ask the user a question of the runtime, in the middle of a call."""
        assert self.user is not None
        await self.session.assistant_said(question)
        self.watch(Progress("assistant", question))
        if isinstance(self.user, AnswersQuestions):
            answer = await self.user.answer(about, question)
        else:
            answer = await self.user.reply(question)
        if answer is None:
            return None
        self.spending.spend_user_turn()
        outcome = await self.session.user_said(answer)
        self.watch(Progress("user", answer))
        return UserAnswer(answer, outcome.events[0].seq)

    async def _silence(self) -> str:
        """Tell the model once that the user has nothing to say, so that it can end its procedures
        in another message."""
        message = user_silent(self.briefing.language, machine=self.view.has_steps)
        if message in self.dialog[-2:]:
            raise await self.calls.user_leaves()
        await self.session.note(USER_SILENT, {})
        self.dialog.append(message)
        return message.content

    async def _said(self, content: str, calls: tuple[ToolCall, ...]) -> None:
        self.dialog.append(Message("assistant", content, calls))
        self._shown += len(calls)
        if content:
            await self.session.assistant_said(content)
            self.watch(Progress("assistant", content))

    def _show_answer(self, call: ToolCall, text: str) -> None:
        self.dialog.append(Message("tool", text, tool_call_id=call.id, name=call.name))

    async def _empty_reply(self) -> str:
        await self.session.note(MALFORMED_CALL, {"tool": "", "problem": sentence("empty-message")})
        text = empty_reply(self.briefing.language)
        self.dialog[-1] = text
        row = takewhile(lambda message: message == text, reversed(self.dialog))
        if len(list(row)) >= MOST_EMPTY_REPLIES:
            raise Ended(Ending.ABANDONED, "the model has nothing to say")
        return text.content

    def _numbered(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Give ids to calls without one, so that answers find their calls."""
        if all(call.id for call in calls):
            return tuple(calls)
        made = max(self._shown, sum(item.tool_calls for item in self.spending.requests))
        return tuple(
            call if call.id else replace(call, id=f"call_{made + number}")
            for number, call in enumerate(calls, 1)
        )

    async def _note_request(
        self, reply: ModelReply, calls: Sequence[ToolCall], attempts: Attempts, seconds: float
    ) -> None:
        sent, self._pending_request = (self._pending_request or self.request()).messages, None
        usage, served, lost = reply.usage, reply.served, attempts.discarded
        record = RequestRecord(
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
            tool_calls=len(calls),
            attempts=attempts.made,
            seconds=round(seconds, 6),
            messages=len(sent),
            characters=sum(len(message.content) for message in sent),
            reasoning_tokens=usage.reasoning_tokens,
            discarded_tokens=lost.prompt_tokens + lost.completion_tokens,
            finish_reason=served.finish_reason,
            served_model=served.model,
            fingerprint=served.fingerprint,
            response_id=served.response_id,
        )
        self.spending.requests.append(record)
        written: list[JSON] = [[call.id, call.name, call.arguments] for call in calls]
        await self.session.note(
            MODEL_REQUEST, {**record.as_json(), **({"calls": written} if written else {})}
        )


def without_secrets(session: Session, watch: Watch) -> Watch:
    """Mask the session's secrets in everything that is watched."""
    if watch is nobody_watches:
        return watch

    def masked(progress: Progress) -> None:
        message = session.secrets.masked
        watch(
            replace(progress, text=message(progress.text), frame_text=message(progress.frame_text))
        )

    return masked
