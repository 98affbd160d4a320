"""The result of a run, its closing audit, and its progress for people who look on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from enum import StrEnum

from sopilot.audit.audit import audit_trace
from sopilot.audit.report import Report
from sopilot.audit.transcripts import audit_untracked
from sopilot.handbook.expressions import judge
from sopilot.handbook.model import Handbook
from sopilot.protocols import Message, Usage
from sopilot.session.session import Session
from sopilot.values.json import JSON
from sopilot.values.text import quote_value
from sopilot.views.refusals import Refusal, to_customer
from sopilot.views.view import View


async def audit_session(
    session: Session,
    handbook: Handbook,
    view: View,
    *,
    goal: str | None = None,
    ended: bool = True,
    offered: Collection[str] | None = None,
) -> Report:
    """Audit what the machine did, or without a machine the calls alone. Then the trace doesn't say
    what the user's ``goal`` was and which tools the agent was ``offered``."""
    whole = await session.shown_events()
    if view.machine:
        return audit_trace(
            session.first_programs.programs,
            whole,
            session_id=session.id,
            judge=judge,
            head=session.head,
            # The chain is over the events as they were sealed; these are restored ones.
            chain=session.events,
            changes=session.program_changes,
            ended=ended,
        )
    return audit_untracked(
        handbook,
        whole,
        goal=goal,
        chain=session.events,
        session_id=session.id,
        judge=judge,
        head=session.head,
        offered=offered,
    )


class Ending(StrEnum):
    """How a run ended."""

    EXECUTED = "executed"
    REFUSED = "refused"
    ABANDONED = "abandoned"
    """The user left, or the model stopped half-way."""
    BUDGET = "budget"
    WAITING = "waiting"
    """For an approval, or for a person who knows how a call ended. Resumable."""
    INFRASTRUCTURE_FAILURE = "infrastructure_failure"
    """The provider failed, not the model."""


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request to the model, as it was sent and answered."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    tool_calls: int
    attempts: int
    seconds: float
    messages: int
    characters: int
    reasoning_tokens: int = 0
    discarded_tokens: int = 0
    """Of attempts whose answer could not be used."""
    finish_reason: str = ""
    served_model: str = ""
    fingerprint: str = ""
    response_id: str = ""

    def as_json(self) -> dict[str, JSON]:
        """Without what the provider did not tell."""
        message = asdict(self)
        return {name: message[name] for name in message if name in _ALWAYS_TOLD or message[name]}


_ALWAYS_TOLD = tuple(item.name for item in fields(RequestRecord) if item.default is MISSING)


@dataclass(frozen=True, slots=True)
class SessionResult:
    """``budget`` names the one that ran out, ``fault`` the way in which the provider failed.
    ``refusals`` lists the checks that failed."""

    session_id: str
    ending: Ending
    reason: str = ""
    budget: str | None = None
    messages: Sequence[Message] = ()
    requests: Sequence[RequestRecord] = ()
    domain_calls: int = 0
    agent_turns: int = 0
    user_turns: int = 0
    refusals: Sequence[Refusal] = ()
    fault: str = ""
    lost: Usage = field(default_factory=Usage)
    """The cost of the last request's attempts, if none of them succeeded."""

    @property
    def to_customer(self) -> str:
        """The reason for the customer. It differs from ``reason`` if the customer must not learn
        what the refusal rests on."""
        return to_customer(self.refusals) or self.reason

    @property
    def usage(self) -> Usage:
        return Usage(
            sum(request.prompt_tokens for request in self.requests),
            sum(request.cached_tokens for request in self.requests),
            sum(request.completion_tokens for request in self.requests),
            sum(request.reasoning_tokens for request in self.requests),
        )

    def as_json(self) -> dict[str, JSON]:
        return {
            "session": self.session_id,
            "ending": str(self.ending),
            "reason": self.reason,
            "to_customer": self.to_customer,
            "budget": self.budget,
            "domain_calls": self.domain_calls,
            "agent_turns": self.agent_turns,
            "user_turns": self.user_turns,
            "usage": asdict(self.usage),
            "requests": [request.as_json() for request in self.requests],
            "refusals": [asdict(refusal) for refusal in self.refusals],
            **({"fault": self.fault} if self.fault else {}),
        }


@dataclass(frozen=True, slots=True)
class Progress:
    """``kind`` is ``request``, ``assistant``, ``user``, ``call``, ``result``, ``step``, ``held``,
    ``note`` or ``RETRY``; ``frame_text`` is the frame that a request showed the model."""

    kind: str
    text: str
    frame_text: str = ""


RETRY = "retry"

Watch = Callable[[Progress], None]


def shown_call(name: str, arguments: Mapping[str, JSON]) -> str:
    values = ", ".join(f"{key}={quote_value(value)}" for key, value in arguments.items())
    return f"{name}({values})"


def nobody_watches(progress: Progress) -> None:
    """Looks away."""
