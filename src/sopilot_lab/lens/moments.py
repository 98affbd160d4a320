"""The requests of a recorded session, each as the model had it and re-presented cleanly. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sopilot.agent.dialog import MODEL_REQUEST, RecordedDialog
from sopilot.agent.toolbox import Toolbox
from sopilot.handbook.expressions import judge as judge_verdict
from sopilot.machine.machine import Machine
from sopilot.machine.replay import replay
from sopilot.models.local import plain_messages
from sopilot.protocols import Message, ToolSchema
from sopilot.trace.events import Event
from sopilot.views.briefing import Briefing
from sopilot.views.moment import Moment
from sopilot.views.state_text import frame_text
from sopilot.views.view import Request, View
from sopilot_lab.lens.context import Context, Piece, Region, Turn
from sopilot_lab.lens.gold import gold_move, made_move


@dataclass(frozen=True, slots=True)
class ReadMoment:
    """``own`` is the ``request`` on the recorded trajectory; ``clean`` has the same instructions
    and frame, and of the dialog only what the user said. ``move`` is the right next one."""

    number: int
    place: str
    request: Request
    own: Context
    clean: Context
    move: str | None


def moments_of(
    machine: Machine,
    events: Sequence[Event],
    briefing: Briefing,
    view: View,
    tools: Sequence[ToolSchema],
    goal: str | None = None,
) -> list[ReadMoment]:
    """Every request that the trace notes. ``tools`` are the domain's; ``goal`` is what the user
    wants, where no process of the trace says so."""
    requests = [index for index, event in enumerate(events) if _is_request(event)]
    started = [event.payload["goal"] for event in events if event.kind == "start"]
    goal = goal or (started[0] if started else None)
    first = Message("system", view.first_message(briefing))
    toolbox = Toolbox(view, briefing, tools)
    step = toolbox.step
    recorded = RecordedDialog(
        answers=view.answers, language=briefing.language, steps=view.machine, step_tool=step
    )
    configuration = machine.initial()
    results = []
    taken = 0
    for number, (index, until) in enumerate(pairwise([*requests, len(events)])):
        for event in events[taken:index]:
            recorded.take(event)
        configuration = replay(machine, events[taken:index], begin=configuration)
        taken, did = index, events[index:until]
        dialog = recorded.messages
        moment = Moment(
            briefing, machine, configuration, dialog, view.automation, judge_verdict, step
        )
        request = view.request(moment, first, toolbox.schemas)
        clean = replace(request, dialog=_user_alone(dialog))
        resident, frame = view.resident(briefing).rstrip(), frame_text(moment)
        move = gold_move(machine, configuration, did, goal) if view.machine else made_move(did)
        results.append(
            ReadMoment(
                number=number,
                place=configuration.frame.place if configuration.frame is not None else "",
                request=request,
                own=_context(request, resident, frame),
                clean=_context(clean, resident, frame),
                move=move,
            )
        )
    return results


def spread(moments: Sequence[ReadMoment], count: int) -> list[ReadMoment]:
    """At most ``count`` of those with a move, evenly over the session."""
    usable = [moment for moment in moments if moment.move is not None]
    if len(usable) <= count:
        return usable
    step = len(usable) / count
    return [usable[int(step * index + step / 2)] for index in range(count)]


def _is_request(event: Event) -> bool:
    return event.kind == "note" and event.payload["name"] == MODEL_REQUEST


def _user_alone(dialog: Sequence[Message]) -> list[Message]:
    contents = [message.content for message in dialog if message.role == "user"]
    return [Message("user", "\n".join(contents))] if contents else []


def _context(request: Request, resident: str, frame: str) -> Context:
    first = request.first.content
    listed, *reply = plain_messages([request.first, *request.dialog], request.tools)
    opening = first[: len(first) - len(resident)] if resident else first
    pieces = [
        Piece(Region.INSTRUCTIONS, opening),
        Piece(Region.PROGRAM, resident),
        Piece(Region.TOOLS, listed["content"][len(first) :]),
    ]
    turns = [Turn("system", tuple(piece for piece in pieces if piece.text))]
    turns += [Turn(item["role"], (Piece(Region.DIALOG, item["content"]),)) for item in reply]
    if request.slot:
        turns.append(Turn("system", _slot(request.slot, frame)))
    return Context(tuple(turns))


def _slot(slot: str, frame: str) -> tuple[Piece, ...]:
    """A view that shows the program with the frame shows it below, behind an empty line; what
    else it says of the moment belongs to the frame."""
    if slot.startswith(f"{frame}\n\n"):
        return Piece(Region.FRAME, frame), Piece(Region.PROGRAM, slot[len(frame) :])
    return (Piece(Region.FRAME, slot),)
