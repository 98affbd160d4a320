from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from sopilot.files.text import whole_text
from sopilot.values.json import JSON


class Answer(StrEnum):
    """What a check comes to."""

    PAGE = "page"
    MAY_PAGE = "may page"
    """Paging wins nothing and loses nothing that counts: a choice, for its guards and proof."""
    DO_NOT_PAGE = "do not page"
    TOO_FEW = "too few"
    """No finding: not enough pairs to find anything."""
    BROKEN = "broken"
    """No finding: the endpoint did not answer, or with nothing."""

    @property
    def is_finding(self) -> bool:
        return self not in (Answer.TOO_FEW, Answer.BROKEN)


LATEST = "latest.json"


def last_verdict(home: Path, model: str) -> dict[str, JSON] | None:
    """The verdict of the last check of this model, if there is one that can be read."""
    return read_verdict(model_folder(home, model) / LATEST)


def answer_of(verdict: Mapping[str, JSON]) -> Answer:
    """What a stored verdict says. Those of rule version 1 knew two answers."""
    try:
        return Answer(str(verdict["answer"]))
    except (KeyError, ValueError):
        return Answer.PAGE if verdict.get("page") is True else Answer.DO_NOT_PAGE


def read_verdict(path: Path) -> dict[str, JSON] | None:
    try:
        value = json.loads(whole_text(path))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def model_folder(home: Path, model: str) -> Path:
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", model).strip("-.")[:60] or "model"
    return home / "checks" / f"{readable}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"
