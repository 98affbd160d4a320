"""Where an operation lands: the active process, its top frame and the step at the cursor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sopilot.language.program.model import ActionFacts, Program, Step, step_kind
from sopilot.runtime.vm.layout import FunctionLayout, Limits, ProgramLayout
from sopilot.runtime.vm.state import Configuration, Frame, Process
from sopilot.runtime.vm.values import Fields

"""An operation's own fields as plain values, which nobody changes."""


@dataclass(frozen=True, slots=True)
class Programs:
    """What a machine runs: goal → program, prepared, with hashes and bounds."""

    layouts: Mapping[str, ProgramLayout]
    hashes: Mapping[str, str]
    limits: Limits
    goal_actions: frozenset[str]
    actions: Mapping[str, ActionFacts] = field(default_factory=dict)
    disturbs: dict[tuple[str, str], bool] = field(default_factory=dict, compare=False)
    """Action, verifier → whether one may change what the other reads, as far as was asked."""


@dataclass(slots=True)
class Moved:
    """A transition that fits. ``added`` goes into the event's payload; ``process`` and
    ``frame`` say where it happened when that is not the position before it."""

    configuration: Configuration
    added: Fields = field(default_factory=dict)
    process: str | None = None
    frame: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A transition that does not fit: a stable code and a sentence for the executor."""

    code: str
    reason: str


NO_PROCESS = Refused("no-process", "no process is running; start one first")


@dataclass(slots=True)
class Position:
    configuration: Configuration
    process: Process
    frame: Frame
    program: ProgramLayout
    layout: FunctionLayout
    step: Step
    programs: Programs

    @property
    def limits(self) -> Limits:
        return self.programs.limits

    @property
    def source(self) -> Program:
        return self.program.program

    def wrong_step(self, operation: str) -> Refused:
        return Refused(
            "wrong-step",
            f"`{operation}` does not fit at {self.frame.place}, "
            f"which is a {step_kind(self.step)} step",
        )


def locate(programs: Programs, configuration: Configuration) -> Position | None:
    """``None`` without an active process."""
    if configuration.active is None:
        return None
    process = configuration.processes[configuration.active]
    return locate_process(programs, configuration, process)


def locate_process(
    programs: Programs, configuration: Configuration, process: Process
) -> Position | None:
    if not process.frames:
        return None
    program = programs.layouts[process.goal]
    frame = process.frames[-1]
    layout = program.functions[frame.function]
    return Position(
        configuration, process, frame, program, layout, layout.steps[frame.cursor], programs
    )
