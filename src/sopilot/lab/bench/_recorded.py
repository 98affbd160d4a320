"""Official configurations as upstream recorded them: stored verdicts, never run again.

What a configuration was is in the name of its file: model, mode of calling,
tool list, and whether the user was adversarial. Only the stored ``evaluations``
are read; the recorded text is never evaluated.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sopilot.lab.bench._checkout import Checkout
from sopilot.lab.bench.reference import DOMAINS, TaskReference

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
    found = []
    for entry in entries:
        goal = entry["task"]["user_goal"]
        reference = TaskReference(domain, goal, seen[goal])
        seen[goal] += 1
        if entry.get("evaluations"):
            verdict = entry["evaluations"][0]
            should = bool(verdict["action_should_succeed"])
            found.append(RecordedVerdict(reference, should, verdict))
    return tuple(found)


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
