"""Every sequence of moves up to a depth, on small handbooks.

A move that the machine refuses, or a guarded call that is held, changes nothing that a later
move could see (no move of an alphabet cites an event by its number): every sequence through it
is one of the shorter sequences, which are played as well. The last move of a sequence is played
only if it is a guarded call, since nothing else can be carried out wrongly. So all sequences are
covered; ``executed`` says how many moves it took.
"""

from __future__ import annotations

from dataclasses import dataclass

from adversary import admission
from adversary.core_play import Script, Tally
from adversary.small_handbooks import Move, SmallCase
from adversary.tools import TOOLS
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


class Explorer:
    def __init__(self, case: SmallCase, tally: Tally) -> None:
        self.case = case
        self.book = case.book
        self.tally = tally
        self.executed = 0
        self.path: list[Move] = []
        self.scene = (case.world, BY_ITSELF)
        self.guarded = [
            move
            for move in case.alphabet
            if isinstance(move, tuple) and move[0] in case.book.guarded
        ]

    def explore(
        self, configuration: Configuration, world: World, events: tuple[Event, ...], depth: int
    ) -> None:
        for move in self.case.alphabet if depth > 1 else self.guarded:
            after = self._after(configuration, world, events, move)
            if after is not None and depth > 1:
                self.path.append(move)
                self.explore(*after, depth - 1)
                self.path.pop()

    def _after(
        self, configuration: Configuration, world: World, events: tuple[Event, ...], move: Move
    ) -> tuple[Configuration, World, tuple[Event, ...]] | None:
        """What the move leads to; ``None`` where it changes nothing."""
        self.executed += 1
        if not isinstance(move, tuple):
            stepped = self._step(configuration, move, events)
            return (stepped[0], world, stepped[1]) if stepped is not None else None
        action, arguments = move
        if action in self.book.guarded and not self._admitted(
            configuration, world, events, action, plain(arguments)
        ):
            return None
        world = world.copy()
        ok, value = TOOLS[action].run(world, arguments)
        call_id = f"c{configuration.next_seq}"
        called = self._step(configuration, DomainCall(call_id, action, arguments), events)
        if called is None:
            return None
        answered = self._step(called[0], DomainResult(call_id, ok, value), called[1])
        assert answered is not None
        return answered[0], world, answered[1]

    def _step(
        self, configuration: Configuration, operation: Operation, events: tuple[Event, ...]
    ) -> tuple[Configuration, tuple[Event, ...]] | None:
        outcome = self.book.machine.step(configuration, operation, at=1.0)
        if not outcome.accepted:
            return None
        settled = self.book.machine.settle(outcome.configuration, BY_ITSELF, at=1.0, judge=judge)
        if admission.NEEDS_EVENTS:
            events = (*events, *outcome.events, *settled.events)
        return settled.configuration, events

    def _admitted(
        self,
        configuration: Configuration,
        world: World,
        events: tuple[Event, ...],
        action: str,
        arguments: dict[str, object],
    ) -> bool:
        self.tally.attempted += 1
        if not admission.admits(self.book, configuration, action, arguments, events):
            self.tally.held += 1
            return False
        call = (action, arguments)
        path = [_script(move) for move in (*self.path, call)]
        self.tally.carry_out(self.book, world, configuration, call, log=path, scene=self.scene)
        return True


def _script(move: Move) -> Script:
    return ("call", *move, False) if isinstance(move, tuple) else ("operate", move)


def sweep(case: SmallCase, depth: int, tally: Tally) -> Sweep:
    explorer = Explorer(case, tally)
    explorer.explore(case.book.machine.initial(), case.world, (), depth)
    letters = len(case.alphabet)
    tally.moves += explorer.executed
    return Sweep(sum(letters**length for length in range(1, depth + 1)), explorer.executed)
