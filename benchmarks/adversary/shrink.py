"""A violation told shortly: the fewest of its moves that still lead to it."""

from __future__ import annotations

import random
from collections.abc import Sequence

from adversary.core_play import CorePlay, Script, Tally, Violation
from adversary.handbooks import Book
from adversary.world import World
from sopilot.machine.automation import Automation


def is_robbed(
    book: Book, world: World, automation: Automation | None, script: Sequence[Script]
) -> bool:
    """Whether these moves end in a call that the world denies."""
    tally = Tally()
    play = CorePlay(book, world.copy(), random.Random(0), tally, automation)
    play.calls = 1_000_000  # ids of its own: the script names the ones that are delivered later
    for what, *given in script:
        if what == "operate":
            play.operate(given[0])
        elif what == "call":
            action, arguments, trouble = given
            play.call_as(action, arguments, trouble=trouble)
        elif what == "begin":
            call_id, action, arguments, at_once, trouble = given
            play.begin_as(call_id, action, arguments, at_once=at_once, trouble=trouble)
        elif what == "reconnect":
            play.reconnect()
        elif given[0] in play.in_flight:
            play.deliver(given[0])
    return bool(tally.denied)


def shrunk(violation: Violation) -> list[Script]:
    """Moves are left out, many at once at first, as long as the call is still carried out."""
    assert violation.scene is not None
    world, automation = violation.scene
    script = list(violation.moves)
    size = len(script) // 2
    while size:
        at = 0
        while at < len(script):
            fewer = script[:at] + script[at + size :]
            if is_robbed(violation.book, world, automation, fewer):
                script = fewer
            else:
                at += size
        size //= 2
    return script
