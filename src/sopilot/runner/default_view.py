"""The view of a run that names none: what the last check of the model says, else nothing hidden.

Page only after the check: a model that nobody has checked sees the whole program.
"""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.runner.sources import FolderSource, TaskSource
from sopilot.stores.open import data_folder
from sopilot.values.json import JSON
from sopilot.views.catalogue import VIEWS

PAGED = "pg"


WHOLE = "flat"


WHOLE_WITH_MACHINE = "full-cursor"


VIEW_HELP = (
    "Default: what the last `sopilot qualify` of the model says; a model that may page is paged "
    "with `fused` where actions are guarded. Without a check `pg` for reference, person and "
    "replays, `flat` for any other model. Where the machine must hold irreversible actions, "
    "`full-cursor` instead of `flat`."
)


_NEED_NO_CHECK = ("reference", "person")


def checked_view(model: str, source: TaskSource) -> tuple[str, str]:
    """The view to use, and what it follows from; nothing where that goes without saying."""
    guarded = _has_guarded_actions(source)
    # The bundled examples are simulations: nothing has to be blocked there.
    needs_machine = guarded and not source.own_simulator
    result = None
    if (data_folder() / "checks").is_dir():
        from sopilot.runner.qualifications import answer_of, last_verdict

        result = last_verdict(data_folder(), model)
        if result is not None and answer_of(result).is_finding:
            followed = _followed(model, result, str(answer_of(result)), guarded, needs_machine)
            if followed is not None:
                return followed
    return _unchecked(model, result, needs_machine=needs_machine)


def _has_guarded_actions(source: TaskSource) -> bool:
    """Held until they may be done, which only a machine can. A workflow folder is written for
    one: its program has no other wording."""
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
        f"({values.get('cases')} of {values.get('planned')} cases); another one with --view"
    )


def _unchecked(
    model: str, values: Mapping[str, JSON] | None, *, needs_machine: bool
) -> tuple[str, str]:
    if model in _NEED_NO_CHECK or model.startswith("replay:"):
        return PAGED, ""
    view = WHOLE_WITH_MACHINE if needs_machine else WHOLE
    was = "was never checked" if values is None else "was checked without a finding"
    return view, (
        f"view {view}: `{model}` {was}, so nothing is hidden from it; "
        f"`sopilot qualify --model {model}` says whether to page, --view chooses another one"
    )
