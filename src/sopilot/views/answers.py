"""Answers to a model's steps and domain calls."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sopilot.machine.approvals import HeldCall, HeldState
from sopilot.machine.machine import Outcome
from sopilot.machine.proof.agenda import Plan
from sopilot.messages.catalogue import sentence, worded
from sopilot.messages.scaffold import LONG_TOOL, StepTool, words
from sopilot.protocols import ToolResult
from sopilot.values.json import canonical, plain
from sopilot.values.text import visible
from sopilot.views.refusals import Refusal
from sopilot.views.step_tool import answer_text

TELL_THE_PLACE: Final = frozenset(
    {"wrong-step", "wrong-function", "not-accepting", "wrong-artifact"}
)
"""Refusals whose reason names the step at the cursor."""


class Answers(StrEnum):
    """``whole``: the position and what fits there. ``short``: nothing of it where the step was
    taken, for the slot shows it. ``blind``: never anything of it but the checks that the machine
    passed by itself, which are books and not a place; then a refreshed context must keep the
    bookkeeping, for nothing else tells the model where it is."""

    WHOLE = "whole"
    SHORT = "short"
    BLIND = "blind"


def step_answer(
    outcome: Outcome, answers: Answers, language: str = "en", tool: StepTool = LONG_TOOL
) -> str:
    if answers is not Answers.BLIND:
        return answer_text(outcome, language, terse=answers is Answers.SHORT, tool=tool)
    if outcome.accepted:
        done = answer_text(outcome, language, terse=True, tool=tool)
        return "\n".join([done, *passed(outcome, language)])
    table = words(language)
    message = outcome.answer
    placed = message["code"] in TELL_THE_PLACE
    problem = table["not_here"] if placed else worded(message["problem"], language).rstrip(".")
    return table["nothing_done"].format(problem=problem)


def passed(outcome: Outcome, language: str = "en") -> list[str]:
    """The checks that the machine took as passed behind the step, and why."""
    reply = words(language)["passed"]
    return [
        reply.format(label=row["label"], ground=worded(row["ground"], language))
        for row in outcome.answer.get("passed", ())
    ]


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

    @property
    def text(self) -> str:
        return self.wording()

    def wording(self, language: str = "en") -> str:
        """What the model reads."""
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
    if held.state is HeldState.APPROVED:
        return sentence(f"approved{amended}", action=held.action)
    return sentence(
        f"waits{amended}",
        action=held.action,
        approvals=held.approvals,
        needed=held.needed,
        roles=roles,
        call=held.call_id,
    )
