"""A task or a served session, driven from outside one move at a time.

The loop asks a model and does what it says; a player is told the move. Everything is
on record after every move, so the next one may come from another process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sopilot.desks.tasks import World
from sopilot.language.diagnostics import UserMistake
from sopilot.language.render import LANGUAGES
from sopilot.runtime.agent import Arm, Briefing, Driver, Ending
from sopilot.runtime.agent.arms import Shown
from sopilot.runtime.agent.calls import Ended, Waiting
from sopilot.runtime.agent.dialog import BUDGET
from sopilot.runtime.agent.spending import BudgetSpent
from sopilot.runtime.agent.toolbox import END_SESSION
from sopilot.runtime.session import Session
from sopilot.runtime.session.protocols import JSON, ModelReply, ToolCall
from sopilot.runtime.vm import TOOL_NAME, Complete, Fail, parse_step

PLAY_ENDED = "play_ended"
"""The note that says how a play came to its end."""

_DONE = "|".join(re.escape(table["done"].partition("{")[0]) for table in LANGUAGES.values())
_GOOD = re.compile(rf"#[0-9]+ ok: |{_DONE}")
"""How the runtime's answers begin when the move was made; a tool's text stands behind that."""


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """``answer`` is for the model, one line or more a call. ``ok`` is false when a call failed
    or was not made."""

    answer: str
    ok: bool
    slot: str
    ending: str | None = None


class Player:
    """``world.user`` answers what is said; without one, ``say`` only puts it on record. Where
    there is no score to be had, nobody counts turns: the agent has budgets of its own."""

    def __init__(self, session: Session, briefing: Briefing, arm: Arm, world: World) -> None:
        self.session = session
        self.world = world
        self._shown: Shown | None = None
        self.driver = Driver(
            session,
            briefing,
            arm,
            user=world.user,
            budgets=world.budgets,
            operator=world.operator,
            tools=world.tools.schemas(),
        )

    @property
    def ending(self) -> str | None:
        """How it ended; ``None`` while it goes on."""
        for sealed in reversed(self.session.events):
            event = sealed.event
            if event.kind == "note" and event.payload["name"] == PLAY_ENDED:
                return str(event.payload["details"]["ending"])
        return None

    async def call(
        self, name: str, arguments: Mapping[str, JSON] | str, *, call_id: str = "", say: str = ""
    ) -> PlayedTurn:
        """One tool call, with what the model says beside it."""
        if not isinstance(arguments, str):
            arguments = json.dumps(dict(arguments), ensure_ascii=False)
        return await self.reply(ModelReply(say, (ToolCall(call_id, name, arguments),)))

    async def say(self, text: str) -> PlayedTurn:
        """A message to the user; the answer is the user's."""
        return await self.reply(ModelReply(text))

    async def reply(self, reply: ModelReply) -> PlayedTurn:
        """A whole message of the model."""
        if self.world.score is not None and self.ending is not None:
            if reply.tool_calls and all(map(_closes, reply.tool_calls)):
                return self._turn(f"The session is over: {self.ending}.", ok=True)
            raise UserMistake(f"this play is over ({self.ending}); finish it for its score")
        self._shown = None
        try:
            answers = await self._moved(reply)
        except Ended as ended:
            return await self._end(ended.ending, ended.reason)
        except Waiting as waiting:
            return self._turn(waiting.text, ok=False)
        except BudgetSpent as spent:
            await self.session.note(BUDGET, {"budget": spent.budget, "limit": spent.limit})
            return await self._end(Ending.BUDGET, str(spent))
        ok = not reply.tool_calls or all(_GOOD.match(answer) for answer in answers)
        return self._turn("\n".join(answers), ok=ok)

    async def _moved(self, reply: ModelReply) -> Sequence[str]:
        driver = self.driver
        if self.world.score is not None:
            driver.turn()
            return await driver.handle(reply)
        if not reply.tool_calls:
            return [await driver.say(reply.content)]
        return [await driver.call(call, reply.content) for call in reply.tool_calls]

    async def leave(self) -> str:
        """The agent stops here; how the session ended."""
        if self.ending is None:
            left = await self.driver.calls.user_leaves()
            await self._end(left.ending, left.reason)
        return str(self.ending)

    async def _end(self, ending: Ending, reason: str) -> PlayedTurn:
        await self.session.note(PLAY_ENDED, {"ending": str(ending), "reason": reason})
        return self._turn(f"The session is over: {ending}.", ok=True)

    def _turn(self, answer: str, *, ok: bool) -> PlayedTurn:
        ending = self.ending if self.world.score is not None else None
        self._shown = self.driver.shown()
        return PlayedTurn(answer, ok, self._shown.slot if ending is None else "", ending)

    def shown(self) -> Shown:
        """What the client should see now: after a move, as that has left it."""
        shown, self._shown = self._shown, None
        return shown or self.driver.shown()


def _closes(call: ToolCall) -> bool:
    """A move that ends a session: where it has ended by itself, nothing is left to do."""
    closing = call.name == TOOL_NAME and isinstance(parse_step(call.arguments), Complete | Fail)
    return call.name == END_SESSION or closing
