"""What the audit reconstructs from the events, independently of the machine's state.

The run as the audit understands it so far, and where findings are collected.

Programs as the audit reads them: labels resolved, recipes at hand.

Made from the program alone and without the machine's own preparation, so that
a mistake there cannot hide in both.

The calls of a session in the order of the trace, whatever process made them.

A proof reads this list and nothing else: no table is kept of what is newest or fresh.

The SOP's own sentences in an audit: what was judged, about whom.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import cast

from sopilot.audit.findings import Finding, NotJudged, Unjudgeable
from sopilot.handbook.model import BUILT_IN
from sopilot.handbook.wording import fill, named, negative
from sopilot.messages.diagnostic import Severity
from sopilot.program.model import (
    Act,
    ActionFacts,
    Argument,
    Ask,
    Check,
    Do,
    Emit,
    Function,
    Guarded,
    Kind,
    Literal,
    Program,
    Step,
    Unknown,
    known_facts,
)
from sopilot.program.walk import checks_to_blame
from sopilot.trace.events import Event
from sopilot.values.json import (
    JSON,
    MISSING,
    ArgumentsKey,
    Fields,
    Judge,
    Missing,
    same,
    spoken_at,
)


@dataclass(frozen=True, slots=True)
class ResolvedFunction:
    """One function. ``acts`` are the calls of every admissible recipe."""

    function: Function
    steps: Mapping[str, Step]
    behind: Mapping[str, str]
    recipes: tuple[tuple[Act, ...], ...]
    acts: tuple[Act, ...]
    learnable: frozenset[str]

    @property
    def judges(self) -> bool:
        """Whether the function judges a predicate: a rule or a gate."""
        return self.function.kind in (Kind.RULE, Kind.GATE)

    def first(self) -> str:
        return self.function.steps[0].label

    def target(self, step: Check, holds: bool | None) -> str:
        named = step.met if holds == step.wanted else step.unmet
        return named or self.behind[step.label]

    def following(self, step: Act | Ask | Do | Emit) -> str:
        return step.next or self.behind[step.label]


@dataclass(frozen=True, slots=True)
class ProgramCode:
    goal: str
    program: Program
    functions: Mapping[str, ResolvedFunction]
    goal_actions: frozenset[str]
    guarded: Mapping[str, Guarded]

    @property
    def entry(self) -> ResolvedFunction:
        return self.functions[self.program.entry]


def read_program(goal: str, program: Program) -> ProgramCode:
    goals = frozenset(
        step.action
        for function in program.functions.values()
        for step in function.steps
        if isinstance(step, Act) and step.goal
    )
    return ProgramCode(
        goal,
        program,
        {name: _code(function) for name, function in program.functions.items()},
        goals,
        {guarded.action: guarded for guarded in program.guarded},
    )


def _code(function: Function) -> ResolvedFunction:
    labels = [step.label for step in function.steps]
    own = tuple(step for step in function.steps if isinstance(step, Act))
    recipes = ((own,) if own else ()) + tuple(function.fallbacks)
    acts = tuple(act for recipe in recipes for act in recipe)
    learnable = {name for step in function.steps if isinstance(step, Ask) for name in step.wants}
    for step in function.steps:
        if isinstance(step, Check):
            learnable |= {term.name for _, term in step.arguments if isinstance(term, Unknown)}
    for act in acts:
        learnable |= {term.name for _, term in act.arguments if isinstance(term, Unknown)}
    return ResolvedFunction(
        function,
        {step.label: step for step in function.steps},
        dict(pairwise(labels)),
        recipes,
        acts,
        frozenset(learnable),
    )


"""No value is known; ``None`` is one."""


NEITHER = cast("bool", "undecided")
"""Of a result that is there and on neither side."""


@dataclass(frozen=True, slots=True)
class SeenResult:
    """A domain call with its result. ``opened`` names the frame the call was made in."""

    seq: int
    call_seq: int
    call_id: str
    action: str
    arguments: Mapping[str, JSON]
    ok: bool
    value: JSON
    process: str | None
    opened: int


@dataclass(slots=True)
class PendingCall:
    """``uses`` are the answers of the user that it rests on."""

    seq: int
    action: str
    arguments: Mapping[str, JSON]
    process: str | None
    opened: int
    frame: str
    uses: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class BoundSlot:
    """A result in a slot and the return that produced it; of a group, the returns in it that
    are to be ``blamed`` where it did not come out as wanted."""

    holds: bool | None
    evidence: tuple[int, ...]
    producer: int
    function: str
    blamed: frozenset[int] = frozenset()

    @property
    def side(self) -> bool:
        """For conditions: an undecided result is bound, and on neither side."""
        return NEITHER if self.holds is None else self.holds


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict of the executor or the machine on a rule or gate, for the values of its frame."""

    function: str
    values: Mapping[str, JSON]
    holds: bool | None
    evidence: tuple[int, ...]
    seq: int
    opened: int


@dataclass(frozen=True, slots=True)
class UnmetCheck:
    """A check whose result is not what the SOP wants. ``sentence`` is what is required, ``found``
    what came out."""

    predicate: str
    function: str
    sentence: str
    found: str
    remedy: str
    tells: str
    holds: bool | None
    evidence: tuple[int, ...]
    producer: int


@dataclass(slots=True)
class FrameView:
    code: ResolvedFunction
    cursor: str
    values: dict[str, JSON]
    slot: str | None
    opened: int
    path: str
    slots: dict[str, BoundSlot] = field(default_factory=dict)
    borrowed: list[int] = field(default_factory=list)
    user_spoke: bool = False

    @property
    def place(self) -> str:
        return f"{self.path}@{self.cursor}"

    @property
    def step(self) -> Step:
        return self.code.steps[self.cursor]

    def to_blame(self) -> frozenset[int]:
        """The returns without which it would have ended otherwise."""
        results = {name: bound.holds for name, bound in self.slots.items()}
        bound = [self.slots[one.slot] for one in checks_to_blame(self.code.function, results)]
        return frozenset(seq for one in bound for seq in one.blamed or (one.producer,))


@dataclass(slots=True)
class ProcessView:
    """``lost`` once the trace left what the program allows: nothing more is judged in it.
    ``set_aside`` while the user, having spoken in it, has another goal pursued instead.
    """

    id: str
    program: ProgramCode
    frames: list[FrameView]
    arguments: Mapping[str, JSON]
    known: dict[str, JSON]
    status: str = "running"
    gates: dict[tuple[str, ArgumentsKey], BoundSlot] = field(default_factory=dict)
    results: list[SeenResult] = field(default_factory=list)
    unmet: list[UnmetCheck] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    skipped: set[tuple[str, str]] = field(default_factory=set)
    done: list[tuple[str, str, Mapping[str, JSON]]] = field(default_factory=list)
    """Steps, by function and label, that the executor did by itself."""
    goal_reached: int | None = None
    goal_failed: int | None = None
    """The latest failure of the goal action where the program asks for it."""
    claimed: int | None = None
    unanswered: list[tuple[str | None, str]] = field(default_factory=list)
    """What the user was asked while it ran, ``None`` where that is withheld, and what the user
    said to that."""
    set_aside: bool = False
    given_up: bool = False
    """The user or the runtime ended it."""
    lost: bool = False

    @property
    def goal(self) -> str:
        return self.program.goal

    @property
    def top(self) -> FrameView | None:
        return self.frames[-1] if self.frames else None

    def say_the_same(self, left: JSON, right: JSON) -> bool:
        """A withheld value contradicts only another withheld one."""
        if is_withheld(left) != is_withheld(right):
            return True
        return same(left, right)

    def value_of(self, term: Argument, frame: FrameView) -> JSON | Missing:
        """A parameter's value is the frame's alone; other names may be known to the process."""
        if isinstance(term, Literal):
            return term.value
        if term.name in frame.values:
            return frame.values[term.name]
        if term.name in frame.code.function.parameters:
            return MISSING
        return self.known.get(term.name, MISSING)


def is_withheld(value: JSON) -> bool:
    """Whether a redacted trace has a reference in the value's place."""
    return isinstance(value, Mapping) and value.keys() == {"$ref", "bytes"}


def has_withheld(value: JSON) -> bool:
    """Whether a reference stands for some part of the value."""
    if isinstance(value, Mapping):
        return is_withheld(value) or any(map(has_withheld, value.values()))
    return isinstance(value, list | tuple) and any(map(has_withheld, value))


def filled_sentence(
    function: Function,
    constants: Mapping[str, JSON],
    values: Mapping[str, JSON],
    *,
    wanted: bool = True,
) -> str:
    """A rule's sentence with every hole filled: what is not known or withheld is
    called by its name."""
    if function.predicate is None:
        return function.says
    template = function.says
    if template and not wanted:
        template = negative(function.says, function.says_not)
    return _filled(template, function, constants, values)


def found_sentence(
    function: Function,
    constants: Mapping[str, JSON],
    values: Mapping[str, JSON],
    *,
    holds: bool | None,
) -> str:
    """What came out, as a sentence of its own: never the required one with a "not" before it."""
    if holds is None:
        return "it could not be told"
    if function.predicate is None or not function.says:
        return "it holds" if holds else "it does not hold"
    template = function.says
    if not holds:
        template = function.says_not or f"It is not the case that: {template}"
    return _filled(template, function, constants, values)


def _filled(
    template: str,
    function: Function,
    constants: Mapping[str, JSON],
    values: Mapping[str, JSON],
) -> str:
    names = named({name: name for name in function.parameters})
    known = {name: value for name, value in values.items() if not is_withheld(value)}
    return fill(template, {**constants, **names, **known})


@dataclass(slots=True)
class SessionCall:
    """``answered`` is the event of its answer, ``None`` while it is awaited; ``unknown``: it
    broke off, and may have been carried out. ``opened`` names the frame it was made in,
    ``asked_for`` is whether the program asked for it there, ``by_machine`` whether the machine
    made it by itself. ``uses`` are the answers of the user that a guarded call rests on: each
    serves one call."""

    seq: int
    action: str
    arguments: Mapping[str, JSON]
    process: str | None = None
    opened: int = -1
    asked_for: bool = True
    answered: int | None = None
    ok: bool = False
    unknown: bool = False
    value: JSON = None
    by_machine: bool = False
    uses: frozenset[int] = frozenset()

    @property
    def awaited(self) -> bool:
        return self.answered is None

    @property
    def may_have_run(self) -> bool:
        return self.awaited or self.ok or self.unknown

    def done_by(self) -> float:
        """The event by which it had run, if it did; what is awaited, or broke off, may run at
        any time."""
        return float("inf") if self.answered is None or self.unknown else self.answered

    def answered_at(self) -> float:
        return float("inf") if self.answered is None else self.answered


def calls_of(
    calls: Sequence[SessionCall], action: str, arguments: Mapping[str, JSON]
) -> Iterator[SessionCall]:
    """Exactly this call, latest first."""
    wanted = dict(arguments)
    for one in reversed(calls):
        if one.action == action and same(dict(one.arguments), wanted):
            yield one


def newest_answer(
    calls: Sequence[SessionCall], action: str, arguments: Mapping[str, JSON]
) -> SessionCall | None:
    """The one whose answer came last, or one that was asked for since and is awaited. Of two
    answers of the user's, the later word."""
    of_it = list(calls_of(calls, action, arguments))
    spoken = action in BUILT_IN
    newest: SessionCall | None = None
    for one in sorted((one for one in of_it if not one.awaited), key=SessionCall.answered_at):
        if newest is None or not spoken or not _said_before(one, newest):
            newest = one
    for one in of_it:
        if one.awaited and (newest is None or spoken or one.seq > newest.seq):
            return one
    return newest


def _said_before(one: SessionCall, other: SessionCall) -> bool:
    return 0 <= spoken_at(one.value) < spoken_at(other.value)


class Contradiction(Exception):
    """The event could not have happened where the program stands. Never leaves the room."""


CLOSING = ("reject", "expire")
"""Decisions after which a held call waits no longer."""


@dataclass(frozen=True, slots=True)
class CheckMade:
    """One return of a rule or gate, for the score card and the report."""

    seq: int
    process: str
    frame: str
    predicate: str
    sentence: str
    holds: bool | None
    evidence: tuple[int, ...]
    needs_evidence: bool
    covered: bool
    grade: str = ""
    """``proven``, ``attested`` or ``claimed``, by the audit's own reading; nothing for a verdict
    that says neither true nor false."""

    def as_json(self) -> dict[str, JSON]:
        return asdict(self) | {"evidence": list(self.evidence)}


@dataclass(frozen=True, slots=True)
class RefusedGoal:
    """Why a process was refused. ``causes`` is empty for one without a false predicate;
    ``obstacle`` is what kept a goal from being carried out that no predicate forbids. ``follows``
    is what the program says comes next; ``starts`` is the goal, where it is one."""

    seq: int
    process: str
    goal: str
    reason: str
    causes: tuple[Fields, ...]
    obstacle: str = ""
    follows: str = ""
    starts: str = ""

    def as_json(self) -> dict[str, JSON]:
        return {
            "seq": self.seq,
            "process": self.process,
            "goal": self.goal,
            "reason": self.reason,
            "causes": [dict(cause) for cause in self.causes],
            "obstacle": self.obstacle,
            "follows": self.follows,
        }


@dataclass(frozen=True, slots=True)
class Override:
    """A guarded call that people let through although something it rests on wasn't proven."""

    seq: int
    action: str
    by: tuple[str, ...]
    unproven: tuple[str, ...]

    def as_json(self) -> dict[str, JSON]:
        return asdict(self) | {"by": list(self.by), "unproven": list(self.unproven)}


DoubtKey = tuple[str, str, ArgumentsKey, str]
"""Code, predicate and its values."""


@dataclass(frozen=True, slots=True)
class HeldRequest:
    """A call that waits for people; ``doubts`` are what was not proven when they were asked."""

    action: str
    arguments: Mapping[str, JSON]
    process: str | None
    doubts: frozenset[DoubtKey]


@dataclass(slots=True)
class AuditState:
    programs: Mapping[str, ProgramCode]
    judge: Judge | None = None
    processes: dict[str, ProcessView] = field(default_factory=dict)
    active: str | None = None
    suspended: list[str] = field(default_factory=list)
    pending: dict[str, PendingCall] = field(default_factory=dict)
    results: dict[int, SeenResult] = field(default_factory=dict)
    goal_seq: int = -1
    clock: str = ""
    connected: dict[str, int] = field(default_factory=dict)
    """Action → since when it is called on its present connection."""
    user_messages: dict[int, JSON] = field(default_factory=dict)
    answering: set[int] = field(default_factory=set)
    last_ended: str | None = None
    decisions: dict[str, list[Event]] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)
    requests: dict[str, HeldRequest] = field(default_factory=dict)
    session_calls: list[SessionCall] = field(default_factory=list)
    moved: int = -1
    """The last event that a model or a person made."""
    """Every call of the session, in the order in which they were made."""
    awaiting: dict[str, SessionCall] = field(default_factory=dict)
    held_back: set[tuple[str, str | None, str]] = field(default_factory=set)
    unknown: dict[str, int] = field(default_factory=dict)
    unsettled: dict[str, int] = field(default_factory=dict)
    """Call id → the place among the findings of the one that says so."""
    not_offered: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    not_judged: list[NotJudged] = field(default_factory=list)
    overrides: list[Override] = field(default_factory=list)
    checks: list[CheckMade] = field(default_factory=list)
    producers: dict[int, int] = field(default_factory=dict)
    reused: int = 0
    rejected: int = 0
    blind: bool = False
    """Something needed was withheld: contradictions behind it prove nothing."""
    calls: int = 0
    calls_after_goal: int = 0
    late_look_ups: list[tuple[Event, str]] = field(default_factory=list)
    """Look-ups since a process reached its goal and ended, until another one starts."""
    refusals: list[RefusedGoal] = field(default_factory=list)
    said: str | None = ""
    """What the user was told last."""
    """A program of the first format ran, and that was noted."""
    facts: Mapping[str, ActionFacts] = field(init=False)
    """What is known of the actions; empty where nothing is guarded."""

    def __post_init__(self) -> None:
        self.go_on_with(self.programs)

    def go_on_with(self, programs: Mapping[str, ProgramCode]) -> None:
        self.programs = programs
        self.facts = known_facts(code.program for code in programs.values())

    def only_reads(self, action: str) -> bool:
        """Whether the handbook says that an action changes nothing, gates included."""
        if action in self.goal_actions or any(
            one.action == action
            for code in self.programs.values()
            for function in code.functions.values()
            if function.function.kind is Kind.GATE
            for one in function.acts
        ):
            return False
        fact = self.facts.get(action)
        if fact is not None:
            return fact.changes == ()
        return any(action in code.program.read_only for code in self.programs.values())

    def looks_up(self, action: str) -> bool:
        """Whether an action only reads, or verifies or opens something that a procedure asks
        for. Nobody is harmed by such a call, whenever it is made."""
        if action in self.goal_actions or any(action in c.guarded for c in self.programs.values()):
            return False
        return self.only_reads(action) or any(
            one.action == action
            for code in self.programs.values()
            for function in code.functions.values()
            if function.judges
            for one in function.acts
        )

    def unguarded(self) -> tuple[str, ...]:
        """The goals' actions that were called and that no program would have held."""
        guarded = {one.action for code in self.programs.values() for one in code.program.guarded}
        called = {one.action for one in self.session_calls}
        return tuple(sorted((called & self.goal_actions) - guarded))

    @property
    def process(self) -> ProcessView | None:
        return self.processes[self.active] if self.active is not None else None

    @property
    def top(self) -> FrameView | None:
        return self.process.top if self.process is not None else None

    @property
    def goal_actions(self) -> frozenset[str]:
        return frozenset().union(*(code.goal_actions for code in self.programs.values()))

    @property
    def waits_for_people(self) -> bool:
        """A call asks for an approval, or its outcome is unknown until somebody settles it."""
        return bool(self.unknown) or any(
            not any(one.payload.get("decision") in CLOSING for one in self.decisions.get(held, ()))
            for held in self.held
        )

    def place(self) -> str:
        return self.top.place if self.top is not None else ""

    def here(self) -> tuple[ProcessView, FrameView]:
        process = self.process
        if process is None or process.top is None:
            raise Contradiction("no process is running")
        return process, process.top

    def settled(self, call_id: str) -> None:
        """It is known now how the call ended: what was a warning is history."""
        place = self.unsettled.pop(call_id, None)
        if place is not None:
            found = self.findings[place]
            told = f"{found.explanation} until it was settled"
            self.findings[place] = replace(found, explanation=told, severity=Severity.NOTE)

    def find(
        self,
        code: str,
        event: Event,
        explanation: str,
        *,
        process: ProcessView | None = None,
        frame: str | None = None,
        predicate: str | None = None,
        sentence: str = "",
        severity: Severity = Severity.ERROR,
        **details: JSON,
    ) -> None:
        self.findings.append(
            Finding(
                code,
                event.seq,
                explanation,
                process.id if process is not None else event.process,
                event.frame if frame is None else frame,
                predicate,
                sentence,
                severity,
                details,
            )
        )

    def leave_unjudged(
        self,
        event: Event,
        explanation: str,
        *,
        reason: Unjudgeable = Unjudgeable.SECRET,
        action: str | None = None,
        predicate: str | None = None,
    ) -> None:
        """Record that nothing can be said about this event, instead of a finding."""
        self.not_judged.append(NotJudged(reason, explanation, event.seq, action, predicate))

    def sentence_of(self, process: ProcessView, frame: FrameView, *, wanted: bool = True) -> str:
        """The function's own sentence under the frame's values."""
        constants = process.program.program.constants
        return filled_sentence(frame.code.function, constants, frame.values, wanted=wanted)


def mapping(payload: Mapping[str, JSON], key: str) -> dict[str, JSON]:
    """An object in a payload; a withheld or missing one is a contradiction to read around."""
    value = payload.get(key, {})
    if is_withheld(value):
        raise Contradiction(f"`{key}` is withheld")
    if not isinstance(value, Mapping):
        raise Contradiction(f"`{key}` is not an object")
    return dict(value)


def text(payload: Mapping[str, JSON], key: str) -> str:
    value = payload.get(key)
    if not isinstance(value, str):
        raise Contradiction(f"`{key}` is not a string")
    return value


def boolean(payload: Mapping[str, JSON], key: str) -> bool:
    value = payload.get(key)
    if not isinstance(value, bool):
        raise Contradiction(f"`{key}` is not true or false")
    return value


def expect(payload: Mapping[str, JSON], key: str, computed: JSON) -> None:
    """The machine's own field must say what the audit computed. Exactly: ``True`` is not 1."""
    if key not in payload:
        raise Contradiction(f"`{key}` is missing")
    found = payload[key]
    if not _identical(found, computed):
        raise Contradiction(f"`{key}` says {_show(found)}, the trace shows {_show(computed)}")


def _identical(left: JSON, right: JSON) -> bool:
    if is_withheld(left) or is_withheld(right):
        return True
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_identical(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_identical, left, right))
    return bool(left == right)


def _show(value: JSON) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"
