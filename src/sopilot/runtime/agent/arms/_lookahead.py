"""What follows a verdict, told before it is given.

A model that knows what its verdicts lead to can give several and act on them in one
message. There is a line for everything that can come next, with the verdicts that lead
there: `After true` is the present verdict, `After 2 true` the one called `judge 2`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from sopilot.language.program.model import Ask
from sopilot.language.render import words
from sopilot.language.render.sentences import purpose
from sopilot.runtime.agent.arms._continuations import Point, explore, is_verdict, point_after
from sopilot.runtime.agent.arms._view import View, known_values
from sopilot.runtime.agent.arms.machine_state import MOST_EVIDENCE, gathered, next_move, shown_value
from sopilot.runtime.session.protocols import JSON
from sopilot.runtime.vm import Position, Start

_WORDS = {True: "true", False: "false"}
_OPEN = "\0open:"

Edge = tuple[str, Point]
"""What leads to a point, in words, and the point."""


def verdict_lookahead(view: View) -> list[str]:
    """Lines where there is ground for a verdict: at the verdict itself, after a call that
    failed, and after a user who could not help."""
    here = view.here
    if here is None or not (is_verdict(here) or _has_tried(here)):
        return []
    present = Point(view.configuration, here)
    explore(view, [present])
    edges = [(_WORDS[holds], point) for holds, point in present.ways]
    return list(_Lines(view, {here.layout.function.name}).of(edges))


def start_lookahead(view: View) -> list[str]:
    """What comes first after each goal if every value of the request is known."""
    machine_judges = view.automation.machine_verdicts and view.judge is not None

    def by_machine(here: Position) -> bool:
        return machine_judges and is_verdict(here) and here.layout.function.verdict is not None

    # Open values must not be judged; the machine will do that once it has them.
    open_ended = replace(view, judge=None)
    edges: list[Edge] = []
    for goal, program in view.briefing.programs.items():
        names = program.functions[program.entry].parameters
        start = Start(goal, {name: _OPEN + name for name in names})
        led = point_after(open_ended, view.configuration, start)
        if led is not None and not by_machine(led.here):
            edges.append((f"start {goal}", led))
    verdicts = [point for _, point in edges if is_verdict(point.here)]
    explore(open_ended, verdicts, stop=by_machine)
    return list(_Lines(view, set()).of(edges))


@dataclass(slots=True)
class _Entry:
    """Everything that reads the same and goes on in the same way. ``number`` is a verdict's."""

    point: Point
    ways: tuple[tuple[bool, int], ...]
    edges: list[str] = field(default_factory=list)
    number: int = 0


class _Lines:
    def __init__(self, view: View, told: set[str]) -> None:
        """``told``: rules whose sentence stands in the slot already."""
        self._language = view.briefing.language
        self._table = words(self._language)
        self._enters = view.automation.enter_calls
        self._told = told
        self._entries: list[_Entry] = []
        self._index: dict[tuple[str, tuple[tuple[bool, int], ...]], int] = {}

    def of(self, edges: Sequence[Edge]) -> Iterable[str]:
        waiting = [(edge, self._entered(point)) for edge, point in edges]
        found: dict[int, _Entry] = {}
        verdicts = 1
        for edge, index in waiting:
            entry = self._entries[index]
            entry.edges.append(edge)
            if index in found:
                continue
            found[index] = entry
            if is_verdict(entry.point.here):
                verdicts += 1
                entry.number = verdicts
                waiting += [(f"{verdicts} {_WORDS[holds]}", led) for holds, led in entry.ways]
        # Verdicts first: their numbers are told before the moves that they lead to.
        for entry in sorted(found.values(), key=lambda one: one.number == 0):
            move = self._told_in_full(entry)
            yield self._table["after"].format(edges=", ".join(entry.edges), move=move)

    def _entered(self, point: Point) -> int:
        ways = tuple((holds, self._entered(led)) for holds, led in point.ways)
        key = (self._move(point.here), ways)
        if key not in self._index:
            self._index[key] = len(self._entries)
            self._entries.append(_Entry(point, ways))
        return self._index[key]

    def _told_in_full(self, entry: _Entry) -> str:
        here = entry.point.here
        text = self._move(here, entry.number)
        if not entry.number:
            return text
        function = here.layout.function
        if function.name in self._told or not function.says:
            return text
        self._told.add(function.name)
        says = " ".join(" ".join(purpose(function, here.source, self._language)).split())
        return text + self._table["ahead_says"].format(says=says)

    def _move(self, here: Position, number: int = 0) -> str:
        """The next move, a verdict with all that is needed to give it; open values as
        ``?name``."""
        known = known_values(here)
        if not is_verdict(here):
            named = {name: value[len(_OPEN) :] for name, value in known.items() if _is_open(value)}
            have = {name: value for name, value in known.items() if name not in named}
            return next_move(here, have, self._table, named, enters=self._enters)
        function = here.layout.function
        values = ", ".join(f"{n}={_shown(known[n])}" for n in function.parameters if n in known)
        evidence = " ".join(f"#{seq}" for seq in gathered(here)[-MOST_EVIDENCE:])
        return self._table["ahead_judge"].format(
            number=number,
            call=f"{function.name}({values})",
            evidence=evidence or self._table["no_tool"],
        )


def _has_tried(here: Position) -> bool:
    if not here.layout.soft:
        return False
    behind_question = any(
        isinstance(step, Ask) and here.layout.past_asking(label) == here.frame.cursor
        for label, step in here.layout.steps.items()
    )
    return bool(gathered(here)) or behind_question


def _shown(value: JSON) -> str:
    return "?" + value[len(_OPEN) :] if _is_open(value) else shown_value(value)


def _is_open(value: JSON) -> TypeGuard[str]:
    return isinstance(value, str) and value.startswith(_OPEN)
