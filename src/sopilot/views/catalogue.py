"""The arms by name."""

from __future__ import annotations

from typing import Final

from sopilot.machine.automation import Automation
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import mistake
from sopilot.views.answers import Answers
from sopilot.views.baselines import checklist_slot, chunk_slot, retrieval_slot
from sopilot.views.fused import PAGED, fused_arm
from sopilot.views.state_text import frame_slot, state_slot
from sopilot.views.view import Arm, full_cursor_slot, rendered, rendered_once

ARMS: Final[dict[str, Arm]] = {
    arm.name: arm
    for arm in (
        *(
            Arm(name, False, resident=rendered_once(name), sourced=name)
            for name in ("official", "official-code", "official-recipes")
        ),
        Arm("flat", False, resident=rendered("flat")),
        Arm("prose", False, resident=rendered("prose")),
        Arm(
            "flat-protocol",
            True,
            resident=rendered("flat"),
            guidance="protocol",
            answers=Answers.BLIND,
            paper_steps=True,
        ),
        Arm("flat-state", True, resident=rendered("flat"), slot=state_slot),
        Arm("full-cursor", True, slot=full_cursor_slot, paper_steps=True),
        fused_arm(PAGED, "pg"),
        Arm("pg-paper", True, slot=frame_slot, frames_only=True, paper_steps=True),
        fused_arm(),
        Arm("checklist", False, slot=checklist_slot),
        Arm("retrieval", False, slot=retrieval_slot),
        Arm("chunk", True, slot=chunk_slot),
        Arm("guard", True, automation=Automation(complete=True), guard="ask"),
        Arm("guard-auto", True, automation=Automation(complete=True), guard="auto"),
        Arm("state-only", True, slot=state_slot, frames_only=True),
    )
}


def arm_named(name: str) -> Arm:
    if name not in ARMS:
        help_ = did_you_mean(name, ARMS)
        raise mistake("unknown-arm", f"there is no arm `{name}`", help=help_)
    return ARMS[name]
