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
from adversary.values import JSON, USERS, is_number
from adversary.world import World
from sopilot.handbook.consent import reply_to

CONFIRM, ASK = "confirm_with_user", "ask_user"
DEEDS = frozenset({"freeze", "deposit"})
"""Actions that a `done` may speak of; by the user they were for."""
DEADLINES = "deadlines"
PHONES = {f"tel-{index}": user for index, user in enumerate(USERS)}
BADGES = {f"badge-{index}": user for index, user in enumerate(USERS)}
REPLIES = (
    ("yes", "yes"),
    ("Yes, please.", "yes"),
    ("OK, go ahead. Thank you!", "yes"),
    ("no", "no"),
    ("maybe later", ""),
    ("Yes, 2 adults and 3 rooms.", ""),
    ("ok is this from savings", ""),
)
"""What a user says, and means: a correction means neither."""


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
    roll = zlib.crc32(told.encode("utf-8", "surrogatepass")) + world.asked * 9
    words, answer = REPLIES[roll % len(REPLIES)]
    if action == CONFIRM:
        about = {name: one for name, one in given.items() if name not in ("action", "procedure")}
        key = subject(given.get("procedure", given.get("action")), about)
        world.consents = {**world.consents, key: answer}
    else:
        asked = subject(given.get("question"), {"user": given.get("user")})
        world.said = {**world.said, asked: answer}
    return words


def _ask(action: str) -> Tool:
    def run(world: World, given: Arguments) -> Answer:
        said = user_says(world, action, given)
        return True, {"said": said, "answer": reply_to(action, said)}

    inputs = {"question": "string", "user": "string"} if action == ASK else {"action": "string"}
    return Tool(action, inputs, run)


def _serve(world: World, given: Arguments) -> Answer:
    user = given.get("user")
    if not isinstance(user, str) or user not in world.passwords:
        return False, {"error": "nobody here is called so"}
    _identify(world, user, "counter")
    return True, {"serving": user}


def _ring(world: World, given: Arguments) -> Answer:
    user = PHONES.get(str(given.get("phone")))
    if user is None:
        return False, {"error": "nobody answers"}
    _identify(world, user, "telephone")
    return True, {"user": user}


def _swipe(world: World, given: Arguments) -> Answer:
    badge = str(given.get("badge"))
    if badge not in BADGES:
        return False, {"error": "no such badge"}
    _identify(world, BADGES[badge], badge)
    return True, {}


def _identify(world: World, user: str, way: str) -> None:
    """Whoever is identified is the customer; what was opened for another one is closed."""
    known = world.ways if world.served == user else frozenset()
    world.served, world.ways = user, known | {way}


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
COUNTERS = (
    made_tool("serve", "user", _serve),
    made_tool("ring", "phone", _ring),
    made_tool("swipe", "badge", _swipe),
)
TOOLS |= {tool.name: tool for tool in (*NEWER_READERS, *COUNTERS, _ask(CONFIRM), _ask(ASK))}


OF_A_CONNECTION = frozenset({"login", "confirm_code", "logout", "serve", "ring", "swipe"})
"""What they open and close holds for the connection on which they were called."""


def perform(world: World, action: str, arguments: Arguments, connection: int = 0) -> Answer:
    """Asked of the world, on its present ``connection`` or an earlier one; what it did here is
    remembered."""
    if action in OF_A_CONNECTION and connection not in (0, world.connection):
        return False, {"error": "connection closed"}
    ok, value = TOOLS[action].run(world, arguments)
    if ok:
        user = arguments.get("user")
        act, answers = world.rests_on
        if action == act:
            world.said = {key: one for key, one in world.said.items() if key not in answers}
        if action in DEEDS and isinstance(user, str):
            world.deeds |= {(action, user)}
        if TOOLS[action].changes:
            # A yes was to the state of things that it was given in.
            world.consents = {}
    return ok, value
