"""One run of one task: what it was, what the oracle says, what it cost."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from sopilot import __version__
from sopilot_lab.sopbench.recorded import sequence_only

FORMAT = 1


@dataclass(frozen=True, slots=True)
class RunConfiguration:
    """Everything that two runs must share to be the same experiment. ``budgets`` maps a
    domain to its limits; ``language`` is the scaffold's; ``sources`` is the hash of the code
    that decides a run, empty in folders of releases that did not record it. ``run`` counts the
    repetitions of one configuration; ``hypotheses`` is the hash of those that a study fixed
    before it. Where the model is served is no part of it: that can move, and is nobody's
    business but its owner's."""

    arm: str
    model: str
    tools: str
    user: str
    hash_seed: int
    upstream_commit: str
    budgets: Mapping[str, Mapping[str, float]]
    language: str = "en"
    compiler: str = __version__
    sources: str = ""
    run: int = 1
    hypotheses: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def fingerprint(self) -> str:
        covered = self.as_json()
        for name, usual in (("sources", ""), ("run", 1), ("hypotheses", "")):
            if covered[name] == usual:  # as it was before there was such a field
                del covered[name]
        text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def label(self) -> str:
        language = "" if self.language == "en" else f" / {self.language}"
        again = f" / run {self.run}" if self.run > 1 else ""
        return f"{self.model} / {self.arm} / {self.tools}{language}{again}"

    @property
    def folder_name(self) -> str:
        """Unique among configurations, and a name that every file system takes."""
        again = f"-run{self.run}" if self.run > 1 else ""
        language = "" if self.language == "en" else f"-{self.language}"
        named = f"{self.model}-{self.arm}-{self.tools}{language}{again}-{self.fingerprint[:8]}"
        return re.sub(r"[^\w.+-]+", "_", named)


@dataclass(frozen=True, slots=True)
class BenchRecord:
    """``run_id`` is new for every attempt. ``verdict`` is the official evaluator's, ``None``
    for a run that the infrastructure broke, ``fault`` is how: such a run is discarded and, if
    that may help, made again. ``r2`` counts calls after the goal had succeeded, ``None`` where
    it never did. ``requests`` are those to the model as they were sent and answered: tokens,
    attempts, seconds, finish reason, served model, fingerprint, response id.
    ``discarded_tokens`` were spent on answers that could not be used, ``simulator_tokens`` on
    a user that a model plays."""

    run_id: str
    task: str
    domain: str
    goal: str
    fingerprint: str
    handbook_sha256: str
    program_sha256: str
    ending: str
    reason: str = ""
    verdict: Mapping[str, Any] | None = None
    calls: Sequence[str] = ()
    r2: int | None = None
    findings: Mapping[str, int] | None = None
    agent_turns: int = 0
    user_turns: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    system_characters: int = 0
    seconds: float = 0.0
    model_seconds: float = 0.0
    world_seconds: float = 0.0
    format: int = FORMAT
    run: int = 1
    fault: str = ""
    hypotheses: str = ""
    attempts: int = 0
    reasoning_tokens: int = 0
    discarded_tokens: int = 0
    simulator_tokens: int = 0
    cost: float | None = None
    requests: Sequence[Mapping[str, Any]] = ()
    system_by_call: Sequence[int] = ()

    @property
    def discarded(self) -> bool:
        return self.verdict is None

    @property
    def passed(self) -> bool:
        return self.verdict is not None and bool(self.verdict["success"])

    @property
    def should_succeed(self) -> bool:
        return self.verdict is not None and bool(self.verdict["action_should_succeed"])

    @property
    def overhead_seconds(self) -> float:
        """What the harness took beside model and simulator."""
        return max(0.0, self.seconds - self.model_seconds - self.world_seconds)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def score(self, configuration: RunConfiguration) -> dict[str, Any]:
        """What does not depend on when and where it ran; also a row for ``sopilot lab stats``."""
        verdict = self.verdict or {}
        return {
            "task": self.task,
            "domain": self.domain,
            "goal": self.goal,
            "kind": "execute" if self.should_succeed else "refuse",
            "passed": self.passed,
            "arm": configuration.arm,
            "model": configuration.model,
            "tools": configuration.tools,
            **({"run": configuration.run} if configuration.run > 1 else {}),
            "post_goal_calls": self.r2,
            "sequence_only": bool(verdict) and sequence_only(verdict),
            "verdict": dict(verdict),
            "ending": self.ending,
            "calls": list(self.calls),
            "findings": dict(self.findings or {}),
            "fingerprint": self.fingerprint,
            "program_sha256": self.program_sha256,
            "handbook_sha256": self.handbook_sha256,
        }


_FIELDS = frozenset(each.name for each in fields(BenchRecord))


def record_from_json(row: Mapping[str, Any]) -> BenchRecord:
    """Fields that a later release added are left alone."""
    return BenchRecord(**{key: value for key, value in row.items() if key in _FIELDS})
