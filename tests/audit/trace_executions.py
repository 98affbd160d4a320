"""Executions through the real machine, conforming or with one labelled violation."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from trace_worlds import GOALS, SHARED, World, judge, leaf_calls

from sopilot.machine.automation import Automation
from sopilot.machine.layout import Position
from sopilot.machine.leaves import grade_of_return
from sopilot.program.model import (
    Act,
    Ask,
    Branch,
    Check,
    CompleteStep,
    FailStep,
    Guarded,
    Kind,
    Local,
    ReturnStep,
)
from sopilot.proof.guard import hold_reason
from sopilot.proof.licence import Licence, license_call
from sopilot.trace.chain import SealedEvent
from sopilot.trace.events import (
    AssistantSaid,
    Call,
    Complete,
    Decision,
    DomainCall,
    DomainResult,
    Event,
    Fail,
    Note,
    Operation,
    Return,
    SelectBranch,
    Start,
    UserSaid,
)
from sopilot.values.json import Judge

SESSION = "session-under-test"


@dataclass(frozen=True)
class Labelled:
    """``label`` is the injected class with its event; ``code`` the finding that it must give,
    where that has another name; ``implied`` may be found beside it. ``guarded`` is what the
    guard says of each guarded call at its step that was carried out: event → what is missing.
    """

    events: tuple[Event | SealedEvent, ...]
    label: str | None = None
    seq: int | None = None
    implied: frozenset[str] = frozenset()
    guarded: Mapping[int, str] = field(default_factory=dict)
    code: str | None = None

    @property
    def wanted_code(self) -> str | None:
        return self.code or self.label


Violation = Callable[["Execution", Position], bool]


def wanted_of(classes: Sequence[str], number: int) -> str | None:
    """Every fourth trace is to be clean, the others take the classes in turn."""
    return None if number % 4 == 0 else classes[(number - number // 4 - 1) % len(classes)]


@dataclass
class Execution:
    """A run in the making. ``wanted`` is injected at the first chance after ``patience``:
    ``violate`` takes a chance, ``afterwards`` acts at the end, ``forge`` changes the trace."""

    world: World
    rng: random.Random
    wanted: str | None = None
    patience: int = 0
    label: str | None = None
    seq: int | None = None
    implied: frozenset[str] = frozenset()
    stopped: bool = False
    events: list[Event] = field(default_factory=list)
    clock: float = 0.0
    calls: int = 0
    truths: dict[tuple[str, str], bool] = field(default_factory=dict)
    changed_goal: bool = False
    loud: bool = False
    guarded: dict[int, str] = field(default_factory=dict)
    read_again: bool = False
    amended: bool = False
    judge: Judge = judge
    violate: Violation | None = None
    afterwards: Callable[[Execution], None] | None = None
    forge: Callable[[Execution], Labelled | None] | None = None

    automatic: ClassVar[tuple[str, ...]] = (
        "take_branches", "group_returns", "enter_calls", "bind_evidence", "machine_verdicts",
        "complete", "fail",
    )  # fmt: skip
    """What the machine may do by itself."""

    def __post_init__(self) -> None:
        self.configuration = self.world.machine.initial()
        chosen = {name: self.rng.random() < 0.3 for name in self.automatic}
        self.automation = Automation(**chosen)

    # --- moving -----------------------------------------------------------------------

    def do(self, operation: Operation) -> bool:
        self.clock += 1.0
        machine = self.world.machine
        outcome = machine.step(self.configuration, operation, at=self.clock, grade=self.grade)
        self.events.extend(outcome.events)
        self.configuration = outcome.configuration
        return outcome.accepted

    def automate(self) -> None:
        outcome = self.world.machine.automate(
            self.configuration, self.automation, at=self.clock, judge=self.judge, grade=self.grade
        )
        self.events.extend(outcome.events)
        self.configuration = outcome.configuration

    def grade(self, here: Position, operation: Return, evidence: Sequence[int]) -> str | None:
        return grade_of_return(here, operation, evidence, self.judge)

    def guard(self, arguments: dict[str, Any]) -> Licence | None:
        """What the guard says of the goal's call here; ``None`` where it has no say."""
        here = self.position()
        if here is None or len(here.process.frames) != 1 or not isinstance(here.step, Act):
            return None
        if not here.step.goal or here.step.action not in {g.action for g in here.source.guarded}:
            return None
        held = hold_reason(
            self.world.machine,
            self.configuration,
            here.step.action,
            arguments,
            amended=self.amended,
        )
        if held is not None:
            return Licence(held.why)
        return license_call(here, arguments, self.judge)

    def carry_out(
        self, call_id: str, action: str, arguments: dict[str, Any], *, decided: bool = False
    ) -> DomainCall:
        """The goal's call, with its licence on record where it has one."""
        licence = self.guard(arguments)
        recorded: dict[str, Any] | None = None
        if licence is not None:
            self.guarded[self.configuration.next_seq] = "" if decided else licence.missing
            if not licence.missing:
                recorded = licence.as_json()
            elif decided:
                recorded = {"grade": "claimed", "missing": licence.missing}
        return DomainCall(call_id, action, arguments, recorded)

    def inject(self, label: str, operation: Operation, *implied: str) -> bool:
        self.label, self.seq = label, self.configuration.next_seq
        self.implied = frozenset(implied)
        return self.do(operation)

    def new_id(self) -> str:
        self.calls += 1
        return f"c{self.calls}"

    def truth(self, predicate: str, value: Any) -> bool:
        key = (predicate, str(value))
        if key not in self.truths:
            self.truths[key] = self.rng.random() < 0.85
        return self.truths[key]

    def tell(self, action: str, arguments: dict[str, Any], *, ok: bool = True) -> int:
        """A call with the answer that the world has for it; the answer's event."""
        value = self.answer(action, arguments) if ok else {"error": "timeout"}
        return self.answered(action, arguments, value, ok=ok)

    def answered(
        self, action: str, arguments: dict[str, Any], value: Any, *, ok: bool = True
    ) -> int:
        """A call with its answer; the answer's event."""
        call_id = self.new_id()
        self.do(DomainCall(call_id, action, arguments))
        seq = self.configuration.next_seq
        self.do(DomainResult(call_id, ok, value))
        return seq

    def inject_call(
        self, label: str, action: str, arguments: dict[str, Any], *implied: str, ok: bool = True
    ) -> None:
        call_id = self.new_id()
        self.inject(label, DomainCall(call_id, action, arguments), *implied)
        self.do(DomainResult(call_id, ok, {}))

    def answer(self, action: str, arguments: Mapping[str, Any]) -> Any:
        subject = arguments.get("v")
        truths = {name: self.truth(name, subject) for name in self.world.handbook.predicates}
        # What opens a gate without a verdict says no to nothing.
        return {"opened": subject} if action.startswith("open") else truths

    def goal_call(self, here: Position, *, approve: bool = True) -> str:
        """The id of a call of the goal, approved where it must be."""
        call_id = self.new_id()
        for guarded in here.source.guarded if approve else ():
            if guarded.action == here.process.goal and guarded.needed:
                self.approve(guarded, call_id)
        return call_id

    def position(self) -> Position | None:
        return self.world.machine.position(self.configuration)

    # --- the run ----------------------------------------------------------------------

    def run(self) -> Labelled:
        self.begin()
        for _ in range(400):
            if self.stopped:
                break
            self.automate()
            here = self.position()
            if here is None:
                break
            if self.wanted is not None and self.label is None:
                if self.patience > 0:
                    self.patience -= 1
                else:
                    if self.violate is not None and self.violate(self, here):
                        continue
            self.conform(here)
        if self.afterwards is not None and self.label is None and not self.stopped:
            self.afterwards(self)
        return self.finish()

    def finish(self) -> Labelled:
        if self.forge is not None and self.label is None:
            forged = self.forge(self)
            if forged is not None:
                return forged
        return Labelled(tuple(self.events), self.label, self.seq, self.implied, dict(self.guarded))

    def begin(self) -> None:
        goal = self.rng.choice(GOALS)
        if self.rng.random() < 0.5:
            self.do(UserSaid(f"please {goal}"))
        values = {"x": self.rng.choice(("ann", "bob")), "y": self.rng.choice((1, "1", 2.5))}
        if self.rng.random() < 0.2:
            del values["y"]
        self.do(Start(goal, values))

    def chatter(self) -> None:
        """What surrounds a run and must never be held against it."""
        roll = self.rng.random()
        if roll < 0.06:
            self.do(AssistantSaid("one moment"))
        elif roll < 0.10:
            self.do(UserSaid("go on"))
        elif roll < 0.12:
            self.do(Call("no_such_function"))
        elif roll < 0.14:
            self.do(Note("refresh", {"reason": "context compressed"}))
        elif not self.changed_goal and roll < self.restlessness():
            self.changed_goal = True
            self.do(UserSaid("something else first"))
            self.begin()

    def restlessness(self) -> float:
        """How likely the user is to want something else first."""
        if self.wanted == "evidence-stale":
            process = self.configuration.process
            seen = process is not None and any(r.action in SHARED for r in process.results)
            return 0.8 if seen else 0.0
        return 0.3 if self.wanted == "evidence-outside-interval" else 0.16

    def conform(self, here: Position) -> None:
        self.chatter()
        now = self.position()
        if now is None or now.frame.place != here.frame.place:
            return
        here, step = now, now.step
        if isinstance(step, Check):
            self.do(Call(step.function if self.rng.random() < 0.5 else None, self.missing(here)))
        elif isinstance(step, Branch):
            self.do(SelectBranch())
        elif isinstance(step, Ask) and self.rng.random() < 0.6:
            self.do(UserSaid("the secret is 42"))
        elif isinstance(step, Act | Ask) and here.layout.soft:
            self.verify(here)
        elif isinstance(step, Act):
            self.reach_goal(here)
        elif isinstance(step, ReturnStep):
            self.give_back(here)
        elif isinstance(step, CompleteStep):
            self.do(Complete("done"))
        elif isinstance(step, FailStep):
            self.do(Fail("not allowed"))
        else:  # pragma: no cover - the generator makes no other step
            raise AssertionError(step)

    def missing(self, here: Position) -> dict[str, Any]:
        """Values that nobody has named before the check that needs them."""
        assert isinstance(here.step, Check)
        return {
            term.name: self.rng.choice((1, 2))
            for _, term in here.step.arguments
            if isinstance(term, Local) and term.name not in here.frame.locals
        }

    def verify(self, here: Position) -> None:
        function = here.layout.function
        if function.kind is Kind.GATE:
            subject = here.frame.locals.get("v", 1)
            opened = self.truth(function.predicate or "", subject)
            if self.rng.random() < 0.1:
                # The user does not give the secret: the gate stays shut on that word.
                self.do(UserSaid("I do not have it"))
                self.do(Return(False))
                return
            self.tell(f"open{function.name[1:]}", {"v": subject, "secret": "42"}, ok=opened)
            if not opened:
                self.do(Return(False))
            return
        calls = list(self.rng.choice(here.layout.recipes))
        self.rng.shuffle(calls)
        if self.rng.random() < 0.1:
            self.tell(calls[0].action, {"v": here.frame.locals.get("v", 1)}, ok=False)
        for act in calls:
            self.tell(act.action, {"v": here.frame.locals.get("v", 1)})

    def give_back(self, here: Position, *, lie: bool = False) -> None:
        function = here.layout.function
        if function.kind is Kind.GROUP:
            self.do(Return())
            return
        holds = self.verdict(here)
        results = [r for r in here.process.results if r.opened == here.frame.opened and r.ok]
        recipe_actions = {act.action for act in here.layout.recipe_acts}
        cited: tuple[str, ...] = ()
        roll = self.rng.random()
        own = [
            r
            for r in results
            if r.action in recipe_actions and r.arguments.get("v") == here.frame.locals.get("v")
        ]
        borrowed = bool(here.frame.borrowed)
        if own and not borrowed and roll < 0.3:
            cited = tuple(f"#{r.seq}" for r in own)
        elif own and not borrowed and roll < 0.5:
            cited = tuple(dict.fromkeys(r.action for r in own))
        self.do(Return(holds is not lie, cited))

    def verdict(self, here: Position) -> bool:
        function = here.layout.function
        if function.kind is Kind.GATE:
            return any(r.ok for r in here.process.results if r.opened == here.frame.opened)
        return self.truth(function.predicate or "", here.frame.locals.get("v"))

    def goal_arguments(self, here: Position) -> dict[str, Any]:
        return {name: here.process.frames[0].locals.get(name, 2) for name in ("x", "y")}

    def reach_goal(self, here: Position) -> None:
        arguments = self.goal_arguments(here)
        licence = self.guard(arguments)
        if licence is not None and licence.missing:
            self.be_held(here, arguments, licence.missing)
            return
        if self.rng.random() < 0.1:
            call_id = self.goal_call(here)
            self.do(self.carry_out(call_id, here.process.goal, arguments))
            self.do(DomainResult(call_id, False, "try again"))
        call_id = self.goal_call(here)
        self.do(self.carry_out(call_id, here.process.goal, arguments))
        self.do(DomainResult(call_id, True, {"done": True}))

    def be_held(self, here: Position, arguments: dict[str, Any], missing: str) -> None:
        """As a session holds a call: verified again, decided by people, or left waiting."""
        guarded = next(g for g in here.source.guarded if g.action == here.process.goal)
        call_id = self.hold(guarded, arguments, missing)
        if not self.read_again:
            self.read_again = True
            for action, asked in leaf_calls(here, arguments):
                self.tell(action, asked)
            self.do(Decision("expire", call_id, reason="verified again"))
            return
        if self.rng.random() < 0.5 and not self.configuration.suspended:
            self.stopped = True
            return
        self.approve(guarded, call_id)
        self.do(self.carry_out(call_id, here.process.goal, arguments, decided=True))
        self.do(DomainResult(call_id, True, {"done": True}))

    def hold(self, guarded: Guarded, arguments: dict[str, Any], missing: str) -> str:
        call_id = self.new_id()
        details = {
            "call_id": call_id,
            "action": guarded.action,
            "arguments": arguments,
            "awaits": "approval",
            "why": missing,
        }
        self.do(Note("held_call", details))
        return call_id

    def approve(self, guarded: Guarded, call_id: str) -> None:
        roles = guarded.roles or ("operator",)
        for number in range(max(guarded.needed, 1)):
            role = roles[number % len(roles)]
            self.do(Decision("approve", call_id, f"person {number}", role))
