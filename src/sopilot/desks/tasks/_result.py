"""What a run came to: the ending, the audit, and the verdict on the task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sopilot.runtime.agent import Ending, Refusal, SessionResult
from sopilot.runtime.audit import Report
from sopilot.runtime.session import HeldCall
from sopilot.runtime.session.protocols import JSON
from sopilot.runtime.trace import SealedEvent
from sopilot.runtime.vm.values import Fields


@dataclass(frozen=True, slots=True)
class Result:
    """``audit`` judges the procedure, ``verdict`` (where there is an oracle) what was asked for;
    ``expected`` is the ending that the task names. ``held`` are the calls that people have not
    decided yet."""

    run: SessionResult
    audit: Report
    verdict: Fields | None = None
    expected: Ending | None = None
    held: Sequence[HeldCall] = ()
    events: Sequence[SealedEvent] = ()

    @property
    def session_id(self) -> str:
        return self.run.session_id

    @property
    def ending(self) -> Ending:
        return self.run.ending

    @property
    def reason(self) -> str:
        return self.run.reason

    @property
    def to_customer(self) -> str:
        return self.run.to_customer

    @property
    def refusals(self) -> Sequence[Refusal]:
        return self.run.refusals

    @property
    def executed(self) -> bool:
        return self.ending is Ending.EXECUTED

    @property
    def refused(self) -> bool:
        return self.ending is Ending.REFUSED

    @property
    def waiting(self) -> bool:
        return self.ending is Ending.WAITING

    @property
    def passed(self) -> bool | None:
        """Whether the task was; ``None`` where nobody can say."""
        return None if self.verdict is None else bool(self.verdict["success"])

    @property
    def pending(self) -> bool:
        """People have to decide first: what comes of the task is not known yet."""
        return self.waiting and not self.passed

    @property
    def good(self) -> bool:
        """A proper end, nothing found, and the task passed if there is one."""
        proper = self.executed or self.refused or self.waiting
        return proper and self.audit.clean and (self.pending or self.passed is not False)

    def as_json(self) -> dict[str, JSON]:
        document = self.run.as_json() | {"audit": self.audit.as_json()}
        if self.verdict is not None and not self.pending:
            rest = {name: value for name, value in self.verdict.items() if name != "success"}
            document["task"] = {"passed": self.passed, "expected": self.expected, **rest}
        return document
