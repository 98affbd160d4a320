"""Every sequence of moves up to a depth, on small handbooks.

A move that the machine refuses, or a guarded call that is held, changes nothing that a later
move could see (no move of an alphabet cites an event by its number): every sequence through it
is one of the shorter sequences, which are played as well. The last move of a sequence is played
only if it is a guarded call, since nothing else can be carried out wrongly. So all sequences are
covered; ``executed`` says how many moves it took.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from adversary import core_play
from adversary.core_play import Tally
from adversary.simulator import Simulator
from adversary.small_handbooks import Begin, Deliver, Move, SmallCase
from adversary.tools import TOOLS
from adversary.values import JSON
from sopilot.handbook.expressions import judge
from sopilot.machine.automation import Automation
from sopilot.machine.state import Configuration
from sopilot.trace.events import DomainCall, DomainResult, Operation
from sopilot.values.json import plain

BY_ITSELF = Automation(True, True, True, True, True, True, True)
"""The machine does all that needs no judgement, so that six moves go a long way."""


@dataclass
class Sweep:
    """``sequences`` are covered, ``executed`` moves were made for it."""

    sequences: int = 0
    executed: int = 0

    def add(self, other: Sweep) -> None:
        self.sequences += other.sequences
        self.executed += other.executed


class State(NamedTuple):
    configuration: Configuration
    sim: Simulator
    waiting: tuple[tuple[str, bool, JSON], ...] = ()
    """Calls without an answer, oldest first, with the answer that will come."""


class Explorer:
    def __init__(self, case: SmallCase, tally: Tally) -> None:
        self.case = case
        self.book = case.book
        self.tally = tally
        self.executed = 0
        self.guarded = [
            move
            for move in case.alphabet
            if isinstance(move, tuple) and move[0] in case.book.guarded
        ]

    def explore(self, state: State, depth: int) -> None:
        for move in self.case.alphabet if depth > 1 else self.guarded:
            after = self._after(state, move)
            if after is not None and depth > 1:
                self.explore(after, depth - 1)

    def _after(self, state: State, move: Move) -> State | None:
        """What the move leads to; ``None`` where it changes nothing."""
        self.executed += 1
        if isinstance(move, tuple):
            return self._called(state, *move)
        if isinstance(move, Begin):
            return self._begun(state, move.action, move.arguments)
        if isinstance(move, Deliver):
            return self._delivered(state) if state.waiting else None
        stepped = self._step(state.configuration, move)
        return state._replace(configuration=stepped) if stepped is not None else None

    def _called(self, state: State, action: str, arguments: dict[str, JSON]) -> State | None:
        if action in self.book.guarded and not self._admitted(state, action, plain(arguments)):
            return None
        begun = self._begun(state, action, arguments)
        return self._delivered(begun, newest=True) if begun is not None else None

    def _begun(self, state: State, action: str, arguments: dict[str, JSON]) -> State | None:
        sim = state.sim.copy()
        ok, value = TOOLS[action].run(sim, arguments)
        call_id = f"c{state.configuration.next_seq}"
        called = self._step(state.configuration, DomainCall(call_id, action, arguments))
        if called is None:
            return None
        return State(called, sim, (*state.waiting, (call_id, ok, value)))

    def _delivered(self, state: State, *, newest: bool = False) -> State:
        at = len(state.waiting) - 1 if newest else 0
        answered = self._step(state.configuration, DomainResult(*state.waiting[at]))
        assert answered is not None
        return State(answered, state.sim, (*state.waiting[:at], *state.waiting[at + 1 :]))

    def _step(self, configuration: Configuration, operation: Operation) -> Configuration | None:
        machine = self.book.machine
        outcome = machine.step(configuration, operation, at=1.0)
        if not outcome.accepted:
            return None
        return machine.automate(outcome.configuration, BY_ITSELF, at=1.0, judge=judge).configuration

    def _admitted(self, state: State, action: str, arguments: dict[str, JSON]) -> bool:
        self.tally.attempted += 1
        if core_play.licence_of(self.book, state.configuration, action, arguments) is None:
            self.tally.held += 1
            return False
        self.tally.carry_out(self.book, state.sim, state.configuration, (action, arguments))
        return True


def sweep(case: SmallCase, depth: int, tally: Tally) -> Sweep:
    explorer = Explorer(case, tally)
    explorer.explore(State(case.book.machine.initial(), case.sim), depth)
    letters = len(case.alphabet)
    tally.moves += explorer.executed
    return Sweep(sum(letters**length for length in range(1, depth + 1)), explorer.executed)
