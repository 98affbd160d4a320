"""Executions through the real machine, conforming or with one labelled violation."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trace_programs import EXTRA, GOALS, SHARED, World, judge

from sopilot.language.program.model import Act, Ask, Branch, Check, Guarded, Kind, Local
from sopilot.language.program.model import Complete as CompleteStep
from sopilot.language.program.model import Fail as FailStep
from sopilot.language.program.model import Return as ReturnStep
from sopilot.runtime.proof import Judge, Licence, grade_of_return, license_call
from sopilot.runtime.session.guards import hold_reason
from sopilot.runtime.trace import SealedEvent, genesis, seal_all
from sopilot.runtime.vm import (
    AssistantSaid,
    Automation,
    Call,
    Complete,
    Configuration,
    Decision,
    DomainCall,
    DomainResult,
    Event,
    Fail,
    Note,
    Operation,
    Position,
    Return,
    SelectBranch,
    Start,
    UserSaid,
)

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


@dataclass
class Execution:
    """A run in the making. ``wanted`` is injected at the first chance after ``patience``."""

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

    def __post_init__(self) -> None:
        self.configuration = self.world.machine.initial()
        self.automation = Automation(
            take_branches=self.rng.random() < 0.3,
            group_returns=self.rng.random() < 0.3,
            enter_calls=self.rng.random() < 0.3,
            bind_evidence=self.rng.random() < 0.3,
            machine_verdicts=self.rng.random() < 0.3,
            complete=self.rng.random() < 0.3,
            fail=self.rng.random() < 0.3,
        )

    # --- moving -----------------------------------------------------------------------

    def do(self, operation: Operation) -> bool:
        self.clock += 1.0
        machine = self.world.machine
        grade = self.grade(self.configuration, operation)
        outcome = machine.step(self.configuration, operation, at=self.clock, grade=grade)
        self.events.extend(outcome.events)
        self.configuration = outcome.configuration
        return outcome.accepted

    def settle(self) -> None:
        outcome = self.world.machine.settle(
            self.configuration, self.automation, at=self.clock, judge=self.judge, grade=self.grade
        )
        self.events.extend(outcome.events)
        self.configuration = outcome.configuration

    def grade(self, configuration: Configuration, operation: Operation) -> str | None:
        here = self.world.machine.position(configuration)
        if here is None or not isinstance(operation, Return):
            return None
        return grade_of_return(self.world.machine.programs, here, operation, self.judge)

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
        return license_call(self.world.machine.programs, here, arguments, self.judge)

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

    def truth(self, predicate: str, value: Any) -> bool:
        key = (predicate, str(value))
        if key not in self.truths:
            self.truths[key] = self.rng.random() < 0.85
        return self.truths[key]

    def domain(self, action: str, arguments: dict[str, Any], ok: bool = True) -> None:
        self.calls += 1
        call_id = f"c{self.calls}"
        self.do(DomainCall(call_id, action, arguments))
        self.do(DomainResult(call_id, ok, self.observation(arguments) if ok else "error"))

    def observation(self, arguments: dict[str, Any]) -> dict[str, bool]:
        subject = arguments.get("v")
        return {name: self.truth(name, subject) for name in self.world.handbook.predicates}

    def goal_call(self, here: Position, arguments: dict[str, Any], *, approve: bool = True) -> str:
        """Approves what must be approved, then makes the call; its id."""
        goal = here.process.goal
        self.calls += 1
        call_id = f"c{self.calls}"
        if approve:
            for guarded in here.source.guarded:
                if guarded.action == goal and guarded.needed:
                    for number in range(guarded.needed):
                        role = guarded.roles[number % len(guarded.roles)]
                        self.do(Decision("approve", call_id, f"person {number}", role))
        return call_id

    def position(self) -> Position | None:
        return self.world.machine.position(self.configuration)

    # --- the run ----------------------------------------------------------------------

    def run(self) -> Labelled:
        self.begin(self.rng.choice(GOALS))
        for _ in range(400):
            if self.stopped:
                break
            self.settle()
            here = self.position()
            if here is None:
                break
            if self.wanted is not None and self.label is None:
                if self.patience > 0:
                    self.patience -= 1
                else:
                    violate = VIOLATIONS.get(self.wanted)
                    if violate is not None and violate(self, here):
                        continue
            self.conform(here)
        if self.wanted is not None and self.label is None and not self.stopped:
            after = AFTERWARDS.get(self.wanted)
            if after is not None:
                after(self)
        return self.finish()

    def finish(self) -> Labelled:
        forge = FORGERIES.get(self.wanted or "")
        if forge is not None and self.label is None:
            forged = forge(self)
            if forged is not None:
                return forged
        return Labelled(tuple(self.events), self.label, self.seq, self.implied, dict(self.guarded))

    def begin(self, goal: str) -> None:
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
            self.begin(self.rng.choice(GOALS))

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
            missing = {
                term.name: self.rng.choice((1, 2))
                for _, term in step.arguments
                if isinstance(term, Local) and term.name not in here.frame.locals
            }
            self.do(Call(step.function if self.rng.random() < 0.5 else None, missing))
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
            self.domain(f"open{function.name[1:]}", {"v": subject, "secret": "42"}, ok=opened)
            if not opened:
                self.do(Return(False))
            return
        calls = list(self.rng.choice(here.layout.recipes))
        self.rng.shuffle(calls)
        if self.rng.random() < 0.1:
            self.domain(calls[0].action, {"v": here.frame.locals.get("v", 1)}, ok=False)
        for act in calls:
            self.domain(act.action, {"v": here.frame.locals.get("v", 1)})

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
            cited = tuple({r.action for r in own})
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
            call_id = self.goal_call(here, arguments)
            self.do(self.carry_out(call_id, here.process.goal, arguments))
            self.do(DomainResult(call_id, False, "try again"))
        call_id = self.goal_call(here, arguments)
        self.do(self.carry_out(call_id, here.process.goal, arguments))
        self.do(DomainResult(call_id, True, {"done": True}))

    def be_held(self, here: Position, arguments: dict[str, Any], missing: str) -> None:
        """As a session holds a call: verified again, decided by people, or left waiting."""
        guarded = next(g for g in here.source.guarded if g.action == here.process.goal)
        call_id = self.hold(guarded, arguments, missing)
        if not self.read_again:
            self.read_again = True
            for action, asked in leaf_calls(here, arguments):
                self.domain(action, asked)
            self.do(Decision("expire", call_id, reason="verified again"))
            return
        if self.rng.random() < 0.5 and not self.configuration.suspended:
            self.stopped = True
            return
        self.approve(guarded, call_id)
        self.do(self.carry_out(call_id, here.process.goal, arguments, decided=True))
        self.do(DomainResult(call_id, True, {"done": True}))

    def hold(self, guarded: Guarded, arguments: dict[str, Any], missing: str) -> str:
        self.calls += 1
        call_id = f"c{self.calls}"
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


def leaf_calls(here: Position, values: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every call that a rule of the program asks for under the values of the goal's call."""

    def below(name: str, known: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        function = here.source.functions[name]
        for step in function.steps:
            if isinstance(step, Check):
                passed = {
                    parameter: known[term.name]
                    for parameter, term in step.arguments
                    if isinstance(term, Local) and term.name in known
                }
                yield from below(step.function, passed)
        if function.kind is Kind.RULE and "v" in known:
            layout = here.program.functions[name]
            for act in layout.recipe_acts:
                yield act.action, {"v": known["v"]}

    made: list[tuple[str, dict[str, Any]]] = []
    for one in below(here.source.entry, values):
        if one not in made:
            made.append(one)
            yield one


# --- violations, made where the run gives a chance ------------------------------------

GUARD = ("guard-violated", "approval-missing")
PROOF = (
    "unproven-value",
    "unproven-evidence",
    "evidence-wrong-arguments",
    "incomplete-evidence",
    "evidence-superseded",
    "evidence-stale",
    "unproven-verdict",
    "evidence-contradicts-verdict",
    "model-verdict",
    "gate-shut",
)
"""What may be found at a guarded call that is not proven."""


def _in_rule(here: Position, *, fresh: bool = True) -> bool:
    return (
        here.layout.soft
        and bool(here.layout.recipes)
        and not here.frame.borrowed
        and (not fresh or not any(r.opened == here.frame.opened for r in here.process.results))
    )


def _without_evidence(run: Execution, here: Position) -> bool:
    if not _in_rule(here) or _user_spoke(run, here):
        return False
    run.inject("return-without-evidence", Return(run.rng.random() < 0.5))
    return True


def _user_spoke(run: Execution, here: Position) -> bool:
    return any(e.kind == "user_said" and e.seq > here.frame.opened for e in run.events)


def _incomplete(run: Execution, here: Position) -> bool:
    if not _in_rule(here) or here.layout.function.kind is Kind.GATE:
        return False
    if len(here.layout.recipes) != 1 or len(here.layout.recipes[0]) != 2:
        return False
    first = here.layout.recipes[0][0]
    run.domain(first.action, {"v": here.frame.locals.get("v", 1)})
    now = run.position()
    assert now is not None
    run.inject("incomplete-evidence", Return(run.verdict(now)))
    return True


def _unproven(run: Execution, here: Position) -> bool:
    """*True* on a call that failed, or on an answer that the verdict cannot read."""
    function = here.layout.function
    if not _in_rule(here) or function.kind is Kind.GATE or "v" not in here.frame.locals:
        return False
    calls = here.layout.recipes[0]
    arguments = {"v": here.frame.locals["v"]}
    broken = run.rng.randrange(len(calls))
    garbled = function.verdict is not None and run.rng.random() < 0.6
    for number, act in enumerate(calls):
        run.calls += 1
        run.do(DomainCall(f"c{run.calls}", act.action, arguments))
        if garbled:
            answer: Any = run.rng.choice((None, "it looks fine to me", {"nothing": 1}, []))
            run.do(DomainResult(f"c{run.calls}", True, answer))
        else:
            ok = number != broken
            told = run.observation(arguments) if ok else "timeout"
            run.do(DomainResult(f"c{run.calls}", ok, told))
    implied = () if garbled or len(calls) == 1 else ("evidence-contradicts-verdict",)
    run.inject("unproven-verdict", Return(True), *implied)
    return True


def _contradiction(run: Execution, here: Position) -> bool:
    function = here.layout.function
    judged = function.verdict is not None or function.kind is Kind.GATE
    if not isinstance(here.step, ReturnStep) or not here.layout.soft or not judged:
        return False
    results = [r for r in here.process.results if r.opened == here.frame.opened and r.ok]
    if not results or "v" not in here.frame.locals:
        return False
    run.inject("evidence-contradicts-verdict", Return(not run.verdict(here)))
    return True


def _unresolved(run: Execution, here: Position) -> bool:
    if not isinstance(here.step, ReturnStep) or not _in_rule(here, fresh=False):
        return False
    cited = run.rng.choice(("#99999", "no_such_action"))
    own = [f"#{r.seq}" for r in here.process.results if r.opened == here.frame.opened and r.ok]
    if not own:
        return False
    run.inject("evidence-unresolved", Return(run.verdict(here), (cited, *own)))
    return True


def _outside(run: Execution, here: Position) -> bool:
    if not isinstance(here.step, ReturnStep) or not _in_rule(here, fresh=False):
        return False
    others = [
        r
        for process in run.configuration.processes.values()
        if process.id != here.process.id
        for r in process.results
    ]
    own = [f"#{r.seq}" for r in here.process.results if r.opened == here.frame.opened and r.ok]
    if not others or not own:
        return False
    cited = f"#{run.rng.choice(others).seq}"
    run.inject("evidence-outside-interval", Return(run.verdict(here), (cited, *own)))
    return True


def _earlier(run: Execution, here: Position) -> list[Any]:
    return [r for r in here.process.results if r.opened != here.frame.opened and r.ok]


def _stale(run: Execution, here: Position) -> bool:
    if not _in_rule(here) or here.layout.function.kind is Kind.GATE:
        return False
    fits = [
        r
        for r in _earlier(run, here)
        if r.seq <= run.configuration.goal_seq
        and any(len(recipe) == 1 and recipe[0].action == r.action for recipe in here.layout.recipes)
        and "v" in here.frame.locals
        and r.arguments.get("v") == here.frame.locals["v"]
    ]
    if not fits:
        return False
    run.inject("evidence-stale", Return(run.verdict(here), (f"#{fits[-1].seq}",)))
    return True


def _wrong_call(run: Execution, here: Position) -> bool:
    if not isinstance(here.step, ReturnStep) or not _in_rule(here, fresh=False):
        return False
    asked = {act.action for act in here.layout.recipe_acts}
    others = [r for r in _earlier(run, here) if r.action not in asked]
    own = [f"#{r.seq}" for r in here.process.results if r.opened == here.frame.opened and r.ok]
    if not others or not own:
        return False
    cited = f"#{run.rng.choice(others).seq}"
    run.inject("evidence-wrong-call", Return(run.verdict(here), (cited, *own)))
    return True


def _wrong_arguments(run: Execution, here: Position) -> bool:
    if not _in_rule(here) or here.layout.function.kind is Kind.GATE:
        return False
    if "v" not in here.frame.locals:
        return False
    act = here.layout.recipe_acts[0]
    run.domain(act.action, {"v": "somebody else"})
    cited = f"#{run.configuration.next_seq - 1}"
    run.inject(
        "evidence-wrong-arguments",
        Return(run.verdict(here), (cited,)),
        "unlicensed-call",
    )
    return True


def _unlicensed(run: Execution, here: Position) -> bool:
    if isinstance(here.step, CompleteStep):
        return False
    if here.layout.soft and here.layout.recipe_acts and "v" in here.frame.locals:
        if run.rng.random() < 0.5:
            act = here.layout.recipe_acts[0]
            arguments: dict[str, Any] = {"v": "somebody else"}
            if here.layout.function.kind is Kind.GATE:
                arguments["secret"] = "42"
            run.calls += 1
            run.inject("unlicensed-call", DomainCall(f"c{run.calls}", act.action, arguments))
            run.do(DomainResult(f"c{run.calls}", True, {}))
            return True
    elif isinstance(here.step, Act) and here.step.goal and run.rng.random() < 0.5:
        arguments = {**run.goal_arguments(here), "x": "somebody else"}
        call_id = run.goal_call(here, arguments)
        made = run.carry_out(call_id, here.step.action, arguments)
        run.inject("unlicensed-call", replace(made, licence=None), *GUARD, *PROOF)
        run.do(DomainResult(call_id, False, {}))
        return True
    run.calls += 1
    run.inject("unlicensed-call", DomainCall(f"c{run.calls}", EXTRA, {"v": 1}))
    run.do(DomainResult(f"c{run.calls}", run.rng.random() < 0.8, {}))
    return True


def _premature(run: Execution, here: Position) -> bool:
    if isinstance(here.step, CompleteStep) or (isinstance(here.step, Act) and here.step.goal):
        return False
    arguments = run.goal_arguments(here)
    call_id = run.goal_call(here, arguments)
    implied = ("skipped-check", "guard-violated", "goal-without-completion", "calls-after-goal")
    ok = run.rng.random() < 0.7
    run.inject("premature-goal", DomainCall(call_id, here.process.goal, arguments), *implied)
    run.do(DomainResult(call_id, ok, {}))
    # What the process still does after its goal ran is not the point of this label.
    run.stopped = True
    return True


def _skipped(run: Execution, here: Position) -> bool:
    if not isinstance(here.step, Check) or here.layout.function.kind is not Kind.PROCESS:
        return False
    if not _premature(run, here):
        return False
    run.label = "skipped-check"
    run.implied |= {"premature-goal"}
    return True


def _after_goal(run: Execution, here: Position) -> bool:
    if not isinstance(here.step, CompleteStep):
        return False
    run.calls += 1
    action = run.rng.choice((EXTRA, here.process.goal))
    arguments = {"v": 1} if action == EXTRA else run.goal_arguments(here)
    run.inject("calls-after-goal", DomainCall(f"c{run.calls}", action, arguments), *GUARD)
    run.do(DomainResult(f"c{run.calls}", True, {}))
    return True


def _causeless(run: Execution, here: Position) -> bool:
    if isinstance(here.step, FailStep | CompleteStep) or _goal_reached(run, here):
        return False
    if any(not e.payload["bound"]["holds"] for e in run.events if e.kind == "return"):
        return False
    if _negative_wanted(run, here):
        return False
    if any(
        e.process == here.process.id and (e.kind == "resumed" or e.payload.get("reactivated"))
        for e in run.events
    ):
        # What the user set aside may be dropped.
        return False
    run.inject("refusal-without-cause", Fail("I would rather not"))
    return True


def _goal_reached(run: Execution, here: Position) -> bool:
    goal = here.process.goal
    return any(r.ok and r.action == goal for r in here.process.results)


def _negative_wanted(run: Execution, here: Position) -> bool:
    """Whether some check of the process wants falsity: then a true result may refuse."""
    return any(
        isinstance(step, Check) and not step.wanted
        for function in here.source.functions.values()
        for step in function.steps
    )


def _claimed(run: Execution, here: Position) -> bool:
    if isinstance(here.step, CompleteStep):
        return False
    run.inject("claimed-completion", Complete("all done"), "goal-without-completion")
    run.stopped = True
    return True


def _uncompleted(run: Execution, here: Position) -> bool:
    if not isinstance(here.step, CompleteStep):
        return False
    last = next(r for r in here.process.results if r.ok and r.action == here.process.goal)
    run.label, run.seq, run.stopped = "goal-without-completion", last.seq, True
    return True


def _wrong_branch(run: Execution, here: Position) -> bool:
    if not isinstance(here.step, Branch):
        return False
    fits = run.world.machine.fits(run.configuration)[0]["option"]
    run.inject("wrong-branch", SelectBranch("otherwise" if fits == "then" else "then"))
    return True


def _unknown(run: Execution, here: Position) -> bool:
    if not here.layout.soft or not here.layout.recipe_acts:
        return False
    if here.layout.function.kind is Kind.GATE:
        return False
    run.calls += 1
    call = DomainCall(
        f"c{run.calls}",
        here.layout.recipe_acts[0].action,
        {"v": here.frame.locals.get("v", 1)},
    )
    if run.rng.random() < 0.5:
        run.inject("unknown-outcome", call, "goal-without-completion")
    else:
        run.do(call)
        note = Note("outcome_unknown", {"call_id": call.call_id, "action": call.action})
        run.inject("unknown-outcome", note, "goal-without-completion")
    run.stopped = run.rng.random() < 0.5
    return True


def _guard(run: Execution, here: Position) -> bool:
    guarded = {one.action for one in here.source.guarded}
    if here.process.goal not in guarded:
        return False
    if not _premature(run, here):
        return False
    run.label = "guard-violated"
    run.implied = run.implied | {"premature-goal", "skipped-check"}
    return True


def _approval(run: Execution, here: Position) -> bool:
    if not (isinstance(here.step, Act) and here.step.goal):
        return False
    guarded = next((g for g in here.source.guarded if g.action == here.step.action), None)
    if guarded is None or not guarded.needed:
        return False
    arguments = run.goal_arguments(here)
    if not _is_proven(run, arguments):
        return False
    roll = run.rng.random()
    call_id = run.goal_call(here, arguments, approve=roll < 0.4)
    if roll < 0.2:
        run.do(Decision("reject", call_id, "person 9", guarded.roles[0]))
    elif roll < 0.4:
        run.clock += 10_000.0
    elif roll < 0.6:
        run.do(Decision("approve", call_id, "person 1", "passer-by"))
    run.inject("approval-missing", DomainCall(call_id, here.step.action, arguments))
    run.do(DomainResult(call_id, True, {}))
    return True


def _is_proven(run: Execution, arguments: dict[str, Any]) -> bool:
    licence = run.guard(arguments)
    return licence is not None and not licence.missing


def _amended(run: Execution, here: Position) -> bool:
    if not (isinstance(here.step, Act) and here.step.goal):
        return False
    guarded = next((g for g in here.source.guarded if g.action == here.step.action), None)
    if guarded is None or not guarded.needed:
        return False
    arguments = run.goal_arguments(here)
    if not _is_proven(run, arguments):
        return False
    call_id = run.goal_call(here, arguments)
    other = {**arguments, "note": "only half of it"}
    run.do(Decision("amend", call_id, "person 0", guarded.roles[0], other))
    run.inject(
        "approval-exceeded",
        DomainCall(call_id, here.step.action, arguments),
        "approval-missing",
    )
    run.do(DomainResult(call_id, True, {}))
    return True


def _idle_call(run: Execution) -> None:
    """After the end: a call while nothing runs, or after the goal."""
    ended = [p for p in run.configuration.processes.values() if not p.frames]
    if not ended:
        return
    last = max(ended, key=lambda p: max(e.seq for e in run.events if e.process == p.id))
    reached = any(r.ok and r.action == last.goal for r in last.results)
    if reached != (run.wanted == "calls-after-goal"):
        return
    run.calls += 1
    assert run.wanted is not None
    run.inject(run.wanted, DomainCall(f"c{run.calls}", EXTRA, {"v": 1}))
    run.do(DomainResult(f"c{run.calls}", True, {}))


VIOLATIONS: dict[str, Violation] = {
    "return-without-evidence": _without_evidence,
    "incomplete-evidence": _incomplete,
    "unproven-verdict": _unproven,
    "evidence-contradicts-verdict": _contradiction,
    "evidence-unresolved": _unresolved,
    "evidence-outside-interval": _outside,
    "evidence-stale": _stale,
    "evidence-wrong-call": _wrong_call,
    "evidence-wrong-arguments": _wrong_arguments,
    "unlicensed-call": _unlicensed,
    "premature-goal": _premature,
    "skipped-check": _skipped,
    "calls-after-goal": _after_goal,
    "refusal-without-cause": _causeless,
    "claimed-completion": _claimed,
    "goal-without-completion": _uncompleted,
    "wrong-branch": _wrong_branch,
    "unknown-outcome": _unknown,
    "guard-violated": _guard,
    "approval-missing": _approval,
    "approval-exceeded": _amended,
}
AFTERWARDS: dict[str, Callable[[Execution], None]] = {
    "calls-after-goal": _idle_call,
    "unlicensed-call": _idle_call,
}


# --- forgeries: traces that no machine makes ------------------------------------------


def edited(event: Event, **changes: Any) -> Event:
    names = ("seq", "at", "actor", "kind", "process", "frame", "payload")
    return Event(**{name: getattr(event, name) for name in names} | changes)


def _forged_completion(run: Execution) -> Labelled | None:
    ends = [e for e in run.events if e.kind == "fail"]
    if not ends:
        return None
    event = run.rng.choice(ends)
    payload = {key: value for key, value in event.payload.items() if key != "reason"}
    forged = edited(event, kind="complete", payload={**payload, "summary": "done"})
    events = [*run.events[: event.seq], forged, *run.events[event.seq + 1 :]]
    return Labelled(tuple(events), "completion-without-goal", event.seq)


_DERIVED = {
    "call": ("resolved", "slot"),
    "return": ("opened", "slot", "bound", "function"),
    "domain_call": ("opened",),
    "domain_result": ("moved", "opened", "call", "action"),
    "start": ("suspended", "opened", "reactivated"),
    "complete": ("label", "unwound"),
    "fail": ("label", "accepting"),
    "reuse": ("holds", "label", "evidence", "producer"),
    "select_branch": ("label",),
    "user_said": ("moved",),
}


def _forged_payload(run: Execution) -> Labelled | None:
    """One field that the machine derived says something else."""
    chances = [e for e in run.events if e.kind in _DERIVED]
    if not chances:
        return None
    event = run.rng.choice(chances)
    if run.rng.random() < 0.2:
        forged = edited(event, frame=f"{event.frame}_2")
    else:
        name = run.rng.choice([key for key in _DERIVED[event.kind] if key in event.payload])
        forged = edited(event, payload={**event.payload, name: _other(event.payload[name])})
    events = [*run.events[: event.seq], forged, *run.events[event.seq + 1 :]]
    # A guard may be judged by a field that was forged, and a lost process ends nowhere.
    return Labelled(tuple(events), "inconsistent-trace", event.seq)


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, dict):
        return {**value, "evidence": [*value.get("evidence", []), 0]}
    if isinstance(value, list):
        return [*value, "elsewhere"]
    return f"{value}_2"


def _tampered(run: Execution) -> Labelled | None:
    sealed = seal_all(run.events, genesis(SESSION))
    if len(sealed) < 4:
        return None
    index = run.rng.randrange(1, len(sealed) - 1)
    roll = run.rng.random()
    if roll < 0.4:
        event = sealed[index].event
        forged = edited(event, payload={**event.payload, "ground": "trust me"})
        one = sealed[index]
        sealed[index] = SealedEvent(forged, one.previous, one.hash, one.format)
    elif roll < 0.7:
        del sealed[index]
    elif roll < 0.9:
        sealed[index], sealed[index + 1] = sealed[index + 1], sealed[index]
    else:
        sealed[index:] = seal_all([one.event for one in sealed[index:]], genesis("another"))
    seq = sealed[index].event.seq
    return Labelled(tuple(sealed), "tampering", seq, frozenset({"*"}))


FORGERIES: dict[str, Callable[[Execution], Labelled | None]] = {
    "completion-without-goal": _forged_completion,
    "inconsistent-trace": _forged_payload,
    "tampering": _tampered,
}
CLASSES = (*VIOLATIONS, *FORGERIES)


def wanted_class(number: int) -> str | None:
    """Every fourth trace is to be clean, the others take the classes in turn."""
    return None if number % 4 == 0 else CLASSES[(number - number // 4 - 1) % len(CLASSES)]


def labelled_trace(world: World, seed: int, wanted: str | None) -> Labelled:
    """One execution; without a chance for ``wanted`` the label stays ``None``: a clean one."""
    rng = random.Random(seed)
    return Execution(world, rng, wanted, patience=rng.choice((0, 0, 1, 2, 4, 8))).run()
