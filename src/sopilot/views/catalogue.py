"""The views by name."""

from __future__ import annotations

from typing import Final

from sopilot.machine.automation import Automation
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import mistake
from sopilot.views.baselines import checklist_message, chunk_message, retrieval_message
from sopilot.views.fused import PAGED, fused_view
from sopilot.views.official import OFFICIAL
from sopilot.views.state_text import frame_message, state_message
from sopilot.views.step_answers import Answers
from sopilot.views.view import View, full_cursor_message

_ENDS: Final = Automation(complete=True)

VIEWS: Final[dict[str, View]] = {
    view.name: view
    for view in (
        *(View(name, False, resident=name, sourced=True) for name in OFFICIAL),
        View("flat", False, resident="flat", whole=True),
        View("prose", False, resident="prose"),
        View(
            "flat-protocol",
            True,
            resident="flat",
            whole=True,
            guidance="protocol",
            answers=Answers.BLIND,
            paper_steps=True,
        ),
        View("flat-state", True, resident="flat", frame_message=state_message, whole=True),
        View("full-cursor", True, frame_message=full_cursor_message, paper_steps=True, whole=True),
        fused_view(PAGED, "pg"),
        View("pg-paper", True, frame_message=frame_message, frames_only=True, paper_steps=True),
        fused_view(),
        View("checklist", False, frame_message=checklist_message),
        View("retrieval", False, frame_message=retrieval_message),
        View("chunk", True, frame_message=chunk_message),
        *(
            View(name, True, automation=_ENDS, guard=guard, guidance="guard")
            for name, guard in (("guard", "ask"), ("guard-auto", "auto"))
        ),
        View("state-only", True, frame_message=state_message, frames_only=True),
    )
}


def view_named(name: str) -> View:
    if name not in VIEWS:
        help_ = did_you_mean(name, VIEWS)
        raise mistake("unknown-view", f"there is no view `{name}`", help=help_)
    return VIEWS[name]
