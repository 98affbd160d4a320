"""A session at the pure core: machine, guard and simulator, without store or event loop."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from adversary.handbooks import Book
from adversary.requirements import Words, spoken
from adversary.simulator import Simulator
from adversary.tools import ASK, CONFIRM, TOOLS, iso, perform
from adversary.values import JSON
from sopilot.audit.audit import audit_trace
from sopilot.audit.findings import Finding
from sopilot.handbook.expressions import judge
from sopilot.machine.automation import Automation
from sopilot.machine.state import Configuration
from sopilot.program.model import Program
from sopilot.proof.guard import hold_reason
from sopilot.proof.licence import Licence, license_call
from sopilot.trace.chain import SealedEvent
from sopilot.trace.events import (
    CLOCK,
    CONNECTED,
    DomainCall,
    DomainResult,
    Event,
    Note,
    Operation,
    Return,
    Start,
    UserSaid,
)
from sopilot.values.json import plain, plain_mapping, without_references


def licence_of(
    book: Book,
    configuration: Configuration,
    action: str,
    arguments: Mapping[str, JSON],
) -> Licence | None:
    """``None`` where the call is held."""
    if hold_reason(book.machine, configuration, action, arguments) is not None:
        return None
    here = book.machine.position(configuration)
    assert here is not None
    licence = license_call(here, arguments, judge)
    return None if licence.missing else licence


def contradictions(
    programs: Mapping[str, Program], events: Sequence[Event] | Sequence[SealedEvent]
) -> list[Finding]:
    """Calls that the guard let through and the audit finds unproven, calls that it held and the
    audit finds proven, grades that differ, and a trace that does not replay."""
    report = audit_trace(programs, events, judge=judge, ended=False)
    return [
        one
        for one in report.findings
        if one.code in ("guard-violated", "guard-disagrees", "inconsistent-trace")
        or "ran unproven" in one.explanation
    ]


BUSY = (False, {"error": "busy"})
"""Nothing was done."""
BROKEN = (False, {"error": "broke off"})
"""It was done, or is done later, and the answer got lost."""


@dataclass
class Tally:
    """What happened, over any number of plays."""

    moves: int = 0
    sessions: int = 0
    attempted: int = 0
    held: int = 0
    carried_out: int = 0
    own_calls: int = 0
    """Calls that the runtime made by itself."""
    audited: int = 0
    """Sessions on which the audit was asked as well."""
    apart: list[str] = field(default_factory=list)
    """Where guard and audit contradict each other."""
    denied: list[Violation] = field(default_factory=list)
    predicates: Counter[str] = field(default_factory=Counter)
    """Predicate → how many calls were carried out whose requirement speaks of it."""

    def add(self, other: Tally) -> None:
        for item in fields(Tally):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))

    def audit(
        self,
        programs: Mapping[str, Program],
        events: Sequence[Event] | Sequence[SealedEvent],
        *,
        overridden: bool = False,
    ) -> None:
        """``overridden``: a person let a call through without its proof, and the audit says so."""
        self.audited += 1
        self.apart += [
            f"{finding.code} at {finding.seq}: {finding.explanation}"
            for finding in contradictions(programs, events)
            if not (overridden and "ran unproven" in finding.explanation)
        ]

    def carry_out(
        self,
        book: Book,
        sim: Simulator,
        configuration: Configuration,
        call: tuple[str, Mapping[str, JSON]],
        words: Mapping[str, Words] | None = None,
        *,
        excused: bool = False,
    ) -> None:
        """Judge a guarded call that is about to be carried out, by the simulator alone."""
        self.carried_out += 1
        process = configuration.process
        goal = process.goal if process is not None else None
        action, arguments = call
        if process is not None and goal is not None:
            said = words.get(process.id, {}) if words is not None else None
            self.predicates.update(book.predicates_of[goal])
            serves = book.procedures[goal].action == action
            if serves and (excused or book.simulator_allows(sim, goal, arguments, said)):
                sim.rests_on = action, book.answers_needed(sim, goal, arguments, said)
                return
        self.deny(book, configuration, call)

    def deny(
        self, book: Book, configuration: Configuration, call: tuple[str, Mapping[str, JSON]]
    ) -> None:
        """A call that was carried out and must not have been."""
        process = configuration.process
        self.denied.append(Violation(book, process.goal if process is not None else None, *call))


@dataclass(frozen=True)
class Violation:
    """A guarded call that was carried out although the simulator denies its requirement."""

    book: Book
    goal: str | None
    action: str
    arguments: Mapping[str, JSON]


@dataclass(frozen=True)
class InFlight:
    """A call without an answer yet. ``answer`` is there when the simulator was asked at once."""

    action: str
    arguments: Mapping[str, JSON]
    answer: tuple[bool, JSON] | None
    trouble: str
    connection: int


def connected(sim: Simulator) -> dict[str, JSON]:
    """The one upstream that has all tools, but for the machine's own."""
    actions = [name for name in TOOLS if name not in (ASK, CONFIRM)]
    return {"upstream": "desk", "connection": str(sim.connection), "actions": actions}


def remember_word(
    book: Book,
    before: Configuration,
    operation: Return,
    words: dict[str, dict[tuple[str, str], bool | None]],
) -> None:
    """Take down what a model returned on a predicate that it may judge."""
    process, frame = before.process, before.frame
    if not book.trusting or process is None or frame is None:
        return
    program = book.programs[process.goal]
    fact = book.facts.get(program.functions[frame.function].predicate or "")
    if fact is not None and fact.judged == "model":
        values = [frame.locals.get(name) for name, _ in fact.parameters]
        words.setdefault(process.id, {})[spoken(fact.name, values)] = operation.holds


class CorePlay:
    def __init__(
        self,
        book: Book,
        sim: Simulator,
        rng: random.Random,
        tally: Tally,
        automation: Automation | None = None,
    ) -> None:
        self.book = book
        self.sim = sim
        self.rng = rng
        self.tally = tally
        self.automation = automation
        self.configuration: Configuration = book.machine.initial()
        self.events: list[Event] = []
        self.in_flight: dict[str, InFlight] = {}
        self.licence: Mapping[str, JSON] | None = None
        self.words: dict[str, dict[tuple[str, str], bool | None]] = {}
        self.calls = 0
        self.clock = 0.0
        self.busy = 0.1
        self.breaks = 0.01

    def close(self) -> None:
        """Nothing to close."""

    def audit(self) -> None:
        self.tally.audit(self.book.programs, self.events)

    # --- operations -------------------------------------------------------------------

    def operate(self, operation: Operation) -> bool:
        self.tally.moves += 1
        before = self.configuration
        accepted = self._step(operation)
        if accepted and isinstance(operation, Return):
            remember_word(self.book, before, operation, self.words)
        return accepted

    def _step(self, operation: Operation) -> bool:
        self.clock += 1.0
        self.sim.time += 1
        machine = self.book.machine
        if isinstance(operation, Start | DomainResult | Return):
            self._look_at_clock()
        outcome = machine.step(self.configuration, operation, at=self.clock)
        self.configuration = outcome.configuration
        self.events += outcome.events
        if outcome.accepted and self.automation is not None:
            settled = machine.automate(
                self.configuration, self.automation, at=self.clock, judge=judge
            )
            self.configuration = settled.configuration
            self.events += settled.events
        return outcome.accepted

    def _look_at_clock(self) -> None:
        """As a session does."""
        if not self.book.reads_clock:
            return
        note = Note(CLOCK, {"now": iso(self.sim.time)})
        outcome = self.book.machine.step(self.configuration, note, at=self.clock)
        self.configuration = outcome.configuration
        self.events += outcome.events

    # --- calls ------------------------------------------------------------------------

    def call(self, action: str, arguments: Mapping[str, JSON]) -> tuple[bool, JSON] | None:
        """Made and answered; ``None`` when the call was held."""
        return self._call(action, arguments, self._trouble())

    def call_failing(self, action: str, arguments: Mapping[str, JSON]) -> None:
        """The tool is busy: it answers with an error, and nothing was done."""
        self._call(action, arguments, "busy")

    def call_breaking(self, action: str, arguments: Mapping[str, JSON]) -> None:
        """The tool doesn't answer: it was carried out, or will be at any later moment."""
        self._call(action, arguments, self.rng.choice(("broken", "late")))

    def back_up(self) -> None:
        """There is no store here."""

    def restore(self) -> None:
        """As above."""

    def _call(
        self, action: str, arguments: Mapping[str, JSON], trouble: str
    ) -> tuple[bool, JSON] | None:
        self.calls += 1
        call_id = f"c{self.calls}"
        if not self._admitted(action, arguments):
            return None
        wanted = self._begin(call_id, action, arguments)
        if trouble in ("broken", "late") and action not in (ASK, CONFIRM):
            # As in a session, it is open until somebody says how it ended: by `deliver`.
            done = trouble == "broken" or action in self.book.guarded
            answer = self._performed(action, wanted, "") if done else None
            connection = self.sim.connection
            self.in_flight[call_id] = InFlight(action, wanted, answer, "", connection)
            return BROKEN
        answer = self._performed(action, wanted, trouble)
        self._answer(call_id, answer)
        return answer

    def begin(self, action: str, arguments: Mapping[str, JSON], *, at_once: bool) -> None:
        """Made, not yet answered. The simulator is asked ``at_once`` or when the answer comes."""
        self.calls += 1
        call_id, trouble = f"c{self.calls}", self._trouble()
        if not self._admitted(action, arguments):
            return
        wanted = self._begin(call_id, action, arguments)
        now = at_once or action in self.book.guarded
        answer = self._performed(action, wanted, trouble) if now else None
        connection = self.sim.connection
        self.in_flight[call_id] = InFlight(action, wanted, answer, trouble, connection)

    def deliver(self, call_id: str) -> None:
        self.tally.moves += 1
        call = self.in_flight.pop(call_id)
        answer = call.answer or self._performed(
            call.action, call.arguments, call.trouble, call.connection
        )
        self._answer(call_id, answer)

    def reconnect(self) -> None:
        """The upstream is another one from now on, as a session notes it."""
        self.tally.moves += 1
        self.sim.reconnect()
        self._step(Note(CONNECTED, connected(self.sim)))

    def _trouble(self) -> str:
        roll = self.rng.random()
        if roll < self.busy:
            return "busy"
        if roll > 1.0 - self.breaks:
            return "broken" if self.rng.random() < 0.5 else "late"
        return ""

    def _performed(
        self, action: str, arguments: Mapping[str, JSON], trouble: str, connection: int = 0
    ) -> tuple[bool, JSON]:
        if trouble == "busy":
            return BUSY
        answer = perform(self.sim, action, arguments, connection)
        if action in (ASK, CONFIRM):
            # As a session does: the user's own message is the evidence, by its number.
            message = self.configuration.next_seq
            self._step(UserSaid(str(answer[1]["said"])))
            answer = (True, {**answer[1], "message": message})
        return answer

    def _admitted(self, action: str, arguments: Mapping[str, JSON]) -> bool:
        tally = self.tally
        tally.moves += 1
        if action not in self.book.guarded:
            return True
        tally.attempted += 1
        self._look_at_clock()
        wanted = plain(dict(arguments))
        licence = licence_of(self.book, self.configuration, action, wanted)
        if licence is None:
            tally.held += 1
            return False
        self.licence = licence.as_json()
        call = (action, wanted)
        tally.carry_out(self.book, self.sim, self.configuration, call, self.words)
        return True

    def _begin(
        self, call_id: str, action: str, arguments: Mapping[str, JSON]
    ) -> Mapping[str, JSON]:
        # As a session does: nothing that is sent may pass for a value that is kept elsewhere.
        wanted = without_references(plain_mapping(arguments))
        licence = self.licence if action in self.book.guarded else None
        self._step(DomainCall(call_id, action, wanted, licence))
        return wanted

    def _answer(self, call_id: str, answer: tuple[bool, JSON]) -> None:
        self._step(DomainResult(call_id, answer[0], answer[1]))
