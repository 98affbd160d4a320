"""The arm of a run that names none: what the last check of the model says, else nothing hidden.

Page only after the check: a model that nobody has checked sees the whole program.
"""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.agent import ARMS
from sopilot.cli.person_model import PERSON
from sopilot.cli.stores import data_folder
from sopilot.gate.folder import last_verdict

PAGED = "pg"
WHOLE = "flat"
WHOLE_WITH_MACHINE = "full-cursor"
ARM_HELP = (
    "Default: what the last `sopilot gate` of the model says. Without a check `pg` for reference "
    "and person, `flat` for any other model, and `full-cursor` in a workflow folder."
)
_NEED_NO_CHECK = ("reference", PERSON)


def checked_arm(model: str, source: str) -> str:
    """The arm to use. What it follows from is told on stderr."""
    arm, why = _chosen(model, hand_written=Path(source).is_dir())
    if why:
        click.echo(why, err=True)
    return arm


def _chosen(model: str, *, hand_written: bool) -> tuple[str, str]:
    """``hand_written``: a workflow folder, whose program has no other wording, and whose tools
    are real, so that guards need the machine."""
    found = last_verdict(data_folder(), model)
    arm = found.get("arm") if found is not None else None
    if found is not None and isinstance(arm, str) and arm in ARMS:
        page = found.get("page") is True
        if hand_written and not ARMS[arm].machine:
            arm = PAGED if page else WHOLE_WITH_MACHINE
        word = "page" if page else "do not page"
        return arm, (
            f"arm {arm}: the last check of `{model}` says {word} "
            f"({found.get('cases')} of {found.get('planned')} cases); another one with --arm"
        )
    if model in _NEED_NO_CHECK:
        return PAGED, ""
    arm = WHOLE_WITH_MACHINE if hand_written else WHOLE
    return arm, (
        f"arm {arm}: `{model}` was never checked, so nothing is hidden from it; "
        f"`sopilot gate --model {model}` says whether to page, --arm chooses another one"
    )
