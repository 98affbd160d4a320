"""The requests of a recorded session, each as the model had it and re-presented cleanly. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sopilot.adapters.model_local import plain_messages
from sopilot.lab.lens.context import Context, Piece, Region, Turn
from sopilot.lab.lens.gold import gold_move, made_move
from sopilot.lab.lens.retelling import retell
from sopilot.runtime.agent import Arm, Briefing, Done, View
from sopilot.runtime.agent.arms.machine_state import frame_slot
from sopilot.runtime.agent.dialog import MODEL_REQUEST
from sopilot.runtime.session.protocols import Message, ToolSchema
from sopilot.runtime.trace import replay
from sopilot.runtime.vm import Event, Machine


@dataclass(frozen=True, slots=True)
class Moment:
    """``own`` is the request on the recorded trajectory; ``clean`` has the same instructions
    and frame, and of the dialog only what the user said. ``move`` is the right next one."""

    number: int
    place: str
    own: Context
    clean: Context
    move: str | None


def moments_of(
    machine: Machine,
    events: Sequence[Event],
    briefing: Briefing,
    arm: Arm,
    tools: Sequence[ToolSchema],
    goal: str | None = None,
) -> list[Moment]:
    """Every request that the trace notes. ``goal`` is what the user wants, where no process
    of the trace says so."""
    asked = [index for index, event in enumerate(events) if _is_request(event)]
    started = [event.payload["goal"] for event in events if event.kind == "start"]
    goal = goal or (started[0] if started else None)
    found = []
    for number, index in enumerate(asked):
        before = events[:index]
        until = asked[number + 1] if number + 1 < len(asked) else len(events)
        did = events[index:until]
        configuration = replay(machine, before)
        dialog = retell(machine, before)
        view = View(briefing, machine, configuration, dialog, _done(before))
        shown = list(arm.fold(dialog)) if arm.fold else dialog
        frame = configuration.frame
        found.append(
            Moment(
                number=number,
                place=frame.place if frame is not None else "",
                own=_context(view, arm, shown, tools),
                clean=_context(view, arm, _user_alone(dialog), tools),
                move=gold_move(machine, configuration, did, goal)
                if arm.machine
                else made_move(did),
            )
        )
    return found


def spread(moments: Sequence[Moment], count: int) -> list[Moment]:
    """At most ``count`` of those with a move, evenly over the session."""
    usable = [moment for moment in moments if moment.move is not None]
    if len(usable) <= count:
        return usable
    step = len(usable) / count
    return [usable[int(step * index + step / 2)] for index in range(count)]


def _is_request(event: Event) -> bool:
    return event.kind == "note" and event.payload["name"] == MODEL_REQUEST


def _user_alone(dialog: Sequence[Message]) -> list[Message]:
    said = [message.content for message in dialog if message.role == "user"]
    return [Message("user", "\n".join(said))] if said else []


def _context(
    view: View, arm: Arm, dialog: Sequence[Message], tools: Sequence[ToolSchema]
) -> Context:
    briefing = view.briefing
    first = arm.first_message(briefing)
    listed, *said = plain_messages([Message("system", first), *dialog], tools)
    resident = arm.resident(briefing).rstrip()
    opening = first[: len(first) - len(resident)] if resident else first
    pieces = [
        Piece(Region.INSTRUCTIONS, opening),
        Piece(Region.PROGRAM, resident),
        Piece(Region.TOOLS, listed["content"][len(first) :]),
    ]
    turns = [Turn("system", tuple(piece for piece in pieces if piece.text))]
    turns += [Turn(one["role"], (Piece(Region.DIALOG, one["content"]),)) for one in said]
    slot = arm.slot(view)
    if slot:
        turns.append(Turn("system", _slot(slot, frame_slot(view))))
    return Context(tuple(turns))


def _slot(slot: str, frame: str) -> tuple[Piece, ...]:
    """An arm that shows more than the frame shows it behind the frame."""
    if slot.startswith(frame) and len(slot) > len(frame):
        return Piece(Region.FRAME, frame), Piece(Region.PROGRAM, slot[len(frame) :])
    return (Piece(Region.FRAME, slot),)


def _done(events: Sequence[Event]) -> list[Done]:
    arguments = {}
    found = []
    for event in events:
        if event.kind == "domain_call":
            arguments[event.payload["call_id"]] = event.payload["arguments"]
        elif event.kind == "domain_result":
            given = arguments.get(event.payload["call_id"], {})
            found.append(Done(event.payload["action"], given, event.payload["ok"]))
    return found
