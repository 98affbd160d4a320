"""The reference executor: a conforming model that acts on the data of a request's views.

``MachineExecutor`` does what the frame message asks for, step by step. Where a request has whole
programs and no frame, ``_Books`` keeps the place on a machine of the executor's own.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sopilot.agent.reference.guarded import GuardedExecutor
from sopilot.agent.reference.judging import (
    CannotJudge,
    Computes,
    PredicateJudge,
    Seen,
    gather,
    known_or,
)
from sopilot.agent.reference.reading import (
    GOAL,
    RESULT,
    Facts,
    Resolved,
    call_arguments,
    read_facts,
)
from sopilot.agent.reference.replies import Replies, not_offered
from sopilot.agent.toolbox import END_SESSION
from sopilot.machine.automation import Automation
from sopilot.machine.machine import Machine
from sopilot.machine.recipes import linked
from sopilot.machine.state import Configuration
from sopilot.messages.errors import InternalBug, UserMistake
from sopilot.program.model import Local, Unknown
from sopilot.protocols import (
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolSchema,
    inputs_of,
    required_of,
)
from sopilot.trace.events import Complete, DomainCall, DomainResult, Fail, Operation, UserSaid
from sopilot.values.json import JSON, agree
from sopilot.views.moves import Move, MoveArguments, Shown, frame_move, gathered
from sopilot.views.step_tool import STEP_NAMES, TOOL_NAME, parse_step


def wanted_goal(facts: Facts, goals: Iterable[str]) -> str | None:
    """The goal that the user named, else the only goal, else the only goal whose words are all in
    the request. ``None``: ask the user."""
    known = list(goals)
    if facts.wants in known:
        return facts.wants
    if len(known) == 1:
        return known[0]
    words = set(re.findall(r"[a-z]+", facts.request.lower()))
    named = [goal for goal in known if set(goal.lower().split("_")) <= words]
    return named[0] if len(named) == 1 else None


DONE: Final = "done as requested"
_TAKEN: Final = "Done"
_ALONE: Final = Automation(
    take_branches=True,
    group_returns=True,
    bind_evidence=True,
    reuse_verdicts=True,
)
"""The transitions that an executor without a bookkeeping tool leaves to its machine."""
MOST_OWN_STEPS: Final = 400
"""Steps that an executor without a bookkeeping tool takes between two messages."""


class _Books:
    """Where the programs that are shown stand, by the messages and the steps taken."""

    def __init__(self, shown: Shown, automation: Automation | None = None) -> None:
        self._shown = shown
        self._automation = automation
        self._machine = Machine(shown.programs, hashes=dict.fromkeys(shown.programs, ""))
        self.configuration: Configuration = self._machine.initial()
        self._calls: dict[str, ToolCall] = {}

    def move(self) -> Move:
        """The next move."""
        here = self._machine.position(self.configuration)
        if here is None:
            entries = {
                goal: program.functions[program.entry].parameters
                for goal, program in self._shown.programs.items()
            }
            return Move("start", goals=entries)
        return replace(frame_move(here, self._shown.language), gathered=gathered(here))

    def operate(self, operation: Operation) -> str:
        """Take a step; return why it doesn't fit, if it doesn't."""
        outcome = self._machine.step(self.configuration, operation, at=0.0)
        self.configuration = outcome.configuration
        if self._automation is not None:
            self.configuration = self._machine.automate(
                self.configuration, self._automation, at=0.0
            ).configuration
        return "" if outcome.accepted else str(outcome.refusal["reason"])

    def take(self, message: Message) -> Message:
        """Follow a message of the dialog. Return it with the number that its result has here."""
        if message.role == "user":
            self.operate(UserSaid(message.content))
        self._calls.update({call.id: call for call in message.tool_calls})
        call = self._calls.get(message.tool_call_id or "")
        if call is None:
            return message
        if call.name == TOOL_NAME:
            step = parse_step(call.arguments) if message.content.startswith(_TAKEN) else ""
            if not isinstance(step, str):
                self.operate(step)
            return message
        result = RESULT.match(message.content)
        if result is None:
            return message
        if self._automation is None:
            # Evidence is cited by the numbers that the answers have.
            self.configuration = self.configuration.numbered(int(result[1]) - 1)
        self.operate(DomainCall(call.id, call.name, json.loads(call.arguments or "{}")))
        seq = self.configuration.next_seq if self._automation else int(result[1])
        self.configuration = self.configuration.numbered(seq)
        self.operate(DomainResult(call.id, result[2] == "ok", json.loads(result[3])))
        return replace(message, content=f"#{seq} ({result[2]}): {result[3]}")


def next_by_the_books(shown: Shown, messages: Sequence[Message]) -> Move:
    """The next move, by the programs that are shown and the steps that were taken."""
    books = _Books(shown)
    for message in messages:
        books.take(message)
    return books.move()


def _ended(operation: Complete | Fail, reply: ModelReply, facts: Facts, message: str) -> ModelReply:
    """The end of the session. The user reads its reason: ``message`` where nothing else may be
    said."""
    if isinstance(operation, Complete):
        outcome = {"outcome": "executed", "reason": operation.summary}
    else:
        outcome = {"outcome": "refused", "reason": message or operation.reason}
    return Replies(facts).tool(END_SESSION, outcome, reply.content)


_TRUTHS = {True: "true", False: "false"}


class MachineExecutor:
    def __init__(
        self,
        facts: Facts,
        move: Move,
        judge: PredicateJudge,
        tools: Mapping[str, ToolSchema],
        step: str,
    ) -> None:
        self._facts = facts
        self._move = move
        self._judge = judge
        self._tools = tools
        self._replies = Replies(facts, step)

    def reply(self) -> ModelReply:
        move, facts = self._move, self._facts
        if move.kind == "start":
            return self._start()
        current = facts.open[-1] if facts.open else None
        if facts.wants is not None and current is not None and facts.wants != current:
            if facts.wants in facts.ended:
                return ModelReply(f"I leave {current} as it is.")
            return self._start_goal(facts.wants)
        return self.act()

    def act(self) -> ModelReply:
        """Do what the move asks for."""
        move = self._move
        match move.kind:
            case "call":
                return self.call()
            case "tool":
                return self._tool()
            case "goal":
                return self._goal()
            case "judge":
                return self._return(self._evidence())
            case "return":
                return self._replies.step("return")
            case "branch":
                return self._replies.step("select_branch")
            case "choose":
                return self._choose()
            case "emit":
                return self._emit()
            case "complete":
                return self._replies.step("complete", "It is done.", summary="done as requested")
            case "fail":
                return self._replies.refuse(", ".join(move.unmet) or move.function, move.message)
            case _:
                return self._replies.step("select_branch", option="next")

    # --- the goal -------------------------------------------------------------------

    def _start(self) -> ModelReply:
        goal = wanted_goal(self._facts, self._move.goals)
        return self._replies.ask([GOAL]) if goal is None else self._start_goal(goal)

    def _start_goal(self, goal: str) -> ModelReply:
        # Surplus values are harmless where the parameters are not shown.
        tool = self._tools.get(goal)
        names = self._move.goals.get(goal) or (inputs_of(tool) if tool is not None else ())
        known = {name: self._facts.values.get(name) for name in names}
        value = {name: item for name, item in known.items() if item is not None}
        why = self._rejected("start", goal=goal, arguments=value)
        if why:
            return ModelReply(f"I cannot do this: {why}.")
        started = self._replies.step_call("start", goal=goal, arguments=value)
        first = self._move.ahead.get(f"start {goal}")
        # Values that the program needs later are asked for there.
        begin = self._move.needed.get(goal) or self._move.goals.get(goal, ())
        unknown = [name for name in begin if known[name] is None]
        missing: Sequence[str] = ()
        if first is not None:
            missing = call_arguments(first.arguments, {}, self._facts, users_own=True).missing
        wanted = list(dict.fromkeys([*unknown, *missing]))
        if first is not None and not wanted:
            return self._with_next([started], f"start {goal}", [], started=value)
        if wanted and not any(self._facts.questions[name] for name in wanted):
            return self._replies.ask(wanted)
        return ModelReply("", (started,))

    def _goal(self) -> ModelReply:
        if self._move.name not in self._tools:
            return self._replies.give_up(not_offered(self._move.name))
        if self._facts.refused:
            return self._replies.give_up(self._facts.refused.rstrip("."))
        resolved = self._resolved()
        if resolved.missing and not all(map(self._facts.is_unavailable, resolved.missing)):
            return self._replies.ask(resolved.missing)
        failed = self._failed_here(resolved)
        if failed is not None:
            return self._replies.give_up(f"{failed.action} failed")
        return self._replies.tool(self._move.name, self._to_write(resolved))

    # --- checks ---------------------------------------------------------------------

    def call(self) -> ModelReply:
        resolved = self._resolved()
        missing = [name for name in resolved.missing if not self._facts.is_unavailable(name)]
        if missing:
            return self._replies.ask(missing)
        step: dict[str, Any] = {
            "function": self._move.name,
            "arguments": dict(resolved.found_out),
        }
        why = self._rejected("call", **step)
        if why:
            return self._replies.give_up(why)
        return self._replies.step("call", **step)

    def _rejected(self, operation: str, **fields: JSON) -> str:
        """Why this very step did not fit just now: it would not fit a second time either."""
        if self._facts.rejected is None:
            return ""
        value, why = self._facts.rejected
        wanted = json.loads(self._replies.step_call(operation, **fields).arguments)
        return why if value == wanted else ""

    def _tool(self) -> ModelReply:
        if any(linked((recipe,)) for recipe in self._move.recipes):
            return self._linked()
        resolved = self._resolved()
        missing = [name for name in resolved.missing if not self._facts.is_unavailable(name)]
        if missing:
            return self._replies.ask(missing)
        if self._facts.refused or not self._may_lack(self._move.name, resolved.missing):
            return self._otherwise()
        if self._failed_here(resolved) is not None:
            return self._otherwise()
        return self._replies.tool(self._move.name, self._to_write(resolved))

    def _may_lack(self, tool: str, names: Sequence[str]) -> bool:
        """Whether the tool takes a call without these."""
        lacking = {key for key, name in _names(self._move.arguments).items() if name in names}
        if len(lacking) < len(names) or tool not in self._tools:
            return not names
        return lacking.isdisjoint(required_of(self._tools[tool]))

    def _to_write(self, resolved: Resolved) -> Mapping[str, JSON]:
        """The arguments to write: those that the program shows, if it fills in the others. If a
        rule calls a tool twice, write all of them, because the call would be ambiguous."""
        acts = [act.action for recipe in self._move.recipes for act in recipe]
        alone = acts.count(self._move.name) <= 1
        if not self._replies.short or not alone:
            return resolved.values
        return resolved.found_out

    def _linked(self) -> ModelReply:
        """The next call of a recipe whose calls look into earlier answers."""
        facts = self._facts
        value = known_or(self._move.known, facts.value)
        for recipe in self._move.recipes:
            result = gather(recipe, value, self._here())
            if result.missing is None:
                if result.whole:
                    break
                continue
            missing = [name for name in result.missing.open if not facts.is_unavailable(name)]
            if missing:
                return self._replies.ask(missing)
            if result.missing.open or result.missing.act.action not in self._tools or facts.refused:
                continue
            return self._replies.tool(result.missing.act.action, result.missing.arguments)
        return self._return(self._evidence())

    def _otherwise(self) -> ModelReply:
        """The call at the cursor leads nowhere: another recipe, else judge by what there is."""
        for recipe in self._move.recipes[1:]:
            for act in recipe:
                resolved = call_arguments(act.arguments, self._move.known, self._facts)
                tried = any(_same(item, act.action, resolved) for item in self._here())
                if act.action in self._tools and not resolved.missing and not tried:
                    return self._replies.tool(act.action, resolved.values)
        return self._return(self._evidence())

    def _return(self, evidence: Sequence[Seen]) -> ModelReply:
        known = self._move.known
        judge: object = self._judge
        function = self._move.function
        try:
            if isinstance(judge, Computes) and (
                result := judge.computed(function, known, evidence)
            ):
                cited = [f"#{item.seq}" for item in evidence]
                step = self._replies.step_call(
                    "return", holds=True, evidence=cited, arguments=dict(result)
                )
                return self._with_next([step], _TRUTHS[True], [])
            # Facts about this session may rest on any call in it.
            done = isinstance(judge, Computes) and judge.is_fact(function)
            seen: Sequence[Seen] = self._facts.seen if done else evidence
            holds = self._judge(function, known, seen)
        except CannotJudge as error:
            return self._replies.refuse(f"{self._move.function} cannot be verified ({error})")
        cited = [f"#{item.seq}" for item in evidence]
        verdict = ("1", self._move.function, holds, cited)
        return self._with_next([], _TRUTHS[holds], [verdict])

    def _with_next(
        self,
        before: list[ToolCall],
        edge: str,
        verdicts: list[tuple[str, str, bool, Sequence[str]]],
        *,
        started: Mapping[str, JSON] | None = None,
    ) -> ModelReply:
        """The decision and the moves behind it, as far as the frame message looks ahead.
        ``started`` are the values of a start before it."""
        judged = self._move.function
        users_own = started is not None
        ahead = self._move.ahead.get(edge)
        while ahead is not None:
            other = self.beside(ahead, edge)
            if other is not None:
                calls = [*before, *self._replies.verdicts(verdicts)]
                return ModelReply(other.content, (*calls, *other.tool_calls))
            if ahead.kind != "judge":
                break
            judged = ahead.name
            value = call_arguments(ahead.arguments, {}, self._facts, users_own=users_own)
            evidence = [item for item in self._facts.seen if item.seq in (ahead.gathered or ())]
            try:
                holds = self._judge(judged, value.values, evidence)
            except CannotJudge:
                return ModelReply("", (*before, *self._replies.verdicts(verdicts)))
            cited = [f"#{item.seq}" for item in evidence]
            verdicts.append((ahead.number, judged, holds, cited))
            last = f"{ahead.number} {_TRUTHS[holds]}"
            edge = last if last in self._move.ahead else f"{edge} + {last}"
            ahead = self._move.ahead.get(edge)
        calls = [*before, *self._replies.verdicts(verdicts)]
        if ahead is not None and ahead.kind == "fail":
            refusal = self._replies.refuse(judged, ahead.message)
            return ModelReply(refusal.content, self._replies.in_one((*calls, *refusal.tool_calls)))
        if ahead is not None and ahead.kind in ("tool", "goal") and ahead.name in self._tools:
            own = users_own or ahead.kind == "goal"
            value = call_arguments(ahead.arguments, {}, self._facts, users_own=own)
            if not value.missing:
                calls.append(self._replies.call(ahead.name, self._ahead_of(ahead, value, started)))
        return ModelReply("", self._replies.in_one(calls))

    def beside(self, ahead: Move, edge: str) -> ModelReply | None:
        """What an executor of another kind does in the place of this move."""
        return None

    def _ahead_of(
        self, ahead: Move, resolved: Resolved, started: Mapping[str, JSON] | None
    ) -> Mapping[str, JSON]:
        """The arguments that must be written in a call that comes ahead."""
        if not self._replies.short:
            return resolved.values
        names = _names(ahead.arguments)
        known = started or {}
        return {key: value for key, value in resolved.found_out.items() if names[key] not in known}

    def _evidence(self) -> Sequence[Seen]:
        """The results that speak for the present rule, oldest first."""
        facts, move = self._facts, self._move
        if move.gathered is not None:
            verifiers = {act.action for recipe in move.recipes for act in recipe}
            return [entry for entry in self._here() if entry.action in verifiers] or self._here()
        asked_for = [
            (act.action, call_arguments(act.arguments, move.known, facts))
            for recipe in move.recipes
            for act in recipe
        ]
        fitting = [
            entry
            for entry in facts.here
            if any(_same(entry, a, resolved) for a, resolved in asked_for)
        ]
        if fitting:
            return fitting
        latest: dict[str, Seen] = {}
        for item in facts.seen:
            if any(_same(item, action, resolved) for action, resolved in asked_for):
                latest[item.action] = item
        return list(latest.values())

    def _here(self) -> Sequence[Seen]:
        """The calls of the present frame, by the frame message or else by the messages."""
        gathered = self._move.gathered
        if gathered is None:
            return self._facts.here
        return [item for item in self._facts.seen if item.seq in gathered]

    def _resolved(self) -> Resolved:
        move = self._move
        own = move.kind in ("call", "goal")
        return call_arguments(move.arguments, move.known, self._facts, users_own=own)

    def _failed_here(self, resolved: Resolved) -> Seen | None:
        for item in reversed(self._here()):
            if not item.ok and _same(item, self._move.name, resolved):
                return item
        return None

    # --- choices and artifacts ------------------------------------------------------

    def _choose(self) -> ModelReply:
        """The option that the user or a tool named under the step's label."""
        option = self._facts.value(self._move.name)
        if option not in self._move.options:
            return self._replies.refuse(f"nothing says which way to go at {self._move.name}")
        return self._replies.step("select_branch", option=option)

    def _emit(self) -> ModelReply:
        """Hand over the latest value that a tool returned under the artifact's name."""
        name = self._move.name
        made = [item.value for item in self._facts.seen if item.ok and isinstance(item.value, dict)]
        content = next((value[name] for value in reversed(made) if name in value), None)
        if content is None:
            return self._replies.refuse(f"no tool made the artifact {name}")
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        return ModelReply("", (self._replies.step_call("emit_artifact", name=name, content=text),))


def _names(arguments: MoveArguments) -> dict[str, str]:
    """Parameter → the name whose value it takes."""
    return {key: term.name for key, term in arguments if isinstance(term, Local | Unknown)}


def _same(item: Seen, action: str, resolved: Resolved) -> bool:
    return item.action == action and all(
        name not in item.arguments or agree(value, item.arguments[name])
        for name, value in resolved.values.items()
    )


class Reference:
    """A function of the request: it keeps nothing from one to the next.

    It acts on frames, states, whole programs and the guard's answers. Views in prose are for
    readers of natural language: there it raises ``UserMistake``.
    """

    def __init__(self, judge: PredicateJudge, *, name: str = "reference") -> None:
        self._judge = judge
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def executor(
        self,
        request: ModelRequest,
        facts: Facts,
        move: Move,
        tools: Mapping[str, ToolSchema],
        step: str = TOOL_NAME,
        *,
        situation: str = "",
    ) -> MachineExecutor:
        """The executor of one move. ``situation`` names it apart from others of the request."""
        return MachineExecutor(facts, move, self._judge, tools, step)

    async def complete(self, request: ModelRequest) -> ModelReply:
        facts = read_facts(request)
        tools = {tool.name: tool for tool in request.tools}
        step = next((tool.name for tool in request.tools if tool.name in STEP_NAMES), "")
        domain = {name: t for name, t in tools.items() if name not in (step, END_SESSION)}
        shown = request.shown if isinstance(request.shown, Shown) else Shown()
        move = shown.move if step else None
        if move is None and shown.programs and step:
            move = next_by_the_books(shown, request.messages)
        if move is not None:
            return self.executor(request, facts, move, domain, step).reply()
        if shown.guard:
            return GuardedExecutor(facts, self._judge, domain, shown.goals).reply()
        if shown.programs and END_SESSION in tools:
            return self._reply_without_steps(request, shown, domain)
        raise UserMistake(
            "the reference executor acts on frames and programs, not on prose; choose another view"
        )

    def _reply_without_steps(
        self, request: ModelRequest, shown: Shown, tools: Mapping[str, ToolSchema]
    ) -> ModelReply:
        """The reply of a model that has the whole programs and no bookkeeping tool.

        It takes the steps on a machine of its own, again from the beginning at every request, and
        acts as it did before wherever the dialog has its message already.
        """
        books, facts = _Books(shown, _ALONE), Facts()
        waiting = deque(request.messages)

        def follow() -> None:
            """Take the answers to the latest reply."""
            while waiting and waiting[0].role != "assistant":
                facts.take(books.take(waiting.popleft()))

        follow()
        for number in range(MOST_OWN_STEPS):
            move, here = books.move(), f"{facts.request}:{number}"
            reply = self.executor(request, facts, move, tools, situation=here).reply()
            own = [call for call in reply.tool_calls if call.name == TOOL_NAME]
            for call in own:
                operation = parse_step(call.arguments)
                assert not isinstance(operation, str)
                if isinstance(operation, Complete | Fail):
                    return _ended(operation, reply, facts, move.message)
                problem = books.operate(operation)
                text = (
                    f"Nothing was done: {problem}." if problem else f"{_TAKEN}: {operation.kind}."
                )
                facts.take(Message("assistant", "", (call,)))
                facts.take(Message("tool", text, tool_call_id=call.id, name=call.name))
            if own:
                continue
            if not waiting:
                return reply
            facts.take(books.take(waiting.popleft()))
            follow()
        raise InternalBug("the reference executor is in a loop")
