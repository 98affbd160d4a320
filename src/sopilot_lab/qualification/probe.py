"""The directed probe: can the model tell where a session stands, when asked?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from sopilot.program.model import Program
from sopilot.protocols import Message, ModelReply, ModelRequest, ToolSchema
from sopilot.views.program_text import render_flat
from sopilot_lab.qualification.cursor import Cursor

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
    """What is graded: the one report, else what was said."""
    reports = [call.arguments for call in reply.tool_calls if call.name == REPORT.name]
    return reports[0] if len(reports) == 1 else reply.content


def spread(cursors: Sequence[Cursor], count: int = QUESTIONS) -> list[Cursor]:
    """As many of every depth as there are, places that differ, evenly over the sessions.

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
        wanted = min(len(depths[depth]), share + (number < rest))
        held = depths[depth]
        chosen += [held[index * len(held) // wanted] for index in range(wanted)]
    left = [cursor for held in depths.values() for cursor in held if cursor not in chosen]
    missing = min(count - len(chosen), len(left))
    chosen += [left[index * len(left) // missing] for index in range(missing)] if missing else []
    seen: Counter[int] = Counter()
    turns = {}
    for cursor in chosen:
        turns[id(cursor)] = (seen[cursor.depth], cursor.depth)
        seen[cursor.depth] += 1
    return sorted(chosen, key=lambda cursor: turns[id(cursor)])
