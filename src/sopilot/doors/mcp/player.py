"""A session driven from outside, one move at a time, as the agent loop would drive it.

The loop asks a model and does what it says; a player shows what the model would
be shown and is told its move. Everything is on record after every move, so the
next one may come from another process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from sopilot.doors.mcp.world import World
from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.agent import Arm, Briefing, Ending, RequestRecord, View
from sopilot.runtime.agent.calls import CallHandler, Ended, Waiting
from sopilot.runtime.agent.dialog import MODEL_REQUEST, calls_done, rebuild
from sopilot.runtime.agent.progress import nobody_watches
from sopilot.runtime.agent.recovery import SkipsTurns, recover
from sopilot.runtime.agent.spending import BudgetSpent, Spending
from sopilot.runtime.agent.step_tool import short_step_tool
from sopilot.runtime.agent.toolbox import END_SESSION, STEP_TOOL, Toolbox
from sopilot.runtime.session import Session
from sopilot.runtime.session.protocols import JSON, Message, ToolCall, ToolSchema

PLAY_ENDED = "play_ended"
"""The note that says how a play came to its end."""

_GOOD = re.compile(r"#[0-9]+ ok: |Done: ")
"""How the runtime's answers begin when the move was made; a tool's text stands behind that."""


@dataclass(frozen=True, slots=True)
class Screen:
    """What a model would be sent now."""

    system: str
    messages: Sequence[Message]
    slot: str
    tools: Sequence[ToolSchema]


@dataclass(frozen=True, slots=True)
class Turn:
    """``answer`` is for the model. ``ok`` is false for a call that failed or was not made."""

    answer: str
    ok: bool
    slot: str
    ending: str | None = None


class Player:
    """``world.user`` answers what is said; without one, ``say`` only puts it on record."""

    def __init__(self, session: Session, briefing: Briefing, arm: Arm, world: World) -> None:
        self.session = session
        self.arm = arm
        self.briefing = briefing
        self.world = world
        step = short_step_tool(briefing.programs.values()) if arm.short_step else STEP_TOOL
        self._toolbox = Toolbox(world.tools.schemas(), machine=arm.machine, step=step)
        self._spending = Spending.of(session, world.budgets)
        self._calls = CallHandler(
            session,
            self._toolbox,
            self._spending,
            world.operator,
            nobody_watches,
            briefing.goal_actions(),
            in_order=arm.in_order,
        )

    async def begin(self) -> None:
        """Before the first move, and after every interruption."""
        session = self.session
        said = any(sealed.event.kind == "user_said" for sealed in session.events)
        if self.world.user is not None:
            if not said:
                await session.user_said(self.world.user.opening())
            elif isinstance(self.world.user, SkipsTurns):
                self.world.user.skip(self._spending.user_turns)
        if session.retryable or session.unknown_outcomes:
            await recover(session)

    # --- what is shown --------------------------------------------------------------

    @property
    def tools(self) -> Sequence[ToolSchema]:
        return self._toolbox.schemas

    @property
    def ending(self) -> str | None:
        """How it ended; ``None`` while it goes on."""
        for sealed in reversed(self.session.events):
            event = sealed.event
            if event.kind == "note" and event.payload["name"] == PLAY_ENDED:
                return str(event.payload["details"]["ending"])
        return None

    def screen(self) -> Screen:
        dialog = rebuild(self.session)
        return Screen(self.system, dialog, self.slot(dialog), self.tools)

    @property
    def message_count(self) -> int:
        """As the loop counts: the first text, the user's, the agent's, and every answer. To
        `end_session` there is none."""
        events = [sealed.event for sealed in self.session.events]
        said = sum(event.kind == "user_said" for event in events)
        asked = self._spending.requests
        answers = sum(one.tool_calls for one in asked)
        ended = [e for e in events if e.kind == "note" and e.payload["name"] == END_SESSION]
        return 1 + said + len(asked) + answers - len(ended)

    @property
    def user_turns(self) -> int:
        return self._spending.user_turns

    @property
    def system(self) -> str:
        return self.arm.first_message(self.briefing)

    def slot(self, dialog: Sequence[Message] | None = None) -> str:
        session = self.session
        # With a machine the slot follows from the configuration, whatever was said before.
        told = not self.arm.machine
        view = View(
            self.briefing,
            session.machine,
            session.configuration,
            (rebuild(session) if dialog is None else dialog) if told else (),
            calls_done(session) if told else (),
        )
        return self.arm.slot(view)

    # --- moves ----------------------------------------------------------------------

    async def call(
        self, name: str, arguments: Mapping[str, JSON] | str, *, call_id: str = "", say: str = ""
    ) -> Turn:
        """One tool call, with what the model says beside it."""
        self._refuse_after_end()
        unknown = set(self.session.unknown_outcomes)
        written = arguments if isinstance(arguments, str) else json.dumps(dict(arguments))
        try:
            await self._asked(tool_calls=1)
            if say.strip():
                await self.session.assistant_said(say)
            answer = await self._calls.handle(ToolCall(call_id, name, written))
            if self.world.score is not None:
                self._calls.raise_if_over()
        except Ended as ended:
            return await self._end(ended.ending, ended.reason)
        except Waiting as waiting:
            if set(self.session.unknown_outcomes) - unknown:
                told = f"Outcome unknown: {waiting}. Do not call it again; an operator was told."
                return self._turn(told, ok=False)
            return self._turn(f"Not called: {waiting}.", ok=False)
        except BudgetSpent as spent:
            return await self._out_of_budget(spent)
        return self._turn(answer, ok=_GOOD.match(answer) is not None)

    async def say(self, text: str) -> Turn:
        """A message to the user; the answer is the user's."""
        self._refuse_after_end()
        try:
            await self._asked(tool_calls=0)
            await self.session.assistant_said(text)
            user = self.world.user
            if user is None:
                return self._turn("Said.", ok=True)
            answer = await user.reply(text)
            if answer is None:
                left = await self._calls.user_leaves()
                return await self._end(left.ending, left.reason)
            self._spending.spend_user_turn()
            await self.session.user_said(answer)
        except BudgetSpent as spent:
            return await self._out_of_budget(spent)
        return self._turn(answer, ok=True)

    async def leave(self) -> str:
        """The agent stops here; how the session ended."""
        if self.ending is None:
            left = await self._calls.user_leaves()
            await self._end(left.ending, left.reason)
        return str(self.ending)

    # --- the end --------------------------------------------------------------------

    def _refuse_after_end(self) -> None:
        if self.world.score is not None and self.ending is not None:
            raise UserMistake(f"this play is over ({self.ending}); finish it for its score")

    async def _asked(self, *, tool_calls: int) -> None:
        if self.world.score is None:
            return
        self._spending.spend_agent_turn()
        record = RequestRecord(0, 0, 0, tool_calls, 1, 0.0, 0, 0)
        self._spending.requests.append(record)
        await self.session.note(MODEL_REQUEST, asdict(record))

    async def _out_of_budget(self, spent: BudgetSpent) -> Turn:
        await self.session.note("budget", {"budget": spent.budget, "limit": spent.limit})
        return await self._end(Ending.BUDGET, str(spent))

    async def _end(self, ending: Ending, reason: str) -> Turn:
        await self.session.note(PLAY_ENDED, {"ending": str(ending), "reason": reason})
        return self._turn(f"The session is over: {ending}.", ok=True)

    def _turn(self, answer: str, *, ok: bool) -> Turn:
        ending = self.ending if self.world.score is not None else None
        return Turn(answer, ok, self.slot() if ending is None else "", ending)
