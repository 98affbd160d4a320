"""Official configurations as upstream recorded them: stored verdicts, never run again.

What a configuration was is in the name of its file: model, mode of calling,
tool list, and whether the user was adversarial. Only the stored ``evaluations``
are read; the recorded text is never evaluated.

Counts over verdicts of the official evaluator, whoever made the runs.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sopilot_lab.sopbench.checkout import Checkout
from sopilot_lab.sopbench.reference import DOMAINS, TaskReference

_NAME = re.compile(
    r"(?P<user>usr_(?P<kind>[^-]+)-)?ast_(?P<model>.+)-mode_(?P<mode>[a-z-]+)"
    r"-dep_(?P<dep>\w+)-fmt_(?P<format>\w+)-tool_(?P<tools>\w+)-shuffle_(?P<shuffle>\w+)"
)
_LEAST_BYTES = 2_048
"""A smaller file stands for a recording that this copy of the checkout lacks."""


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    reference: TaskReference
    should_succeed: bool
    verdict: Mapping[str, Any]

    @property
    def passed(self) -> bool:
        return bool(self.verdict["success"])


@dataclass(frozen=True, slots=True)
class RecordedConfiguration:
    """``user`` is ``default`` or the kind of user that the file names."""

    domain: str
    model: str
    mode: str
    tools: str
    user: str
    path: Path

    @property
    def label(self) -> str:
        return f"{self.model} ({self.mode}, {self.tools} tools)"

    def verdicts(self) -> Sequence[RecordedVerdict]:
        """The first recorded run of every task; nothing where the copy is incomplete."""
        return _stored_verdicts(self.domain, self.path)


@functools.cache
def _stored_verdicts(domain: str, path: Path) -> tuple[RecordedVerdict, ...]:
    """Recordings are large and do not change: each is read once."""
    if path.stat().st_size < _LEAST_BYTES:
        return ()
    try:
        entries = json.loads(path.read_text("utf-8"))
    except ValueError:
        return ()
    seen: Counter[str] = Counter()
    results = []
    for entry in entries:
        goal = entry["task"]["user_goal"]
        reference = TaskReference(domain, goal, seen[goal])
        seen[goal] += 1
        if entry.get("evaluations"):
            verdict = entry["evaluations"][0]
            should = bool(verdict["action_should_succeed"])
            results.append(RecordedVerdict(reference, should, verdict))
    return tuple(results)


def recorded_prompts(configuration: RecordedConfiguration) -> dict[TaskReference, str]:
    """The system text of every recorded run, by task."""
    path = configuration.path
    if path.stat().st_size < _LEAST_BYTES:
        return {}
    try:
        entries = json.loads(path.read_text("utf-8"))
    except ValueError:
        return {}
    seen: Counter[str] = Counter()
    results = {}
    for entry in entries:
        goal = entry["task"]["user_goal"]
        reference = TaskReference(configuration.domain, goal, seen[goal])
        seen[goal] += 1
        for run in (entry.get("interactions") or ())[:1]:
            if run.get("prompt"):
                results[reference] = run["prompt"]
    return results


def configurations(
    checkout: Checkout, domain: str | None = None
) -> Iterator[RecordedConfiguration]:
    """Every recorded configuration of a domain, or of all of them, by name."""
    for each in DOMAINS if domain is None else (domain,):
        for path in sorted((checkout.path / "output" / each).glob("*.json")):
            match = _NAME.match(path.name)
            if match is not None:
                user = match["kind"] or "default"
                yield RecordedConfiguration(
                    each, match["model"], match["mode"], match["tools"], user, path
                )


@dataclass(frozen=True, slots=True)
class Tally:
    """``not_reached`` are execute tasks whose goal was never reached, for whatever reason: a
    refusal, a budget, a broken call; ``wrongly_reached`` refusal tasks whose goal was.
    ``sequence_only`` are failures with the right final state
    and no violation, whose order of calls alone is wrong."""

    n: int = 0
    passed: int = 0
    execute: int = 0
    execute_passed: int = 0
    refuse: int = 0
    refuse_passed: int = 0
    not_reached: int = 0
    wrongly_reached: int = 0
    sequence_only: int = 0

    @property
    def balanced(self) -> float | None:
        """The mean of execute and refusal accuracy; undefined without both classes."""
        if not self.execute or not self.refuse:
            return None
        return (self.execute_passed / self.execute + self.refuse_passed / self.refuse) / 2


def tally(verdicts: Iterable[Mapping[str, Any]]) -> Tally:
    rows = list(verdicts)
    execute = [row for row in rows if row["action_should_succeed"]]
    refuse = [row for row in rows if not row["action_should_succeed"]]
    return Tally(
        n=len(rows),
        passed=_passed(rows),
        execute=len(execute),
        execute_passed=_passed(execute),
        refuse=len(refuse),
        refuse_passed=_passed(refuse),
        not_reached=sum(not row["action_successfully_called"] for row in execute),
        wrongly_reached=sum(bool(row["action_successfully_called"]) for row in refuse),
        sequence_only=sum(sequence_only(row) for row in rows),
    )


def sequence_only(verdict: Mapping[str, Any]) -> bool:
    right = ("no_tool_call_error", "constraint_not_violated", "database_match")
    return (
        not verdict["success"]
        and not verdict["dirgraph_satisfied"]
        and bool(verdict["action_called_correctly"])
        and all(verdict[key] for key in right)
    )


def _passed(rows: Iterable[Mapping[str, Any]]) -> int:
    return sum(bool(row["success"]) for row in rows)


def objections(verdict: Mapping[str, Any]) -> list[str]:
    """What the evaluator holds against a run. `action_should_succeed` is a label of the task,
    not one of them."""
    return [key for key, value in verdict.items() if value is False and key not in _NO_OBJECTION]


_NO_OBJECTION = frozenset({"success", "action_should_succeed"})
