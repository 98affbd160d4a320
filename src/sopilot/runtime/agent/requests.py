"""What a model is asked with, for whoever asks it: a driver, or a lens on a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sopilot.runtime.agent.arms import Arm, View
from sopilot.runtime.agent.arms.offers import offered
from sopilot.runtime.session.protocols import Message, ToolSchema


@dataclass(frozen=True, slots=True)
class Request:
    """``first`` never changes; ``slot`` is the last message where there is one, and is never
    kept; ``dialog`` is what the arm sends of all that was said and done."""

    first: Message
    dialog: Sequence[Message]
    slot: str
    tools: Sequence[ToolSchema]

    @property
    def messages(self) -> list[Message]:
        slot = [Message("system", self.slot)] if self.slot else []
        return [self.first, *self.dialog, *slot]


def build_request(view: View, arm: Arm, first: Message, schemas: Sequence[ToolSchema]) -> Request:
    slot = arm.slot(view)
    dialog = arm.fold(view.dialog) if arm.fold else view.dialog
    return Request(first, tuple(dialog), slot, offered(view, schemas, arm.offer, slot))
