"""A small airline: every construct that a policy needs, on tools that answer from one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from small_desks import programs_of
from sopilot.audit.audit import audit_trace
from sopilot.audit.report import Report
from sopilot.handbook.expressions import judge
from sopilot.handbook.model import Handbook
from sopilot.handbook.reader import load_handbook
from sopilot.machine.automation import Automation
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.records.store import Settings
from sopilot.session.opening import open_session
from sopilot.session.questions import UserAnswer
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore

TEXT = (Path(__file__).parent / "policy.yaml").read_text("utf-8")
HANDBOOK: Handbook = load_handbook(TEXT)
PROGRAMS = programs_of(HANDBOOK)
ALL = Automation(*[True] * 7)


class AirTools:
    """``moment`` is what the world's clock shows."""

    def __init__(self) -> None:
        self.error = "not found"
        self.moment = "2024-05-15T15:00:00-05:00"
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.reservations = {
            "R1": {
                "user_id": "ann",
                "created_at": "2024-05-15T10:00:00",
                "cabin": "economy",
                "passengers": ["a", "b"],
            },
            "R2": {
                "user_id": "bob",
                "created_at": "2024-05-01T10:00:00",
                "cabin": "economy",
                "passengers": ["c"] * 5,
            },
        }

    def time(self) -> str:
        return self.moment

    def schemas(self) -> Sequence[ToolSchema]:
        return ()

    async def call(self, name: str, arguments: Mapping[str, Any], *, key: str) -> ToolResult:
        self.calls.append((name, dict(arguments)))
        if name == "read_user":
            return ToolResult(True, {"user_id": arguments["user_id"]})
        if name == "read_reservation":
            found = self.reservations.get(arguments["reservation_id"])
            return ToolResult(found is not None, found or {"error": self.error})
        return ToolResult(True, {"done": True})

    def made(self, name: str) -> list[dict[str, Any]]:
        return [arguments for called, arguments in self.calls if called == name]


async def fresh(
    tools: AirTools, says: Sequence[str] = (), *, automation: Automation = ALL
) -> tuple[Session, list[str]]:
    """A session whose user says these things, one a question; and what was asked."""
    settings = Settings(automation=automation)
    session = await open_session(MemoryStore(), PROGRAMS, tools=tools, settings=settings)
    asked: list[str] = []
    left = list(says)

    async def ask(question: str, about: str, closed: bool) -> UserAnswer | None:
        asked.append(question)
        await session.assistant_said(question)
        if not left:
            return None
        outcome = await session.user_said(left[0])
        return UserAnswer(left.pop(0), outcome.events[0].seq)

    session.asker = ask
    return session, asked


async def audited(session: Session) -> Report:
    return audit_trace(PROGRAMS, await session.whole_events(), judge=judge, ended=False)
