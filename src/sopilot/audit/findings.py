"""A finding: a trace shows something that the SOP doesn't allow. Or no verdict: `NotJudged`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final

from sopilot.messages.audit import TITLES as WORDED_TITLES
from sopilot.messages.diagnostic import Severity
from sopilot.values.json import JSON


@dataclass(frozen=True, slots=True)
class Finding:
    """``sentence`` is the SOP's own sentence that is broken, as far as one is concerned.

    ``seq`` is the event that breaks it; ``frame`` where the program stood then.
    """

    code: str
    seq: int
    explanation: str
    process: str | None = None
    frame: str = ""
    predicate: str | None = None
    sentence: str = ""
    severity: Severity = Severity.ERROR
    details: Mapping[str, JSON] = field(default_factory=dict[str, JSON])

    def as_json(self) -> dict[str, JSON]:
        return {
            "code": self.code,
            "title": TITLES.get(self.code, self.code),
            "severity": str(self.severity),
            "seq": self.seq,
            "process": self.process,
            "frame": self.frame,
            "predicate": self.predicate,
            "sentence": str(self.sentence),
            "explanation": self.explanation,
            "details": dict(self.details),
        }


class Unjudgeable(StrEnum):
    """Why there is no verdict."""

    NO_RIGHTS = "no rights to the contents"
    NO_KEY = "no key to the contents"
    ERASED = "the contents were erased"
    PRUNED = "the session was pruned"
    NOT_IN_TRACE = "the contents are not in the trace"
    SECRET = "a secret is withheld"
    NOT_IN_TRANSCRIPT = "not in the transcript"
    NO_PROGRAM = "the programs that ran are missing"
    NO_JUDGE = "no evaluator for verdicts is available"
    UNREADABLE = "the session can't be read"


@dataclass(frozen=True, slots=True)
class NotJudged:
    """The absence of a verdict, with its reason. It counts neither for nor against anybody.

    Without ``seq`` nothing in the session was judged; with it, the call or check at that event
    wasn't, and the rest was.
    """

    reason: Unjudgeable
    explanation: str = ""
    seq: int | None = None
    action: str | None = None
    predicate: str | None = None

    def __str__(self) -> str:
        return f"{self.reason}: {self.explanation}" if self.explanation else str(self.reason)

    def as_json(self) -> dict[str, JSON]:
        return asdict(self) | {"code": self.reason.name.lower().replace("_", "-")}


TITLES: Final[Mapping[str, str]] = {code: english for code, (english, _) in WORDED_TITLES.items()}
"""Every code the audit can give, with a report's words for it."""
