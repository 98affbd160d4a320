"""Whatever an executor sends: what is carried out is what the policy allows, by the world's own
truth. Random moves, seeded; and with a broken yes the same campaign finds it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from policy_desk import AirTools, fresh

from sopilot.machine.automation import Automation
from sopilot.protocols import ToolResult
from sopilot.session import questions as user_questions
from sopilot.session.questions import UserAnswer
from sopilot.session.session import Session
from sopilot.trace.events import Fail, Return, Start

ERRAND = {"user_id": "ann", "reservation_id": "R1"}
USERS, RESERVATIONS = ("ann", "bob"), ("R1", "R2")
ANSWERS = ("yes", "Yes, please go ahead.", "no", "Yes, but another one", "How much is it?")
AGREED = ANSWERS[:2]


class Denied(BaseException):
    """The policy does not allow what was carried out."""


class JudgedTools(AirTools):
    """Judges every call that changes something by what really is so, at that moment."""

    def __init__(self) -> None:
        super().__init__()
        self.customer = ""
        self.agreed: set[tuple[str, str]] = set()
        self.complained: set[str] = set()
        self.gone: set[str] = set()

    async def call(self, name: str, arguments: Mapping[str, Any], *, key: str) -> ToolResult:
        if name == "read_user":
            self.customer = arguments["user_id"]
        elif name == "cancel":
            self._cancel(arguments["reservation_id"])
        elif name == "give":
            self._give(arguments["user_id"], arguments["amount"])
        return await super().call(name, arguments, key=key)

    def _cancel(self, reservation: str) -> None:
        found = self.reservations[reservation]
        made = datetime.fromisoformat(str(found["created_at"]) + "-05:00")
        hours = (datetime.fromisoformat(self.moment) - made).total_seconds() / 3600
        if not (
            ("cancel", reservation) in self.agreed
            and found["user_id"] == self.customer
            and (hours <= 24 or found["cabin"] == "business")
        ):
            raise Denied(f"cancel {reservation}")
        self.agreed.clear()
        self.gone.add(reservation)

    def _give(self, user: str, amount: float) -> None:
        due = {
            50 * len(found["passengers"])
            for name, found in self.reservations.items()
            if name in self.gone and found["user_id"] == user == self.customer
        }
        if amount not in due or amount > 200 or user not in self.complained:
            raise Denied(f"give {user} {amount}")
        self.agreed.clear()


async def play(seed: int, moves: int) -> int:
    """How many calls that change something were carried out."""
    rng = random.Random(seed)
    tools = JudgedTools()
    tools.reservations["R2"]["cabin"] = rng.choice(["economy", "business"])
    if rng.random() < 0.5:
        tools.reservations["R2"]["user_id"] = "ann"
    automation = Automation(*[rng.random() < 0.9 for _ in range(7)])
    session, _ = await fresh(tools, automation=automation)

    async def ask(question: str, about: str, closed: bool) -> UserAnswer:
        said = rng.choice(ANSWERS)
        if said in AGREED and about == "cancel":
            tools.agreed.add(
                ("cancel", question.split("reservation_id: ")[1].split(")")[0].strip('"'))
            )
        elif said in AGREED and about == "complained":
            tools.complained.add(question.removeprefix("Do you want compensation, ")[:-1])
        await session.assistant_said(question)
        outcome = await session.user_said(said)
        return UserAnswer(said, outcome.events[0].seq)

    session.asker = ask
    if rng.random() < 0.6:  # the way that leads somewhere, before and after it anything
        await session.operate(Start("cancel", {**ERRAND, "reason": "change"}))
        await session.call_tool("read_user", {"user_id": "ann"})
        await session.call_tool("read_reservation", {"reservation_id": "R1"})
        await session.call_tool("confirm_with_user", {"action": "cancel", "reservation_id": "R1"})
    for _ in range(moves):
        await move(rng, session, tools)
    return len(tools.made("cancel")) + len(tools.made("give"))


async def move(rng: random.Random, session: Session, tools: JudgedTools) -> None:
    user, reservation = rng.choice(USERS), rng.choice(RESERVATIONS)
    if rng.random() < 0.5:
        user, reservation = "ann", "R1"  # what leads somewhere
    kind = rng.randrange(12)
    if kind == 0:
        goal = rng.choice(["cancel", "give"])
        given = {"user_id": user, "reservation_id": reservation}
        extra = {"reason": "change"} if goal == "cancel" else {}
        await session.operate(Start(goal, {**given, **extra}))
    elif kind in (1, 2):
        await session.call_tool("read_user", {"user_id": user})
    elif kind in (3, 4, 5):
        await session.call_tool("read_reservation", {"reservation_id": reservation})
    elif kind in (6, 7):
        asked = {"action": "cancel", "reservation_id": reservation}
        await session.call_tool("confirm_with_user", asked)
    elif kind == 8:
        await session.call_tool("ask_user", {"question": "complained", "user_id": user})
    elif kind == 9:
        await session.call_tool("cancel", {"reservation_id": reservation})
        if rng.random() < 0.2:
            tools.moment = "2024-05-17T15:00:00-05:00"
    elif kind == 10:
        amount = rng.choice([50, 100, 250, 500])
        await session.call_tool("give", {"user_id": user, "amount": amount})
    elif rng.random() < 0.3:
        await session.operate(Fail("never mind"))
    else:
        await session.operate(Return(rng.random() < 0.7))


def test_nothing_is_carried_out_that_the_policy_denies() -> None:
    done = sum(asyncio.run(play(seed, 20)) for seed in range(60))
    assert done >= 5


def test_a_broken_yes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_questions, "reply_to", lambda action, said: "yes")
    with pytest.raises(Denied):
        asyncio.run(_many(400))


async def _many(seeds: int) -> None:
    for seed in range(seeds):
        await play(seed, 20)
