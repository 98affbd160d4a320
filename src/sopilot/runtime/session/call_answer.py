"""What a domain call came to, for the loop and for the model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sopilot.language.diagnostics import visible
from sopilot.language.render import words
from sopilot.language.render.phrases import said_in
from sopilot.runtime.session._approvals import HeldCall, HeldState
from sopilot.runtime.session.protocols import ToolResult
from sopilot.runtime.vm import canonical, plain

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

    @property
    def text(self) -> str:
        return self.said()

    def said(self, language: str = "en") -> str:
        """What the model reads. A result stands as one line of JSON, so that no line of a
        tool's text can pass for the runtime's."""
        if self.result is not None:
            spelled = visible(canonical(plain(self.result.value)).decode("utf-8", "replace"))
            return f"#{self.seq} {'ok' if self.result.ok else 'failed'}: {spelled}"
        key = "outcome_unknown" if self.status is CallStatus.UNKNOWN else "not_called"
        return words(language)[key].format(problem=said_in(visible(self.problem), language))


def waiting_text(held: HeldCall) -> str:
    if held.state is HeldState.REJECTED:
        ruling = held.rejection
        who = f" by {ruling.role}" if ruling is not None else ""
        return f"`{held.action}` was rejected{who}; refuse the request or change it"
    roles = ", ".join(held.roles)
    amended = " with other arguments, for which its goal must be started" if held.amended else ""
    if held.state is HeldState.APPROVED:
        return f"`{held.action}` is approved{amended}"
    return (
        f"`{held.action}` waits for approval{amended}: {held.approvals} of {held.needed} "
        f"from {roles} (call `{held.call_id}`)"
    )
