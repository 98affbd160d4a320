"""What the texts of a view name, held against what is on offer: tools, operations, arguments.

Every backticked bookkeeping word must be one that the request's own tool has, every tool that a
line tells to call must be offered with the arguments it names, and every step that a line tells
to take must be accepted by the machine where it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from sopilot.protocols import ToolSchema, inputs_of
from sopilot.trace.events import (
    Amend,
    Call,
    Complete,
    EmitArtifact,
    Fail,
    Operation,
    Return,
    SelectBranch,
    Start,
)
from sopilot.views.moment import Moment
from sopilot.views.step_tool import SHORT_NAME, STEP_NAMES, TOOL_NAME

END = "end_session"
BOOKKEEPING = frozenset(
    {
        *("start", "amend", "call", "return", "select_branch", "emit_artifact", "complete", "fail"),
        *("holds", "undecided", "evidence", "summary", "reason", "option", "content"),
        *("operation", "true", "false", END, TOOL_NAME, SHORT_NAME),
    }
)
"""Words that mean something to a bookkeeping tool; in backticks they must be on offer."""
_TICKED = re.compile(r"`([A-Za-z_]\w*)`")
_RESULT = re.compile(r"^#\d+ \((ok|failed)\): ")
_CALLED = re.compile(r"(?:\b[Cc]all|调用工具|请先调用) `(\w+)(?:\(([^`]*)\))?`")
_SHOWN = re.compile(r"(?:^|[:：] )(?:goal tool|tool|调用目标工具|调用工具) (\w+)\(", re.MULTILINE)
_LONG = re.compile(r"`(\w+)`(?: with|，) ?operation (?:为 )?`(\w+)`")
_SHORT = re.compile(r"`(\w+)`(?: with|，) ?`(\w+)`")
_BARE = {
    "return holds": "holds",
    "holds =": "",
    "select_branch ": "select_branch",
    "emit_artifact ": "emit_artifact",
    "to accept": "",
}
"""Words without backticks, and what must be on offer for them; nothing makes the others right."""
_SENTENCE = re.compile(r"[.;。；]")


def own_tool(tools: Sequence[ToolSchema]) -> ToolSchema | None:
    return next((one for one in tools if one.name in (*STEP_NAMES, END)), None)


def misnamed(text: str, tools: Sequence[ToolSchema]) -> Iterator[str]:
    """What a text of the scaffold names that a model does not have. Results of tools, and what
    users say, are not the scaffold's."""
    if _RESULT.match(text):
        return
    offered = {one.name: one for one in tools}
    own = own_tool(tools)
    fields = inputs_of(own) if own is not None else {}
    operation = fields.get("operation")
    listed = operation.get("enum") if isinstance(operation, Mapping) else None
    operations = listed if isinstance(listed, list | tuple) else ()
    known = {*offered, *fields, *operations}
    if own is not None and own.name != END:
        known |= {"true", "false"}  # values of `holds` and of conditions
    for word in _TICKED.findall(text):
        if word in BOOKKEEPING and word not in known:
            yield f"`{word}` is not on offer: {_around(text, f'`{word}`')}"
    for name, arguments in _CALLED.findall(text):
        if name not in offered:
            yield f"the tool `{name}` is not on offer: {_around(text, name)}"
            continue
        inputs = inputs_of(offered[name])
        for argument in re.findall(r"(?:^|, )(\w+)=", arguments):
            if argument not in inputs:
                yield f"`{name}` has no `{argument}`: {_around(text, name)}"
    for name, named in _LONG.findall(text):
        if own is None or name != own.name or named not in operations:
            yield f"`{name}` has no operation `{named}`: {_around(text, named)}"
    for name, field in _SHORT.findall(text):
        if name in STEP_NAMES and (own is None or name != own.name or field not in fields):
            yield f"`{name}` has no field `{field}`: {_around(text, field)}"
    for bare, needed in _BARE.items():
        if bare in text and needed not in known:
            yield f"{bare!r}: {_around(text, bare)}"


def shown_tools(slot: str) -> list[str]:
    """The tools that lines of a frame or of a look-ahead name for a call."""
    return _SHOWN.findall(slot)


def refused_steps(slot: str, moment: Moment) -> Iterator[str]:
    """The steps that the line `Now` tells to take, and that the machine would not accept."""
    lines = [line for line in slot.splitlines() if line.startswith(("Now: ", "现在："))]
    for line in lines:
        for operation in told_steps(line, short=moment.step.short):
            outcome = moment.machine.step(moment.configuration, operation, at=0.0)
            if not outcome.accepted and outcome.refusal["code"] not in _VALUES:
                yield f"{operation} is refused ({outcome.refusal['reason']}): {line}"


_VALUES = {"wrong-type", "nothing-amended", "branch-contradicts", "bad-artifact"}
"""Refusals of a made-up value, or of the side of a branch that the results do not take."""
_SIDES = ("true", "false")


def told_steps(line: str, *, short: bool) -> list[Operation]:
    found: list[Operation] = []
    values = dict.fromkeys(re.findall(r'"(\w+)": …', line), "x")
    for sentence in _SENTENCE.split(line):
        if short:
            fields = set(re.findall(r"`(\w+)`(?:: | 为 |,|\.|$)", sentence))
        else:
            fields = set(re.findall(r"operation (?:为 )?`(\w+)`", sentence))
        if ("call" in fields and "`function`" in line) or (short and "call" in fields):
            found.append(Call(arguments=values))
        if "amend" in fields and values:
            found.append(Amend(values))
        if "return" in fields:
            side = re.search(r"`holds`(?:: | 为 )(true|false)(?! 或)", sentence)
            found += [Return(holds=one == "true") for one in ([side[1]] if side else _SIDES)]
        found += [Return(holds=side == "true") for side in ("true", "false") if side in fields]
        if "undecided" in fields:
            found.append(Return(undecided=True))
        if fields & {"select_branch", "option"}:
            options = re.findall(r'`option`(?:: | 为 | 按结果选 )"?`?(\w+)', sentence)
            options += re.findall(r"`(\w+)`", line.partition("as `option`: ")[2])
            found += [SelectBranch(option) for option in dict.fromkeys(options)]
        if fields & {"emit_artifact"}:
            named = re.search(r"`name`(?:: | 为 )`(\w+)`", sentence)
            found += [EmitArtifact(named[1], "x")] if named else []
        if "complete" in fields:
            found.append(Complete("done"))
        if "fail" in fields:
            found.append(Fail("no"))
    return found


def told_starts(slot: str) -> list[Start]:
    """The requests that a slot offers, with the values that it says are enough."""
    found = []
    for goal, names, least in re.findall(
        r"(?:Next: |下一步：)start (\w+)\(([^()]*)\)(?:(?:, at least with |，至少给出 )(.+))?", slot
    ):
        given = (least or names).split(", ")
        found.append(Start(goal, {name: None for name in given if name}))
    return found


def _around(text: str, word: str) -> str:
    at = text.index(word)
    return " ".join(text[max(0, at - 60) : at + 80].split())
