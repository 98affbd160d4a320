"""Paging, and paging at the price of a resident program: `pg`, `fused` and their switches.

`fused` looks ahead: a model that knows where its verdicts lead can give several and act on them
in one message. `After true` is the present verdict, `After 2 true` the one called `judge 2`, and
`After false + 2 true` means both. The machine tries the verdicts on the present configuration.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeGuard

from sopilot.machine.automation import Automation
from sopilot.machine.layout import Position
from sopilot.machine.machine import Machine
from sopilot.machine.state import Configuration
from sopilot.machine.terms import known_arguments, plain_arguments
from sopilot.messages.scaffold import words
from sopilot.program.model import Act, Ask, Kind, ReturnStep, Unknown
from sopilot.trace.events import Operation, Start
from sopilot.trace.events import Return as ReturnOperation
from sopilot.values.json import JSON
from sopilot.views.check_sentences import purpose
from sopilot.views.dialog_folding import fold_dialog
from sopilot.views.frame import told_on_failing
from sopilot.views.moment import Moment, known_values
from sopilot.views.moves import FrameMessage, Move, Value, gathered, next_move
from sopilot.views.state_text import evidence_line, frame_message, move_text, shown_value
from sopilot.views.step_answers import Answers
from sopilot.views.view import View

MOST_VERDICTS: Final = 24
"""Verdicts that are tried both ways for one request."""
_AT = 0.0
OPEN: Final = "\0open:"
"""Prefix of the name of a value that isn't known yet."""


@dataclass(eq=False, slots=True)
class Point:
    """Where the model has to act. ``ways`` says where its verdict leads, as far as that was
    tried: through verdicts that need no tool, up to the next call of one."""

    configuration: Configuration
    here: Position
    ways: list[tuple[bool, Point]] = field(default_factory=list)


def nowhere(here: Position) -> bool:
    return False


def explore(
    moment: Moment, points: Sequence[Point], *, stop: Callable[[Position], bool] = nowhere
) -> None:
    """Try verdicts at these points and at those behind them, the nearest first. Nothing is
    said about ways to positions at which ``stop``."""
    waiting = deque(points)
    for _ in range(MOST_VERDICTS):
        if not waiting:
            return
        point = waiting.popleft()
        for holds in (True, False):
            led = point_after(moment, point.configuration, ReturnOperation(holds))
            if led is not None and not stop(led.here):
                point.ways.append((holds, led))
                if is_verdict(led.here):
                    waiting.append(led)


def point_after(moment: Moment, configuration: Configuration, operation: Operation) -> Point | None:
    """Where the operation and the machine's own transitions would lead; nothing is recorded."""
    if isinstance(operation, Start):
        led = moment.machine.suppose(configuration, operation, at=_AT)
    else:
        outcome = moment.machine.step(configuration, operation, at=_AT)
        led = outcome.configuration if outcome.accepted else None
    if led is None:
        return None
    ahead = moment.machine.automate(
        led, moment.automation, at=_AT, judge=moment.judge
    ).configuration
    here = moment.machine.position(ahead)
    return Point(ahead, here) if here is not None else None


def open_values(names: Iterable[str]) -> dict[str, JSON]:
    """Stand-ins for values that aren't known yet."""
    return {name: OPEN + name for name in names}


def first_arguments(
    machine: Machine, configuration: Configuration, goal: str, automation: Automation
) -> Mapping[str, Mapping[str, str]]:
    """Tool → its parameters → the values of the goal that they would be given, for the tool that
    comes first after a start of the goal."""
    names = machine.programs.layouts[goal].entry.parameters
    led = machine.suppose(configuration, Start(goal, open_values(names)), at=_AT)
    if led is None:
        return {}
    here = machine.position(machine.automate(led, automation, at=_AT).configuration)
    step = here.layout.steps[here.layout.past_asking(here.frame.cursor)] if here else None
    if here is None or not isinstance(step, Act):
        return {}
    known = known_arguments(here, plain_arguments(step.arguments))[0]
    return {
        step.action: {
            parameter: value.removeprefix(OPEN)
            for parameter, value in known.items()
            if isinstance(value, str) and value.startswith(OPEN)
        }
    }


def is_verdict(here: Position) -> bool:
    return (
        isinstance(here.step, ReturnStep)
        and here.step.holds is None
        and here.layout.function.kind in (Kind.RULE, Kind.GATE)
    )


_WORDS = {True: "true", False: "false"}
Edge = tuple[str, Point]
"""The move that leads to a point, in words, and the point."""


def verdict_lookahead(moment: Moment, here: Position) -> _Lines:
    """Lines where there is ground for a verdict: at the verdict itself, after a call that
    failed, and where the user may be unable to give a value."""
    if not (is_verdict(here) or _has_tried(here)):
        return _Lines(moment, set(), [])
    present = Point(moment.configuration, here)
    explore(moment, [present])
    # The program itself says that a gate is open, once its tool has succeeded.
    judges = moment.automation.machine_verdicts and moment.judge is not None
    closed = judges and here.layout.function.kind is Kind.GATE and not is_verdict(here)
    edges = [(_WORDS[holds], point) for holds, point in present.ways if not (closed and holds)]
    if not closed and moment.step.undecided:
        led = point_after(moment, moment.configuration, ReturnOperation(undecided=True))
        edges += [("undecided", led)] if led is not None else []
    return _Lines(moment, {here.layout.function.name}, edges)


def start_lookahead(moment: Moment) -> _Lines:
    """The first move after each goal if every value of the request is known."""
    machine_judges = moment.automation.machine_verdicts and moment.judge is not None

    def by_machine(here: Position) -> bool:
        return machine_judges and is_verdict(here) and here.layout.function.verdict is not None

    # Open values must not be judged; the machine will do that once it has them.
    open_ended = replace(moment, judge=None)
    edges: list[Edge] = []
    for goal, program in moment.briefing.programs.items():
        names = program.functions[program.entry].parameters
        start = Start(goal, open_values(names))
        led = point_after(open_ended, moment.configuration, start)
        if led is not None and not by_machine(led.here):
            edges.append((f"start {goal}", led))
    verdicts = [point for _, point in edges if is_verdict(point.here)]
    explore(open_ended, verdicts, stop=by_machine)
    return _Lines(moment, set(), edges)


@dataclass(slots=True)
class _Entry:
    """Everything that reads the same and goes on in the same way. ``number`` is a verdict's."""

    point: Point
    ways: tuple[tuple[bool, int], ...]
    edges: list[str] = field(default_factory=list)
    number: int = 0


class _Lines:
    """The moves that follow, as ``text`` and as data. ``shown``: rules whose sentence is already
    shown."""

    def __init__(self, moment: Moment, shown: set[str], edges: Sequence[Edge]) -> None:
        self._language = moment.briefing.language
        self._table = words(self._language)
        self._enters = moment.automation.enter_calls
        self._tool = moment.step
        self._shown_rules = shown
        self._entries: list[_Entry] = []
        self._index: dict[tuple[str, tuple[tuple[bool, int], ...]], int] = {}
        self.text: list[str] = []
        self.ahead: dict[str, Move] = {}
        self._tell(edges)

    def _tell(self, edges: Sequence[Edge]) -> None:
        waiting = [(edge, self._entered(point)) for edge, point in edges]
        begun = list(waiting)
        result: dict[int, _Entry] = {}
        numbers: dict[str, int] = {}
        for _, index in waiting:
            if index in result:
                continue
            entry = result[index] = self._entries[index]
            if is_verdict(entry.point.here):
                # A rule has one number, whatever leads to it.
                rule = self._move(entry.point.here)
                entry.number = numbers.setdefault(rule, len(numbers) + 2)
                waiting += [("", led) for _, led in entry.ways]
        self._lead(begun, result)
        # Verdicts first: their numbers are told before the moves that they lead to.
        for entry in sorted(result.values(), key=lambda item: item.number == 0):
            move = self._told_in_full(entry)
            self.text.append(self._table["after"].format(edges=", ".join(entry.edges), move=move))
            self.ahead |= dict.fromkeys(entry.edges, _ahead(entry, self._language))

    def _lead(self, begun: Sequence[tuple[str, int]], result: Mapping[int, _Entry]) -> None:
        """Say what leads to each entry. Where one rule goes on in several ways, a verdict on it
        says nothing without the ones before it."""
        rules = Counter(entry.number for entry in result.values() if entry.number)
        for edge, index in begun:
            result[index].edges.append(edge)
        # An entry comes after everything that leads to it: the longest way counts.
        depth = dict.fromkeys((index for _, index in begun), 0)
        for _ in result:
            for index in list(depth):
                for _, led in result[index].ways if result[index].number else ():
                    depth[led] = max(depth.get(led, 0), depth[index] + 1)
        for index in sorted(depth, key=lambda item: depth[item]):
            entry = result[index]
            for holds, led in entry.ways if entry.number else ():
                own = f"{entry.number} {_WORDS[holds]}"
                alone = rules[entry.number] == 1
                ways = [own] if alone else [f"{edge} + {own}" for edge in entry.edges]
                result[led].edges += [way for way in ways if way not in result[led].edges]

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
        if function.name in self._shown_rules or not function.says:
            return text
        self._shown_rules.add(function.name)
        says = " ".join(" ".join(purpose(function, here.source, self._language)).split())
        return text + self._table["ahead_says"].format(says=says)

    def _move(self, here: Position, number: int = 0) -> str:
        """The next move, a verdict with all that is needed to give it."""
        if not is_verdict(here):
            return move_text(_move_at(here), self._table, enters=self._enters, tool=self._tool)
        values = ", ".join(f"{name}={_shown(value)}" for name, value in _values(here))
        evidence = " ".join(f"#{seq}" for seq in gathered(here))
        return self._table["ahead_judge"].format(
            number=number,
            call=f"{here.layout.function.name}({values})",
            evidence=evidence or self._table["no_tool"],
        )


def _move_at(here: Position) -> Move:
    known = known_values(here)
    named = {name: value[len(OPEN) :] for name, value in known.items() if _is_open(value)}
    have = {name: value for name, value in known.items() if name not in named}
    return next_move(here, have, named)


def _ahead(entry: _Entry, language: str) -> Move:
    here = entry.point.here
    if not is_verdict(here):
        move = _move_at(here)
        message = ""
        if move.kind == "fail":
            message = told_on_failing(here.layout.function, here.source, here.frame.slots, language)
        return Move(move.kind, name=move.name, arguments=move.arguments, message=message)
    values = [
        (name, Unknown(value[len(OPEN) :]) if _is_open(value) else Value(value))
        for name, value in _values(here)
    ]
    name = here.layout.function.name
    number = str(entry.number)
    return Move("judge", name=name, arguments=values, gathered=gathered(here), number=number)


def _values(here: Position) -> list[tuple[str, JSON]]:
    known = known_values(here)
    return [(name, known[name]) for name in here.layout.function.parameters if name in known]


def _has_tried(here: Position) -> bool:
    if not here.layout.soft:
        return False
    past = here.layout.past_asking
    behind_question = any(
        isinstance(step, Ask) and past(label) == past(here.frame.cursor)
        for label, step in here.layout.steps.items()
    )
    step = here.step
    unknown = isinstance(step, Act) and any(isinstance(item, Unknown) for _, item in step.arguments)
    return bool(gathered(here)) or behind_question or unknown


def _shown(value: JSON) -> str:
    return "?" + value[len(OPEN) :] if _is_open(value) else shown_value(value)


def _is_open(value: JSON) -> TypeGuard[str]:
    return isinstance(value, str) and value.startswith(OPEN)


@dataclass(frozen=True, slots=True)
class FusedSwitches:
    """Each can be measured alone.

    ``enter_calls``: the machine enters calls, takes branches and leaves groups.
    ``reuse``: what the process has judged or called already, and is still fresh, is not asked
    again.
    ``machine_verdicts``: the machine judges what it can judge.
    ``combine``: a verdict and what follows it in one message; the frame message looks ahead.
    ``fold``: bookkeeping and old blocks of the dialog are not sent again.
    ``short_step``: the bookkeeping tool in few words; one call may hold several verdicts.
    """

    enter_calls: bool = True
    reuse: bool = True
    machine_verdicts: bool = True
    combine: bool = True
    fold: bool = True
    short_step: bool = True


ALL_ON: Final = FusedSwitches()
ALL_OFF: Final = FusedSwitches(False, False, False, False, False, False)
PAGED: Final = replace(ALL_OFF, enter_calls=True, reuse=True)
"""`pg`: one frame, one move; what needs no judgement is the machine's."""


def fused_view(switches: FusedSwitches = ALL_ON, name: str = "fused") -> View:
    """The view with these switches. With none of them it is `pg-paper` that lists evidence."""
    return View(
        name,
        True,
        frame_message=_looking_ahead if switches.combine else _with_evidence,
        automation=Automation(
            take_branches=switches.enter_calls,
            group_returns=switches.enter_calls,
            enter_calls=switches.enter_calls,
            bind_evidence=switches.reuse,
            machine_verdicts=switches.machine_verdicts,
            reuse_verdicts=switches.reuse,
        ),
        fold=fold_dialog if switches.fold else None,
        guidance="fused" if switches.combine else "machine",
        answers=Answers.SHORT if switches.fold else Answers.WHOLE,
        in_order=switches.combine,
        short_step=switches.short_step,
        frames_only=True,
    )


def _with_evidence(moment: Moment) -> FrameMessage:
    here = moment.here
    text, move = frame_message(moment)
    if here is None or move is None:
        return FrameMessage(text, move)
    table = words(moment.briefing.language)
    lines = evidence_line(here, table) or [table["gathered"].format(items=table["nothing"])]
    return FrameMessage("\n".join([text, *lines]), replace(move, gathered=gathered(here)))


def _looking_ahead(moment: Moment) -> FrameMessage:
    here = moment.here
    lines = verdict_lookahead(moment, here) if here is not None else start_lookahead(moment)
    text, move = _with_evidence(moment)
    assert move is not None
    return FrameMessage("\n".join([text, *lines.text]), replace(move, ahead=lines.ahead))
