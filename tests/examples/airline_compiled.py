"""The compiled procedures of the airline as functions of a simulation: what each comes to.

Walks a program and judges each rule by its compiled verdict on what the tools answer, without a
session or a model, so that every case can be tried. ``test_airline_policy.py`` puts a sample
through the whole runtime.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sopilot.handbook.expressions import VerdictError, compute, judge
from sopilot.machine.layout import lay_out
from sopilot.machine.recipes import Absent, wanted_calls
from sopilot.program.model import Act, Check, Do, Emit, Function, Program
from sopilot.program.walk import Activation, Flow, Walk

Perform = Callable[[str, Mapping[str, Any]], tuple[bool, Any]]


@dataclass
class Circumstances:
    """``said`` are answers by predicate, otherwise yes; ``done`` what has been done in this
    session, by predicate. ``variant`` names the state of the records that an action reads, so
    that what was judged on the same answers is judged once."""

    said: Mapping[str, str] = field(default_factory=dict)
    done: frozenset[str] = frozenset()
    variant: Mapping[str, object] = field(default_factory=dict)


@dataclass
class _Oracle:
    """Answers the checks of one walk, and adds what it computes to the known values."""

    procedure: CompiledProcedure
    known: dict[str, Any]
    about: Circumstances

    def judge(self, check: Check, callee: Flow, values: Mapping[str, Any]) -> bool:
        passed = dict.fromkeys(callee.function.parameters) | dict(values)
        return self.procedure.holds(callee.function, passed, self.known, self.about)

    def was_done(self, within: Activation, step: Act | Do | Emit) -> bool:
        raise AssertionError(step)


class CompiledProcedure:
    def __init__(
        self, program: Program, perform: Perform, now: str, *, keeps: tuple[str, ...] = ()
    ) -> None:
        """``keeps`` are the actions whose answers no variant changes."""
        self._program = program
        self._functions = lay_out(program).functions
        self._perform = perform
        self._now = now
        self._keeps = keeps
        self._memory: dict[object, object] = {}
        self._reads = {
            name: tuple(dict.fromkeys(one.action for one in function.steps if isinstance(one, Act)))
            for name, function in program.functions.items()
        }

    def outcome(self, given: Mapping[str, Any], about: Circumstances) -> dict[str, Any] | None:
        """The values at the goal action, computed ones too; none where it is refused."""
        known = dict(given)
        walk = Walk(self._functions, _Oracle(self, known, about), known)
        entry = self._functions[self._program.entry]
        return known if walk.enter(Activation(entry, known)) else None

    def forget(self) -> None:
        """What is remembered of one reservation is of no use for the next."""
        self._memory = {key: one for key, one in self._memory.items() if key[0] in self._keeps}  # type: ignore[index]  # every key is a tuple

    def holds(
        self, callee: Function, passed: dict[str, Any], known: dict[str, Any], about: Circumstances
    ) -> bool:
        if callee.is_fact:
            return callee.name in about.done
        if callee.name.endswith("_is_confirmed"):
            return about.said.get(callee.name, "yes") == "yes"
        if callee.question:
            answer = about.said.get(callee.name, "yes")
            if callee.verdict is None:
                return answer == "yes"
            return judge(callee.verdict, {**passed, "result": {"answer": answer, "said": answer}})
        if callee.computes:
            value = self._computed(callee, passed, about)
            known[callee.computes] = value
            return True
        key = self._key(callee, passed, about)
        if key not in self._memory:
            self._memory[key] = self._judged(callee, passed, about)
        return bool(self._memory[key])

    def _judged(self, callee: Function, passed: dict[str, Any], about: Circumstances) -> bool:
        answers = self._answers(callee, passed, about)
        if answers is None:
            return False
        if callee.verdict is None:
            return True  # a gate: its call succeeded
        try:
            return judge(callee.verdict, self._variables(passed, answers))
        except VerdictError:
            return False

    def _computed(self, callee: Function, passed: dict[str, Any], about: Circumstances) -> Any:
        passed = {name: one for name, one in passed.items() if name != callee.computes}
        key = self._key(callee, passed, about)
        if key not in self._memory:
            answers = self._answers(callee, passed, about)
            assert answers is not None
            assert callee.value is not None
            self._memory[key] = compute(callee.value, self._variables(passed, answers))
        return self._memory[key]

    def _key(self, callee: Function, passed: Mapping[str, Any], about: Circumstances) -> object:
        states = tuple(about.variant.get(one) for one in self._reads[callee.name])
        return (callee.name, states, json.dumps(passed, sort_keys=True))

    def _variables(self, passed: Mapping[str, Any], answers: Mapping[str, Any]) -> dict[str, Any]:
        last = next(reversed(list(answers.values())), None)
        constants = dict(self._program.constants)
        return {**constants, **passed, "results": answers, "result": last, "now": self._now}

    def _answers(
        self, callee: Function, passed: Mapping[str, Any], about: Circumstances
    ) -> dict[str, Any] | None:
        """What the calls of the recipe are answered, by name; none where one fails."""
        answers: dict[str, Any] = {}

        def value(name: str) -> Any:
            return passed[name] if passed.get(name) is not None else Absent(name)

        for act in (step for step in callee.steps if isinstance(step, Act)):
            wanted = wanted_calls(act, value, answers)
            if isinstance(wanted, Absent):
                return None
            found = [self._answer(act.action, one.arguments, about) for one in wanted]
            if not all(ok for ok, _ in found):
                return None
            values = [one for _, one in found]
            answers[act.answer] = values if act.each is not None else values[0]
        return answers

    def _answer(
        self, action: str, arguments: Mapping[str, Any], about: Circumstances
    ) -> tuple[bool, Any]:
        key = (action, about.variant.get(action), json.dumps(dict(arguments), sort_keys=True))
        if key not in self._memory:
            self._memory[key] = self._perform(action, arguments)
        found: tuple[bool, Any] = self._memory[key]  # type: ignore[assignment]  # a call's answer
        return found
