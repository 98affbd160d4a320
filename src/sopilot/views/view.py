"""A view is a visibility policy: what of the SOP a model sees, where, and with which tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sopilot.machine.automation import Automation
from sopilot.protocols import Message, ToolSchema
from sopilot.views.briefing import Briefing, instructions
from sopilot.views.moment import Moment
from sopilot.views.moves import FrameMessage, Shown
from sopilot.views.state_text import frame_message
from sopilot.views.step_answers import Answers

MakeFrameMessage = Callable[[Moment], FrameMessage]
Fold = Callable[[Sequence[Message], str], Sequence[Message]]
"""The dialog as it is sent, in the language of the scaffold."""


def no_frame_message(moment: Moment) -> FrameMessage:
    return FrameMessage()


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the model. ``first`` never changes; ``dialog`` are the earlier messages as the
    view sends them; ``shown.frame_text`` is the last message, if it isn't empty."""

    first: Message
    dialog: Sequence[Message]
    tools: Sequence[ToolSchema]
    shown: Shown

    @property
    def frame_text(self) -> str:
        return self.shown.frame_text

    @property
    def messages(self) -> list[Message]:
        last = [Message("system", self.frame_text)] if self.frame_text else []
        return [self.first, *self.dialog, *last]


@dataclass(frozen=True, slots=True)
class View:
    """``resident`` names the rendering of every goal in the first message, which never changes;
    ``frame_message`` is the last message of a request and isn't kept. ``fold`` may shorten the
    dialog before it is sent; ``automation`` is what the machine does by itself. ``guidance``
    says which instructions are sent, ``answers`` how much the answer to a step tells.
    ``in_order``: a call behind a step that did not fit is not made. ``sourced``: the rendering
    covers every action, whichever goal comes first; a source may bring its own text for it,
    which then replaces the list of goals. ``short_step``: the bookkeeping tool in few words,
    with the fields that the programs can use. ``frames_only``: only texts of the program are
    shown, so a session can go on without its handbook. ``paper_steps``: the bookkeeping tool
    has the paper's seven operations and two verdicts, no `amend` and no `undecided`."""

    name: str
    machine: bool
    resident: str = ""
    frame_message: MakeFrameMessage = no_frame_message
    automation: Automation = field(default_factory=Automation)
    fold: Fold | None = None
    guidance: str = ""
    answers: Answers = Answers.WHOLE
    in_order: bool = False
    short_step: bool = False
    sourced: bool = False
    frames_only: bool = False
    paper_steps: bool = False
    whole: bool = False
    """Whether the whole programs are shown, as pseudo-code."""
    guard: str = ""
    """``ask`` or ``auto``: the agent has its own tools alone, and the runtime finds the procedure
    by the guarded call. Empty: the agent follows the program with the bookkeeping tool."""

    @property
    def has_steps(self) -> bool:
        """Whether the model moves the program itself."""
        return self.machine and not self.guard

    def first_message(self, briefing: Briefing) -> str:
        return briefing.once(self, lambda: self._first_message(briefing))

    def _first_message(self, briefing: Briefing) -> str:
        return instructions(
            briefing,
            guidance=self.guidance or ("machine" if self.has_steps else "no_machine"),
            resident=self.resident_text(briefing),
            amend=not self.paper_steps,
            own=self.sourced and briefing.own_text(self.resident) is not None,
        )

    def resident_text(self, briefing: Briefing) -> str:
        if not self.resident:
            return ""
        goal = next(iter(briefing.programs)) if self.sourced else None
        return briefing.rendering(self.resident, goal)

    def request(self, moment: Moment, first: Message, schemas: Sequence[ToolSchema]) -> Request:
        language = moment.briefing.language
        dialog = self.fold(moment.dialog, language) if self.fold else tuple(moment.dialog)
        return Request(first, dialog, schemas, self.shown(moment))

    def shown(self, moment: Moment) -> Shown:
        text, move = self.frame_message(moment)
        return Shown(
            text,
            move,
            tuple(moment.briefing.programs),
            moment.briefing.programs if self.whole else {},
            bool(self.guard),
            moment.briefing.language,
        )


def full_cursor_message(moment: Moment) -> FrameMessage:
    """The active frame first, the whole program of the request below it."""
    here = moment.here
    goal = here.process.goal if here is not None else None
    text, move = frame_message(moment)
    return FrameMessage(f"{text}\n\n{moment.briefing.rendering('flat', goal)}", move)
