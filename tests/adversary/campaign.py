"""Random campaigns at the pure core: many sessions over many handbooks."""

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


def core_session(
    book: Book,
    rng: random.Random,
    tally: Tally,
    *,
    moves: int,
    remembers: bool = False,
    audited: bool = False,
) -> None:
    play = CorePlay(book, _simulator(book, rng), rng, tally, _automation(rng), remembers=remembers)
    _play(play, rng, tally, moves, audited)


def whole_session(
    book: Book,
    rng: random.Random,
    tally: Tally,
    *,
    moves: int,
    remembers: bool = False,
    audited: bool = False,
    outside: float = 0.0,
) -> None:
    """The same through ``Session``; ``outside`` as in `SessionPlay`."""
    play = SessionPlay(
        book,
        _simulator(book, rng),
        rng,
        tally,
        _automation(rng),
        outside=outside,
        remembers=remembers,
    )
    play.resumes = rng.choice((0.0, 0.0, 0.02))
    _play(play, rng, tally, moves, audited)


def guarded_session(
    book: Book, rng: random.Random, tally: Tally, guard: str, *, moves: int, audited: bool = False
) -> None:
    """An agent with its own tools alone; ``guard`` is ``ask`` or ``auto``."""
    play = GuardPlay(book, _simulator(book, rng), rng, tally, guard)
    play.resumes = rng.choice((0.0, 0.0, 0.02))
    if rng.random() < 0.5:
        play.busy = play.breaks = 0.0
    attack = GuardAttack(play, lies=rng.random() < 0.6, lucky=rng.choice((0.3, 0.7)))
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


def _play(
    play: CorePlay | SessionPlay, rng: random.Random, tally: Tally, moves: int, audited: bool
) -> None:
    if rng.random() < 0.5:
        play.busy = play.breaks = 0.0
    executor = Executor(play, rng, lies=rng.random() < 0.6, lucky=rng.choice((0.3, 0.7)))
    attack = Attack(play, executor)
    honesty = rng.choice(_HONESTY)
    tally.sessions += 1
    until = tally.moves + moves
    roll = rng.random
    try:
        while tally.moves < until:
            if roll() < honesty:
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
    remembers: bool = False,
    audited: bool = False,
    newer: bool = False,
    among: Callable[[Book], bool] = lambda book: True,
) -> tuple[Tally, int]:
    """Play about so many moves ``through`` the core, a session, a session whose records others
    change too (``outside``), or a view of ``GUARDS``; return the tally and the number of
    handbooks. ``audited``: audit every session when it ends. ``newer``: handbooks of the newer
    constructs alone. ``among`` chooses handbooks."""
    tally = Tally()
    books = 0
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
            if through == "core":
                core_session(book, rng, tally, moves=left, remembers=remembers, audited=audited)
            elif through in GUARDS:
                guard = GUARDS[through]
                guarded_session(book, rng, tally, guard, moves=left, audited=audited)
            else:
                whole_session(
                    book,
                    rng,
                    tally,
                    moves=left,
                    remembers=remembers,
                    audited=audited,
                    outside=0.05 if through == "outside" else 0.0,
                )
    return tally, books
