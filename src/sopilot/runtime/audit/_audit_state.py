"""The run as the audit understands it so far, and where findings are collected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from sopilot.language.diagnostics import Severity
from sopilot.language.program.facts import known_facts
from sopilot.language.program.model import ActionFacts, Kind
from sopilot.runtime.audit._finding import Finding
from sopilot.runtime.audit._resolved_function import ProgramCode
from sopilot.runtime.audit._sentence import filled_sentence
from sopilot.runtime.audit._session_calls import SessionCall
from sopilot.runtime.audit._state import (
    FrameView,
    PendingCall,
    ProcessView,
    SeenResult,
    is_withheld,
)
from sopilot.runtime.vm.events import Event
from sopilot.runtime.vm.values import JSON, ArgumentsKey, Fields, Judge


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


DoubtKey = tuple[str, str, ArgumentsKey]
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
    checks: list[CheckMade] = field(default_factory=list)
    producers: dict[int, int] = field(default_factory=dict)
    reused: int = 0
    rejected: int = 0
    blind: bool = False
    """Something needed was withheld: contradictions behind it prove nothing."""
    calls: int = 0
    calls_after_goal: int = 0
    refusals: list[RefusedGoal] = field(default_factory=list)
    said: str | None = ""
    """What the user was told last."""
    old_format: bool = False
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
