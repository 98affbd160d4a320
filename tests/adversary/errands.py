"""What a user could want: values for a procedure, out of the simulator or out of thin air."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from adversary.handbooks import Book
from adversary.recipes import Constant
from adversary.requirements import Procedure
from adversary.simulator import Simulator, some_amount
from adversary.tools import ASK, BADGES, CONFIRM, PHONES, TOOLS
from adversary.values import (
    ADDRESSES,
    BOOKINGS,
    CASES,
    FLIGHTS,
    GHOSTS,
    GROUPS,
    ITEMS,
    JSON,
    JUNK,
    NOTES,
    NUMBERS,
    USERS,
    VOUCHERS,
    is_number,
)

_POOLS: dict[str, tuple[JSON, ...]] = {
    "user": (*USERS, *USERS, "ghost"),
    "to": (*USERS, *USERS, "ghost"),
    "friend": (*USERS, *USERS, "ghost"),
    "case_id": CASES,
    "booking": BOOKINGS,
    "number": FLIGHTS,
    "line": (*NUMBERS, 5.0, 77),
    "group": GROUPS,
    "voucher": VOUCHERS,
    "items": ITEMS,
    "address": ADDRESSES,
    "consent": (True, False),
    "note": NOTES,
    "fee": (1, 4.5, 5, 9, None),
    "phone": (*PHONES, "tel-none"),
    "badge": (*BADGES, "badge-none"),
}
_KINDS: dict[str, Callable[[random.Random], JSON]] = {"amount": some_amount}


def value_for(name: str, rng: random.Random) -> JSON:
    """A value of the right type."""
    pool = _POOLS.get(name)
    if pool is not None:
        return pool[int(rng.random() * len(pool))]
    kind = _KINDS.get(name)
    return kind(rng) if kind is not None else rng.choice(GHOSTS)


def any_value(name: str, rng: random.Random) -> JSON:
    """A value of the right type, mostly."""
    roll = rng.random()
    if roll < 0.75:
        return value_for(name, rng)
    if roll < 0.9:
        return JUNK[int(rng.random() * len(JUNK))]
    return value_for(rng.choice(("user", "amount", "booking", "items", "line")), rng)


def tool_arguments(
    book: Book, sim: Simulator, action: str, rng: random.Random, *, right: bool
) -> dict[str, JSON]:
    if action == CONFIRM:
        procedure = rng.choice(list(book.procedures.values()))
        wanted = errand(book, sim, procedure.name, rng, lucky=False)
        return asked_about(book, procedure, act_arguments(book, procedure, wanted))
    if action == ASK:
        return {"question": "wants", "user": value_for("user", rng)}
    choose = value_for if right else any_value
    inputs = book.inputs.get(action, TOOLS[action].inputs)
    given = {name: choose(name, rng) for name in inputs}
    if "at" in given and rng.random() < 0.8:
        del given["at"]
    user = given.get("user")
    if isinstance(user, str):
        # Secrets are right now and then: nobody gets anywhere by guessing them.
        if "password" in given and rng.random() < 0.8:
            given["password"] = sim.passwords.get(user, "")
        if "code" in given and rng.random() < 0.8:
            given["code"] = sim.codes.get(user, "")
    return given


def asked_about(book: Book, procedure: Procedure, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """What the machine asks the user before the call."""
    about: dict[str, JSON] = {"action": procedure.action}
    if procedure.name != procedure.action:
        about["procedure"] = procedure.name
    return {**about, **arguments}


def errand(
    book: Book, sim: Simulator, goal: str, rng: random.Random, *, lucky: bool
) -> dict[str, JSON]:
    """The procedure's values. A ``lucky`` user may want what will be allowed once all gates
    are open."""
    procedure = book.procedures[goal]
    names = procedure_names(book, procedure)
    values = {name: value_for(name, rng) for name in names}
    if procedure.computed:
        values["amount"] = computed_amount(sim, values.get("user"))
    if lucky:
        friendly = sim.with_open_gates()
        for _ in range(8):
            if book.simulator_allows(friendly, goal, act_arguments(book, procedure, values)):
                break
            values = {name: value_for(name, rng) for name in names}
            if procedure.computed:
                values["amount"] = computed_amount(sim, values.get("user"))
    return values


def computed_amount(sim: Simulator, user: JSON) -> JSON:
    account = sim.accounts.get(user) if isinstance(user, str) else None
    points = account.get("points") if account is not None else None
    return points * 10 if is_number(points) else 10


def procedure_names(book: Book, procedure: Procedure) -> list[str]:
    fixed = procedure.fixed
    names = [name for name in book.inputs[procedure.action] if name not in fixed]
    return names + [term for term in fixed.values() if isinstance(term, str)]


def act_arguments(book: Book, procedure: Procedure, values: Mapping[str, JSON]) -> dict[str, JSON]:
    """The act's arguments for the procedure's values; what has no value is left out."""
    found: dict[str, JSON] = {}
    for name in book.inputs[procedure.action]:
        term = procedure.fixed.get(name, name)
        value = term.value if isinstance(term, Constant) else values.get(term)
        if value is not None:
            found[name] = value
    return found


def related(sim: Simulator, act: Mapping[str, JSON], rng: random.Random) -> dict[str, JSON]:
    """By the names of inputs: records that the act's requirement may be about."""
    people = [act[name] for name in ("user", "to", "friend") if isinstance(act.get(name), str)]
    found: dict[str, JSON] = {name: value for name, value in act.items() if name != "amount"}
    booking = act.get("booking")
    record = sim.bookings.get(booking) if isinstance(booking, str) else None
    if record is not None:
        people.append(record["owner"])
        legs = record["legs"] or ()
        leg = rng.choice(legs) if legs else None
        if leg and leg.get("number"):
            found["number"] = leg["number"]
    if people:
        found["user"] = user = rng.choice(people)
        found.setdefault("case_id", sim.case_of.get(user, "case-1"))
        found["password"] = sim.passwords.get(user, "")
        found["code"] = sim.codes.get(user, "")
        mine = [name for name, one in sim.vouchers.items() if one["owner"] == user]
        if mine:
            found["voucher"] = rng.choice(mine)
    return found
