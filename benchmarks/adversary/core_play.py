"""A session at the pure core: machine, guard and world, without store or event loop."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from adversary import admission
from adversary.handbooks import Book
from adversary.tools import TOOLS
from adversary.values import JSON
from adversary.world import World
from sopilot.language.handbook.cel import judge
from sopilot.runtime.vm import (
    Automation,
    Configuration,
    DomainCall,
    DomainResult,
    Event,
    Operation,
    plain,
)

BUSY = (False, {"error": "busy"})


@dataclass
class Tally:
    """What happened, over any number of plays."""

    moves: int = 0
    sessions: int = 0
    attempted: int = 0
    held: int = 0
    carried_out: int = 0
    denied: list[Violation] = field(default_factory=list)
    predicates: Counter[str] = field(default_factory=Counter)
    """Predicate → how many calls were carried out whose requirement speaks of it."""

    def add(self, other: Tally) -> None:
        self.moves += other.moves
        self.sessions += other.sessions
        self.attempted += other.attempted
        self.held += other.held
        self.carried_out += other.carried_out
        self.denied += other.denied
        self.predicates += other.predicates

    def carry_out(
        self,
        book: Book,
        world: World,
        configuration: Configuration,
        call: tuple[str, Mapping[str, JSON]],
        log: Sequence[str] | None,
    ) -> None:
        """Judge a guarded call that is about to be carried out, by the world alone."""
        self.carried_out += 1
        process = configuration.process
        goal = process.goal if process is not None else None
        action, arguments = call
        if goal is not None:
            self.predicates.update(book.predicates_of[goal])
            if book.procedures[goal].action == action and book.world_allows(world, goal, arguments):
                return
        self.denied.append(Violation(book.text, goal, action, arguments, tuple(log or ())))


@dataclass(frozen=True)
class Violation:
    """A guarded call that was carried out although the world denies its requirement."""

    handbook: str
    goal: str | None
    action: str
    arguments: Mapping[str, JSON]
    moves: tuple[str, ...]
    """How it came to it, as far as the play was asked to remember."""


@dataclass(frozen=True)
class InFlight:
    """A call without an answer yet. ``answer`` is there when the world was asked at once."""

    action: str
    arguments: Mapping[str, JSON]
    answer: tuple[bool, JSON] | None


class CorePlay:
    """``remembers``: keep the moves for a report, which costs time."""

    def __init__(
        self,
        book: Book,
        world: World,
        rng: random.Random,
        tally: Tally,
        automation: Automation | None = None,
        *,
        remembers: bool = False,
    ) -> None:
        self.book = book
        self.world = world
        self.rng = rng
        self.tally = tally
        self.automation = automation
        self.configuration: Configuration = book.machine.initial()
        self.events: list[Event] = []
        self.in_flight: dict[str, InFlight] = {}
        self.calls = 0
        self.clock = 0.0
        self.busy = 0.03
        self.log: list[str] | None = [] if remembers else None

    # --- operations -------------------------------------------------------------------

    def operate(self, operation: Operation) -> bool:
        self.tally.moves += 1
        if self.log is not None:
            self.log.append(repr(operation))
        return self._step(operation)

    def _step(self, operation: Operation) -> bool:
        self.clock += 1.0
        machine = self.book.machine
        outcome = machine.step(self.configuration, operation, at=self.clock)
        self.configuration = outcome.configuration
        if admission.NEEDS_EVENTS:
            self.events += outcome.events
        if outcome.accepted and self.automation is not None:
            settled = machine.settle(
                self.configuration, self.automation, at=self.clock, judge=judge
            )
            self.configuration = settled.configuration
            if admission.NEEDS_EVENTS:
                self.events += settled.events
        return outcome.accepted

    # --- calls ------------------------------------------------------------------------

    def call(self, action: str, arguments: Mapping[str, JSON]) -> tuple[bool, JSON] | None:
        """Made and answered; ``None`` when the call was held."""
        if not self._admitted(action, arguments):
            return None
        call_id = self._begin(action, arguments)
        answer = self._perform(action, self.in_flight[call_id].arguments)
        self._answer(call_id, answer)
        return answer

    def begin(self, action: str, arguments: Mapping[str, JSON], *, at_once: bool) -> None:
        """Made, not yet answered. The world is asked ``at_once`` or when the answer comes."""
        if not self._admitted(action, arguments):
            return
        call_id = self._begin(action, arguments)
        if at_once or action in self.book.guarded:
            call = self.in_flight[call_id]
            answer = self._perform(action, call.arguments)
            self.in_flight[call_id] = InFlight(action, call.arguments, answer)

    def deliver(self, call_id: str) -> None:
        self.tally.moves += 1
        call = self.in_flight[call_id]
        if self.log is not None:
            self.log.append(f"deliver {call_id}")
        self._answer(call_id, call.answer or self._perform(call.action, call.arguments))

    def _admitted(self, action: str, arguments: Mapping[str, JSON]) -> bool:
        tally = self.tally
        tally.moves += 1
        if self.log is not None:
            self.log.append(f"call {action} {arguments!r}")
        if action not in self.book.guarded:
            return True
        tally.attempted += 1
        wanted = plain(dict(arguments))
        if not admission.admits(self.book, self.configuration, action, wanted, self.events):
            tally.held += 1
            return False
        tally.carry_out(self.book, self.world, self.configuration, (action, wanted), self.log)
        return True

    def _begin(self, action: str, arguments: Mapping[str, JSON]) -> str:
        self.calls += 1
        call_id = f"c{self.calls}"
        wanted = plain(dict(arguments))
        self.in_flight[call_id] = InFlight(action, wanted, None)
        self._step(DomainCall(call_id, action, wanted))
        return call_id

    def _perform(self, action: str, arguments: Mapping[str, JSON]) -> tuple[bool, JSON]:
        if self.busy and self.rng.random() < self.busy:
            return BUSY
        return TOOLS[action].run(self.world, arguments)

    def _answer(self, call_id: str, answer: tuple[bool, JSON]) -> None:
        del self.in_flight[call_id]
        self._step(DomainResult(call_id, answer[0], answer[1]))
