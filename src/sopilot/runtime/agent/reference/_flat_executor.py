"""The executor without a machine: it reads the whole program and runs it in its head.

Every request is answered by running the program again from the beginning over
the results that the messages hold, up to the first thing that is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sopilot.language.diagnostics import SopilotError
from sopilot.language.program.model import (
    Act,
    Always,
    Branch,
    CallArguments,
    Check,
    CompleteStep,
    Condition,
    Every,
    Function,
    Holds,
    Kind,
    ReturnStep,
    Some,
    Step,
)
from sopilot.runtime.agent.reference._goals import wanted_goal
from sopilot.runtime.agent.reference._judging import CannotJudge, PredicateJudge, Seen
from sopilot.runtime.agent.reference._misbehaviour import Temptation
from sopilot.runtime.agent.reference._reading import read_functions
from sopilot.runtime.agent.reference._recipes import gather, is_linked, known_or
from sopilot.runtime.agent.reference._values import Resolved, call_arguments
from sopilot.runtime.agent.reference.facts import GOAL, Facts
from sopilot.runtime.agent.reference.replies import Replies, not_offered
from sopilot.runtime.agent.toolbox import END_SESSION
from sopilot.runtime.session.protocols import JSON, ModelReply, ToolSchema, required_of
from sopilot.runtime.vm import agree

Functions = Mapping[str, Function]
DONE: Final = "done as requested"


@lru_cache(maxsize=64)
def read_programs(text: str) -> Mapping[str, Functions]:
    """The programs that a text shows, by the name of their process."""
    programs: dict[str, dict[str, Function]] = {}
    current: dict[str, Function] | None = None
    for frame in read_functions(text):
        if frame.function.kind is Kind.PROCESS:
            current = programs[frame.function.name] = {}
        if current is not None:
            current[frame.function.name] = frame.function
    return programs


class _Now(SopilotError):
    """The run cannot go on before this was said or called."""

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
        programs: Mapping[str, Functions],
        judge: PredicateJudge,
        temptation: Temptation,
        tools: Mapping[str, ToolSchema],
    ) -> None:
        self._facts = facts
        self._programs = programs
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
        self._functions = self._programs[goal]
        process = self._functions[goal]
        try:
            executed, why = self._process(process, goal)
        except _Now as now:
            return now.reply
        late = sum(one.seq > (self._goal_seq or 0) for one in self._facts.seen)
        if executed and self._tempted("over_verify", str(late)):
            extra = self._extra_call()
            if extra is not None:
                return extra
        if any(one.ok and one.action == self._goal(process).action for one in self._facts.seen):
            # What a check looks at may be another since the goal was reached.
            executed, why = True, DONE
        if not executed and self._telling:
            # The user reads the reason, too.
            said = why = " ".join(dict.fromkeys(self._telling))
        else:
            said = "It is done." if executed else f"I cannot do this: {why}."
        outcome = {"outcome": "executed" if executed else "refused", "reason": why}
        return self._replies.tool(END_SESSION, outcome, said)

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
                    return False, _failed(seen)
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
        called = self._functions[step.function]
        resolved = self._ask_for(frame, step.arguments)
        holds = self._run(_Frame(called, dict(resolved.values)))
        if holds != step.wanted and called.tells:
            self._telling.append(called.tells)
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
            return step is None or step.holds is None or truth(step.holds, slots)
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
            if len(made) >= len(recipe) and all(one.ok for one in made):
                evidence = made
                break
        try:
            return self._judge(frame.function.name, frame.known, evidence)
        except CannotJudge as error:
            why = f"{frame.function.name} cannot be verified ({error})"
            said = f"I cannot do this: {why}."
            end = {"outcome": "refused", "reason": why}
            raise _Now(self._replies.tool(END_SESSION, end, said)) from None

    def _recipe(self, frame: _Frame, recipe: Sequence[Act]) -> list[Seen]:
        made: list[Seen] = []
        if is_linked(recipe):
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
        found = gather(recipe, known_or(frame.known, self._facts.value), self._facts.seen)
        call = found.missing
        if call is None or call.act.action not in self._tools:
            return found.evidence
        missing = [name for name in call.open if not self._facts.is_unavailable(name)]
        if missing:
            raise _Now(self._replies.ask(missing))
        if not call.open:
            self._made(call.act.action, Resolved(dict(call.arguments)))
        return found.evidence

    # --- what is missing ------------------------------------------------------------

    def _made(self, action: str, resolved: Resolved) -> Seen:
        """The result of this call; it is made if it was not tried before."""
        for one in (*reversed(self._facts.seen), *self._facts.not_made):
            if one.action == action and _equal(one.arguments, resolved.values):
                return one
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
        if goal.action not in self._tools or any(one.action == goal.action for one in tried):
            return
        values = {name: self._facts.values.get(name) for name in process.parameters}
        if all(value is not None for value in values.values()):
            raise _Now(self._replies.tool(goal.action, values))

    def _unrelated(self, action: str) -> None:
        others = [tool for name, tool in sorted(self._tools.items()) if name != action]
        self._temptation.random("which").shuffle(others)
        for tool in others:
            values = {n: self._facts.values.get(n) for n in required_of(tool)}
            made = any(_equal(one.arguments, values) for one in self._facts.seen)
            if tool.name != END_SESSION and None not in values.values() and not made:
                raise _Now(self._replies.tool(tool.name, values))

    def _extra_call(self) -> ModelReply | None:
        late = [one for one in self._facts.seen if one.seq > (self._goal_seq or 0)]
        if len(late) >= 2:
            return None
        for one in self._facts.seen:
            if one.ok and one.seq != self._goal_seq:
                return self._replies.tool(one.action, one.arguments)
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
        return next(one for one in function.steps if one.label == following)
    index = function.steps.index(step) + 1
    return function.steps[index] if index < len(function.steps) else None


def truth(condition: Condition, slots: Mapping[str, bool]) -> bool:
    if isinstance(condition, Holds):
        return slots[condition.slot] == condition.wanted
    if isinstance(condition, Always):
        return condition.value
    if isinstance(condition, Every):
        return all(truth(part, slots) for part in condition.conditions)
    assert isinstance(condition, Some)
    return any(truth(part, slots) for part in condition.conditions)


def _failed(seen: Seen) -> str:
    return str(seen.value).rstrip(".") if seen.seq < 0 else f"{seen.action} failed (#{seen.seq})"


def _equal(made: Mapping[str, JSON], wanted: Mapping[str, JSON]) -> bool:
    return made.keys() == wanted.keys() and all(agree(made[name], wanted[name]) for name in made)
