"""What is kept of one run of a check."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

from sopilot.agent.result import Ending
from sopilot.messages.errors import UserMistake
from sopilot.values.json import JSON, Fields
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """``passed`` is ``None`` when the provider broke the run. ``reasons`` say why it failed."""

    case: str
    domain: str
    goal: str
    kind: str
    arm: str
    passed: bool | None
    ending: str
    reasons: tuple[str, ...] = ()
    post_goal_calls: int | None = None
    requests: int = 0
    domain_calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        return f"{self.domain}/{self.case}", self.arm

    @property
    def broken(self) -> bool:
        return self.ending == Ending.INFRASTRUCTURE_FAILURE

    def as_json(self) -> dict[str, JSON]:
        return asdict(self) | {"reasons": list(self.reasons)}

    def outcome(self, model: str) -> RunOutcome:
        return RunOutcome(
            task=self.case,
            goal=self.goal,
            kind=TaskKind(self.kind),
            passed=self.passed,
            arm=self.arm,
            model=model,
            domain=self.domain,
            post_goal_calls=self.post_goal_calls,
        )


def record_from_json(value: Fields) -> RunRecord:
    known = {item.name: value[item.name] for item in fields(RunRecord) if item.name in value}
    try:
        return RunRecord(**{**known, "reasons": tuple(known.get("reasons", ()))})
    except TypeError as error:
        raise UserMistake("this is not a record of a discipline check") from error


def by_arm(records: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    result: dict[str, list[RunRecord]] = {}
    for record in records:
        result.setdefault(record.arm, []).append(record)
    return result
