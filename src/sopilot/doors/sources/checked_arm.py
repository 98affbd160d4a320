"""The arm of a run that names none: what the last check of the model says, else nothing hidden.

Page only after the check: a model that nobody has checked sees the whole program.
"""

from __future__ import annotations

from sopilot.adapters.store_by_name import data_folder
from sopilot.doors.sources._source import FolderSource, TaskSource
from sopilot.runtime.agent import ARMS

PAGED = "pg"
WHOLE = "flat"
WHOLE_WITH_MACHINE = "full-cursor"
ARM_HELP = (
    "Default: what the last `sopilot gate` of the model says. Without a check `pg` for reference, "
    "person and replays, `flat` for any other model. Where the machine must hold irreversible "
    "actions, `full-cursor` instead of `flat`."
)
_NEED_NO_CHECK = ("reference", "person")


def checked_arm(model: str, source: TaskSource) -> tuple[str, str]:
    """The arm to use, and what it follows from; nothing where that goes without saying."""
    return _chosen(model, needs_machine=_needs_machine(source))


def _needs_machine(source: TaskSource) -> bool:
    """A workflow folder, whose program has no other wording, and a handbook of one's own with
    an action that is held until it may be done: without a machine nothing holds it. The
    bundled desks are simulations."""
    if isinstance(source, FolderSource):
        return True
    if source.bundled:
        return False
    actions = source.handbook.actions.values()
    return any(action.irreversible or action.approval for action in actions)


def _chosen(model: str, *, needs_machine: bool) -> tuple[str, str]:
    found = None
    if (data_folder() / "checks").is_dir():
        from sopilot.lab.discipline.folder import last_verdict

        found = last_verdict(data_folder(), model)
    arm = found.get("arm") if found is not None else None
    if found is not None and isinstance(arm, str) and arm in ARMS:
        page = found.get("page") is True
        if needs_machine and not ARMS[arm].machine:
            arm = PAGED if page else WHOLE_WITH_MACHINE
        word = "page" if page else "do not page"
        return arm, (
            f"arm {arm}: the last check of `{model}` says {word} "
            f"({found.get('cases')} of {found.get('planned')} cases); another one with --arm"
        )
    if model in _NEED_NO_CHECK or model.startswith("replay:"):
        return PAGED, ""
    arm = WHOLE_WITH_MACHINE if needs_machine else WHOLE
    return arm, (
        f"arm {arm}: `{model}` was never checked, so nothing is hidden from it; "
        f"`sopilot gate --model {model}` says whether to page, --arm chooses another one"
    )
