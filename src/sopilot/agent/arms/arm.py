"""An arm is a visibility policy: what of the SOP reaches the model, and where it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sopilot.agent.arms.checklist import checklist_slot
from sopilot.agent.arms.chunk import chunk_slot
from sopilot.agent.arms.instructions import instructions
from sopilot.agent.arms.machine_state import frame_slot, state_slot
from sopilot.agent.arms.retrieval import retrieval_slot
from sopilot.agent.arms.view import View
from sopilot.agent.briefing import Briefing
from sopilot.diagnostics import Diagnostic, UserMistake, did_you_mean
from sopilot.session.protocols import Message
from sopilot.vm import Automation

Resident = Callable[[Briefing], str]
Slot = Callable[[View], str]
Fold = Callable[[Sequence[Message]], Sequence[Message]]


def nothing_resident(briefing: Briefing) -> str:
    return ""


def nothing_in_slot(view: View) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Arm:
    """``resident`` stands in the first message and never changes; ``slot`` is the last message
    of a request and is never kept. ``fold`` may shorten the dialog before it is sent;
    ``automation`` is what the machine does by itself."""

    name: str
    machine: bool
    resident: Resident = nothing_resident
    slot: Slot = nothing_in_slot
    automation: Automation = field(default_factory=Automation)
    fold: Fold | None = None

    def first_message(self, briefing: Briefing) -> str:
        return instructions(briefing, machine=self.machine, resident=self.resident(briefing))


def rendered(name: str) -> Resident:
    return lambda briefing: briefing.rendering(name)


def rendered_once(name: str) -> Resident:
    """For texts that cover every action of the handbook, whichever goal comes first."""
    return lambda briefing: briefing.rendering(name, next(iter(briefing.programs)))


def full_cursor_slot(view: View) -> str:
    """The active frame first, the whole program of the request below it."""
    here = view.here
    goal = here.process.goal if here is not None else None
    return f"{frame_slot(view)}\n\n{view.briefing.rendering('flat', goal)}"


ARMS: Final[dict[str, Arm]] = {
    arm.name: arm
    for arm in (
        Arm("official", False, resident=rendered_once("official")),
        Arm("official-code", False, resident=rendered_once("official-code")),
        Arm("official-recipes", False, resident=rendered_once("official-recipes")),
        Arm("flat", False, resident=rendered("flat")),
        Arm("prose", False, resident=rendered("prose")),
        Arm("flat-protocol", True, resident=rendered("flat"), slot=state_slot),
        Arm("full-cursor", True, slot=full_cursor_slot),
        Arm("pg", True, slot=frame_slot),
        Arm("checklist", False, slot=checklist_slot),
        Arm("retrieval", False, slot=retrieval_slot),
        Arm("chunk", True, slot=chunk_slot),
        Arm("state-only", True, slot=state_slot),
    )
}


def arm_named(name: str) -> Arm:
    if name not in ARMS:
        help_ = did_you_mean(name, ARMS)
        raise UserMistake([Diagnostic("unknown-arm", f"there is no arm `{name}`", help=help_)])
    return ARMS[name]
