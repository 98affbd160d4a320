"""The directed probe: can the model tell where a session stands, when asked?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Final

from sopilot.machine.layout import Position
from sopilot.machine.machine import Machine
from sopilot.machine.moves import is_true
from sopilot.machine.replay import replay
from sopilot.program.model import (
    Act,
    Ask,
    Branch,
    Check,
    Choose,
    CompleteStep,
    Do,
    Emit,
    Program,
    ReturnStep,
)
from sopilot.protocols import Message, ModelReply, ModelRequest, ToolSchema
from sopilot.trace.events import Event
from sopilot.values.json import JSON, Fields
from sopilot.views.program_text import render_flat
from sopilot_lab.experiments.selection import evenly
from sopilot_lab.statistics.intervals import (
    Interval,
    Undefined,
    clopper_pearson,
    clustered_interval,
)

NextMove = tuple[str, str]
"""Operation and name, as in ``("call", "logged_in")`` or ``("return", "")``."""
_MOVED = frozenset({"start", "amend", "call", "return", "domain_result", "select_branch"})
_LONGEST_VALUE = 400


@dataclass(frozen=True, slots=True)
class Cursor:
    """``callers`` has the outermost first; ``licensed`` are the moves that fit at the step;
    ``history`` is what had happened, without a word about the position."""

    case: str
    goal: str
    function: str
    step: str
    results: Mapping[str, bool]
    callers: tuple[str, ...]
    licensed: frozenset[NextMove]
    history: tuple[str, ...]

    @property
    def depth(self) -> int:
        return len(self.callers) + 1


def cursors_of(machine: Machine, events: Sequence[Event], case: str = "") -> list[Cursor]:
    """Every place in which the session waited for its executor, in order."""
    results = []
    for index, event in enumerate(events):
        if event.kind not in _MOVED:
            continue
        after = index + 1
        if after < len(events) and events[after].actor == "machine":
            continue  # the machine was not done yet
        here = machine.position(replay(machine, events[:after]))
        if here is not None:
            results.append(_cursor(here, events[:after], case))
    return results


def _cursor(here: Position, events: Sequence[Event], case: str) -> Cursor:
    frames = here.process.frames
    return Cursor(
        case=case,
        goal=here.process.goal,
        function=here.frame.function,
        step=here.frame.cursor,
        results={slot: bound.holds is True for slot, bound in here.frame.slots.items()},
        callers=tuple(frame.function for frame in frames[:-1]),
        licensed=frozenset(_licensed(here)),
        history=tuple(line for event in events for line in _event_lines(event)),
    )


def _licensed(here: Position) -> list[NextMove]:
    step = here.step
    if isinstance(step, Ask):
        behind = here.layout.steps[here.layout.past_asking(step.label)]
        asks = [("ask", "")]
        return [*asks, ("tool", behind.action)] if isinstance(behind, Act) else asks
    if isinstance(step, Check):
        return [("call", step.function)]
    if isinstance(step, Act):
        instead = [
            ("tool", act.action) for recipe in here.layout.function.fallbacks for act in recipe
        ]
        return [("tool", step.action), *(instead if here.layout.soft else ())]
    if isinstance(step, Branch):
        chosen = "then" if is_true(step.when, here.frame.slots) else "otherwise"
        return [("select_branch", chosen)]
    if isinstance(step, Choose):
        return [("select_branch", option.name) for option in step.options]
    if isinstance(step, Do):
        return [("select_branch", "next"), *(("tool", action) for action in step.uses)]
    if isinstance(step, Emit):
        return [("emit_artifact", step.artifact)]
    if isinstance(step, ReturnStep):
        return [("return", "")]
    return [("complete" if isinstance(step, CompleteStep) else "fail", "")]


def _event_lines(event: Event) -> list[str]:
    """The event as the executor saw it happen. Places, labels and slots stay out."""
    payload = event.payload
    match event.kind:
        case "user_said":
            return [f"user: {_line(payload['text'])}"]
        case "assistant_said":
            return [f"agent: {_line(payload['text'])}"]
        case "start":
            return [f"agent starts the process {payload['goal']}"]
        case "call":
            values = _argument_text(payload["resolved"])
            return [f"agent calls the function {payload['function']}({values})"]
        case "return":
            holds = payload["holds"]
            return ["agent returns" if holds is None else f"agent returns {_word(holds)}"]
        case "select_branch":
            return ["agent goes on at a branch"]
        case "domain_call":
            return [
                f"agent calls the tool {payload['action']}({_argument_text(payload['arguments'])})"
            ]
        case "domain_result":
            outcome = "succeeds" if payload["ok"] else "fails"
            return [f"the tool {outcome}: {_value(payload['value'])}"]
        case "amend":
            return [f"agent amends {_argument_text(payload['arguments'])}"]
        case "reuse" if "result" in payload:
            return []  # the reused call has a line already
        case "reuse":
            return [f"{payload['function']} is already known to be {_word(payload['holds'])}"]
        case _:
            return []


def _line(text: object) -> str:
    """The text on one line; withheld words are marked."""
    return " / ".join(text.split("\n")) if isinstance(text, str) else "(not on record)"


def _argument_text(arguments: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in arguments.items())


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _word(holds: object) -> str:
    return "true" if holds else "false"


QUESTIONS: Final = 24
TASK: Final = """\
Below is a program and a record of what an agent did while it followed the program step by step. \
The record ends in the middle of the work. Work out where the agent stands now.

Rules of the program: `call` enters a function at its first step; a return gives its result to \
the caller under the name of the called function (or under the name after `as`), and the caller \
goes on at its next step, or where an arrow sends it. A tool result moves on to the next step. \
A step that asks the user is passed once the tool behind it has run.

Call `report_position` once, or answer with one JSON object and nothing else, with these keys:
- "function": the function in which the agent stands,
- "step": the label of the step that comes next in it,
- "results": the results that this activation of the function has received so far, an object from \
name to true or false; empty if there are none,
- "callers": the functions that wait for it, the outermost first; empty if it is the process,
- "next": {"operation": one of "call", "tool", "ask", "return", "select_branch", "complete", \
"fail", "name": the function or tool to call, the branch ("then" or "otherwise") to take, or ""}."""
REPORT: Final = ToolSchema(
    "report_position",
    "Tells where the agent stands.",
    {
        "type": "object",
        "properties": {
            "function": {"type": "string"},
            "step": {"type": "string"},
            "results": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "callers": {"type": "array", "items": {"type": "string"}},
            "next": {
                "type": "object",
                "properties": {"operation": {"type": "string"}, "name": {"type": "string"}},
                "required": ["operation", "name"],
                "additionalProperties": False,
            },
        },
        "required": ["function", "step", "results", "callers", "next"],
        "additionalProperties": False,
    },
)


def probe_request(cursor: Cursor, program: Program) -> ModelRequest:
    """One question; the only tool is the one that answers it."""
    history = "\n".join(cursor.history)
    question = f"The record:\n\n{history}\n\nWhere does the agent stand now?"
    return ModelRequest(
        [
            Message("system", f"{TASK}\n\nThe program:\n\n{render_flat(program).text}"),
            Message("user", question),
        ],
        (REPORT,),
    )


def answer_text(reply: ModelReply) -> str:
    """The graded text: the only report, else the reply's text."""
    reports = [call.arguments for call in reply.tool_calls if call.name == REPORT.name]
    return reports[0] if len(reports) == 1 else reply.content


def spread(cursors: Sequence[Cursor], count: int = QUESTIONS) -> list[Cursor]:
    """Choose different places, as many of each depth, evenly over the sessions.

    Depths take turns, so that questions left unasked are missed at every depth alike.
    """
    depths: dict[int, list[Cursor]] = {}
    places: set[tuple[str, str, tuple[str, ...]]] = set()
    for cursor in cursors:
        place = (cursor.function, cursor.step, cursor.callers)
        if place not in places:
            places.add(place)
            depths.setdefault(cursor.depth, []).append(cursor)
    share, rest = divmod(count, len(depths)) if depths else (0, 0)
    chosen: list[Cursor] = []
    for number, depth in enumerate(sorted(depths)):
        chosen += evenly(depths[depth], share + (number < rest))
    left = [cursor for held in depths.values() for cursor in held if cursor not in chosen]
    chosen += evenly(left, count - len(chosen))
    seen: Counter[int] = Counter()
    turns = {}
    for cursor in chosen:
        turns[id(cursor)] = (seen[cursor.depth], cursor.depth)
        seen[cursor.depth] += 1
    return sorted(chosen, key=lambda cursor: turns[id(cursor)])


_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class ProbeGrade:
    """Each part between 0 and 1; ``None`` where neither truth nor answer hold anything."""

    case: str
    depth: int
    function: float
    step: float
    results: float | None
    callers: float | None
    next: float
    answered: bool = True

    @property
    def score(self) -> float:
        parts = (self.function, self.step, self.results, self.callers, self.next)
        counted = [part for part in parts if part is not None]
        return sum(counted) / len(counted)

    @property
    def localised(self) -> bool:
        return self.function == 1.0 and self.step == 1.0

    @property
    def whole(self) -> bool:
        return self.score == 1.0

    def as_json(self) -> dict[str, JSON]:
        return asdict(self) | {"score": self.score}


def grade_from_json(value: Fields) -> ProbeGrade:
    return ProbeGrade(**{item.name: value[item.name] for item in fields(ProbeGrade)})


def grade(cursor: Cursor, answer: str) -> ProbeGrade:
    """``answer`` must be one JSON object, alone or in a code fence; text around it, or a
    second object, makes it no answer."""
    value = read_answer(answer)
    if value is None:
        empty_results = 0.0 if cursor.results else None
        empty_callers = 0.0 if cursor.callers else None
        return ProbeGrade(
            cursor.case, cursor.depth, 0.0, 0.0, empty_results, empty_callers, 0.0, answered=False
        )
    return ProbeGrade(
        case=cursor.case,
        depth=cursor.depth,
        function=float(value.get("function") == cursor.function),
        step=float(value.get("step") == cursor.step),
        results=_results(cursor.results, value.get("results")),
        callers=_callers(cursor.callers, value.get("callers")),
        next=float(_is_licensed(cursor, value.get("next"))),
    )


def read_answer(text: str) -> dict[str, JSON] | None:
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```") and len(bare) > 6:
        bare = bare[3:-3].removeprefix("json").strip()
    try:
        value, end = _DECODER.raw_decode(bare)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and end == len(bare) else None


def _results(truth: Mapping[str, bool], value: JSON) -> float | None:
    if not isinstance(value, dict):
        return 0.0 if truth or value else None
    named = {*truth, *value}
    if not named:
        return None
    right = sum(name in truth and value.get(name) is truth[name] for name in named)
    return right / len(named)


def _callers(truth: tuple[str, ...], value: JSON) -> float | None:
    if not truth and not value:
        return None
    return float(isinstance(value, list) and tuple(value) == truth)


def _is_licensed(cursor: Cursor, value: JSON) -> bool:
    if not isinstance(value, dict):
        return False
    operation, name = value.get("operation"), value.get("name", "")
    if operation in ("return", "ask", "complete", "fail"):
        name = ""  # they need none, and what a model writes there says nothing
    if not isinstance(operation, str) or not isinstance(name, str):
        return False
    return (operation, name) in cursor.licensed


@dataclass(frozen=True, slots=True)
class ProbeScore:
    """The score of all questions or of one depth. ``localisation`` (with ``interval``) and
    ``whole`` are shares; ``score`` is a mean, and ``score_interval`` resamples the cases."""

    questions: int
    localisation: float | Undefined
    interval: Interval | Undefined
    score: float | Undefined
    score_interval: Interval | Undefined
    whole: float | Undefined
    answered: int


def probe_score(grades: Iterable[ProbeGrade]) -> ProbeScore:
    held = list(grades)
    count = len(held)
    if not count:
        missing = Undefined("the model wasn't probed")
        return ProbeScore(0, missing, missing, missing, missing, missing, 0)
    localised = sum(item.localised for item in held)
    return ProbeScore(
        questions=count,
        localisation=localised / count,
        interval=clopper_pearson(localised, count),
        score=sum(item.score for item in held) / count,
        # The questions of a case stand or fall together.
        score_interval=clustered_interval(
            ((item.case, (round(item.score * _PARTS), 1)) for item in held),
            lambda drawn: drawn[0] / drawn[1] / _PARTS,
            draws=2_000,
        ),
        whole=sum(item.whole for item in held) / count,
        answered=sum(item.answered for item in held),
    )


_PARTS = 1_000_000
"""Scores are added up as whole numbers of such parts."""


def scores_by_depth(grades: Iterable[ProbeGrade]) -> dict[int, ProbeScore]:
    depths: dict[int, list[ProbeGrade]] = {}
    for item in grades:
        depths.setdefault(item.depth, []).append(item)
    return {depth: probe_score(depths[depth]) for depth in sorted(depths)}
