"""Executions up to one guarded payment, with a tactic for having it made unproven or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trace_executions import Execution, Labelled
from value_worlds import GOAL, LIMIT, OTHER, TOPICS, ValueWorld

from sopilot.handbook.expressions import judge as cel_judge
from sopilot.machine.automation import Automation
from sopilot.machine.layout import Position
from sopilot.machine.recipes import Absent, wanted_calls
from sopilot.program.model import Act, Ask, Branch, Check, CompleteStep, Kind, ReturnStep
from sopilot.trace.events import (
    Call,
    Complete,
    DomainResult,
    Return,
    SelectBranch,
    Start,
    UserSaid,
)
from sopilot.values.json import Judge

USER, STRANGER = "ann", "eve"
AMOUNT, TOO_MUCH = 5, 500
SEEN_ON_THE_WAY = (
    "unlicensed-call",
    "guard-violated",
    "approval-missing",
    "approval-exceeded",
    "unknown-outcome",
    "return-without-evidence",
    "incomplete-evidence",
    "unproven-verdict",
    "evidence-contradicts-verdict",
    "evidence-wrong-arguments",
    "goal-without-completion",
)
"""What a violation may show before the payment, where it was sown."""

Hook = Callable[["ValueRun", Position], None]


@dataclass(frozen=True)
class Tactic:
    """One way to have the payment made unproven. ``kinds`` are the leaves that it works on;
    ``in_frame`` replaces the honest verification of the target, ``before`` comes just before
    the payment, ``values`` are what it is made with."""

    code: str | None
    kinds: tuple[str, ...]
    in_frame: Hook | None = None
    before: Hook | None = None
    values: Callable[[ValueRun], dict[str, Any]] | None = None
    negated: bool = False
    late: bool = False
    """The amount is not named before the payment."""
    topics: tuple[str | None, ...] = (None, *TOPICS)
    """What the other goal may change."""


@dataclass
class ValueRun(Execution):
    world: ValueWorld
    tactic: Tactic | None = None
    judge: Judge = cel_judge
    overrides: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.automation = Automation(
            take_branches=self.rng.random() < 0.3,
            group_returns=self.rng.random() < 0.3,
            enter_calls=self.rng.random() < 0.3,
        )

    # --- the world's answers -----------------------------------------------------------

    def answer(self, action: str, arguments: Mapping[str, Any]) -> Any:
        if action in self.overrides:
            return self.overrides[action]
        verb, _, predicate = action.partition("_")
        subject = arguments.get("user", arguments.get("key"))
        if verb == "find":
            return {"key": f"case of {subject}"}
        if verb == "list":
            return {"legs": [{"key": f"{number} of {subject}"} for number in (1, 2)]}
        return {"ok": self.world.truths.get(predicate, True), "limit": LIMIT}

    def tell(self, action: str, arguments: dict[str, Any], ok: bool = True) -> int:
        """A call with the answer that the world has for it; the answer's event."""
        value = self.answer(action, arguments) if ok else {"error": "timeout"}
        return self.answered(action, arguments, value, ok=ok)

    def asked(self, here: Position, number: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
        """The calls of a recipe in the order in which it is written."""
        answers: dict[str, Any] = {}
        for act in here.layout.recipes[number]:

            def value(name: str) -> Any:
                return here.frame.locals.get(name, Absent(name))

            wanted = wanted_calls(act, value, answers)
            if isinstance(wanted, Absent):
                return
            for call in wanted:
                yield act.action, dict(call.arguments)
            told = [self.answer(act.action, call.arguments) for call in wanted]
            answers[act.answer] = told if act.each is not None else told[0]

    # --- the run -------------------------------------------------------------------------

    def run(self) -> Labelled:
        given: dict[str, Any] = {"user": USER}
        if self.tactic is None or not self.tactic.late:
            given["amount"] = AMOUNT
        self.do(Start(GOAL, given))
        for _ in range(200):
            self.automate()
            here = self.position()
            if here is None or self.stopped:
                break
            self.advance(here)
        return Labelled(
            tuple(self.events),
            self.wanted if self.seq is not None else None,
            self.seq,
            self.implied,
            dict(self.guarded),
            self.tactic.code if self.tactic is not None else None,
        )

    def advance(self, here: Position) -> None:
        step, soft = here.step, here.layout.soft
        aimed = here.layout.function.predicate == self.world.target
        if soft and aimed and self.tactic is not None and self.tactic.in_frame is not None:
            self.tactic.in_frame(self, here)
        elif soft:
            honest(self, here)
        elif isinstance(step, Check):
            self.do(Call())
        elif isinstance(step, Branch):
            self.do(SelectBranch())
        elif isinstance(step, ReturnStep):
            self.do(Return())
        elif isinstance(step, CompleteStep):
            self.do(Complete("done"))
        elif isinstance(step, Act) and here.process.goal == OTHER:
            self.tell(OTHER, {"user": USER})
        elif isinstance(step, Act):
            self.pay(here)
        else:
            raise AssertionError(step)

    def pay(self, here: Position) -> None:
        tactic = self.tactic
        if tactic is not None and tactic.before is not None and not self.read_again:
            self.read_again = True
            tactic.before(self, here)
            now = self.position()
            if self.stopped or now is None or now.frame.place != here.frame.place:
                return
        arguments = {"user": USER, "amount": AMOUNT}
        if tactic is not None and tactic.values is not None:
            arguments = tactic.values(self)
        self.made(here, self.call_id(here, arguments), arguments)

    def call_id(self, here: Position, arguments: dict[str, Any]) -> str:
        return self.goal_call(here, arguments)

    def made(
        self, here: Position, call_id: str, arguments: dict[str, Any], *, decided: bool = False
    ) -> None:
        operation = self.carry_out(call_id, GOAL, arguments, decided=decided)
        if self.tactic is not None and self.tactic.code is not None and self.seq is None:
            self.seq = self.configuration.next_seq
            self.implied = frozenset((*SEEN_ON_THE_WAY, self.tactic.code))
        self.do(operation)
        self.do(DomainResult(call_id, True, {"done": True}))
        process = self.configuration.processes[here.process.id]
        if process.frame is not None and process.frame.cursor == here.frame.cursor:
            self.stopped = True  # the machine does not take this call for the goal's


def honest(run: ValueRun, here: Position) -> None:
    """Every call of a recipe, and the verdict that its answers have."""
    function = here.layout.function
    if function.kind is Kind.GATE:
        if isinstance(here.step, Ask) and run.rng.random() < 0.5:
            run.do(UserSaid("the secret is 42"))
        run.tell(f"login_{function.predicate}", {"user": USER, "secret": "42"})
    else:
        recipe = run.rng.randrange(len(here.layout.recipes))
        calls = list(run.asked(here, recipe))
        kind = run.world.kinds[function.predicate or ""]
        if kind in ("both", "last", "named"):
            run.rng.shuffle(calls)
        for action, arguments in calls:
            run.tell(action, arguments)
    answer = run.world.truths[function.predicate or ""]
    run.do(Return(answer))


def side(run: ValueRun) -> bool:
    """What the SOP wants of the target, which a cheat claims."""
    return run.world.truths[run.world.target]
