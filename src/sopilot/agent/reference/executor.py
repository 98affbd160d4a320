"""The reference executor: a conforming model that acts on the data of a request's views.

``MachineExecutor`` does what the frame message asks for, step by step. ``FlatExecutor`` has no
machine: it runs the whole program again at every request, over the results in the messages, up
to the first thing that is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from sopilot.agent.reference.misbehaviour import (
    MachineMisbehaviour,
    Misbehaviour,
    Replies,
    Temptation,
    not_offered,
)
from sopilot.agent.reference.reading import (
    GOAL,
    RESULT,
    Facts,
    Resolved,
    call_arguments,
    read_facts,
)
from sopilot.agent.toolbox import END_SESSION
from sopilot.machine.machine import Machine
from sopilot.machine.recipes import linked
from sopilot.machine.state import Configuration
from sopilot.messages.errors import SopilotError, UserMistake
from sopilot.program.model import (
    Act,
    Branch,
    CallArguments,
    Check,
    CompleteStep,
    Function,
    Kind,
    Local,
    ReturnStep,
    Step,
    Unknown,
)
from sopilot.program.walk import truth
from sopilot.protocols import (
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolSchema,
    inputs_of,
    required_of,
)
from sopilot.trace.events import DomainCall, DomainResult, Operation, UserSaid
from sopilot.values.json import JSON, agree
from sopilot.views.moves import Ahead, Move, MoveArguments, Shown, frame_move, gathered
from sopilot.views.sentences import telling
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


class _Now(SopilotError):
    """The run can't continue before this reply."""

    def __init__(self, reply: ModelReply) -> None:
        super().__init__()
        self.reply = reply


@dataclass(slots=True)
class _Frame:
    function: Function
    known: dict[str, JSON]


class FlatExecutor:
    def __init__(
        self,
        facts: Facts,
        shown: Shown,
        judge: PredicateJudge,
        temptation: Temptation,
        tools: Mapping[str, ToolSchema],
    ) -> None:
        self._facts = facts
        self._programs = shown.programs
        self._language = shown.language
        self._judge = judge
        self._temptation = temptation
        self._tools = tools
        self._replies = Replies(facts)
        self._opened: set[str] = set()
        self._telling: list[str] = []
        self._goal_seq: int | None = None

    def reply(self) -> ModelReply:
        goal = wanted_goal(self._facts, self._programs)
        if goal is None:
            return self._replies.ask([GOAL])
        self._program = self._programs[goal]
        process = self._program.functions[self._program.entry]
        try:
            executed, why = self._process(process, goal)
        except _Now as now:
            return now.reply
        late = sum(item.seq > (self._goal_seq or 0) for item in self._facts.seen)
        if executed and self._tempted("over_verify", str(late)):
            extra = self._extra_call()
            if extra is not None:
                return extra
        if any(item.ok and item.action == self._goal(process).action for item in self._facts.seen):
            # What a check looks at may be another since the goal was reached.
            executed, why = True, DONE
        if not executed and self._telling:
            # The user reads the reason, too.
            join = why = " ".join(dict.fromkeys(self._telling))
        else:
            join = "It is done." if executed else f"I cannot do this: {why}."
        outcome = {"outcome": "executed" if executed else "refused", "reason": why}
        return self._replies.tool(END_SESSION, outcome, join)

    def _process(self, process: Function, goal: str) -> tuple[bool, str]:
        known = {name: self._facts.values.get(name) for name in process.parameters}
        frame = _Frame(process, {name: v for name, v in known.items() if v is not None})
        slots: dict[str, bool] = {}
        why = ""
        step: Step | None = process.steps[0]
        while step is not None:
            if isinstance(step, Check):
                if self._tempted("refuse_wrongly", step.label):
                    return False, "something"
                if self._tempted("act_early", step.label):
                    self._act_early(process)
                slots[step.slot] = self._check(frame, step)
                if slots[step.slot] != step.wanted:
                    why = f"a requirement is not met: {step.function}"
            elif isinstance(step, Act):
                if step.action not in self._tools:
                    return False, not_offered(step.action)
                seen = self._made(step.action, self._ask_for(frame, step.arguments))
                if not seen.ok:
                    reason = f"{seen.action} failed (#{seen.seq})"
                    return False, str(seen.value).rstrip(".") if seen.seq < 0 else reason
                self._goal_seq = seen.seq
            elif isinstance(step, CompleteStep):
                return True, DONE
            elif not isinstance(step, Branch):
                return False, why
            step = _after(process, step, slots)
        return False, why

    def _check(self, frame: _Frame, step: Check) -> bool:
        if self._tempted("skip_check", step.label + frame.function.name):
            return step.wanted
        called = self._program.functions[step.function]
        resolved = self._ask_for(frame, step.arguments)
        holds = self._run(_Frame(called, dict(resolved.values)))
        if holds != step.wanted:
            self._telling += telling([called.name], self._program, self._language)
        return holds

    def _run(self, frame: _Frame) -> bool:
        function = frame.function
        if function.kind is Kind.GROUP:
            slots: dict[str, bool] = {}
            step: Step | None = function.steps[0]
            while step is not None and not isinstance(step, ReturnStep):
                if isinstance(step, Check):
                    slots[step.slot] = self._check(frame, step)
                step = _after(function, step, slots)
            return step is None or step.holds is None or truth(step.holds, slots) is True
        identity = f"{function.name}{sorted(frame.known.items(), key=str)}"
        if function.kind is Kind.GATE and identity in self._opened:
            return True
        if self._tempted("return_without_evidence", identity):
            return True
        holds = self._verify(frame)
        if holds and function.kind is Kind.GATE:
            self._opened.add(identity)
        return holds

    def _verify(self, frame: _Frame) -> bool:
        own = tuple(step for step in frame.function.steps if isinstance(step, Act))
        evidence: list[Seen] = []
        for recipe in (own, *frame.function.fallbacks):
            made = self._recipe(frame, recipe)
            evidence.extend(made)
            if len(made) >= len(recipe) and all(item.ok for item in made):
                evidence = made
                break
        try:
            return self._judge(frame.function.name, frame.known, evidence)
        except CannotJudge as error:
            why = f"{frame.function.name} cannot be verified ({error})"
            text = f"I cannot do this: {why}."
            end = {"outcome": "refused", "reason": why}
            raise _Now(self._replies.tool(END_SESSION, end, text)) from None

    def _recipe(self, frame: _Frame, recipe: Sequence[Act]) -> list[Seen]:
        made: list[Seen] = []
        if linked((recipe,)):
            return self._linked(frame, recipe)
        for act in recipe:
            if act.action not in self._tools:
                return made
            resolved = self._ask_for(frame, act.arguments)
            if resolved.missing:
                return made
            seen = self._made(act.action, resolved)
            if seen in self._facts.not_made:
                return made
            made.append(seen)
            if not seen.ok:
                return made
        return made

    def _linked(self, frame: _Frame, recipe: Sequence[Act]) -> list[Seen]:
        """A recipe whose calls look into earlier answers."""
        result = gather(recipe, known_or(frame.known, self._facts.value), self._facts.seen)
        call = result.missing
        if call is None or call.act.action not in self._tools:
            return result.evidence
        missing = [name for name in call.open if not self._facts.is_unavailable(name)]
        if missing:
            raise _Now(self._replies.ask(missing))
        if not call.open:
            self._made(call.act.action, Resolved(dict(call.arguments)))
        return result.evidence

    # --- what is missing ------------------------------------------------------------

    def _made(self, action: str, resolved: Resolved) -> Seen:
        """The result of this call; it is made if it was not tried before."""
        for item in (*reversed(self._facts.seen), *self._facts.not_made):
            if item.action == action and _equal(item.arguments, resolved.values):
                return item
        if self._tempted("ignore_frame", action):
            self._unrelated(action)
        raise _Now(self._replies.tool(action, resolved.values))

    def _ask_for(self, frame: _Frame, arguments: CallArguments) -> Resolved:
        own = frame.function.kind in (Kind.PROCESS, Kind.GROUP)
        resolved = call_arguments(arguments, frame.known, self._facts, users_own=own)
        missing = [name for name in resolved.missing if not self._facts.is_unavailable(name)]
        if missing:
            raise _Now(self._replies.ask(missing))
        return resolved

    # --- misbehaviour ---------------------------------------------------------------

    def _tempted(self, switch: str, where: str = "") -> bool:
        # The program runs from its beginning at every request: the same place must always
        # be decided in the same way, or a skipped check would come back.
        temptation = self._temptation
        return Temptation(
            temptation.misbehaviour,
            f"{self._facts.request}:{where}",
            temptation.paged,
            temptation.characters,
        ).gives_in(switch)

    @staticmethod
    def _goal(process: Function) -> Act:
        return next(step for step in process.steps if isinstance(step, Act) and step.goal)

    def _act_early(self, process: Function) -> None:
        goal = self._goal(process)
        tried = (*self._facts.seen, *self._facts.not_made)
        if goal.action not in self._tools or any(item.action == goal.action for item in tried):
            return
        values = {name: self._facts.values.get(name) for name in process.parameters}
        if all(value is not None for value in values.values()):
            raise _Now(self._replies.tool(goal.action, values))

    def _unrelated(self, action: str) -> None:
        others = [tool for name, tool in sorted(self._tools.items()) if name != action]
        self._temptation.random("which").shuffle(others)
        for tool in others:
            values = {n: self._facts.values.get(n) for n in required_of(tool)}
            made = any(_equal(item.arguments, values) for item in self._facts.seen)
            if tool.name != END_SESSION and None not in values.values() and not made:
                raise _Now(self._replies.tool(tool.name, values))

    def _extra_call(self) -> ModelReply | None:
        late = [entry for entry in self._facts.seen if entry.seq > (self._goal_seq or 0)]
        if len(late) >= 2:
            return None
        for item in self._facts.seen:
            if item.ok and item.seq != self._goal_seq:
                return self._replies.tool(item.action, item.arguments)
        return None


def _after(function: Function, step: Step, slots: Mapping[str, bool]) -> Step | None:
    following: str | None = None
    if isinstance(step, Check):
        following = step.met if slots[step.slot] == step.wanted else step.unmet
    elif isinstance(step, Branch):
        following = step.then if truth(step.when, slots) else step.otherwise
    elif isinstance(step, Act):
        following = step.next
    if following is not None:
        return next(item for item in function.steps if item.label == following)
    index = function.steps.index(step) + 1
    return function.steps[index] if index < len(function.steps) else None


def _equal(made: Mapping[str, JSON], wanted: Mapping[str, JSON]) -> bool:
    return made.keys() == wanted.keys() and all(agree(made[name], wanted[name]) for name in made)


_TAKEN = "Done"


def next_by_the_books(shown: Shown, messages: Sequence[Message]) -> Move:
    """What comes next, by the programs that are shown and the steps that were taken."""
    machine = Machine(shown.programs)
    books = _Books(machine)
    calls: dict[str, ToolCall] = {}
    for message in messages:
        if message.role == "user":
            books.take(UserSaid(message.content))
        elif message.role == "assistant":
            calls.update({call.id: call for call in message.tool_calls})
        elif message.role == "tool" and message.tool_call_id in calls:
            books.answered(calls[message.tool_call_id], message.content)
    here = machine.position(books.configuration)
    if here is None:
        entries = {
            goal: program.functions[program.entry].parameters
            for goal, program in shown.programs.items()
        }
        return Move("start", goals=entries)
    return replace(frame_move(here, shown.language), gathered=gathered(here))


class _Books:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.configuration: Configuration = machine.initial()

    def take(self, operation: Operation) -> None:
        self.configuration = self._machine.step(self.configuration, operation, at=0.0).configuration

    def answered(self, call: ToolCall, answer: str) -> None:
        if call.name == TOOL_NAME:
            step = parse_step(call.arguments) if answer.startswith(_TAKEN) else ""
            if not isinstance(step, str):
                self.take(step)
            return
        result = RESULT.match(answer)
        if result is None:
            return
        # Evidence is cited by the numbers that the answers have.
        seq = int(result[1])
        self.configuration = self.configuration.numbered(seq - 1)
        self.take(DomainCall(call.id, call.name, json.loads(call.arguments or "{}")))
        self.configuration = self.configuration.numbered(seq)
        self.take(DomainResult(call.id, result[2] == "ok", json.loads(result[3])))


_TRUTHS = {True: "true", False: "false"}


class MachineExecutor:
    def __init__(
        self,
        facts: Facts,
        move: Move,
        judge: PredicateJudge,
        temptation: Temptation,
        tools: Mapping[str, ToolSchema],
        step: str = TOOL_NAME,
    ) -> None:
        self._facts = facts
        self._move = move
        self._judge = judge
        self._tools = tools
        self._replies = Replies(facts, step)
        self._misbehaviour = MachineMisbehaviour(facts, move, temptation, tools, self._replies)

    def reply(self) -> ModelReply:
        move, facts = self._move, self._facts
        if move.kind == "start":
            return self._start()
        current = facts.open[-1] if facts.open else None
        if facts.wants is not None and current is not None and facts.wants != current:
            if facts.wants in facts.ended:
                return ModelReply(f"I leave {current} as it is. That is all.")
            return self._start_goal(facts.wants)
        wrong = self._misbehaviour.now(self._call)
        if wrong is not None:
            return wrong
        match move.kind:
            case "call":
                return self._call()
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
        # What the program needs later is asked for there, if the user keeps it back.
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
            return self._replies.give_up(f"{failed.action} failed (#{failed.seq})")
        return self._replies.tool(self._move.name, self._to_write(resolved))

    # --- checks ---------------------------------------------------------------------

    def _call(self) -> ModelReply:
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
            # What was done in this session may be anywhere in it.
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
            wrong = self._misbehaviour.ahead(ahead, edge)
            if wrong is not None:
                calls = [*before, *self._replies.verdicts(verdicts)]
                return ModelReply(wrong.content, (*calls, *wrong.tool_calls))
            if ahead.kind != "judge":
                break
            judged = ahead.name
            value = call_arguments(ahead.arguments, {}, self._facts, users_own=users_own)
            evidence = [item for item in self._facts.seen if item.seq in ahead.evidence]
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

    def _ahead_of(
        self, ahead: Ahead, resolved: Resolved, started: Mapping[str, JSON] | None
    ) -> Mapping[str, JSON]:
        """What of a call that comes ahead has to be written."""
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
        """What a tool returned last under the artifact's name."""
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

    def __init__(
        self,
        judge: PredicateJudge,
        misbehaviour: Misbehaviour | None = None,
        *,
        name: str = "reference",
    ) -> None:
        self._judge = judge
        self._misbehaviour = misbehaviour or Misbehaviour()
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, request: ModelRequest) -> ModelReply:
        facts = read_facts(request)
        tools = {tool.name: tool for tool in request.tools}
        step = next((tool.name for tool in request.tools if tool.name in STEP_NAMES), "")
        domain = {name: t for name, t in tools.items() if name not in (step, END_SESSION)}
        shown = request.shown if isinstance(request.shown, Shown) else Shown()
        move = shown.move if step else None
        if move is None and shown.programs and step:
            move = next_by_the_books(shown, request.messages)
        temptation = Temptation(
            self._misbehaviour,
            situation=f"{len(request.messages)}:{facts.frame_text[:400]}",
            paged=not shown.programs,
            characters=facts.characters,
        )
        if move is not None:
            return MachineExecutor(facts, move, self._judge, temptation, domain, step).reply()
        if shown.guard:
            return GuardedExecutor(
                facts, request.messages, self._judge, domain, shown.goals
            ).reply()
        if shown.programs and END_SESSION in tools:
            return FlatExecutor(facts, shown, self._judge, temptation, domain).reply()
        raise UserMistake(
            "the reference executor acts on frames and programs, not on prose; choose another view"
        )
