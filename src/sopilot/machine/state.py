"""The state of a run: frames in processes in a configuration. Immutable.

Named tuples, not frozen dataclasses: a step makes five, and named tuples are four times faster.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from sopilot.values.json import JSON, ArgumentsKey, made

NONE: Mapping[Any, Any] = MappingProxyType({})
"""An empty mapping, shared."""

NEVER = -1
"""Stands for the event of something that didn't happen; events are numbered from 0."""

UNRESOLVED = sys.maxsize
"""Stands for the event of something that may still happen: a call that broke off."""


class Status(StrEnum):
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"


def ending_of(status: str, *, given_up: bool = False) -> str:
    """The word for how a process ended in listings and audits. A failed process was refused, unless
    the user gave it up or the program changed. The audit checks whether a refusal had a cause."""
    if status != Status.FAILED:
        return str(status)
    return "abandoned" if given_up else "refused"


class ProofLevel(StrEnum):
    """How well a verdict is proven, the best first."""

    PROVEN = "proven"
    """sopilot evaluated it under P1–P7, or the gate's action succeeded."""
    STATED = "stated"
    """The user said so when asked, which proves that it was said, not that it is true."""
    ATTESTED = "attested"
    """A model judged it, on evidence that meets P1–P5 and P7."""
    CLAIMED = "claimed"
    """Anything else."""


def weakest(levels: Iterable[ProofLevel]) -> ProofLevel:
    """The level of a proof is that of its weakest part."""
    return max(levels, key=list(ProofLevel).index, default=ProofLevel.PROVEN)


class Bound(NamedTuple):
    """A result in a slot; ``holds`` is ``None`` if it is undecided. ``producer`` is the seq of the
    return that made it. ``unmet`` are the results to blame if a group isn't true."""

    holds: bool | None
    evidence: tuple[int, ...]
    producer: int
    function: str
    value: JSON = None
    unmet: tuple[Bound, ...] = ()


class CallRecord(NamedTuple):
    """A domain call and its answer.

    ``call_seq`` is the event of the call, ``seq`` that of its answer: ``NEVER`` while the call is
    pending. ``process`` is ``None`` outside of a process; ``opened`` names the frame in which the
    call was made. ``heard`` is the user's latest message since a question was put. ``uses`` are
    the user's answers that the call rests on, each of which serves one call.

    The last four are set in the newest record of a call in ``Configuration.answers``:
    ``succeeded`` is the seq of its latest success, ``success_call`` that of its call and
    ``success_value`` its answer; ``touched`` is the latest answer after which it may have been
    carried out, ``UNRESOLVED`` once a call broke off.
    """

    call_seq: int
    call_id: str
    action: str
    arguments: Mapping[str, JSON]
    process: str | None = None
    opened: int = NEVER
    heard: int = NEVER
    uses: tuple[int, ...] = ()
    seq: int = NEVER
    ok: bool = False
    value: JSON = None
    succeeded: int = NEVER
    success_call: int = NEVER
    success_value: JSON = None
    touched: int = NEVER


Answers = Mapping[str, Mapping[ArgumentsKey, CallRecord]]
"""Action → arguments → the newest answered record of any process."""


class Frame(NamedTuple):
    """One activation of a function. ``opened`` is the seq of its opening event, its name."""

    function: str
    cursor: str
    locals: Mapping[str, JSON]
    slots: Mapping[str, Bound]
    opened: int
    path: str
    calls: tuple[int, ...] = ()
    borrowed: tuple[int, ...] = ()

    @property
    def place(self) -> str:
        return f"{self.path}@{self.cursor}"

    # Parts of the tuple itself: `_replace` costs more than a whole step should.

    def at(self, cursor: str) -> Frame:
        return made(Frame, (self[0], cursor, *self[2:]))

    def knowing(self, values: Mapping[str, JSON]) -> Frame:
        return made(Frame, (*self[:2], values, *self[3:]))

    def bound(self, slot: str, result: Bound, cursor: str) -> Frame:
        slots = {**self.slots, slot: result}
        return made(Frame, (self[0], cursor, self[2], slots, *self[4:]))

    def called(self, seq: int) -> Frame:
        return made(Frame, (*self[:6], (*self.calls, seq), self.borrowed))

    def borrowing(self, seq: int, cursor: str) -> Frame:
        return made(Frame, (self[0], cursor, *self[2:7], (*self.borrowed, seq)))


RuleKey = tuple[str, ArgumentsKey]
"""The function of a rule or gate and its argument values."""

PassedStep = tuple[str, str, ArgumentsKey]
"""Function, label, and the arguments of the call, if the step made one."""


class Process(NamedTuple):
    """One run of a goal's program. ``program`` is its hash, ``known`` has every value learned and
    ``verdicts`` the latest verdict on each rule and gate by its values. ``passed`` are the steps
    that the executor did by itself. ``unmet`` are the results that a refusal of its program is to
    be blamed on; ``None`` if it didn't end with one."""

    id: str
    goal: str
    program: str
    arguments: Mapping[str, JSON]
    frames: tuple[Frame, ...]
    status: Status = Status.RUNNING
    known: Mapping[str, JSON] = NONE
    gates: Mapping[RuleKey, Bound] = NONE
    results: tuple[CallRecord, ...] = ()
    artifacts: Mapping[str, JSON] = NONE
    steps: int = 0
    ending: str = ""
    verdicts: Mapping[RuleKey, Bound] = NONE
    passed: frozenset[PassedStep] = frozenset()
    unmet: tuple[Bound, ...] | None = None

    @property
    def frame(self) -> Frame | None:
        return self.frames[-1] if self.frames else None

    def moved(
        self,
        frames: tuple[Frame, ...],
        *,
        known: Mapping[str, JSON] | None = None,
        gates: Mapping[RuleKey, Bound] | None = None,
        results: tuple[CallRecord, ...] | None = None,
        artifacts: Mapping[str, JSON] | None = None,
        verdicts: Mapping[RuleKey, Bound] | None = None,
        passed: PassedStep | None = None,
        steps: int = 1,
    ) -> Process:
        """The process after ``steps`` more transitions."""
        it = (
            *self[:4],
            frames,
            self.status,
            self.known if known is None else known,
            self.gates if gates is None else gates,
            self.results if results is None else results,
            self.artifacts if artifacts is None else artifacts,
            self.steps + steps,
            self.ending,
            self.verdicts if verdicts is None else verdicts,
            self.passed if passed is None else self.passed | {passed},
            self.unmet,
        )
        return made(Process, it)

    def begun_again(self, root: Frame, known: Mapping[str, JSON]) -> Process:
        """Begin again with other values. Answers and verdicts stay on record for the old values;
        the steps that the executor did by itself don't."""
        own = {name: known[name] for name in root.locals if name in known}
        return self._replace(
            arguments={**self.arguments, **own},
            frames=(root,),
            known=known,
            artifacts=NONE,
            steps=self.steps + 1,
            passed=frozenset(),
        )

    def with_status(self, status: Status, ending: str = "") -> Process:
        """Change the status. An ended process loses its frames, a suspended one keeps them."""
        ended = status in (Status.COMPLETED, Status.FAILED)
        frames = () if ended else self.frames
        return self._replace(frames=frames, status=status, steps=self.steps + 1, ending=ending)


class Connection(NamedTuple):
    """The connection of an upstream's ``actions`` since event ``seq``."""

    id: str
    seq: int
    actions: frozenset[str]


class Configuration(NamedTuple):
    """The whole state of a run. ``suspended`` has the latest last. ``goal_seq`` is the last success
    of a goal action: evidence from before it is stale."""

    processes: Mapping[str, Process] = NONE
    active: str | None = None
    suspended: tuple[str, ...] = ()
    next_seq: int = 0
    pending: Mapping[str, CallRecord] = NONE
    goal_seq: int = NEVER
    answers: Answers = NONE
    clock: str = ""
    """The last recorded time, ``now`` in expressions."""
    used: frozenset[int] = frozenset()
    """Answers of the user that a guarded call was carried out on; each serves one call."""
    connections: Mapping[str, Connection] = NONE
    """By upstream. Tools without a connection have one environment in every process."""

    @property
    def process(self) -> Process | None:
        return self.processes[self.active] if self.active is not None else None

    @property
    def frame(self) -> Frame | None:
        process = self.process
        return process.frame if process is not None else None

    def updated(self, process: Process) -> Configuration:
        """The configuration after one transition of ``process``, which takes one number."""
        processes = {**self.processes, process.id: process}
        return made(Configuration, (processes, *self[1:3], self.next_seq + 1, *self[4:]))

    def numbered(self, next_seq: int) -> Configuration:
        return made(Configuration, (*self[:3], next_seq, *self[4:]))
