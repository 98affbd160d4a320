"""Safety in the small: a short campaign of `benchmarks/safety.py`, and that it would notice."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import pytest

import safety
from adversary.campaign import campaign
from adversary.core_play import Tally, Violation
from adversary.exhaustive import sweep
from adversary.guard_play import sweep_guarded
from adversary.handbooks import Book
from adversary.sabotage import SABOTAGES, sabotaged
from adversary.small_handbooks import small_cases

SEED = 8
OF_BOTH = {"P13 look-alikes differ", "a gate for any answer"}
"""Guard and audit evaluate expressions by one evaluator, and judge by one rule whether an answer
opens a gate: only the simulator finds these."""
SHOWN_IN = {
    "P2 evidence about anybody": 11,
    "P3 half of a recipe": 4,
    "P4 the older answer": 9,
    "P5 nothing is ever stale": 9,
    "freshness judged at citation": 9,
    "P10 what is open does not count": 9,
    "P7 named by the order of calls": 11,
    "P6 any failure is an answer": 72,
    "done for anybody": 7,
    "P9 a yes to another call": 8,
    "P9 a yes for ever": 8,
    "P9 an answer for every call": 91,
    "P11 two customers at once": 26,
    "P11 two ways in at once": 40,
    "the clock stands still": 77,
    "computed once": 5,
    "a value taken for left out": 8,
    "P13 look-alikes differ": 5,
    "P15 an action without a procedure": 4,
    "P12 the arguments as they were sent": 9,
    "P16 any word is a request": 4,
    "P11 the runtime identifies the customer": 4,
    "the runtime reads ahead": 5,
    "P10 two acts at once": 4,
    "P6 judged for anybody": 168,
    "P6 judged for good": 156,
}
"""The number of the first handbook in which a broken guard shows; play begins there. Where it
does not show there any more, play goes on with the next."""
AMONG: dict[str, Callable[[Book], bool]] = {
    "judged for anybody": lambda book: book.trusting,
    "judged for good": lambda book: book.trusting,
}
"""The handbooks in which a sabotage can show at all."""


def _told(denied: list[Violation]) -> list[str]:
    return [f"{one.goal}: {one.action} {one.arguments}" for one in denied[:3]]


@pytest.mark.parametrize(
    ("through", "moves"),
    [
        ("core", 30_000),
        ("session", 4_000),
        ("outside", 3_000),
        ("guard", 3_000),
        ("guard-auto", 3_000),
    ],
)
def test_nothing_is_carried_out_that_the_simulator_denies(through: str, moves: int) -> None:
    tally, handbooks = campaign(SEED, moves=moves, through=through, audited=True)
    assert not tally.denied, _told(tally.denied)
    assert tally.apart == []  # guard and audit agree on every guarded call
    assert tally.moves >= moves
    assert tally.sessions * safety.MOVES_PER_SESSION >= moves
    assert tally.audited == tally.sessions
    assert tally.carried_out > moves // 100
    assert tally.held > tally.carried_out
    assert tally.attempted >= tally.held + tally.carried_out - tally.sessions
    assert handbooks > 5


def test_every_sequence_of_four_moves() -> None:
    tally = Tally()
    sequences = 0
    cases = list(small_cases())
    assert len(cases) >= 50
    for case in islice(cases, 0, None, 3):
        sequences += sweep(case, 4, tally).sequences
    assert not tally.denied, _told(tally.denied)
    assert tally.carried_out > 50
    assert sequences > 100_000


def test_the_newer_constructs_are_carried_out_and_never_against_the_simulator() -> None:
    tally, _ = campaign(SEED, moves=16_000, newer=True, audited=True)
    assert not tally.denied, _told(tally.denied)
    assert not tally.apart, tally.apart[:3]
    predicates = {"unknown_account", "was_frozen", "in_time", "slight", "wants"}
    predicates |= {"served", "rang", "badged"}  # three ways to identify the customer
    constructs = {"`when`", "`otherwise`", "`named`", "`arguments`", "`confirm`"}
    assert set(tally.predicates) >= predicates | constructs


@pytest.mark.parametrize("name", SABOTAGES)
def test_a_broken_guard_is_found(name: str) -> None:
    """By the simulator; at the core by the audit, too."""
    through = SABOTAGES[name].through
    alone = through != "core" or name in OF_BOTH

    def is_found(tally: Tally) -> bool:
        return bool(tally.denied) and (alone or bool(tally.apart))

    with sabotaged(name):
        tally, _ = campaign(
            SEED,
            moves=safety.BOUND,
            through=through,
            stop=is_found,
            newer=SABOTAGES[name].newer,
            audited=through == "core",
            among=AMONG.get(name.partition(" ")[2], lambda book: True),
            first=SHOWN_IN.get(name, 0),
        )
    assert is_found(tally), f"not found within {tally.moves} moves"
    assert not any("inconsistent-trace" in finding for finding in tally.apart)


@pytest.mark.parametrize("guard", ["ask", "auto"])
def test_every_sequence_of_three_calls_without_a_protocol(guard: str) -> None:
    tally = Tally()
    for case in islice(small_cases(), 0, None, 14):
        sweep_guarded(case, 3, tally, guard)
    assert not tally.denied, _told(tally.denied)
    assert tally.apart == []
    assert tally.carried_out > 20


def test_every_clause_is_sabotaged() -> None:

    assert {name.split()[0] for name in SABOTAGES} >= {f"P{number}" for number in range(1, 17)}


def test_a_campaign_that_was_not_sabotaged_has_not_passed() -> None:
    report = safety.Report(seed=1, depth=1)
    report.take(safety.perform(safety.Task("core", 1, 300)))
    figures = report.as_json()
    assert figures["moves"] >= 300
    assert figures["violations"] == 0
    assert not figures["passed"]


def test_a_yes_in_doubt_is_used_up_by_the_call_that_people_let_through() -> None:
    """A login broke off, so an approver decided about a call whose yes was in doubt. The login
    turned out not to have happened, and the yes counted for a second call."""
    done = safety.perform(safety.Task("session", 13_000_212, 5_000))
    assert done.tally.denied == []
    assert done.tally.apart == []


def test_the_runtime_reads_no_account_before_the_login_that_the_read_requires() -> None:
    """The login stood in the requirement as an option, so the compiler put none in front."""
    tally, _ = campaign(13_000_056, moves=300, through="guard-auto", audited=True, first=8)
    assert tally.denied == []
    assert tally.apart == []
    assert tally.own_calls > 0
