"""What is true of a world, predicate by predicate, in plain Python.

Written against the records, not against the verdicts of the handbook. ``None``: no record says
so, and the world then denies both sides.
"""

from __future__ import annotations

from collections.abc import Mapping

from adversary.values import JSON
from adversary.world import World

Truth = bool | None


def _field(world: World, user: JSON, field: str) -> JSON:
    account = world.accounts.get(user)
    return account.get(field) if account is not None else None


def covered(world: World, user: str, amount: JSON) -> Truth:
    balance = _field(world, user, "balance")
    return balance >= amount if balance is not None else None


def frozen(world: World, user: str) -> Truth:
    status = _field(world, user, "status")
    return status == "frozen" if status is not None else None


def keen(world: World, user: str) -> Truth:
    points = _field(world, user, "points")
    return points / 2 > 2 if points is not None else None


def richer(world: World, user: str, to: str) -> Truth:
    one, other = _field(world, user, "balance"), _field(world, to, "balance")
    return one >= other if one is not None and other is not None else None


def both_open(world: World, user: str, to: str) -> Truth:
    found = [_field(world, one, "status") for one in (user, to)]
    if any(status not in (None, "open") for status in found):
        return False
    return None if None in found else True


def outranks(world: World, user: str, to: str) -> Truth:
    one, other = _field(world, user, "status"), _field(world, to, "status")
    if (one is not None and one != "open") or other == "open":
        return False
    return True if one is not None and other is not None else None


def case_closed(world: World, user: str) -> Truth:
    case = world.cases.get(world.case_of.get(user, ""))
    return case["status"] == "closed" if case is not None else None


def own_case(world: World, user: str, case_id: str) -> Truth:
    case = world.cases.get(case_id)
    return case["owner"] == user if case is not None else None


def _leg_states(world: World, booking: str) -> list[JSON] | None:
    found = world.bookings.get(booking)
    if found is None or found["legs"] is None:
        return None
    numbers = (leg.get("number") if leg is not None else None for leg in found["legs"])
    states = (world.flights.get(number) for number in numbers)
    return [state["status"] if state is not None else None for state in states]


def landed(world: World, booking: str) -> Truth:
    states = _leg_states(world, booking)
    if states is None:
        return None
    if any(state not in (None, "landed") for state in states):
        return False
    return None if None in states else True


def disrupted(world: World, booking: str) -> Truth:
    states = _leg_states(world, booking)
    if states is None:
        return None
    if "cancelled" in states:
        return True
    return None if None in states else False


def on_time(world: World, booking: str) -> Truth:
    states = _leg_states(world, booking)
    return states[0] != "late" if states and states[0] is not None else None


def owner_open(world: World, booking: str) -> Truth:
    found = world.bookings.get(booking)
    status = _field(world, found["owner"], "status") if found is not None else None
    return status == "open" if status is not None else None


def blocked(world: World, line: JSON) -> Truth:
    return line in world.blocked


def member(world: World, user: str, group: str) -> Truth:
    members = world.groups.get(group)
    return user in members if members is not None else None


def has_voucher(world: World, user: str, asked: Mapping[str, JSON]) -> Truth:
    """Some voucher shows it; where the act names one, that voucher must."""
    shown = [asked["voucher"]] if "voucher" in asked else list(world.vouchers)
    found = [world.vouchers.get(name) for name in shown if isinstance(name, str)]
    good = (one is not None and one["owner"] == user and one["worth"] >= 10 for one in found)
    return True if any(good) else None


def small(world: World, amount: JSON, most: JSON) -> Truth:
    return amount <= most


def halves(world: World, amount: JSON) -> Truth:
    return amount / 2 > 2


def few(world: World, items: list[JSON]) -> Truth:
    return len(items) <= 2


def domestic(world: World, address: dict[str, JSON]) -> Truth:
    return address["country"] == "ch" if isinstance(address.get("country"), str) else None


def agreed(world: World, consent: bool) -> Truth:
    return consent


def _as_kept(note: str) -> str:
    """The world's own books leave out what nobody sees."""
    return note.replace("\u200b", "").strip()


def marked(world: World, note: str) -> Truth:
    return "bad" in _as_kept(note) or _as_kept(note) == "evil"


def banned(world: World, note: str) -> Truth:
    return _as_kept(note) in ("bad", "evil")


def cleared(world: World, note: str) -> Truth:
    return note in ("ok-1", "ok-2")


def logged_in(world: World, user: str) -> Truth:
    return user in world.logged_in


def confirmed(world: World, user: str) -> Truth:
    return user in world.factors


def present(world: World, user: str) -> Truth:
    return user in world.present


def linked(world: World, user: str, to: str) -> Truth:
    return (user, to) in world.linked


def has_token(world: World, user: str) -> Truth:
    left = world.tokens.get(user)
    return left > 0 if left is not None else None


def vip(world: World, user: str) -> Truth:
    return member(world, user, "vip")


def all_sound(world: World, group: str) -> Truth:
    members = world.groups.get(group)
    if members is None:
        return None
    states = [_field(world, member, "status") for member in members]
    if "frozen" in states:
        return False
    return None if None in states else True


def all_closed(world: World, group: str) -> Truth:
    """Every member's case is closed."""
    members = world.groups.get(group)
    if members is None:
        return None
    cases = [world.cases.get(world.case_of.get(member, "")) for member in members]
    states = [case["status"] if case is not None else None for case in cases]
    if "open" in states:
        return False
    return None if None in states else True


def unknown_account(world: World, user: str) -> Truth:
    return user not in world.accounts


def was_frozen(world: World, user: str) -> Truth:
    return ("freeze", user) in world.deeds


def was_credited(world: World, user: str) -> Truth:
    return ("deposit", user) in world.deeds


def served(world: World, user: str) -> Truth:
    return world.served == user and "counter" in world.ways


def rang(world: World, user: str) -> Truth:
    return world.served == user and "telephone" in world.ways


def badged(world: World, badge: str) -> Truth:
    return badge in world.ways


def in_time(world: World, user: str) -> Truth:
    until = world.deadlines.get(user)
    return world.time < until if until is not None else None


def slight(world: World, fee: JSON) -> Truth:
    return fee is None or fee < 5


def wants(world: World, user: str) -> Truth:
    told = world.said.get((repr("wants"), repr([("user", repr(user))])))
    return {"yes": True, "no": False}.get(told or "")


def nothing(world: World, *values: JSON) -> Truth:
    return None
