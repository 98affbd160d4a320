"""Tools of the newer constructs: a user who is asked, a counter that serves one at a time, deeds
of this session, a clock.

What the user was asked and said, and what was done here, is a record of the world like any
other: the truth about it is read there, never in the machine.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import UTC, datetime

from adversary.tools import TOOLS, Answer, Arguments, Tool, made_tool
from adversary.values import JSON, is_number
from adversary.world import World

CONFIRM, ASK = "confirm_with_user", "ask_user"
DEEDS = frozenset({"freeze", "deposit"})
"""Actions that a `done` may speak of; by the user they were for."""
DEADLINES = "deadlines"


def spelled(value: JSON) -> str:
    """5 and 5.0 are one value, 5 and "5" are two."""
    return repr(float(value)) if is_number(value) else repr(value)


def subject(goal: JSON, arguments: Mapping[str, JSON]) -> tuple[str, str]:
    """What a yes is about: whose words, and exactly which values."""
    told = sorted((name, spelled(one)) for name, one in arguments.items() if one is not None)
    return repr(goal), repr(told)


def user_says(world: World, action: str, given: Arguments) -> str:
    """A user who has a mind of their own, and another one the next time."""
    world.asked += 1
    told = repr(sorted(given.items(), key=lambda one: str(one[0])))
    roll = (zlib.crc32(told.encode("utf-8", "surrogatepass")) + world.asked * 7) % 5
    answer = ("yes", "yes", "yes", "no", "maybe later")[roll]
    if action == CONFIRM:
        about = {name: one for name, one in given.items() if name not in ("action", "procedure")}
        key = subject(given.get("procedure", given.get("action")), about)
        world.consents = {**world.consents, key: answer}
    else:
        asked = subject(given.get("question"), {"user": given.get("user")})
        world.said = {**world.said, asked: answer}
    return answer


def _ask(action: str) -> Tool:
    def run(world: World, given: Arguments) -> Answer:
        said = user_says(world, action, given)
        return True, {"said": said, "answer": said if said in ("yes", "no") else None}

    inputs = {"question": "string", "user": "string"} if action == ASK else {"action": "string"}
    return Tool(action, inputs, run)


def _serve(world: World, given: Arguments) -> Answer:
    user = given.get("user")
    if not isinstance(user, str) or user not in world.passwords:
        return False, {"error": "nobody here is called so"}
    world.served = user
    return True, {"serving": user}


def _look_up(world: World, given: Arguments) -> Answer:
    """Says by failing that there is nothing."""
    user = given.get("user")
    if not isinstance(user, str) or user not in world.accounts:
        return False, {"error": "no such account"}
    return True, {"found": True}


def _read_deadline(world: World, given: Arguments) -> Answer:
    user = given.get("user")
    until = world.deadlines.get(user) if isinstance(user, str) else None
    return (True, {"until": iso(until)}) if until is not None else (False, {"error": "none"})


def iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


NEWER_READERS = (
    made_tool("look_up", "user", _look_up, ("balances", "statuses")),
    made_tool("read_deadline", "user", _read_deadline, (DEADLINES,)),
)
COUNTER = made_tool("serve", "user", _serve)
TOOLS |= {tool.name: tool for tool in (*NEWER_READERS, COUNTER, _ask(CONFIRM), _ask(ASK))}


def perform(world: World, action: str, arguments: Arguments) -> Answer:
    """Asked of the world; what it did here is remembered."""
    ok, value = TOOLS[action].run(world, arguments)
    if ok:
        user = arguments.get("user")
        if action in DEEDS and isinstance(user, str):
            world.deeds |= {(action, user)}
        if TOOLS[action].changes:
            # A yes was to the state of things that it was given in.
            world.consents = {}
    return ok, value
