"""Answers to a model's steps and domain calls."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sopilot.machine.call_ledger import HeldCall, HeldState
from sopilot.machine.machine import Machine, Outcome
from sopilot.messages.catalogue import sentence, worded
from sopilot.messages.scaffold import LONG_TOOL, StepTool, words
from sopilot.proof.agenda import Plan
from sopilot.protocols import ToolResult
from sopilot.trace.events import RESUMED, REUSE
from sopilot.values.json import JSON, Fields, canonical, plain, spell
from sopilot.values.text import quote_value, visible
from sopilot.views.refusals import Refusal
from sopilot.views.step_tool import did

TELL_THE_PLACE: Final = frozenset(
    {"wrong-step", "wrong-function", "not-accepting", "wrong-artifact"}
)
"""Refusals whose reason names the step at the cursor."""


class Answers(StrEnum):
    """How much an answer to a step tells. ``whole``: the position and the moves that fit there.
    ``short``: neither if the step was taken, because the frame message shows them. ``blind``:
    neither ever, only the checks that the runtime passed by itself; a refreshed context must then
    keep the bookkeeping, because nothing else tells the model where it is."""

    WHOLE = "whole"
    SHORT = "short"
    BLIND = "blind"


MOST_SHAPES: Final = 8
"""Moves that fit, in an answer."""


def step_answer(
    outcome: Outcome,
    machine: Machine,
    answers: Answers = Answers.WHOLE,
    language: str = "en",
    tool: StepTool = LONG_TOOL,
) -> str:
    """The answer to a step: the operation that was done, the cursor, the moves that fit next."""
    table = words(language)
    passed = [
        table["passed"].format(
            label=event.payload["label"],
            ground=worded(event.payload.get("ground", ""), language),
        )
        for event in outcome.events[1:]
        if event.kind == REUSE
    ]
    if outcome.accepted:
        done = did(outcome.events[0].kind, tool) if outcome.events else table["nothing_to_do"]
        first = table["done"].format(did=done)
        if answers is not Answers.WHOLE:
            return "\n".join([first, *passed] if answers is Answers.BLIND else [first])
    else:
        problem = outcome.refusal["reason"]
        if tool.short:
            problem = re.sub(r"`(\w+)`", lambda named: f"`{did(named[1], tool)}`", problem)
        text = worded(problem, language).rstrip(".")
        if answers is Answers.BLIND:
            text = table["not_here"] if outcome.refusal["code"] in TELL_THE_PLACE else text
            return table["nothing_done"].format(problem=text)
        first = table["nothing_done"].format(problem=text)
    lines = [first, *passed]
    process, frame = outcome.configuration.process, outcome.configuration.frame
    if process is None or frame is None:
        lines.append(table["no_process"])
    else:
        if any(event.kind == RESUMED for event in outcome.events):
            lines.append(table["back_in"].format(goal=process.goal))
        lines.append(table["now_at"].format(place=frame.place))
    fitting = machine.fits(outcome.configuration)
    if {"ask_user", "domain_call"} <= {shape["operation"] for shape in fitting}:
        # The call takes the answer to the question: `next` would look like a way around it.
        fitting = [shape for shape in fitting if shape["operation"] != "select_branch"]
    shapes = list(dict.fromkeys(_shape(shape, table, short=tool.short) for shape in fitting))
    shown = shapes if len(shapes) <= MOST_SHAPES else [*shapes[:MOST_SHAPES], "…"]
    lines.append(table["fits"].format(shapes=table["separator"].join(shown)))
    if any('="@' in shape for shape in shown):
        lines.append(table["shortened"])
    return "\n".join(lines)


def _shape(shape: Fields, table: Mapping[str, str], *, short: bool) -> str:
    """A move that fits; ``short``: an operation by the fields that stand for it."""
    operation = shape["operation"]
    missing = shape.get("missing", [])
    holds = shape.get("holds")
    match operation:
        case "ask_user":
            return table["fits_ask"].format(names=", ".join(shape["wants"]))
        case "domain_call":
            call = f"{shape['action']}{_values(shape.get('arguments', {}))}"
            text = table["fits_tool"].format(call=call)
        case "start" if short:
            return f"`start`: {json.dumps(shape['goal'])}"
        case "start":
            call = f"{shape['goal']}({', '.join(shape['arguments'])})"
            return table["fits_start"].format(call=call)
        case "call" if short and missing:
            return f"`amend`: {{{', '.join(f'{json.dumps(name)}: …' for name in missing)}}}"
        case "call" if short:
            return f"`call`: {json.dumps(shape['function'])}"
        case "call":
            text = table["fits_call"].format(call=shape["function"] + _values(shape["arguments"]))
        case "return" if short:
            sides = ("true", "false") if holds is None else (str(holds).lower(),)
            return table["or"].join(f'`{side}`: "1"' for side in sides)
        case "return":
            return "return holds=" + ("true|false" if holds is None else str(holds).lower())
        case "select_branch" if short:
            return f"`option`: {json.dumps(shape['option'])}"
        case "emit_artifact" if short:
            return f"`name`: {json.dumps(shape['name'])}, `content`"
        case _ if short:
            return f"`{operation}`: true"
        case _:
            fields = (str(shape[key]) for key in ("option", "name") if key in shape)
            text = " ".join([operation, *fields])
    return text + (table["fits_find"].format(names=", ".join(missing)) if missing else "")


def _values(values: Mapping[str, JSON]) -> str:
    written = (f"{name}={quote_value(value, 40)}" for name, value in values.items())
    return f"({', '.join(written)})"


NOT_MADE = ToolResult(False, {"error": "the call was not made: the store had failed"})
"""The result of a call that got into the trace and never to a tool."""


class CallStatus(StrEnum):
    DONE = "done"
    HELD = "held"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """``seq`` numbers the result, to be cited as evidence; ``held`` waits for people.

    ``call_id`` is the one in the trace, which may differ from the model's.
    """

    call_id: str
    status: CallStatus
    result: ToolResult | None = None
    seq: int | None = None
    problem: str = ""
    held: HeldCall | None = None
    plan: Plan | None = None
    """Of a guarded call that an agent made by itself: what it needs, or what rules it out."""
    reasons: tuple[Refusal, ...] = ()
    awaits: str = ""
    """Of a call that is held: ``AWAITS_OUTCOME`` of an earlier one, ``AWAITS_RELEASE``, …"""

    @property
    def text(self) -> str:
        return self.wording()

    def wording(self, language: str = "en") -> str:
        """The text for the model."""
        if self.result is not None:
            return result_text(self.result, self.seq)
        if self.plan is not None:
            return self.problem
        key = "outcome_unknown" if self.status is CallStatus.UNKNOWN else "not_called"
        return words(language)[key].format(problem=visible(worded(self.problem, language)))


def result_text(result: ToolResult, seq: int | None) -> str:
    """A result as one line of JSON, so that no line of a tool's text can pass for the
    runtime's."""
    spelled = visible(canonical(plain(result.value)).decode("utf-8", "replace"))
    return f"#{seq} ({'ok' if result.ok else 'failed'}): {spelled}"


def waiting_text(held: HeldCall) -> str:
    if held.state is HeldState.REJECTED:
        ruling = held.rejection
        if ruling is None:
            return sentence("rejected", action=held.action)
        return sentence("rejected-by", action=held.action, role=ruling.role)
    roles = ", ".join(held.roles)
    amended = "-amended" if held.amended else ""
    arguments = visible(spell(dict(held.arguments)))
    if held.state is HeldState.APPROVED:
        return sentence(f"approved{amended}", action=held.action, arguments=arguments)
    return sentence(
        f"waits{amended}",
        action=held.action,
        arguments=arguments,
        approvals=held.approvals,
        needed=held.needed,
        roles=roles,
        call=held.call_id,
    )
