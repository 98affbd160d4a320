"""The state of an audit: the machine's replay, and the audit's own notes.

The machine's configuration between two events says where a process stands and what it knows. The
list of all calls, in the order of the trace, is the audit's own: a proof reads that list and
nothing else, without tables of the newest or fresh answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sopilot.audit.findings import Finding, NotJudged, Unjudgeable
from sopilot.handbook.model import BUILT_IN
from sopilot.handbook.wording import denied, fill, named, negative
from sopilot.machine.evidence import is_done
from sopilot.machine.layout import FunctionLayout, Position, ProgramLayout, locate
from sopilot.machine.replay import Replay
from sopilot.machine.state import NEVER, CallRecord, Configuration, Frame, Process
from sopilot.messages.catalogue import sentence
from sopilot.messages.diagnostic import Severity
from sopilot.program.model import Act, ActionFacts, Function, Kind, Program, Step
from sopilot.trace.events import Event
from sopilot.trace.redaction import is_reference
from sopilot.values.json import JSON, ArgumentsKey, Fields, Judge, same, spoken_at
from sopilot.values.text import CodedText


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
    """A check that came out otherwise than required: ``sentence`` is the required one, ``actual``
    the other. ``producer`` is the return that bound it."""

    predicate: str
    sentence: str
    actual: str
    remedy: str
    customer_message: str
    holds: bool | None
    evidence: tuple[int, ...]
    producer: int | None

    def as_cause(self) -> Fields:
        return {
            "predicate": self.predicate,
            "sentence": self.sentence,
            "found": self.actual,
            "holds": self.holds,
            "evidence": list(self.evidence),
            "return": self.producer,
            "remedy": self.remedy,
            "customer_message": self.customer_message,
        }


@dataclass(slots=True)
class ProcessView:
    """A process: its state before the judged event, and the audit's notes.

    ``lost``: the trace left what the program allows, so nothing more is judged in it.
    ``set_aside``: the user spoke in it and then asked for another goal.
    """

    id: str
    goal: str
    program: ProgramLayout
    state: Process
    unmet: list[UnmetCheck] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    skipped: set[tuple[str, str]] = field(default_factory=set)
    spoken_in: set[int] = field(default_factory=set)
    """The frames in which the user spoke, by the event that opened them."""
    goal_reached: int | None = None
    goal_failed: int | None = None
    """The latest failure of the goal action where the program asks for it."""
    claimed: int | None = None
    unanswered: list[tuple[str | None, str]] = field(default_factory=list)
    """The messages to the user while it ran, ``None`` where withheld, each with the reply."""
    set_aside: bool = False
    given_up: bool = False
    """The user or the runtime ended it."""
    lost: bool = False
    direct: bool = False
    """It began at the goal action: the agent follows no protocol, and the guard alone decides."""

    @property
    def frames(self) -> tuple[Frame, ...]:
        return self.state.frames

    @property
    def root_values(self) -> dict[str, JSON]:
        """The known values; those of the root frame take precedence."""
        return {**self.state.known, **self.state.frames[0].locals}


def _begins_at_goal(program: ProgramLayout, frame: Frame) -> bool:
    step = step_of(program, frame)
    return isinstance(step, Act) and step.goal


def standing_at(
    program: ProgramLayout, cursor: str, values: Mapping[str, JSON], opened: int = NEVER
) -> ProcessView:
    """A process that never ran, at ``cursor`` of ``program``, with these values."""
    entry = program.entry
    frame = Frame(entry.name, cursor, values, {}, opened, entry.name)
    state = Process("", entry.name, "", values, (frame,), known=values)
    return ProcessView("", entry.name, program, state)


def step_of(program: ProgramLayout, frame: Frame) -> Step:
    """The step at a frame's cursor."""
    return program.functions[frame.function].steps[frame.cursor]


def verifies(program: ProgramLayout, action: str, *kinds: Kind) -> bool:
    """Whether rules or gates ask for the action, or functions of these kinds."""
    return any(
        act.action == action
        for layout in program.functions.values()
        if layout.function.kind in (kinds or (Kind.RULE, Kind.GATE))
        for act in layout.recipe_acts
    )


def covered(here: Position, results: Sequence[CallRecord]) -> bool:
    """Whether some recipe has every call of it among the results."""
    return any(all(is_done(here, act, results) for act in recipe) for recipe in here.layout.recipes)


def filled_sentence(
    function: Function,
    constants: Mapping[str, JSON],
    values: Mapping[str, JSON],
    *,
    wanted: bool = True,
) -> str:
    """A rule's sentence with its values. The name stands for a value that is unknown or
    withheld."""
    if function.predicate is None:
        return function.says
    template = function.says
    if template and not wanted:
        template = negative(function.says, function.says_not)
    return _filled(template, function, constants, values)


def actual_sentence(
    function: Function,
    constants: Mapping[str, JSON],
    values: Mapping[str, JSON],
    *,
    holds: bool | None,
) -> str:
    """The outcome as a sentence of its own: never the required one with a "not" before it."""
    if holds is None:
        return sentence("audit.not-decided")
    if function.predicate is None or not function.says:
        return sentence("audit.holds" if holds else "audit.holds-not")
    template = function.says if holds else denied(function.says, function.says_not)
    return _filled(template, function, constants, values)


def _filled(
    template: str,
    function: Function,
    constants: Mapping[str, JSON],
    values: Mapping[str, JSON],
) -> str:
    names = named({name: name for name in function.parameters})
    known = {name: value for name, value in values.items() if not is_reference(value)}
    return fill(template, {**constants, **names, **known})


@dataclass(slots=True)
class SessionCall:
    """A call and its answer.

    ``answered`` is the event of its answer, ``None`` while it is awaited; ``unknown``: it
    broke off, and may have been carried out. ``opened`` names the frame it was made in and
    ``place`` where the program stood, ``asked_for`` is whether the program asked for it there,
    ``by_machine`` whether the machine made it by itself. ``uses`` are the answers of the user
    that a guarded call rests on: each serves one call.
    """

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
    place: str = ""
    message: int = -1
    """In a transcript: the message that it stands in."""
    answer_number: int = -1
    """In a transcript: the place of its answer among the answers."""
    answers_before: int = 0
    """In a transcript: the answers that stand before it."""
    unclear: bool = False
    """In a transcript: it was answered, and the answer may say that it failed."""
    is_readable: bool = True
    """Whether its arguments are an object."""
    heard: bool = False
    """In a transcript: no call, but a confirmation in the user's own words."""

    @property
    def awaited(self) -> bool:
        return self.answered is None

    @property
    def ran(self) -> bool:
        """Whether the tool did not turn it away."""
        return self.ok or self.unknown

    @property
    def may_have_run(self) -> bool:
        return self.awaited or self.ok or self.unknown

    def done_by(self) -> float:
        """The event by which it had run, if at all. A call that is awaited or broke off may run
        at any time."""
        return float("inf") if self.answered is None or self.unknown else self.answered

    def answered_at(self) -> float:
        return float("inf") if self.answered is None else self.answered


def calls_of(
    calls: Sequence[SessionCall], action: str, arguments: Mapping[str, JSON]
) -> Iterator[SessionCall]:
    """Exactly this call, latest first."""
    wanted = dict(arguments)
    for call in reversed(calls):
        if call.action == action and same(dict(call.arguments), wanted):
            yield call


def newest_answer(
    calls: Sequence[SessionCall], action: str, arguments: Mapping[str, JSON]
) -> SessionCall | None:
    """The call whose answer came last, or a later one that is awaited. Of two answers of the
    user, the later message counts."""
    of_it = list(calls_of(calls, action, arguments))
    spoken = action in BUILT_IN
    newest: SessionCall | None = None
    for item in sorted(
        (entry for entry in of_it if not entry.awaited), key=SessionCall.answered_at
    ):
        if newest is None or not spoken or not _said_before(item, newest):
            newest = item
    for item in of_it:
        if item.awaited and (newest is None or spoken or item.seq > newest.seq):
            return item
    return newest


def _said_before(session_call: SessionCall, other: SessionCall) -> bool:
    return 0 <= spoken_at(session_call.value) < spoken_at(other.value)


def _plain_fields(text: str) -> dict[str, Any]:
    """The fields of a message that are values and no messages themselves."""
    if not isinstance(text, CodedText):
        return {}
    known = {str(name): value for name, value in text.fields.items()}
    return {
        name: value
        for name, value in known.items()
        if isinstance(value, str | int) and not isinstance(value, CodedText)
    }


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
    wanted: bool = True

    @property
    def met(self) -> bool:
        """Whether the outcome is the required one."""
        return self.holds is self.wanted

    def as_json(self) -> dict[str, JSON]:
        return asdict(self) | {
            "sentence": str(self.sentence),
            "evidence": list(self.evidence),
            "met": self.met,
        }


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
            "causes": [
                {key: str(item) if isinstance(item, str) else item for key, item in cause.items()}
                for cause in self.causes
            ],
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
    """A call that waits for approval; ``doubts`` is what was unproven when it was held."""

    action: str
    arguments: Mapping[str, JSON]
    process: str | None
    doubts: frozenset[DoubtKey]


@dataclass(slots=True)
class AuditState:
    replay: Replay
    judge: Judge | None = None
    clock: str = ""
    """The clock's last reading."""
    unled: bool = False
    """The session was opened under a guard view: its agent follows no protocol."""
    processes: dict[str, ProcessView] = field(default_factory=dict)
    connected: dict[str, int] = field(default_factory=dict)
    """Action → since when it is called on its present connection."""
    user_messages: dict[int, JSON] = field(default_factory=dict)
    answering: set[int] = field(default_factory=set)
    last_ended: str | None = None
    decisions: dict[str, list[Event]] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)
    requests: dict[str, HeldRequest] = field(default_factory=dict)
    session_calls: list[SessionCall] = field(default_factory=list)
    """Every call of the session, in the order in which they were made."""
    moved: int = -1
    """The last event that a model or a person made."""
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
    proofs: dict[int, tuple[CheckMade, ...]] = field(default_factory=dict)
    """Event of a guarded call, made or held → its requirements as the trace shows them."""
    reused: int = 0
    rejected: int = 0
    blind: bool = False
    """Something needed was withheld: contradictions behind it prove nothing."""
    calls: int = 0
    calls_after_goal: int = 0
    late_look_ups: list[tuple[Event, str]] = field(default_factory=list)
    """Look-ups since a process reached its goal and ended, until another one starts."""
    refusals: list[RefusedGoal] = field(default_factory=list)
    last_words: str | None = ""
    """The last message to the user, in lower case; ``None`` where it is withheld."""
    configuration: Configuration = field(init=False)
    """Before the event that is judged."""
    principals: tuple[FunctionLayout, ...] = field(init=False)
    """The gates that are open for one customer at a time."""

    def __post_init__(self) -> None:
        self.configuration = self.replay.configuration
        self.principals = self._principals()

    def _principals(self) -> tuple[FunctionLayout, ...]:
        return tuple(
            layout
            for program in self.programs.values()
            for layout in program.functions.values()
            if layout.function.principal
        )

    @property
    def programs(self) -> Mapping[str, ProgramLayout]:
        return self.replay.machine.programs.layouts

    @property
    def facts(self) -> Mapping[str, ActionFacts]:
        """The facts about actions; empty if nothing is guarded."""
        return self.replay.machine.programs.actions

    @property
    def goal_actions(self) -> frozenset[str]:
        return self.replay.machine.programs.goal_actions

    def go_on_with(self, programs: Mapping[str, Program]) -> None:
        self.replay.continue_with(programs)
        self.principals = self._principals()

    def take(self, configuration: Configuration) -> None:
        """Judge the next event from this configuration."""
        self.configuration = configuration
        for id_, state in configuration.processes.items():
            process = self.processes.get(id_)
            if process is None:
                program = self.programs[state.goal]
                direct = bool(state.frames) and _begins_at_goal(program, state.frames[0])
                self.processes[id_] = ProcessView(id_, state.goal, program, state, direct=direct)
            else:
                process.state = state

    @property
    def guarded(self) -> set[str]:
        """The actions that some program guards."""
        return {action for program in self.programs.values() for action in program.guarded}

    def only_reads(self, action: str) -> bool:
        """Whether the handbook says that an action changes nothing, gates included."""
        programs = self.programs.values()
        opens = any(verifies(program, action, Kind.GATE) for program in programs)
        if opens or action in self.goal_actions:
            return False
        fact = self.facts.get(action)
        if fact is not None:
            return fact.changes == ()
        return any(action in program.program.read_only for program in programs)

    def looks_up(self, action: str) -> bool:
        """Whether an action only reads, or verifies or opens something that a procedure asks
        for. Such a call harms nobody."""
        if action in self.goal_actions or action in self.guarded:
            return False
        asked_for = any(verifies(program, action) for program in self.programs.values())
        return asked_for or self.only_reads(action)

    def unguarded(self) -> tuple[str, ...]:
        """The goals' actions that were called and that no program would have held."""
        called = {session_call.action for session_call in self.session_calls}
        return tuple(sorted((called & self.goal_actions) - self.guarded))

    @property
    def active(self) -> str | None:
        return self.configuration.active

    @property
    def process(self) -> ProcessView | None:
        return self.processes[self.active] if self.active is not None else None

    @property
    def here(self) -> Position | None:
        """Where the active process stands."""
        return locate(self.replay.machine.programs, self.configuration)

    @property
    def waits_for_people(self) -> bool:
        """A call asks for an approval, or its outcome is unknown until a person resolves it."""
        return bool(self.unknown) or any(
            not any(
                item.payload.get("decision") in CLOSING for item in self.decisions.get(held, ())
            )
            for held in self.held
        )

    def settled(self, call_id: str) -> None:
        """Turn the warning about an outcome that was unknown into a note."""
        place = self.unsettled.pop(call_id, None)
        if place is not None:
            result = self.findings[place]
            message = sentence("audit.until-resolved", why=result.explanation)
            self.findings[place] = replace(result, explanation=message, severity=Severity.NOTE)

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
        """Details have the fields of the explanation, too. Without a sentence or a predicate the
        finding is about the procedure, and quotes that."""
        if not sentence and predicate is None and process is not None:
            sentence = process.program.entry.function.says
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
                {**_plain_fields(explanation), **details},
            )
        )

    def leave_unjudged(
        self, event: Event, explanation: str, *, reason: Unjudgeable = Unjudgeable.SECRET
    ) -> None:
        """Record that this event can't be judged, instead of a finding. The fields of the
        explanation name the action or the predicate."""
        fields = _plain_fields(explanation)
        about = (fields.get("action"), fields.get("predicate"))
        self.not_judged.append(NotJudged(reason, explanation, event.seq, *about))

    def sentence_of(self, here: Position, *, wanted: bool = True) -> str:
        """The function's own sentence under the frame's values."""
        return filled_sentence(
            here.layout.function, here.source.constants, here.frame.locals, wanted=wanted
        )
