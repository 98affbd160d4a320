"""Which steps and branches of the compiled programs the scenarios reached."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sopilot.program.model import Act, Ask, Branch, Check, Choose, Function, Kind, Program, Step
from sopilot.trace.events import Event

Place = tuple[str, str]
"""Function and label."""

Way = tuple[str, str, str]
"""Function, label and the way out: ``met``, ``unmet``, ``then``, ``otherwise``, an option."""

MET, UNMET, THEN, OTHERWISE = "met", "unmet", "then", "otherwise"


@dataclass(frozen=True, slots=True)
class Gap:
    """A step or branch that no scenario reached. ``way`` is empty for a whole step."""

    function: str
    label: str
    way: str
    says: str

    def __str__(self) -> str:
        return f"{self.function}@{self.label}: {self.says}"


@dataclass(frozen=True, slots=True)
class ProgramCoverage:
    goal: str
    steps: int
    steps_reached: int
    branches: int
    branches_reached: int
    gaps: tuple[Gap, ...] = ()

    def as_json(self) -> dict[str, object]:
        return {
            "steps": {"all": self.steps, "reached": self.steps_reached},
            "branches": {"all": self.branches, "reached": self.branches_reached},
            "not_reached": [
                {"function": gap.function, "step": gap.label, "branch": gap.way or None}
                for gap in self.gaps
            ],
        }


@dataclass(slots=True)
class Coverage:
    """Steps and branches that the runs of one program reached."""

    places: set[Place] = field(default_factory=set)
    ways: set[Way] = field(default_factory=set)

    def add(self, program: Program, events: Iterable[Event]) -> None:
        calls: dict[int, Place] = {}
        for event in events:
            here = _place(event.frame)
            if here is None or here[0] not in program.functions:
                continue
            function = program.functions[here[0]]
            payload = event.payload
            self.places.add(here)
            if event.kind == "call":
                calls[event.seq] = here
                entered = program.functions[payload["function"]]
                self.places.add((entered.name, entered.steps[0].label))
            elif event.kind == "return" and payload["opened"] in calls:
                self._checked(program, calls[payload["opened"]], payload["bound"]["holds"])
            elif event.kind == "reuse" and "holds" in payload:
                self._checked(program, here, payload["holds"])
            elif event.kind == "select_branch":
                self._chosen(function, here[1], payload["target"])
            elif event.kind == "domain_result" and payload["ok"]:
                self.places.update(_acts(function, here[1], payload["action"]))

    def _checked(self, program: Program, at: Place, holds: bool) -> None:
        step = _step(program.functions[at[0]], at[1])
        if isinstance(step, Check):
            self.ways.add((*at, MET if holds == step.wanted else UNMET))
            self.places.add(at)

    def _chosen(self, function: Function, label: str, target: str) -> None:
        step = _step(function, label)
        if isinstance(step, Branch):
            self.ways.add((function.name, label, THEN if target == step.then else OTHERWISE))
        elif isinstance(step, Choose):
            for option in step.options:
                if option.target == target:
                    self.ways.add((function.name, label, option.name))


def coverage_of(goal: str, program: Program, touched: Coverage) -> ProgramCoverage:
    """The program's steps and branches against what was touched."""
    steps = [(function, step) for function in program.functions.values() for step in function.steps]
    ways = [(f, step, way, says) for f, step in steps for way, says in _ways(f, step)]
    gaps = [
        Gap(function.name, step.label, "", "never reached")
        for function, step in steps
        if (function.name, step.label) not in touched.places
    ]
    unreached = {(gap.function, gap.label) for gap in gaps}
    missed = [
        Gap(function.name, step.label, way, says)
        for function, step, way, says in ways
        if (function.name, step.label, way) not in touched.ways
    ]
    gaps += [gap for gap in missed if (gap.function, gap.label) not in unreached]
    return ProgramCoverage(
        goal,
        steps=len(steps),
        steps_reached=len(steps) - len(unreached),
        branches=len(ways),
        branches_reached=len(ways) - len(missed),
        gaps=tuple(gaps),
    )


def _ways(function: Function, step: Step) -> Iterator[tuple[str, str]]:
    if isinstance(step, Check):
        yield MET, f"no scenario in which this is met ({step.function} {_truth(step.wanted)})"
        yield UNMET, f"no scenario in which this fails ({step.function} {_truth(not step.wanted)})"
    elif isinstance(step, Branch):
        yield THEN, "no scenario in which the condition is true"
        yield OTHERWISE, "no scenario in which the condition is false"
    elif isinstance(step, Choose):
        for option in step.options:
            yield option.name, f"no scenario takes the option `{option.name}`"


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _step(function: Function, label: str) -> Step | None:
    return next((step for step in function.steps if step.label == label), None)


def _acts(function: Function, label: str, action: str) -> Iterator[Place]:
    """A call may come while the cursor still asks; then the act behind was reached too."""
    if function.kind in (Kind.GATE, Kind.RULE):
        for step in function.steps:
            if isinstance(step, Act) and step.action == action:
                yield function.name, step.label
        return
    behind = itertools.dropwhile(lambda step: step.label != label, function.steps)
    act = next(itertools.dropwhile(lambda step: isinstance(step, Ask), behind), None)
    if isinstance(act, Act) and act.action == action:
        yield function.name, act.label


def _place(frame: str) -> Place | None:
    path, _, label = frame.rpartition("@")
    return (path.rpartition("/")[2], label) if path else None
