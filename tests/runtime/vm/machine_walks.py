"""Walks at random through programs at random, and all that the machine says on the way.

A number makes the same walk for ever: a handbook (`random_desks.py`) or programs by hand, and an
executor that does what fits, or nearly, or not at all, while answers come in out of order. What
it comes to is one text. ``python tests/runtime/vm/machine_walks.py 7`` prints that of walk 7.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2] / "language" / "compiler"))

from random_desks import Desk
from vm_programs import ODD, PROGRAMS, STRICT_ODD, TRANSFER

from sopilot.language.compiler import Compiler
from sopilot.language.diagnostics import UserMistake
from sopilot.language.handbook import ASK_USER, BUILT_IN
from sopilot.language.program.model import Act, Program
from sopilot.runtime.proof import Prover, grade_of_return, license_call
from sopilot.runtime.vm import (
    JSON,
    Amend,
    AssistantSaid,
    Automation,
    BindEvidence,
    Call,
    Complete,
    Decision,
    DomainCall,
    DomainResult,
    EmitArtifact,
    Fail,
    Limits,
    Machine,
    Note,
    Operation,
    Outcome,
    Position,
    Return,
    SelectBranch,
    Start,
    UserSaid,
    answer_text,
)
from sopilot.runtime.vm.completing import completed
from sopilot.runtime.vm.evidence import available

NAMES = ("user", "item", "amount", "code", "username", "to", "password", "extra")
VALUES: tuple[JSON, ...] = (*("a",) * 12, "b", "b", 1, 1.0, "1", True, None, ["a"], {"id": "a"})
AUTOMATIC = tuple(one.name for one in fields(Automation))
STEPS = 60


def told(value: object) -> str:
    """One spelling, whatever order a set has."""
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{told(k)}: {told(v)}" for k, v in value.items())) + "}"
    if isinstance(value, set | frozenset):
        return "<" + ", ".join(sorted(map(told, value))) + ">"
    if hasattr(value, "_fields") or isinstance(value, list | tuple):
        assert isinstance(value, Sequence)
        return f"{type(value).__name__}({', '.join(map(told, value))})"
    if is_dataclass(value) and not isinstance(value, type):
        parts = [told(getattr(value, one.name)) for one in fields(value)]
        return f"{type(value).__name__}({', '.join(parts)})"
    return repr(value)


def untyped(program: Program) -> Program:
    """Of values of whatever type: most of what is sent at random would be refused otherwise."""
    actions = {
        name: replace(facts, inputs={one: {} for one in facts.inputs})
        for name, facts in program.actions.items()
    }
    return replace(program, types={one: {} for one in program.types}, actions=actions)


def programs_of(seed: int, dice: random.Random) -> dict[str, Program]:
    if seed % 6 == 3:
        return {"odd": STRICT_ODD if seed % 18 else ODD, "errand": PROGRAMS["errand"]}
    if seed % 6 == 5:
        strict = {goal: replace(one, format=2) for goal, one in PROGRAMS.items()}
        return strict if seed % 12 == 5 else dict(PROGRAMS)
    for number in range(seed * 50, seed * 50 + 50):
        handbook = Desk(number, dense=dice.random() < 0.1).handbook()
        compiler = Compiler(handbook.actions, handbook.predicates)
        found = {}
        for name, procedure in handbook.procedures.items():
            try:
                found[name] = compiler.compile(handbook, procedure, source_hash=name).program
            except UserMistake:
                continue
        if found:
            return found if seed % 8 == 0 else {goal: untyped(one) for goal, one in found.items()}
    return {"transfer": TRANSFER}


class Walk:
    def __init__(self, seed: int, *, proofs: bool) -> None:
        self._dice = random.Random(seed)
        self._programs = programs_of(seed, self._dice)
        limits = Limits(4, 14, 3) if seed % 7 == 0 else None
        hashes = {goal: f"hash of {goal}" for goal in self._programs}
        self._machine = Machine(self._programs, limits=limits, hashes=hashes)
        self._now = self._machine.initial()
        self._proofs = proofs
        self._calls = 0
        self._lines: list[str] = []
        actions = {act.action for act in self._acts()}
        self._actions = sorted(actions | set(BUILT_IN))
        self._constructed = self._dice.random() < 0.3

    def _acts(self) -> Iterator[Act]:
        for program in self._programs.values():
            for function in program.functions.values():
                yield from (step for step in function.steps if isinstance(step, Act))
                yield from (act for recipe in function.fallbacks for act in recipe)
                if function.closed_by is not None:
                    yield function.closed_by

    def said(self) -> list[str]:
        self._take(self._step(self._start()))
        for number in range(STEPS):
            if self._often(0.25):
                self._settle(number)
            else:
                self._take(self._step(self._operation()))
            if self._proofs:
                self._prove()
            else:
                self._ask_the_machine()
        self._lines.append(told(self._now))
        return self._lines

    # --- what is done -------------------------------------------------------------------

    def _step(self, operation: Operation) -> Outcome:
        return self._machine.step(
            self._now, operation, at=float(len(self._lines)), grade=self._grade
        )

    def _settle(self, number: int) -> None:
        chance = self._one((0.2, 0.6, 1.0))
        automation = Automation(**{name: self._often(chance) for name in AUTOMATIC})
        judge = self._judge if self._often(0.9) else None
        outcome = self._machine.settle(
            self._now, automation, at=float(number), judge=judge, grade=self._grade
        )
        self._take(outcome)

    def _take(self, outcome: Outcome) -> None:
        self._now = outcome.configuration
        self._lines.extend(map(told, outcome.events))
        if not self._proofs:
            language = self._one(("en", "zh"))
            self._lines.append(answer_text(outcome, language, terse=self._often(0.2)))
            self._lines.append(told(outcome.answer))

    def _operation(self) -> Operation:
        waiting = sorted(self._now.pending)
        if waiting and self._often(0.45):
            return self._result(self._one(waiting))
        here = self._machine.position(self._now)
        if here is None and self._often(0.6):
            return self._start()
        if self._often(0.8):
            fitting = self._machine.fits(self._now)
            return self._fitting(fitting[0] if self._often(0.7) else self._one(fitting))
        return self._other()

    def _start(self) -> Start:
        goal = self._one(list(self._programs))
        program = self._programs[goal]
        names = program.functions[program.entry].parameters
        return Start(goal, {name: self._value() for name in names if self._often(0.9)})

    def _fitting(self, shape: Mapping[str, Any]) -> Operation:
        given = {} if shape["operation"] == "start" else dict(shape.get("arguments", {}))
        for name in shape.get("missing", ()):
            given[name] = self._value()
        if given and self._often(0.1):
            given[self._one(list(given))] = self._value()
        match shape["operation"]:
            case "start":
                return self._start()
            case "domain_call":
                if self._often(0.08):
                    given["more"] = 1
                return self._called(shape["action"], given)
            case "call":
                return Call(shape["function"] if self._often() else None, given)
            case "return":
                holds = shape.get("holds", self._one((True, True, True, False, None)))
                cites = self._cited() if self._often(0.3) else ()
                undecided = holds is None and self._often(0.8)
                learned = {self._one(NAMES): self._value()} if self._often(0.1) else {}
                return Return(holds, cites, self._one((None, "v")), learned, undecided)
            case "select_branch":
                return SelectBranch(shape["option"])
            case "emit_artifact":
                return EmitArtifact(shape["name"], self._one(({"title": "t"}, '{"title": "t"}', 1)))
            case "ask_user":
                return UserSaid("here")
            case "complete":
                return Complete("done")
        return Fail("left") if self._often(0.05) else UserSaid("well")

    def _called(self, action: str, given: Mapping[str, JSON]) -> Operation:
        self._calls += 1
        return DomainCall(f"c{self._calls}", action, given, amended=self._often(0.05))

    def _result(self, call_id: str) -> Operation:
        pending = self._now.pending[call_id]
        ok = self._often(0.8)
        value = self._answer(pending.action)
        if pending.action in BUILT_IN and self._often(0.8):
            heard = pending.heard if self._often(0.8) else self._dice.randint(-1, 20)
            value = {"answer": self._one(("yes", "yes", "no")), "message": heard}
        return DomainResult(call_id, ok, value, not ok and self._often(0.3))

    def _answer(self, action: str) -> JSON:
        rows: list[JSON] = [{"id": one, **dict.fromkeys(NAMES[:4], "a")} for one in ("a", "b")]
        whole = {"ok": True, "rows": rows[: self._dice.randint(0, 2)], "balance": 5, "id": "a"}
        return self._one((*(whole,) * 9, False, None, [1], {"$dropped": "x"}, "a"))

    def _other(self) -> Operation:
        """What may fit by chance."""
        goal = self._one(list(self._programs))
        match self._dice.randint(0, 13):
            case 0:
                return Start(self._one((goal, "nothing")), self._some_values(0.2))
            case 1:
                return Amend({self._one(self._names()): self._value()})
            case 2:
                return Call(self._one((None, "elsewhere")), self._some_values(0.2))
            case 3:
                return Return(self._one((True, False, None)), self._cited())
            case 4:
                return SelectBranch(self._one((None, "then", "no", "next", "short", "long", "x")))
            case 5:
                return Complete()
            case 6:
                return Fail("no") if self._often(0.1) else EmitArtifact("memo", "{")
            case 7:
                return Note("clock", {"now": self._one(("2026-01-01T00:00:00Z", "later", 3))})
            case 8:
                return Note(self._one(("program_changed", "budget")), {})
            case 9:
                return self._one((AssistantSaid("hm"), UserSaid("yes"), UserSaid("no")))
            case 10:
                return Decision(self._one(("approve", "wave")), "c1", "clara", "boss")
            case 11:
                return BindEvidence(self._dice.randint(0, self._now.next_seq))
            case 12:
                return DomainResult("c0", True)
        action = self._one(self._actions)
        given = self._some_values(0.4)
        if action in BUILT_IN:
            given = (
                {"question": "q"} if action == ASK_USER else {"action": self._one(self._actions)}
            )
        elif self._constructed:
            acts = [act for act in self._acts() if act.action == action]
            given = {name: self._value() for name, _ in self._one(acts).arguments}
        return self._called(action, given)

    # --- what is asked ------------------------------------------------------------------

    def _ask_the_machine(self) -> None:
        machine, now = self._machine, self._now
        self._lines.append(told(machine.unresolved(now, self._cited())))
        supposed = Start(self._one(list(self._programs)), self._some_values(0.3))
        self._lines.append(told(machine.suppose(now, supposed, at=0.0)))
        here = machine.position(now)
        if here is None:
            return
        self._lines.append(told(available(here)))
        action, stated = self._one(self._actions), self._some_values(0.3)
        self._lines.append(told(completed(here, action, self._some_values(0.1), stated)))

    def _prove(self) -> None:
        """Every rule and gate for the values that are known, and the goal as if it were next."""
        now, machine = self._now, self._machine
        for process in now.processes.values():
            known = {**process.known, **self._some_values(0.1)}
            prover = Prover(machine.programs, now, process, known, self._judge)
            for name, layout in prover.program.functions.items():
                if layout.soft and self._often(0.3):
                    values = {
                        one: known[one] if one in known else self._value()
                        for one in layout.function.parameters
                        if one in known or self._often(0.8)
                    }
                    self._lines.append(told(prover.leaf(name, values)))
        here = machine.position(now)
        if here is not None:
            self._license(here)

    def _license(self, here: Position) -> None:
        entry = here.program.entry
        for label, step in entry.steps.items():
            if isinstance(step, Act) and step.goal:
                root = here.process.frames[0].at(label)
                at = replace(here, frame=root, layout=entry, step=step)
                given = completed(at, step.action, {}, {})
                if self._often(0.2):
                    given = {**given, **self._some_values(0.2)}
                found = license_call(self._machine.programs, at, given, self._judge)
                self._lines.append(told((found, found.grade, found.calls, found.as_json())))

    def _grade(self, here: Position, operation: Return, evidence: Sequence[int]) -> str | None:
        return grade_of_return(self._machine.programs, here, operation, evidence, self._judge)

    def _judge(self, expression: str, variables: Mapping[str, JSON]) -> bool | None:
        """No language: what it is asked is what counts, and the same is answered the same."""
        asked = told((expression, variables))
        self._lines.append(asked)
        number = sha256(asked.encode()).digest()[0]
        if number < 12:
            raise UserMistake("no such field")
        return None if number < 24 else number < 190

    # --- dice ---------------------------------------------------------------------------

    def _often(self, chance: float = 0.5) -> bool:
        return self._dice.random() < chance

    def _one(self, of: Sequence[Any]) -> Any:
        return self._dice.choice(of)

    def _value(self) -> JSON:
        value: JSON = self._one(VALUES)
        return value

    def _some_values(self, chance: float) -> dict[str, JSON]:
        return {name: self._value() for name in self._names() if self._often(chance)}

    def _names(self) -> list[str]:
        return sorted({*NAMES[:4], *self._inputs()})

    def _inputs(self) -> Iterator[str]:
        for program in self._programs.values():
            yield from program.functions[program.entry].parameters

    def _cited(self) -> tuple[str, ...]:
        numbers = [f"#{self._dice.randint(0, self._now.next_seq)}" for _ in range(2)]
        return tuple(self._dice.sample([*numbers, self._one(self._actions), "nobody"], 2))


def digest(seed: int, *, proofs: bool) -> str:
    return sha256("\n".join(Walk(seed, proofs=proofs).said()).encode()).hexdigest()[:12]


if __name__ == "__main__":
    print("\n".join(Walk(int(sys.argv[1]), proofs=len(sys.argv) > 2).said()))
