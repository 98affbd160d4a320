"""The views by name."""

from __future__ import annotations

from typing import Final

from sopilot.machine.automation import Automation
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import mistake
from sopilot.views.answers import Answers
from sopilot.views.baselines import checklist_slot, chunk_slot, retrieval_slot
from sopilot.views.fused import PAGED, fused_view
from sopilot.views.state_text import frame_message, state_message
from sopilot.views.view import View, full_cursor_slot, rendered, rendered_once

_ENDS: Final = Automation(complete=True)

VIEWS: Final[dict[str, View]] = {
    view.name: view
    for view in (
        *(
            View(name, False, resident=rendered_once(name), sourced=name)
            for name in ("official", "official-code", "official-recipes")
        ),
        View("flat", False, resident=rendered("flat"), whole=True),
        View("prose", False, resident=rendered("prose")),
        View(
            "flat-protocol",
            True,
            resident=rendered("flat"),
            whole=True,
            guidance="protocol",
            answers=Answers.BLIND,
            paper_steps=True,
        ),
        View("flat-state", True, resident=rendered("flat"), slot=state_message, whole=True),
        View("full-cursor", True, slot=full_cursor_slot, paper_steps=True, whole=True),
        fused_view(PAGED, "pg"),
        View("pg-paper", True, slot=frame_message, frames_only=True, paper_steps=True),
        fused_view(),
        View("checklist", False, slot=checklist_slot),
        View("retrieval", False, slot=retrieval_slot),
        View("chunk", True, slot=chunk_slot),
        *(
            View(name, True, automation=_ENDS, guard=guard, guidance="guard")
            for name, guard in (("guard", "ask"), ("guard-auto", "auto"))
        ),
        View("state-only", True, slot=state_message, frames_only=True),
    )
}


def view_named(name: str) -> View:
    if name not in VIEWS:
        help_ = did_you_mean(name, VIEWS)
        raise mistake("unknown-view", f"there is no view `{name}`", help=help_)
    return VIEWS[name]
