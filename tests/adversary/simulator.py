"""A simulator: records that only the session changes, and what is true of them.

The truth of a predicate is written here in plain Python, without a look at the handbook's
verdicts. It has three values. ``None`` means that no record says so: then the simulator denies the
predicate *and* its opposite, because nothing shows either. A number that is in no block list is
not blocked (the list says so); the status of an account that does not exist is neither.
"""

from __future__ import annotations

import random

from adversary.values import (
    AMOUNTS,
    BOOKINGS,
    CASES,
    FLIGHTS,
    GROUPS,
    JSON,
    LARGE,
    NUMBERS,
    USERS,
    VOUCHERS,
)

Record = dict[str, JSON]
ABSENT_MANNERS = ("fails", "null", "text", "hollow")
"""How the tools of a simulator answer about a record that is not there."""


class Simulator:
    """Tables are replaced, never changed in place, so that a copy is cheap."""

    def __init__(self, rng: random.Random) -> None:
        pick, roll = rng.choice, rng.random
        statuses = ("open", "open", "frozen", "closed")
        self.accounts: dict[str, Record] = {}
        for user in USERS:
            if roll() < 0.85:
                account: Record = {
                    "balance": pick((0, 50, 500, 5000, float(LARGE) if roll() < 0.2 else 7.5)),
                    "status": pick(statuses),
                    "points": pick((4, 5, 5.0, 6, 0)),
                }
                if roll() < 0.06:
                    account[pick(("balance", "status", "points"))] = None
                if roll() < 0.06:
                    del account[pick(("balance", "status", "points"))]
                self.accounts[user] = account
        self.cases: dict[str, Record] = {
            case: {"owner": pick(USERS), "status": pick(("open", "closed"))}
            for case in CASES
            if roll() < 0.85
        }
        self.case_of: dict[str, str] = {user: pick(CASES) for user in USERS if roll() < 0.85}
        self.flights: dict[str, Record] = {
            flight: {"status": pick(("landed", "landed", "late", "cancelled"))}
            for flight in FLIGHTS
            if roll() < 0.9
        }
        self.bookings: dict[str, Record] = {}
        for booking in BOOKINGS:
            if roll() < 0.85:
                legs = [{"number": pick(FLIGHTS)} for _ in range(pick((0, 1, 2, 2, 3)))]
                self.bookings[booking] = {"owner": pick(USERS), "legs": legs}
                if roll() < 0.06:
                    self.bookings[booking]["legs"] = None
                elif roll() < 0.06:
                    legs.append(pick(({}, {"number": None}, {"number": 7}, None)))
        self.blocked: list[JSON] = [number for number in NUMBERS if roll() < 0.5]
        self.vouchers: dict[str, Record] = {
            voucher: {"owner": pick(USERS), "worth": pick((5, 10, 20))}
            for voucher in VOUCHERS
            if roll() < 0.8
        }
        self.groups: dict[str, list[str]] = {
            group: [user for user in USERS if roll() < 0.5] for group in GROUPS if roll() < 0.9
        }
        self.passwords = {user: f"pass-{index}" for index, user in enumerate(USERS)}
        self.codes = {user: f"code-{index}" for index, user in enumerate(USERS)}
        self.logged_in: frozenset[str] = frozenset()
        self.factors: frozenset[str] = frozenset()
        self.present: frozenset[str] = frozenset()
        self.linked: frozenset[tuple[str, str]] = frozenset()
        self.tokens: dict[str, int] = {user: pick((0, 1, 2)) for user in USERS if roll() < 0.8}
        self.doors = 0
        self.manner = pick(ABSENT_MANNERS)
        self.logout_clears_factor = True
        self.friendly = False
        """Whether the user would say yes to anything: to find out what could be wanted."""
        self.asked = 0
        self.consents: dict[tuple[str, str], str] = {}
        """What the user said last about exactly this call, until something changes."""
        self.said: dict[tuple[str, str], str] = {}
        """What the user said last to exactly this question, until a call rests on it."""
        self.rests_on: tuple[str, frozenset[tuple[str, str]]] = ("", frozenset())
        """The act that is about to be carried out, and the answers that it uses up."""
        self.deeds: frozenset[tuple[str, str]] = frozenset()
        """What this session has done, and for whom."""
        self.served = ""
        """Whom the counter serves: one at a time."""
        self.ways: frozenset[str] = frozenset()
        """By which ways that customer was identified."""
        self.time = 1_000_000
        self.deadlines: dict[str, int] = {
            user: self.time + pick((10, 60, 150, 400)) for user in USERS if roll() < 0.9
        }
        self.connection = 1
        """Log-ins and the counter's customer are kept for each connection."""
        self.private = False
        """Accounts are shown to whoever is logged in only."""

    def copy(self) -> Simulator:
        other = object.__new__(Simulator)
        other.__dict__.update(self.__dict__)
        return other

    def reconnect(self) -> None:
        """The connection broke: nobody is logged in on the next one, and nobody is served."""
        self.connection += 1
        self.logged_in = self.factors = frozenset()
        self.served, self.ways = "", frozenset()

    def with_open_gates(self) -> Simulator:
        """What it would be if everybody had been let in everywhere."""
        other = self.copy()
        other.logged_in = other.factors = other.present = frozenset(USERS)
        other.linked = frozenset((one, to) for one in USERS for to in USERS)
        other.friendly = True
        return other


def some_amount(rng: random.Random) -> JSON:
    return rng.choice(AMOUNTS) if rng.random() < 0.95 else LARGE + rng.randrange(2)
