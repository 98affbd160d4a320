"""Verdicts of `sopilot qualify`, and the view of a run that names none: what the last verdict on
the model says, else nothing is hidden from it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from sopilot.files.text import whole_text
from sopilot.runner.sources import FolderSource, TaskSource
from sopilot.stores.open import data_folder
from sopilot.values.json import JSON
from sopilot.views.catalogue import VIEWS


class Answer(StrEnum):
    """Result of a check."""

    PAGE = "page"
    MAY_PAGE = "may page"
    """Paging neither wins nor loses: choose it for its guards and proof."""
    DO_NOT_PAGE = "do not page"
    TOO_FEW = "too few"
    """No finding: not enough pairs of runs."""
    BROKEN = "broken"
    """No finding: the endpoint didn't answer, or answered nothing."""

    @property
    def is_finding(self) -> bool:
        return self not in (Answer.TOO_FEW, Answer.BROKEN)


LATEST = "latest.json"


def last_verdict(home: Path, model: str) -> dict[str, JSON] | None:
    """The verdict of the last check of this model, if there is one that can be read."""
    return read_verdict(model_folder(home, model) / LATEST)


def answer_of(verdict: Mapping[str, JSON]) -> Answer:
    """The result in a stored verdict. Rule version 1 had two results."""
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


PAGED = "pg"
WHOLE = "flat"
WHOLE_WITH_MACHINE = "full-cursor"

VIEW_HELP = (
    "Default: the recommendation of the last `sopilot qualify` of the model. Without one: `pg` "
    "for reference, person and replays; `full-cursor` for other models if actions are guarded, "
    "else `flat`."
)

_NEED_NO_CHECK = ("reference", "person")


def checked_view(model: str, source: TaskSource) -> tuple[str, str]:
    """The view to use, and the reason to print, if any."""
    guarded = _has_guarded_actions(source)
    # The bundled examples are simulations: nothing has to be blocked there.
    needs_machine = guarded and not source.own_simulator
    result = last_verdict(data_folder(), model)
    if result is not None and answer_of(result).is_finding:
        followed = _followed(model, result, str(answer_of(result)), guarded, needs_machine)
        if followed is not None:
            return followed
    return _unchecked(model, result, needs_machine=needs_machine)


def _has_guarded_actions(source: TaskSource) -> bool:
    """Whether only a tracked view can block them. A workflow folder has no other wording."""
    if isinstance(source, FolderSource):
        return True
    actions = source.handbook.actions.values()
    return any(action.irreversible or action.approval for action in actions)


def _followed(
    model: str, values: Mapping[str, JSON], answer: str, guarded: bool, needs_machine: bool
) -> tuple[str, str] | None:
    view, paged = values.get("arm"), values.get("guarded_arm")
    if not isinstance(view, str) or view not in VIEWS:
        return None
    if guarded and isinstance(paged, str) and paged in VIEWS:
        view = paged
    elif needs_machine and not VIEWS[view].machine:
        view = PAGED if values.get("page") is True else WHOLE_WITH_MACHINE
    return view, (
        f"view {view}: the last check of `{model}` says {answer} "
        f"({values.get('cases')} of {values.get('planned')} cases); choose another with --view"
    )


def _unchecked(
    model: str, values: Mapping[str, JSON] | None, *, needs_machine: bool
) -> tuple[str, str]:
    if model in _NEED_NO_CHECK or model.startswith("replay:"):
        return PAGED, ""
    view = WHOLE_WITH_MACHINE if needs_machine else WHOLE
    was = "hasn't been qualified for paging" if values is None else "was checked without a finding"
    return view, (
        f"view {view}: `{model}` {was}; showing the whole program. "
        f"`sopilot qualify --model {model}` checks it, --view chooses another view"
    )
