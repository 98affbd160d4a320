"""Random campaigns: many sessions over many handbooks, through the core, sessions and views."""

from __future__ import annotations

import random
from collections.abc import Callable

from adversary.conforming import Executor
from adversary.core_play import CorePlay, Tally
from adversary.guard_play import GuardAttack, GuardPlay
from adversary.handbooks import Book
from adversary.moves import Attack
from adversary.random_handbooks import random_book
from adversary.session_play import SessionPlay
from adversary.simulator import Simulator
from sopilot.machine.automation import Automation

SESSIONS_PER_BOOK = 5
MOVES_PER_SESSION = 100
GUARDS = {"guard": "ask", "guard-auto": "auto"}
"""View → how its session decides about guarded calls."""
_HONESTY = (0.4, 0.7, 0.9, 0.9, 0.97)
_ALL_BY_ITSELF = Automation(True, True, True, True, True, True, True)


def play_session(
    book: Book,
    rng: random.Random,
    tally: Tally,
    through: str,
    *,
    moves: int,
    audited: bool = False,
) -> None:
    sim = _simulator(book, rng)
    play: CorePlay | SessionPlay | GuardPlay
    if through in GUARDS:
        play = GuardPlay(book, sim, rng, tally, GUARDS[through])
    elif through == "core":
        play = CorePlay(book, sim, rng, tally, _automation(rng))
    else:
        outside = 0.05 if through == "outside" else 0.0
        automation = _automation(rng)
        play = SessionPlay(book, sim, rng, tally, automation, outside=outside)
    if not isinstance(play, CorePlay):
        play.resumes = rng.choice((0.0, 0.0, 0.02))
    if rng.random() < 0.5:
        play.busy = play.breaks = 0.0
    lies, lucky = rng.random() < 0.6, rng.choice((0.3, 0.7))
    attack: Attack | GuardAttack
    if isinstance(play, GuardPlay):
        attack = GuardAttack(play, lies=lies, lucky=lucky)
    else:
        attack = Attack(play, Executor(play, rng, lies=lies, lucky=lucky))
    honesty = rng.choice(_HONESTY)
    tally.sessions += 1
    until = tally.moves + moves
    try:
        while tally.moves < until:
            if rng.random() < honesty:
                attack.conform()
            else:
                attack.misbehave()
    finally:
        play.close()
    if audited:
        play.audit()


def _simulator(book: Book, rng: random.Random) -> Simulator:
    sim = Simulator(rng)
    sim.private = book.plan.private
    sim.logout_clears_factor = not book.plan.factor_survives_logout
    return sim


def _automation(rng: random.Random) -> Automation | None:
    roll = rng.random()
    if roll < 0.4:
        return None
    if roll < 0.7:
        return _ALL_BY_ITSELF
    return Automation(*(rng.random() < 0.5 for _ in range(7)))


def campaign(
    seed: int,
    *,
    moves: int,
    through: str = "core",
    stop: Callable[[Tally], bool] = lambda tally: False,
    audited: bool = False,
    newer: bool = False,
    among: Callable[[Book], bool] = lambda book: True,
    first: int = 0,
) -> tuple[Tally, int]:
    """Play about so many moves ``through`` the core, a session, a session whose records others
    change too (``outside``), or a view of ``GUARDS``; return the tally and the number of
    handbooks. ``audited``: audit every session when it ends. ``newer``: handbooks of the newer
    constructs alone. ``among`` chooses handbooks, from the number ``first`` on."""
    tally = Tally()
    books = first
    while tally.moves < moves and not stop(tally):
        rng = random.Random(f"{seed}/{through}/{books}")
        book = random_book(rng, recheck=through == "outside", newer=newer)
        books += 1
        if not among(book):
            continue
        for _ in range(SESSIONS_PER_BOOK):
            left = min(MOVES_PER_SESSION, moves - tally.moves)
            if left <= 0 or stop(tally):
                break
            play_session(book, rng, tally, through, moves=left, audited=audited)
    return tally, books - first
