"""The stack machine: one operation in, one configuration and its events out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sopilot.machine import lifecycle, moves
from sopilot.machine import observations as observing
from sopilot.machine.affordances import Shape, fits
from sopilot.machine.automation import Automation, bound_already, determined, judged_already
from sopilot.machine.evidence import bind_evidence
from sopilot.machine.layout import (
    NO_PROCESS,
    Limits,
    Moved,
    Position,
    Programs,
    Refused,
    lay_out,
    locate,
    refused,
)
from sopilot.machine.state import Bound, Configuration
from sopilot.machine.terms import whole_values
from sopilot.program.codec import program_hash
from sopilot.program.model import Check, Program, known_facts
from sopilot.trace.codec import misshapen, operation_fields
from sopilot.trace.events import (
    REJECTED,
    RESUMED,
    REUSE,
    Actor,
    Amend,
    AssistantSaid,
    BindEvidence,
    Call,
    Complete,
    Decision,
    DomainCall,
    DomainResult,
    EmitArtifact,
    Event,
    Fail,
    JudgeCheck,
    Note,
    Operation,
    Return,
    SelectBranch,
    Start,
    UserSaid,
)
from sopilot.values.json import Fields, Judge, made

Grader = Callable[[Position, Return, Sequence[int]], str | None]
"""The proof level of a verdict on these results, which the machine records."""


@dataclass(slots=True)
class Outcome:
    """The result of a step."""

    configuration: Configuration
    events: tuple[Event, ...]
    accepted: bool

    @property
    def refusal(self) -> Fields:
        """The code and the reason of a step that wasn't accepted."""
        return self.events[0].payload


class Machine:
    """Runs the programs of a handbook, one per goal. Holds no state of any run.

    ``hashes`` names each program's hash; without it the programs are hashed here. ``redacted``
    makes a machine for traces in which values may be withheld.
    """

    def __init__(
        self,
        programs: Mapping[str, Program],
        *,
        limits: Limits | None = None,
        hashes: Mapping[str, str] | None = None,
        redacted: bool = False,
    ) -> None:
        layouts = {goal: lay_out(program, redacted=redacted) for goal, program in programs.items()}
        self.programs = Programs(
            layouts,
            dict(hashes)
            if hashes is not None
            else {goal: program_hash(program) for goal, program in programs.items()},
            limits or Limits(),
            frozenset().union(*(layout.goal_actions for layout in layouts.values())),
            known_facts(programs.values()),
        )
        self._beginnings: dict[str, Position | None] = {}

    def initial(self) -> Configuration:
        return Configuration()

    def step(
        self,
        configuration: Configuration,
        operation: Operation,
        *,
        at: float,
        actor: str | None = None,
        ground: str | None = None,
        grade: Grader | None = None,
    ) -> Outcome:
        """Apply an operation, then every reuse and resumption that is due.

        Never raises: an operation that doesn't fit changes only the configuration's next number,
        which the ``rejected`` event takes.
        """
        after, event = self.apply(
            configuration, operation, at=at, actor=actor, ground=ground, grade=grade
        )
        events = [event]
        accepted = event.kind != REJECTED
        if accepted:
            after = self.follow(after, at, events)
        return Outcome(after, tuple(events), accepted)

    def apply(
        self,
        configuration: Configuration,
        operation: Operation,
        *,
        at: float,
        actor: str | None = None,
        ground: str | None = None,
        grade: Grader | None = None,
    ) -> tuple[Configuration, Event]:
        """Apply the operation alone, as exactly one event."""
        kind = type(operation)
        seq = configuration.next_seq
        problem = misshapen(operation)
        here: Position | None = None
        if problem is not None:
            moved: Moved | Refused = Refused("misshapen", problem)
            fields: dict[str, Any] = {"operation": {"operation": "misshapen"}}
        else:
            fields = operation_fields(operation)
            if fields.get("arguments") and kind is not DomainCall:
                fields["arguments"] = whole_values(configuration, fields["arguments"])
            outside = _OUTSIDE.get(kind)
            if outside is not None:
                moved = outside(self.programs, configuration, operation, fields)
            else:
                here, limit = locate(self.programs, configuration), self.programs.limits.steps
                if here is None:
                    moved = NO_PROCESS
                elif here.process.steps >= limit and kind is not Fail:
                    moved = refused("steps-exceeded", limit=limit)
                else:
                    moved = _INSIDE[kind](here, operation, fields)
        frame = configuration.frame
        process, place = configuration.active, frame.place if frame is not None else ""
        if isinstance(moved, Moved):
            fields.update(moved.added)
            name = operation.kind if kind is not BindEvidence else REUSE
            after = moved.configuration
            if moved.frame is not None:
                process, place = moved.process, moved.frame
        else:
            if problem is None:
                fields = {"operation": {"operation": operation.kind, **fields}}
            fields["code"] = moved.code
            fields["reason"] = moved.reason
            name = REJECTED
            after = configuration.numbered(seq + 1)
        if ground is not None:
            fields["ground"] = ground
        if (
            grade is not None
            and here is not None
            and isinstance(operation, Return)
            and name != REJECTED
        ):
            result = grade(here, operation, fields["bound"]["evidence"])
            if result is not None:
                fields["grade"] = result
        who = actor or _ACTORS.get(kind, Actor.MODEL)
        return after, made(Event, (seq, at, who, name, process, place, fields))

    # --- what the machine does by itself ------------------------------------------

    def automate(
        self,
        configuration: Configuration,
        automation: Automation,
        *,
        at: float,
        judge: Judge | None = None,
        grade: Grader | None = None,
    ) -> Outcome:
        """Take every transition that ``automation`` allows, until the executor must decide.

        The events have the actor ``machine`` and a ``ground``.
        """
        events: list[Event] = []
        configuration = self.follow(configuration, at, events)
        seen: set[tuple[int, str]] = set()
        while True:
            here = locate(self.programs, configuration)
            if here is None or (here.frame.opened, here.frame.cursor) in seen:
                break
            seen.add((here.frame.opened, here.frame.cursor))
            if automation.reuse_verdicts:
                reused = self.reusable(configuration, at)
                if reused is not None:
                    configuration, event = reused
                    events.append(event)
                    configuration = self.follow(configuration, at, events)
                    continue
            result = determined(here, automation, judge)
            if result is None:
                break
            operation, ground = result
            after, event = self.apply(
                configuration, operation, at=at, actor=Actor.MACHINE, ground=ground, grade=grade
            )
            if event.kind == REJECTED:
                break
            events.append(event)
            configuration = self.follow(after, at, events)
        return Outcome(configuration, tuple(events), True)

    def follow(self, configuration: Configuration, at: float, events: list[Event]) -> Configuration:
        """Take every reuse and resumption that is due, appending their events."""
        seen: set[tuple[int, str]] = set()
        while True:
            due = self.due(configuration, at)
            if due is None:
                return configuration
            frame = configuration.frame
            if frame is not None:
                # A loop through bound slots came back here: the executor decides.
                if (frame.opened, frame.cursor) in seen:
                    return configuration
                seen.add((frame.opened, frame.cursor))
            configuration, event = due
            events.append(event)

    def due(self, configuration: Configuration, at: float) -> tuple[Configuration, Event] | None:
        """The transition that the machine takes next by itself, if there is one."""
        seq = configuration.next_seq
        process = configuration.process
        if process is None:
            resumed = lifecycle.resume(configuration)
            if resumed is None:
                return None
            event = Event(
                seq, at, Actor.MACHINE, RESUMED, resumed.process, resumed.frame or "", resumed.added
            )
            return resumed.configuration, event
        frame = process.frames[-1]
        # Hot path: most steps aren't checks and need no position.
        step = self.programs.layouts[process.goal].functions[frame.function].steps[frame.cursor]
        if not isinstance(step, Check) or process.steps >= self.programs.limits.steps:
            return None
        here = locate(self.programs, configuration)
        assert here is not None
        result = bound_already(here, step)
        return None if result is None else self._reused(here, step, *result, at)

    def reusable(
        self, configuration: Configuration, at: float
    ) -> tuple[Configuration, Event] | None:
        """Pass the check at the cursor on an earlier verdict of the process that still stands."""
        here = locate(self.programs, configuration)
        if here is None or not isinstance(here.step, Check):
            return None
        if here.process.steps >= self.programs.limits.steps:
            return None
        result = judged_already(here, here.step)
        return None if result is None else self._reused(here, here.step, *result, at)

    def _reused(
        self, here: Position, step: Check, bound: Bound, ground: str, at: float
    ) -> tuple[Configuration, Event]:
        target = (here.layout.after if bound.holds == step.wanted else here.layout.unmet)[
            step.label
        ]
        after = here.with_frame(here.frame.bound(step.slot, bound, target))
        payload = {
            "label": step.label,
            "slot": step.slot,
            "function": step.function,
            "producer": bound.producer,
            "evidence": list(bound.evidence),
            "holds": bound.holds,
            "ground": ground,
        }
        seq = here.configuration.next_seq
        return after, Event(
            seq, at, Actor.MACHINE, REUSE, here.process.id, here.frame.place, payload
        )

    def suppose(
        self, configuration: Configuration, start: Start, *, at: float
    ) -> Configuration | None:
        """Where a start with untyped placeholder values would lead; nothing is recorded."""
        fields = operation_fields(start)
        moved = lifecycle.start(self.programs, configuration, start, fields, typed=False)
        if isinstance(moved, Refused):
            return None
        return self.follow(moved.configuration, at, [])

    def beginning(self, goal: str) -> Position | None:
        """Where a start leads while nothing else runs. Cached: it is the same in every run."""
        if goal not in self._beginnings:
            begun = self.suppose(self.initial(), Start(goal), at=0.0)
            self._beginnings[goal] = None if begun is None else self.position(begun)
        return self._beginnings[goal]

    # --- queries --------------------------------------------------------------------

    def position(self, configuration: Configuration) -> Position | None:
        """The active process, its top frame, the function and the step at the cursor."""
        return locate(self.programs, configuration)

    def fits(self, configuration: Configuration) -> list[Shape]:
        """The operations that fit now, with what is known of their arguments."""
        return fits(self.programs, configuration)

    def unresolved(self, configuration: Configuration, cited: Sequence[str]) -> tuple[str, ...]:
        """The citations that name no result of the process."""
        here = locate(self.programs, configuration)
        if here is None or not here.layout.soft or not cited:
            return ()
        return bind_evidence(here, cited).unresolved


_OUTSIDE: dict[type, Callable[..., Moved | Refused]] = {
    Start: lifecycle.start,
    DomainCall: observing.domain_call,
    DomainResult: observing.domain_result,
    UserSaid: observing.user_said,
    AssistantSaid: observing.recorded,
    Note: observing.recorded,
    Decision: observing.decision,
}

_INSIDE: dict[type, Callable[..., Moved | Refused]] = {
    Amend: lifecycle.amend,
    Call: moves.call,
    Return: moves.do_return,
    SelectBranch: moves.select_branch,
    EmitArtifact: moves.emit,
    Complete: lifecycle.complete,
    Fail: lifecycle.fail,
    BindEvidence: observing.bind_earlier,
    JudgeCheck: moves.judge_check,
}

_ACTORS: dict[type, Actor] = {
    DomainResult: Actor.TOOL,
    UserSaid: Actor.USER,
    Decision: Actor.OPERATOR,
    Note: Actor.RUNTIME,
    BindEvidence: Actor.MACHINE,
}
