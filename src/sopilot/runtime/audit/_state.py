"""What the audit reconstructs from the events, independently of the machine's state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from sopilot.language.program.causes import checks_to_blame
from sopilot.language.program.model import Argument, Literal, Step
from sopilot.runtime.audit._resolved_function import ProgramCode, ResolvedFunction
from sopilot.runtime.vm.values import JSON, MISSING, ArgumentsKey, Missing, agree, same

"""No value is known; ``None`` is one."""
NEITHER = cast("bool", "undecided")
"""Of a result that is there and on neither side."""


@dataclass(frozen=True, slots=True)
class SeenResult:
    """A domain call with its result. ``opened`` names the frame the call was made in."""

    seq: int
    call_seq: int
    call_id: str
    action: str
    arguments: Mapping[str, JSON]
    ok: bool
    value: JSON
    process: str | None
    opened: int


@dataclass(frozen=True, slots=True)
class PendingCall:
    seq: int
    action: str
    arguments: Mapping[str, JSON]
    process: str | None
    opened: int
    frame: str


@dataclass(frozen=True, slots=True)
class BoundSlot:
    """A result in a slot and the return that produced it; of a group, the returns in it that
    are to be ``blamed`` where it did not come out as wanted."""

    holds: bool | None
    evidence: tuple[int, ...]
    producer: int
    function: str
    blamed: frozenset[int] = frozenset()

    @property
    def side(self) -> bool:
        """For conditions: an undecided result is bound, and on neither side."""
        return NEITHER if self.holds is None else self.holds


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict of the executor or the machine on a rule or gate, for the values of its frame."""

    function: str
    values: Mapping[str, JSON]
    holds: bool | None
    evidence: tuple[int, ...]
    seq: int
    opened: int


@dataclass(frozen=True, slots=True)
class UnmetCheck:
    """A check whose result is not what the SOP wants. ``sentence`` is what is required, ``found``
    what came out."""

    predicate: str
    function: str
    sentence: str
    found: str
    remedy: str
    tells: str
    holds: bool | None
    evidence: tuple[int, ...]
    producer: int


@dataclass(slots=True)
class FrameView:
    code: ResolvedFunction
    cursor: str
    values: dict[str, JSON]
    slot: str | None
    opened: int
    path: str
    slots: dict[str, BoundSlot] = field(default_factory=dict)
    borrowed: list[int] = field(default_factory=list)
    user_spoke: bool = False

    @property
    def place(self) -> str:
        return f"{self.path}@{self.cursor}"

    @property
    def step(self) -> Step:
        return self.code.steps[self.cursor]

    def to_blame(self) -> frozenset[int]:
        """The returns without which it would have ended otherwise."""
        results = {name: bound.holds for name, bound in self.slots.items()}
        bound = [self.slots[one.slot] for one in checks_to_blame(self.code.function, results)]
        return frozenset(seq for one in bound for seq in one.blamed or (one.producer,))


@dataclass(slots=True)
class ProcessView:
    """``lost`` once the trace left what the program allows: nothing more is judged in it.
    ``set_aside`` while the user, having spoken in it, has another goal pursued instead.
    """

    id: str
    program: ProgramCode
    frames: list[FrameView]
    arguments: Mapping[str, JSON]
    known: dict[str, JSON]
    status: str = "running"
    gates: dict[tuple[str, ArgumentsKey], BoundSlot] = field(default_factory=dict)
    results: list[SeenResult] = field(default_factory=list)
    unmet: list[UnmetCheck] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    skipped: set[tuple[str, str]] = field(default_factory=set)
    done: list[tuple[str, str, Mapping[str, JSON]]] = field(default_factory=list)
    """Steps, by function and label, that the executor did by itself."""
    goal_reached: int | None = None
    goal_failed: int | None = None
    """The latest failure of the goal action where the program asks for it."""
    claimed: int | None = None
    unanswered: list[tuple[str | None, str]] = field(default_factory=list)
    """What the user was asked while it ran, ``None`` where that is withheld, and what the user
    said to that."""
    set_aside: bool = False
    refused: bool = False
    lost: bool = False

    @property
    def goal(self) -> str:
        return self.program.goal

    @property
    def top(self) -> FrameView | None:
        return self.frames[-1] if self.frames else None

    def say_the_same(self, left: JSON, right: JSON) -> bool:
        """By the rules of the program's format; a withheld value contradicts only another
        withheld one."""
        if is_withheld(left) != is_withheld(right):
            return True
        return same(left, right) if self.program.program.format > 1 else agree(left, right)

    def value_of(self, term: Argument, frame: FrameView) -> JSON | Missing:
        """A parameter's value is the frame's alone; other names may be known to the process."""
        if isinstance(term, Literal):
            return term.value
        if term.name in frame.values:
            return frame.values[term.name]
        if term.name in frame.code.function.parameters:
            return MISSING
        return self.known.get(term.name, MISSING)


def is_withheld(value: JSON) -> bool:
    """Whether a redacted trace has a reference in the value's place."""
    return isinstance(value, Mapping) and value.keys() == {"$ref", "bytes"}


def has_withheld(value: JSON) -> bool:
    """Whether a reference stands for some part of the value."""
    if isinstance(value, Mapping):
        return is_withheld(value) or any(map(has_withheld, value.values()))
    return isinstance(value, list | tuple) and any(map(has_withheld, value))
