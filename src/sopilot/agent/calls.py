"""A model's tool calls, done one after the other, and answered so that it can correct them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from sopilot.agent.approvers import KeepsUnmadeCalls, Operator
from sopilot.agent.budgets import Spending
from sopilot.agent.dialog import MALFORMED_CALL, MALFORMED_STEP, after_steps, not_done, told_in_one
from sopilot.agent.refusals import refusals
from sopilot.agent.result import Ending, Progress, Watch, nobody_watches, shown_call
from sopilot.agent.toolbox import END_SESSION, Toolbox
from sopilot.machine.affordances import completed
from sopilot.machine.call_ledger import HeldCall, HeldState
from sopilot.machine.state import Status
from sopilot.messages.catalogue import message_json, sentence
from sopilot.messages.errors import RunEnded, UserMistake
from sopilot.protocols import ToolCall
from sopilot.records.people import THE_MACHINE
from sopilot.session.questions import RunPaused
from sopilot.session.session import Session
from sopilot.trace.events import Actor, Complete, Fail, Return, Start, ToolOperation
from sopilot.values.json import JSON
from sopilot.values.text import quote_value
from sopilot.views.briefing import Briefing
from sopilot.views.fused import first_arguments
from sopilot.views.guard_answers import JUDGE_TOOL, VALUE_TOOL
from sopilot.views.moves import Move
from sopilot.views.refusals import to_customer
from sopilot.views.step_answers import CallAnswer, CallStatus, step_answer, waiting_text
from sopilot.views.step_tool import StepMove, did
from sopilot.views.view import View

USER_LEFT = "the user no longer wants this"
KEPT_BY_TOOLS = "kept_by_tools"
"""In the note of a malformed call: the tools have it in their own log."""
_LONGEST_NOTED = 400
MOST_INSISTENCE = 3
"""Times the same unproven call is made, and nothing else, until people are waited for."""
_UNDECIDED = frozenset(HeldState) - {HeldState.APPROVED, HeldState.REJECTED}


class Ended(RunEnded):
    """The run is over as it should be."""

    def __init__(self, ending: Ending, reason: str) -> None:
        super().__init__(reason)
        self.ending = ending
        self.reason = reason


class Waiting(RunPaused):
    """People must decide or find out something before the run can go on. ``text`` is the
    answer to the model, where a call is what they must decide about; ``unknown``: the call was
    sent, and its outcome is unknown; ``is_question``: the problem is a question of the runtime."""

    def __init__(
        self, problem: str, text: str = "", *, unknown: bool = False, is_question: bool = False
    ) -> None:
        super().__init__(problem)
        self.text = text
        self.unknown = unknown
        self.is_question = is_question


class Answered(NamedTuple):
    """The answer to a call; ``seq`` is the number of the result that it quotes. ``ok`` is false
    if the call failed or wasn't made, ``unknown`` true if it was sent and its outcome is
    unknown."""

    text: str
    ok: bool = True
    seq: int | None = None
    unknown: bool = False


class CallHandler:
    def __init__(
        self,
        session: Session,
        briefing: Briefing,
        view: View,
        toolbox: Toolbox,
        spending: Spending,
        operator: Operator | None,
        watch: Watch,
    ) -> None:
        self._session = session
        self._briefing = briefing
        self._view = view
        self._language = briefing.language
        self._toolbox = toolbox
        self._spending = spending
        self._operator = operator
        self._watch = watch
        self._said = ""
        self.words = ""
        """The text to the user in the message whose calls are handled."""
        self.move: Callable[[], Move | None] = lambda: None
        """The move that the frame message shows: the model may use its numbers."""
        self._insisted: list[str] = []
        self.fitted = True
        """Whether the last step of the program was taken; calls of tools leave it alone."""

    async def handle(self, call: ToolCall) -> Answered:
        """Do what a call asks for, and answer it."""
        taken: list[str] = []
        call, problem = await self.take_steps(call, taken)
        if problem is not None:
            return Answered(problem, ok=False)
        parsed = self._toolbox.parse(call, self._session.configuration, self.completed)
        self.fitted = not (isinstance(parsed, str) and self._toolbox.is_step(call.name))
        if isinstance(parsed, str):
            kept_by_tools = await self._kept_by_tools(call, parsed)
            text = await self._malformed(call, parsed, logged=kept_by_tools)
            return Answered(after_steps(taken, text, self._language), ok=False)
        if isinstance(parsed, tuple):
            self._insisted = []
            text = await self._steps(call, parsed)
            return Answered(text, ok=self.fitted)
        if call.name == END_SESSION:
            outcome, reason = (str(parsed.get(key, "")) for key in ("outcome", "reason"))
            await self._session.note(END_SESSION, {"outcome": outcome, "reason": reason})
            self._closing_words(reason)
            raise self._ended_by_model(outcome, reason)
        if call.name == JUDGE_TOOL and self._session.settings.guard:
            check, holds = parsed["check"], parsed["holds"]
            return Answered(await self._session.judge_check(str(check), holds is True))
        if call.name == VALUE_TOOL and self._session.settings.guard:
            return Answered(await self._session.give_values(parsed))
        answer = await self.domain(call.id, call.name, parsed)
        undecided = answer.held is not None and answer.held.state in _UNDECIDED
        # Others than guarded ones leave the model something to do.
        guarded = call.name in self._session.programs.guarded
        unknown = answer.status is CallStatus.UNKNOWN
        text = answer.wording(self._language)
        if (unknown and guarded) or undecided or self._insists(answer):
            raise Waiting(answer.problem, text, unknown=unknown)
        ok = answer.result is not None and answer.result.ok
        return Answered(text, ok, answer.seq, unknown)

    async def take_steps(self, call: ToolCall, taken: list[str]) -> tuple[ToolCall, str | None]:
        """Take the steps that a tool call carries among its arguments. Return the call without
        them, and the answer where a step doesn't fit: then the call isn't made."""
        before, call = self._toolbox.in_passing(call)
        if before:
            self.fitted = True
            text = await self._steps(call, before, taken)
            if not self.fitted:
                return call, text
        return call, None

    def _insists(self, answer: CallAnswer) -> bool:
        """Whether nothing but the same unproven call was made for a while: it will not be
        proven so, and a person can decide."""
        waiting = {held_call.call_id for held_call in self._session.held_calls}
        if answer.status is not CallStatus.HELD or answer.call_id not in waiting:
            self._insisted = []
            return False
        self._insisted = [item for item in self._insisted if item == answer.call_id]
        self._insisted.append(answer.call_id)
        return len(self._insisted) >= MOST_INSISTENCE

    def _closing_words(self, text: str) -> None:
        """Tell the user the reason if the model ends a request without words of its own."""
        if text and not self.words:
            self._watch(Progress("assistant", text))

    async def _steps(
        self, call: ToolCall, moves: Sequence[StepMove], taken: list[str] | None = None
    ) -> str:
        """The operations of one call, one after the other; behind one that does not fit no
        other is done. ``taken`` collects those in the arguments of a tool call."""
        waiting = [self._by_name(move) for move in moves]
        text = ""
        while waiting and self.fitted:
            move = self._next_of(waiting)
            waiting.remove(move)
            stray = self._stray(move)
            if stray:
                self.fitted = False
                malformed = await self._malformed(call, stray)
            else:
                malformed = await self._operate(self._of_call(move.operation, call))
            if taken is None:
                text = told_in_one(text, malformed)
            elif self.fitted:
                taken.append(did(move.operation.kind, self._toolbox.step))
            else:
                text = after_steps(taken, malformed, self._language)
        return text

    def _of_call(self, operation: ToolOperation, call: ToolCall) -> ToolOperation:
        """A start in the arguments of a tool call, with the values that the program would pass
        to that call: who writes them there need not write them twice."""
        session = self._session
        if not isinstance(operation, Start) or call.name in self._toolbox.step_names:
            return operation
        layout = session.machine.programs.layouts.get(operation.goal)
        try:
            written = json.loads(call.arguments)
        except (ValueError, RecursionError):
            written = None
        if layout is None or not isinstance(written, dict):
            return operation
        named = first_arguments(
            session.machine, session.configuration, operation.goal, session.settings.automation
        ).get(call.name, {})
        values = {
            name: written[parameter]
            for parameter, name in named.items()
            if written.get(parameter) is not None
            and layout.type_problem(name, written[parameter]) is None
        }
        return replace(operation, arguments={**values, **operation.arguments})

    async def _operate(self, operation: ToolOperation) -> str:
        # Text to the user in the same message is the summary.
        if isinstance(operation, Complete):
            operation = replace(operation, summary=operation.summary or self.words)
            self._said = str(operation.summary)
        elif isinstance(operation, Fail):
            operation = replace(operation, reason=operation.reason or self.words)
            self._said = str(operation.reason)
        outcome = await self._session.operate(operation)
        self.fitted = outcome.accepted
        if outcome.accepted and isinstance(operation, Complete | Fail):
            failed = isinstance(operation, Fail)
            message = to_customer(refusals(self._session, self._language)) if failed else ""
            self._closing_words(message or self._said)
        self._watch(Progress("step", self._stepped(operation, accepted=outcome.accepted)))
        machine, tool = self._session.machine, self._toolbox.step
        return step_answer(outcome, machine, self._view.answers, self._language, tool)

    def _by_name(self, move: StepMove) -> StepMove:
        """The rule that a number stands for, by the frame message that gave it."""
        if not move.about.isdigit():
            return move
        frame = self._session.configuration.frame
        names = {"1": frame.function} if frame is not None else {}
        frame_move = self.move()
        ahead = frame_move.ahead.values() if frame_move is not None else ()
        names |= {item.number: item.name for item in ahead if item.number}
        return move._replace(about=names.get(move.about, move.about))

    def _next_of(self, waiting: Sequence[StepMove]) -> StepMove:
        """The verdict on the rule where the program stands; objects can't be ordered."""
        frame = self._session.configuration.frame
        for move in waiting:
            if frame is not None and move.about == frame.function:
                return move
        return waiting[0]

    def _stray(self, move: StepMove) -> str:
        """Verdicts that come several in a message must not be bound to another rule."""
        frame = self._session.configuration.frame
        if not isinstance(move.operation, Return) or frame is None:
            return ""
        unread = self._session.machine.unresolved(
            self._session.configuration, move.operation.evidence
        )
        if unread:
            return self._unread(unread[0])
        if not move.about:
            return ""
        if not self._view.in_order or move.about == frame.function:
            return ""
        return sentence("other-rule", rule=move.about, function=frame.function)

    def _unread(self, cited: str) -> str:
        process, answered = self._session.configuration.process, self._session.ledger.answered
        if process and cited.strip().removeprefix("#") in map(str, answered.values()):
            return sentence("result-of-another", cited=quote_value(cited), goal=process.goal)
        return sentence("no-result", cited=quote_value(cited))

    def completed(self, name: str, arguments: dict[str, JSON]) -> dict[str, JSON]:
        """A guard has no program to show: what an agent left out there, it didn't ask for."""
        here = self._session.machine.position(self._session.configuration)
        if here is None or self._session.settings.guard:
            return arguments
        return completed(
            here, name, arguments, enters=self._session.settings.automation.enter_calls
        )

    async def leave_out(self, call: ToolCall) -> Answered:
        """Refuse a call that was meant to follow a step which didn't fit."""
        return Answered(await self._malformed(call, sentence("step-before")), ok=False)

    def _stepped(self, operation: ToolOperation, *, accepted: bool) -> str:
        frame = self._session.configuration.frame
        place = frame.place if frame is not None else "the end"
        kind = operation.kind
        return f"{kind} → {place}" if accepted else f"{kind} does not fit at {place}"

    async def _kept_by_tools(self, call: ToolCall, problem: str) -> bool:
        tools: object = self._session.tools
        # Bookkeeping isn't a tool of the domain, also where a view has no use for it.
        ours = call.name == END_SESSION or call.name in self._toolbox.step_names
        if ours or not isinstance(tools, KeepsUnmadeCalls):
            return False
        return await tools.unmade(call, problem)

    async def _malformed(self, call: ToolCall, problem: str, *, logged: bool = False) -> str:
        name = MALFORMED_STEP if self._toolbox.is_step(call.name) else MALFORMED_CALL
        details: dict[str, JSON] = {
            "tool": call.name,
            "problem": problem,
            "message": message_json(problem),
            "arguments": call.arguments[:_LONGEST_NOTED],
        }
        if logged:  # whole, so that the tools' log can be rebuilt from the trace
            details |= {KEPT_BY_TOOLS: True, "arguments": call.arguments}
        await self._session.note(name, details)
        self._watch(Progress("note", f"{call.name}: {problem}"))
        return not_done(problem, self._language)

    # --- domain calls ---------------------------------------------------------------

    async def domain(self, call_id: str, name: str, arguments: Mapping[str, JSON]) -> CallAnswer:
        """Make or hold a call of a domain tool; the operator decides about a held call."""
        ready = getattr(self._session.tools, "ready", None)
        if ready is not None:
            await ready(name)
        self._spending.spend_domain_call()
        watched = self._watch is not nobody_watches  # else nothing is spelled, which may be long
        if watched:
            clear = self._session.secrets.shown(name, arguments)
            self._watch(Progress("call", shown_call(name, clear)))
        answer = await self._session.call_tool(name, arguments, call_id)
        if answer.status is CallStatus.HELD:
            # Nothing was called: a held call costs nothing.
            self._spending.domain_calls -= 1
            self._watch(Progress("held", answer.problem))
            if answer.held is not None:
                held = await self._voted(answer.held)
                if held.state in (HeldState.APPROVED, HeldState.REJECTED):
                    if held.state is HeldState.APPROVED:
                        self._spending.spend_domain_call()
                    answer = await self._session.run_held(held.call_id)
                else:
                    # As the votes left it, not as it was when the call was held.
                    waits = held.state is HeldState.WAITING
                    shown = self._session.secrets.shown_call(held)
                    problem = waiting_text(shown) if waits else answer.problem
                    answer = replace(answer, problem=problem, held=held)
        if watched and answer.status is not CallStatus.UNKNOWN:
            self._watch(Progress("result", answer.text))
        return answer

    async def _voted(self, held: HeldCall) -> HeldCall:
        """The held call after what the operator decides now."""
        if self._operator is not None and held.state is HeldState.WAITING:
            for vote in await self._operator.decide(held):
                try:
                    held = await self._session.record_vote(held.call_id, vote)
                except UserMistake as refused:
                    if vote.who is not THE_MACHINE:
                        raise
                    # If people must prove who they are, a simulated person can't decide.
                    self._watch(Progress("note", f"{vote.by} may not decide here: {refused}"))
                    break
                if held.state is not HeldState.WAITING:
                    break
        return held

    # --- the end --------------------------------------------------------------------

    def raise_if_over(self) -> None:
        """A run with a machine is over when no process is left."""
        configuration = self._session.configuration
        if not self._toolbox.machine:
            return
        if configuration.active is None and configuration.processes:
            raise Ended(self._by_processes(), self._said)

    def _by_processes(self) -> Ending:
        processes = self._session.configuration.processes.values()
        statuses = {process.status for process in processes}
        if Status.COMPLETED in statuses:
            return Ending.EXECUTED
        return Ending.REFUSED if Status.FAILED in statuses else Ending.ABANDONED

    async def user_leaves(self) -> Ended:
        """The user has nothing more to say to a message without a tool call.

        What the user gave up for something else, and left open, ends with the dialog.
        """
        if not self._toolbox.machine:
            return Ended(Ending.EXECUTED if self._goal_succeeded() else Ending.REFUSED, "")
        ending = self._by_processes()
        if ending is Ending.ABANDONED:
            return Ended(ending, "the user left before the request was finished")
        async with self._session.writing():
            while self._session.configuration.active is not None:
                await self._session.step(Fail(USER_LEFT), actor=Actor.USER)
        return Ended(ending, self._said)

    def _ended_by_model(self, outcome: str, reason: str) -> Ended:
        """Judge the end by whether the goal was reached, not by the model's claim."""
        if self._goal_succeeded():
            return Ended(Ending.EXECUTED, reason)
        if outcome == "executed":
            claim = "the model claims that it reached its goal, but it didn't"
            return Ended(Ending.ABANDONED, claim)
        return Ended(Ending.REFUSED, reason)

    def _goal_succeeded(self) -> bool:
        goals = self._briefing.goal_actions()
        return any(
            sealed.event.kind == "domain_result"
            and sealed.event.payload["ok"]
            and sealed.event.payload["action"] in goals
            for sealed in self._session.events
        )
