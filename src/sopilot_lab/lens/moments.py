"""Moments of recorded runs: the prompt at a decision, in regions, and the right next move."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

from sopilot.agent.approvers import offered_tools
from sopilot.agent.dialog import MODEL_REQUEST, RecordedDialog
from sopilot.agent.toolbox import Toolbox
from sopilot.handbook.expressions import judge as judge_verdict
from sopilot.machine.affordances import Shape, fits
from sopilot.machine.machine import Machine
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.replay import program_changes, replay, whole_events
from sopilot.machine.state import Configuration
from sopilot.messages.errors import UserMistake, mistake
from sopilot.models.local import plain_messages
from sopilot.protocols import Message, ToolSchema
from sopilot.runner.audit_inputs import TraceInput
from sopilot.runner.options import RunOptions
from sopilot.runner.sources import compile_source
from sopilot.trace.events import Event
from sopilot.trace.redaction import is_reference
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import view_named
from sopilot.views.moment import Moment
from sopilot.views.state_text import frame_message
from sopilot.views.step_tool import TOOL_NAME
from sopilot.views.view import Request, View
from sopilot_lab.experiments.run_folder import recorded_runs
from sopilot_lab.experiments.selection import evenly
from sopilot_lab.sopbench.reference import is_sopbench

ASKS = '{"say": "'
_NAMED = {
    "start": "goal",
    "call": "function",
    "return": "holds",
    "select_branch": "option",
    "emit_artifact": "name",
}


def gold_move(
    machine: Machine, configuration: Configuration, did: Sequence[Event], goal: str | None
) -> str | None:
    """The right move. ``did`` are the events that followed the model's reply; ``goal`` is what the
    user wants, for a move that no cursor knows. ``None`` if only a judgement could tell."""
    shapes = fits(machine.programs, configuration)
    if configuration.active is None:
        shapes = [shape for shape in shapes if goal is None or shape["goal"] == goal]
        return spelled(shapes[0]) if len(shapes) == 1 else None
    at_cursor = [shape for shape in shapes if shape["operation"] != "fail"] or shapes
    for event in did:
        for shape in at_cursor:
            if _is(shape, event):
                decides = event.kind == "return" and shape.get("holds") is None
                decided = {"holds": event.payload.get("holds")} if decides else {}
                return spelled({**shape, **decided})
    first = at_cursor[0]
    if first["operation"] == "ask_user":
        ready = [item for item in at_cursor if item["operation"] == "domain_call"]
        first = next((item for item in ready if not item.get("missing")), first)
    return spelled(first)


def made_move(did: Sequence[Event]) -> str | None:
    """The first call that the session made there: the move of arms without a machine."""
    for event in did:
        if event.kind == "domain_call":
            return spelled({"operation": "domain_call", "action": event.payload["action"]})
        if event.note == "end_session":
            return f'{{"tool": {json.dumps("end_session")}'
    return None


def spelled(shape: Shape) -> str | None:
    operation = shape["operation"]
    if operation == "ask_user":
        return ASKS
    if operation == "domain_call":
        return f'{{"tool": {json.dumps(shape["action"])}'
    opened = f'{{"tool": "{TOOL_NAME}", "arguments": {{"operation": "{operation}"'
    field = _NAMED.get(operation)
    if field is None:
        return opened
    if shape.get(field) is None:
        return None
    return f"{opened}, {json.dumps(field)}: {json.dumps(shape[field], ensure_ascii=False)}"


def _is(shape: Shape, event: Event) -> bool:
    kind, payload = event.kind, event.payload
    if shape["operation"] != kind:
        return False
    if kind == "domain_call":
        return bool(shape["action"] == payload["action"])
    if kind == "select_branch":
        return payload.get("option") in (None, shape.get("option"))
    return True


class Region(StrEnum):
    INSTRUCTIONS = "instructions"
    TOOLS = "tools"
    PROGRAM = "program"
    """The SOP's text beyond the active frame; all of it in an arm without frames."""
    DIALOG = "dialog"
    FRAME = "frame"


@dataclass(frozen=True, slots=True)
class Piece:
    region: Region
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    role: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Context:
    turns: tuple[Turn, ...]

    def without(self, *regions: Region) -> Context:
        """Remove the regions, and every message that is empty without them."""
        left = [
            (turn.role, tuple(piece for piece in turn.pieces if piece.region not in regions))
            for turn in self.turns
        ]
        return Context(tuple(Turn(role, pieces) for role, pieces in left if pieces))

    def has(self, region: Region) -> bool:
        return any(
            piece.region is region and piece.text.strip()
            for turn in self.turns
            for piece in turn.pieces
        )

    def without_oldest_dialog(self) -> Context | None:
        """``None`` if the context has no dialog left."""
        for index, turn in enumerate(self.turns):
            if all(piece.region is Region.DIALOG for piece in turn.pieces):
                return Context((*self.turns[:index], *self.turns[index + 1 :]))
        return None


@dataclass(frozen=True, slots=True)
class Written:
    """``spans`` are (start, end, region) in ``text``; what no span covers is the template's."""

    text: str
    spans: tuple[tuple[int, int, Region], ...]

    def region_at(self, start: int, end: int) -> Region | None:
        """The region of the first character there that is not blank."""
        while start < end - 1 and self.text[start].isspace():
            start += 1
        for first, last, region in self.spans:
            if first <= start < last:
                return region
        return None


Template = Callable[[Sequence[Mapping[str, str]]], str]


def write(context: Context, template: Template) -> Written:
    """Apply the chat template to a context and find the regions in its text."""
    contents = ["".join(piece.text for piece in turn.pieces).strip() for turn in context.turns]
    text = template(
        [
            {"role": turn.role, "content": content}
            for turn, content in zip(context.turns, contents, strict=True)
        ]
    )
    spans: list[tuple[int, int, Region]] = []
    after = 0
    for turn, content in zip(context.turns, contents, strict=True):
        start = text.find(content, after)
        if start < 0:
            raise UserMistake(
                "this model's chat template changes the messages, so the lens can't be used on it"
            )
        after = start + len(content)
        joined = "".join(piece.text for piece in turn.pieces)
        at = start - (len(joined) - len(joined.lstrip()))
        for piece in turn.pieces:
            first, last = max(at, start), min(at + len(piece.text), after)
            if first < last:
                spans.append((first, last, piece.region))
            at += len(piece.text)
    return Written(text, tuple(spans))


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
        resident, frame = view.resident_text(briefing).rstrip(), frame_message(moment).text
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
    """Choose at most ``count`` moments with a move, evenly over the session."""
    usable = [moment for moment in moments if moment.move is not None]
    if len(usable) <= count:
        return usable
    step = len(usable) / count
    return [usable[int(step * index + step / 2)] for index in range(count)]


def _is_request(event: Event) -> bool:
    return event.note == MODEL_REQUEST


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
    if request.frame_text:
        turns.append(Turn("system", _slot(request.frame_text, frame)))
    return Context(tuple(turns))


def _slot(slot: str, frame: str) -> tuple[Piece, ...]:
    """A view that shows the program with the frame shows it below, behind an empty line; what
    else it says of the moment belongs to the frame."""
    if slot.startswith(f"{frame}\n\n"):
        return Piece(Region.FRAME, frame), Piece(Region.PROGRAM, slot[len(frame) :])
    return (Piece(Region.FRAME, slot),)


def sweep_moments(
    folder: Path, arm_name: str | None, sessions: int, count: int
) -> tuple[list[ReadMoment], int]:
    """Moments of passed runs of a sweep, spread evenly over a limited number, and that number."""
    passed = [each for each in recorded_runs([folder]) if each.record.passed]
    stored = [entry for entry in passed if entry.file is not None]
    if not stored:
        raise UserMistake(
            "no trace of a passing run is kept here: run the sweep with `--traces`"
            if passed
            else "no run in this folder passed"
        )
    read_moments: list[ReadMoment] = []
    taken = 0
    for item in evenly(stored, sessions):
        trace = item.trace()
        if trace is None:
            continue
        task = item.record.task
        source = task if is_sopbench(task) else task.rpartition("/")[0]
        recorded = TraceInput(trace, source, True, item.record.goal)
        arm = arm_name or item.configuration.arm
        read_moments += chosen_moments(recorded, None, source, arm, item.record.goal, count)
        taken += 1
    return read_moments, taken


def chosen_moments(
    recorded: TraceInput,
    described: RunOptions | None,
    handbook: str | None,
    arm_name: str | None,
    goal: str | None,
    count: int,
) -> list[ReadMoment]:
    trace = recorded.trace
    events = whole_events(trace.events, trace.payloads)
    if program_changes(events):
        raise UserMistake(
            "this session changed its programs midway, so the lens can't be used on it"
        )
    source = handbook or (described.source if described is not None else None)
    if source is None:
        raise UserMistake("name the SOP of the trace with --handbook")
    if any(map(_keeps_words_back, events)):
        message = "this trace withholds text that the model read, so no request can be rebuilt"
        cure = "look at the session in its store: sopilot lab lens ID --store STORE"
        raise mistake("withheld-words", message, help=cure)
    units = [unit for unit in compile_source(source) if unit.procedure.name in trace.programs]
    if not units:
        raise UserMistake(f"`{source}` has none of the goals of this session")
    programs = ProgramSet.from_texts(trace.programs, trace.program_texts)
    language = described.language if described is not None else "en"
    briefing = Briefing(
        units[0].handbook,
        {unit.procedure.name: unit.program for unit in units},
        language,
        units[0].own_text(language),
    )
    arm = view_named(arm_name or str(trace.about.get("view") or "pg"))
    offered = offered_tools(briefing.handbook.actions)
    result = moments_of(
        Machine(programs.programs),
        events,
        briefing,
        arm,
        offered,
        goal or (described.goal if described is not None else None),
    )
    if not result:
        raise UserMistake("no request to a model is recorded in this session")
    chosen = spread(result, count)
    if not chosen:
        raise UserMistake(
            "no request of this session has a known right next move; "
            "name what the user wants with --goal"
        )
    return chosen


def _keeps_words_back(event: Event) -> bool:
    details = event.payload.get("details")
    calls = details.get("calls") if isinstance(details, dict) else details
    return is_reference(event.payload.get("text")) or is_reference(calls)
