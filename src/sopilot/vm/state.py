"""What a run is at one moment: frames in processes in a configuration. Never changed in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sopilot.vm.values import JSON


class Status(StrEnum):
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Bound:
    """A result in a slot. ``producer`` is the seq of the one return that made it."""

    holds: bool
    evidence: tuple[int, ...]
    producer: int
    function: str
    value: JSON = None


@dataclass(frozen=True, slots=True)
class Observed:
    """A domain call with its result. ``opened`` names the frame in which the call was made."""

    seq: int
    call_seq: int
    call_id: str
    action: str
    arguments: Mapping[str, JSON]
    ok: bool
    value: JSON
    opened: int


@dataclass(frozen=True, slots=True)
class Pending:
    """A domain call without a result yet. Outside of a process, ``process`` is ``None``."""

    seq: int
    action: str
    arguments: Mapping[str, JSON]
    process: str | None
    opened: int


@dataclass(frozen=True, slots=True)
class Frame:
    """One activation of a function. ``opened`` is the seq of its opening event, its name."""

    function: str
    cursor: str
    locals: Mapping[str, JSON]
    slots: Mapping[str, Bound]
    returns_to: str | None
    opened: int
    path: str
    calls: tuple[int, ...] = ()
    borrowed: tuple[int, ...] = ()

    @property
    def place(self) -> str:
        return f"{self.path}@{self.cursor}"

    # `dataclasses.replace` costs more than a whole step should.

    def at(self, cursor: str) -> Frame:
        return Frame(
            self.function,
            cursor,
            self.locals,
            self.slots,
            self.returns_to,
            self.opened,
            self.path,
            self.calls,
            self.borrowed,
        )

    def knowing(self, values: Mapping[str, JSON]) -> Frame:
        return Frame(
            self.function,
            self.cursor,
            values,
            self.slots,
            self.returns_to,
            self.opened,
            self.path,
            self.calls,
            self.borrowed,
        )

    def bound(self, slot: str, result: Bound, cursor: str) -> Frame:
        return Frame(
            self.function,
            cursor,
            self.locals,
            {**self.slots, slot: result},
            self.returns_to,
            self.opened,
            self.path,
            self.calls,
            self.borrowed,
        )

    def called(self, seq: int) -> Frame:
        return Frame(
            self.function,
            self.cursor,
            self.locals,
            self.slots,
            self.returns_to,
            self.opened,
            self.path,
            (*self.calls, seq),
            self.borrowed,
        )

    def borrowing(self, seq: int, cursor: str) -> Frame:
        return Frame(
            self.function,
            cursor,
            self.locals,
            self.slots,
            self.returns_to,
            self.opened,
            self.path,
            self.calls,
            (*self.borrowed, seq),
        )


GateKey = tuple[str, bytes]
"""A gate's function and the canonical spelling of its argument values."""


@dataclass(frozen=True, slots=True)
class Process:
    """One run of a goal's program. ``program`` is its hash, ``known`` every value learned."""

    id: str
    goal: str
    program: str
    arguments: Mapping[str, JSON]
    frames: tuple[Frame, ...]
    status: Status = Status.RUNNING
    known: Mapping[str, JSON] = field(default_factory=dict)
    gates: Mapping[GateKey, Bound] = field(default_factory=dict)
    results: tuple[Observed, ...] = ()
    artifacts: Mapping[str, JSON] = field(default_factory=dict)
    steps: int = 0
    ending: str = ""

    @property
    def frame(self) -> Frame | None:
        return self.frames[-1] if self.frames else None

    def moved(
        self,
        frames: tuple[Frame, ...],
        *,
        known: Mapping[str, JSON] | None = None,
        gates: Mapping[GateKey, Bound] | None = None,
        results: tuple[Observed, ...] | None = None,
        artifacts: Mapping[str, JSON] | None = None,
        steps: int = 1,
    ) -> Process:
        """The process after ``steps`` more transitions."""
        return Process(
            self.id,
            self.goal,
            self.program,
            self.arguments,
            frames,
            self.status,
            self.known if known is None else known,
            self.gates if gates is None else gates,
            self.results if results is None else results,
            self.artifacts if artifacts is None else artifacts,
            self.steps + steps,
            self.ending,
        )

    def with_status(self, status: Status, ending: str = "") -> Process:
        """Ending a process drops its frames; suspending keeps them."""
        ended = status in (Status.COMPLETED, Status.FAILED)
        return Process(
            self.id,
            self.goal,
            self.program,
            self.arguments,
            () if ended else self.frames,
            status,
            self.known,
            self.gates,
            self.results,
            self.artifacts,
            self.steps + 1,
            ending,
        )


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything a run is. ``suspended`` has the latest last; ``goal_seq`` is the last
    success of a goal action, which makes evidence from before it stale."""

    processes: Mapping[str, Process] = field(default_factory=dict)
    active: str | None = None
    suspended: tuple[str, ...] = ()
    next_seq: int = 0
    pending: Mapping[str, Pending] = field(default_factory=dict)
    goal_seq: int = -1

    @property
    def process(self) -> Process | None:
        return self.processes[self.active] if self.active is not None else None

    @property
    def frame(self) -> Frame | None:
        process = self.process
        return process.frame if process is not None else None

    @property
    def established(self) -> dict[str, Mapping[GateKey, Bound]]:
        """Process id → the gates it established."""
        return {id_: process.gates for id_, process in self.processes.items() if process.gates}

    def updated(self, process: Process) -> Configuration:
        return Configuration(
            {**self.processes, process.id: process},
            self.active,
            self.suspended,
            self.next_seq,
            self.pending,
            self.goal_seq,
        )

    def numbered(self, next_seq: int) -> Configuration:
        return Configuration(
            self.processes, self.active, self.suspended, next_seq, self.pending, self.goal_seq
        )
