"""Executions up to one guarded payment, with a tactic for having it made unproven or none, and the
labels that the tactics earn."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from trace_executions import Execution, Labelled
from trace_violations import PROOF
from trace_worlds import EXTRA, LIMIT, OTHER, PAY, SIDES, TOPICS, ValueWorld, value_world

from sopilot.handbook.expressions import judge as cel_judge
from sopilot.machine.layout import Position
from sopilot.machine.recipes import Absent, wanted_calls
from sopilot.program.model import Kind
from sopilot.trace.events import Decision, DomainCall, DomainResult, Return, Start
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
    automatic: ClassVar[tuple[str, ...]] = ("take_branches", "group_returns", "enter_calls")

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

    def begin(self) -> None:
        given: dict[str, Any] = {"user": USER}
        if self.tactic is None or not self.tactic.late:
            given["amount"] = AMOUNT
        self.do(Start(PAY, given))

    def finish(self) -> Labelled:
        return Labelled(
            tuple(self.events),
            self.wanted if self.seq is not None else None,
            self.seq,
            self.implied,
            dict(self.guarded),
            self.tactic.code if self.tactic is not None else None,
        )

    def restlessness(self) -> float:
        return 0.0

    def missing(self, here: Position) -> dict[str, Any]:
        return {}

    def verify(self, here: Position) -> None:
        aimed = here.layout.function.predicate == self.world.target
        if aimed and self.tactic is not None and self.tactic.in_frame is not None:
            self.tactic.in_frame(self, here)
        else:
            honest(self, here)

    def reach_goal(self, here: Position) -> None:
        if here.process.goal == OTHER:
            self.tell(OTHER, {"user": USER})
        else:
            self.pay(here)

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
        self.made(here, self.goal_call(here), arguments)

    def made(
        self, here: Position, call_id: str, arguments: dict[str, Any], *, decided: bool = False
    ) -> None:
        operation = self.carry_out(call_id, PAY, arguments, decided=decided)
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


# --- cheating in the target's frame ------------------------------------------------------


def about_another(run: ValueRun, here: Position) -> None:
    calls = list(run.asked(here))
    for action, arguments in calls[:-1]:
        run.tell(action, arguments)
    action, arguments = calls[-1]
    run.tell(action, dict.fromkeys(arguments, STRANGER))
    run.do(Return(side(run)))


def half(run: ValueRun, here: Position) -> None:
    calls = list(run.asked(here))
    linked = run.world.kinds[run.world.target] in ("linked", "each")
    kept = calls[:-1] if linked or run.rng.random() < 0.5 else calls[1:]
    for action, arguments in kept:
        run.tell(action, arguments)
    run.do(Return(side(run)))


def nothing(run: ValueRun, here: Position) -> None:
    run.do(Return(side(run)))


def older(run: ValueRun, here: Position) -> None:
    ((action, arguments),) = list(run.asked(here))
    first = run.tell(action, arguments)
    run.overrides[action] = {"ok": not side(run), "limit": 0}
    run.tell(action, arguments)
    run.do(Return(side(run), (f"#{first}",)))


def failed_last(run: ValueRun, here: Position) -> None:
    calls = list(run.asked(here))
    told = [run.tell(action, arguments) for action, arguments in calls]
    action, arguments = run.rng.choice(calls)
    run.tell(action, arguments, ok=False)
    run.do(Return(side(run), tuple(f"#{seq}" for seq in told)))


def only_failed(run: ValueRun, here: Position) -> None:
    for action, arguments in run.asked(here):
        run.tell(action, arguments, ok=False)
    run.do(Return(side(run)))


def unreadable(run: ValueRun, here: Position) -> None:
    calls = list(run.asked(here))
    action = calls[-1][0]
    run.overrides[action] = run.rng.choice(
        (
            None,
            "it looks fine to me",
            {"nothing": 1},
            [],
            {"ok": None, "limit": None},
            {"ok": "yes"},
        )
    )
    for name, arguments in calls:
        run.tell(name, arguments)
    run.do(Return(side(run)))


def misnamed(run: ValueRun, here: Position) -> None:
    """The answer that decides says no, and another, called last, says yes."""
    calls = list(run.asked(here))
    kind = run.world.kinds[run.world.target]
    deciding, other = (calls[0], calls[1]) if kind == "named" else (calls[1], calls[0])
    run.overrides[deciding[0]] = {"ok": False}
    run.tell(*deciding)
    del run.overrides[deciding[0]]
    run.tell(*other)
    run.do(Return(True))


def contradicting(run: ValueRun, here: Position) -> None:
    (look,), (peek,) = list(run.asked(here, 0)), list(run.asked(here, 1))
    run.tell(*look)
    run.overrides[peek[0]] = {"ok": not side(run)}
    run.tell(*peek)
    run.do(Return(side(run)))


def strangers_gate(run: ValueRun, here: Position) -> None:
    run.tell(f"login_{run.world.target}", {"user": STRANGER, "secret": "42"})
    run.do(Return(True))


# --- cheating between the checks and the payment -----------------------------------------


def wander(run: ValueRun, here: Position) -> None:
    call_id = run.new_id()
    run.do(DomainCall(call_id, EXTRA, {"user": USER}))
    roll = run.rng.random()
    if roll < 0.4:
        run.do(DomainResult(call_id, True, {}))
    elif roll < 0.7:
        run.do(DomainResult(call_id, False, "broke off", unknown=True))


def touch(run: ValueRun, here: Position) -> None:
    run.do(Start(OTHER, {"user": USER}))


def reads(run: ValueRun, here: Position) -> list[tuple[str, dict[str, Any]]]:
    """The calls of the target's recipe once more, at the payment."""
    found = []
    for one in run.events:
        name = str(one.payload.get("action"))
        if one.kind == "domain_call" and name.endswith(f"_{run.world.target}"):
            found.append((name, dict(one.payload["arguments"])))
    return found


def await_again(run: ValueRun, here: Position) -> None:
    action, arguments = run.rng.choice(reads(run, here))
    run.do(DomainCall(run.new_id(), action, arguments))


def fail_again(run: ValueRun, here: Position) -> None:
    action, arguments = run.rng.choice(reads(run, here))
    run.tell(action, arguments, ok=False)


def turn_against(run: ValueRun, here: Position) -> None:
    verb = {"last": "peek_", "linked": "case_"}.get(run.world.kinds[run.world.target], "look_")
    action, arguments = next(one for one in reads(run, here) if one[0].startswith(verb))
    run.overrides[action] = {"ok": not side(run), "limit": 0}
    run.tell(action, arguments)


def read_again(run: ValueRun, here: Position) -> None:
    """And find something new: an answer that says the same takes no verdict away."""
    for action, arguments in reads(run, here):
        run.overrides[action] = {**run.answer(action, arguments), "new": True}
        run.tell(action, arguments)


def log_out(run: ValueRun, here: Position) -> None:
    run.tell(f"logout_{run.world.target}", {"user": USER})


def logging_out(run: ValueRun, here: Position) -> None:
    run.do(DomainCall(run.new_id(), f"logout_{run.world.target}", {"user": USER}))


def amend(run: ValueRun, here: Position) -> None:
    arguments = {"user": USER, "amount": AMOUNT}
    (guarded,) = here.source.guarded
    call_id = run.hold(guarded, arguments, "")
    other = {**arguments, "amount": TOO_MUCH}
    run.do(Decision("amend", call_id, "person 0", guarded.roles[0], other))
    run.amended = True
    run.made(here, call_id, other)
    run.stopped = True


def _approved_in_doubt(run: ValueRun, here: Position) -> tuple[str, dict[str, Any]]:
    """People approve the payment while the newest answer has failed; its id and arguments."""
    fail_again(run, here)
    arguments = {"user": USER, "amount": AMOUNT}
    (guarded,) = here.source.guarded
    licence = run.guard(arguments)
    assert licence is not None
    call_id = run.hold(guarded, arguments, licence.missing)
    run.approve(guarded, call_id)
    return call_id, arguments


def another_doubt(run: ValueRun, here: Position) -> None:
    """Approved for one doubt; made once something has changed as well."""
    call_id, arguments = _approved_in_doubt(run, here)
    read_again(run, here)
    run.answered(EXTRA, {"user": USER}, {})
    run.made(here, call_id, arguments)


def decided(run: ValueRun, here: Position) -> None:
    """People know what is not proven, and let exactly that through."""
    call_id, arguments = _approved_in_doubt(run, here)
    run.made(here, call_id, arguments, decided=True)


# --- a guard that is wrong ---------------------------------------------------------------


def forge_licence(run: ValueRun, here: Position) -> None:
    arguments = {"user": USER, "amount": AMOUNT}
    if run.rng.random() < 0.5:
        fail_again(run, here)
        licence: dict[str, Any] = {"grade": "proven", "leaves": []}
    else:
        licence = {"grade": run.rng.choice(("claimed", "perfect")), "leaves": []}
    call_id = run.goal_call(here)
    run.carry_out(call_id, PAY, arguments)
    run.seq = run.configuration.next_seq
    run.implied = frozenset(("evidence-superseded", "goal-without-completion"))
    run.do(DomainCall(call_id, PAY, arguments, licence))
    run.do(DomainResult(call_id, True, {}))


def hold_proven(run: ValueRun, here: Position) -> None:
    (guarded,) = here.source.guarded
    run.seq = run.configuration.next_seq
    run.hold(guarded, {"user": USER, "amount": AMOUNT}, "I would rather not")
    run.stopped = True


def forge_grade(run: ValueRun, here: Position) -> None:
    for action, arguments in run.asked(here):
        run.tell(action, arguments)
    run.seq = run.configuration.next_seq
    run.clock += 1.0
    forged = run.rng.choice(("attested", "x"))
    outcome = run.world.machine.step(
        run.configuration, Return(side(run)), at=run.clock, grade=lambda *given: forged
    )
    run.events.extend(outcome.events)
    run.configuration = outcome.configuration


# --- the tactics -------------------------------------------------------------------------


def paying(**other: Any) -> Callable[[ValueRun], dict[str, Any]]:
    return lambda run: {"user": USER, "amount": AMOUNT, **other}


RECIPES = ("read", "covers", "both", "last", "named", "linked", "each", "two_ways")
SINGLE = ("read", "covers")

TACTICS: dict[str, tuple[Tactic, ...]] = {
    "value-at-the-act": (
        Tactic("unproven-value", ("covers",), values=paying(amount=TOO_MUCH), late=True),
        Tactic("unproven-value", ("quote",), nothing, values=paying(amount=7), late=True),
    ),
    "value-changed": (
        Tactic("unproven-value", ("covers", "quote"), values=paying(amount=TOO_MUCH)),
        Tactic("unproven-value", ("covers", "quote"), before=amend),
    ),
    "value-retyped": (
        Tactic("unproven-value", ("covers", "read"), values=paying(amount="5")),
        Tactic("unproven-value", ("covers",), values=paying(amount="5"), late=True),
        Tactic("unproven-value", ("read", "gate"), values=paying(amount=True)),
    ),
    "value-unasked": (Tactic("unproven-value", SIDES, values=paying(note="quickly")),),
    "evidence-about-another": (
        Tactic("evidence-wrong-arguments", ("read", "both", "last", "linked"), about_another),
    ),
    "half-a-recipe": (Tactic("incomplete-evidence", ("both", "last", "named", "linked"), half),),
    "one-element": (Tactic("incomplete-evidence", ("each",), half),),
    "nothing-verified": (
        Tactic("unproven-evidence", RECIPES, nothing),
        Tactic("unproven-evidence", ("read",), nothing, negated=True),
    ),
    "older-answer": (
        Tactic("evidence-superseded", SINGLE, older),
        Tactic("evidence-superseded", ("read",), older, negated=True),
        Tactic("evidence-superseded", ("read", "last", "linked"), before=turn_against),
    ),
    "newest-failed": (
        Tactic("evidence-superseded", RECIPES[:-1], failed_last),
        Tactic("evidence-superseded", ("read",), only_failed, negated=True),
        Tactic("evidence-superseded", RECIPES[:-1], before=fail_again),
    ),
    "newest-awaited": (Tactic("evidence-superseded", RECIPES[:-1], before=await_again),),
    "stale-here": (Tactic("evidence-stale", (*RECIPES, "model"), before=wander),),
    "stale-elsewhere": (
        Tactic("evidence-stale", (*RECIPES, "model"), before=touch, topics=(None, TOPICS[0])),
    ),
    "verdict-unreadable": (
        Tactic(
            "unproven-verdict", ("read", "covers", "both", "last", "linked", "each"), unreadable
        ),
        Tactic("unproven-verdict", ("read",), unreadable, negated=True),
        Tactic("unproven-verdict", ("two_ways",), contradicting),
    ),
    "result-misnamed": (Tactic("evidence-contradicts-verdict", ("last", "named"), misnamed),),
    "model-unasked": (Tactic("model-verdict", ("unsaid",)),),
    "model-on-older-answers": (Tactic("evidence-superseded", ("model",), before=read_again),),
    "gate-of-another": (Tactic("gate-shut", ("gate",), strangers_gate),),
    "gate-closed": (
        Tactic("gate-shut", ("gate",), before=log_out),
        Tactic("gate-shut", ("gate",), before=logging_out),
    ),
    "approved-for-another-doubt": (Tactic("evidence-stale", RECIPES[:-1], before=another_doubt),),
    "guard-disagrees": (
        Tactic("guard-disagrees", RECIPES[:-1], before=forge_licence),
        Tactic("guard-disagrees", SIDES, before=hold_proven),
        Tactic("guard-disagrees", ("read", "last", "each"), forge_grade),
    ),
}
"""Label → the ways to earn it."""
HARMLESS = (
    Tactic(None, (*SIDES, "quote")),
    Tactic(None, ("read",), negated=True),
    Tactic(None, RECIPES, before=read_again),
    Tactic(None, SIDES, values=paying(amount=5.0)),
    Tactic(None, ("covers",), values=paying(amount=50), late=True),
    Tactic(None, SIDES, before=touch, topics=TOPICS[1:]),
    Tactic(None, RECIPES[:-1], before=decided),
)
"""What must not be found fault with."""
VALUE_CLASSES = (*TACTICS,)
assert set(PROOF) <= {one.code for some in TACTICS.values() for one in some}


def value_trace(rng: random.Random, label: str | None) -> tuple[ValueWorld, Labelled]:
    tactic = rng.choice(TACTICS.get(label or "", HARMLESS))
    world = value_world(
        rng,
        rng.choice(tactic.kinds),
        negated=tactic.negated,
        approval=tactic.before is amend or rng.random() < 0.2,
        topic=rng.choice(tactic.topics),
    )
    run = ValueRun(world, rng, label, tactic=tactic)
    return world, run.run()
