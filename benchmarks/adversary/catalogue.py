"""The predicates that handbooks are made of: how the handbook verifies one, and its truth.

The truth is written against the records, not against the verdict. ``None``: no record says so,
and the world then denies both sides (see `world`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from adversary.recipes import Constant, Path, Reading, Recipe
from adversary.values import JSON, is_of_type
from adversary.world import World

Truth = bool | None


@dataclass(frozen=True)
class Fact:
    """``recipes`` are alternatives; none: judged from the arguments. A gate has ``opened_by``.

    ``judged``: ``verdict`` (an expression), ``nobody`` (no expression, so it must never open
    anything) or ``model`` (the model's word counts). ``one_sided``: only its truth can be shown.
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    truth: Callable[..., Truth]
    recipes: tuple[Recipe, ...] = ()
    verdict: str = ""
    asks: tuple[str, ...] = ()
    opened_by: str = ""
    closed_by: str = ""
    judged: str = "verdict"
    one_sided: bool = False
    needs: str = ""
    """A word of the handbook language without which it cannot be written."""


# --- truths ---------------------------------------------------------------------------


def _field(world: World, user: JSON, field: str) -> JSON:
    account = world.accounts.get(user)
    return account.get(field) if account is not None else None


def _covered(world: World, user: str, amount: JSON) -> Truth:
    balance = _field(world, user, "balance")
    return balance >= amount if balance is not None else None


def _frozen(world: World, user: str) -> Truth:
    status = _field(world, user, "status")
    return status == "frozen" if status is not None else None


def _keen(world: World, user: str) -> Truth:
    points = _field(world, user, "points")
    return points / 2 > 2 if points is not None else None


def _richer(world: World, user: str, to: str) -> Truth:
    one, other = _field(world, user, "balance"), _field(world, to, "balance")
    return one >= other if one is not None and other is not None else None


def _both_open(world: World, user: str, to: str) -> Truth:
    found = [_field(world, one, "status") for one in (user, to)]
    if any(status not in (None, "open") for status in found):
        return False
    return None if None in found else True


def _outranks(world: World, user: str, to: str) -> Truth:
    one, other = _field(world, user, "status"), _field(world, to, "status")
    if (one is not None and one != "open") or other == "open":
        return False
    return True if one is not None and other is not None else None


def _case_closed(world: World, user: str) -> Truth:
    case = world.cases.get(world.case_of.get(user, ""))
    return case["status"] == "closed" if case is not None else None


def _own_case(world: World, user: str, case_id: str) -> Truth:
    case = world.cases.get(case_id)
    return case["owner"] == user if case is not None else None


def _leg_states(world: World, booking: str) -> list[JSON] | None:
    found = world.bookings.get(booking)
    if found is None or found["legs"] is None:
        return None
    states = (world.flights.get(leg["number"]) for leg in found["legs"])
    return [state["status"] if state is not None else None for state in states]


def _landed(world: World, booking: str) -> Truth:
    states = _leg_states(world, booking)
    if states is None:
        return None
    if any(state not in (None, "landed") for state in states):
        return False
    return None if None in states else True


def _disrupted(world: World, booking: str) -> Truth:
    states = _leg_states(world, booking)
    if states is None:
        return None
    if "cancelled" in states:
        return True
    return None if None in states else False


def _on_time(world: World, booking: str) -> Truth:
    states = _leg_states(world, booking)
    return states[0] != "late" if states and states[0] is not None else None


def _owner_open(world: World, booking: str) -> Truth:
    found = world.bookings.get(booking)
    status = _field(world, found["owner"], "status") if found is not None else None
    return status == "open" if status is not None else None


def _blocked(world: World, line: JSON) -> Truth:
    return line in world.blocked


def _member(world: World, user: str, group: str) -> Truth:
    members = world.groups.get(group)
    return user in members if members is not None else None


def _has_voucher(world: World, user: str, asked: Mapping[str, JSON]) -> Truth:
    """Some voucher shows it; where the act names one, that voucher must."""
    shown = [asked["voucher"]] if "voucher" in asked else list(world.vouchers)
    found = [world.vouchers.get(name) for name in shown if isinstance(name, str)]
    good = (one is not None and one["owner"] == user and one["worth"] >= 10 for one in found)
    return True if any(good) else None


def _small(world: World, amount: JSON, most: JSON) -> Truth:
    return amount <= most


def _halves(world: World, amount: JSON) -> Truth:
    return amount / 2 > 2


def _few(world: World, items: list[JSON]) -> Truth:
    return len(items) <= 2


def _domestic(world: World, address: dict[str, JSON]) -> Truth:
    return address["country"] == "ch" if isinstance(address.get("country"), str) else None


def _agreed(world: World, consent: bool) -> Truth:
    return consent


def _cleared(world: World, note: str) -> Truth:
    return note in ("ok-1", "ok-2")


def _logged_in(world: World, user: str) -> Truth:
    return user in world.logged_in


def _confirmed(world: World, user: str) -> Truth:
    return user in world.factors


def _present(world: World, user: str) -> Truth:
    return user in world.present


def _linked(world: World, user: str, to: str) -> Truth:
    return (user, to) in world.linked


def _has_token(world: World, user: str) -> Truth:
    left = world.tokens.get(user)
    return left > 0 if left is not None else None


def _vip(world: World, user: str) -> Truth:
    return _member(world, user, "vip")


def _all_sound(world: World, group: str) -> Truth:
    members = world.groups.get(group)
    if members is None:
        return None
    states = [_field(world, member, "status") for member in members]
    if "frozen" in states:
        return False
    return None if None in states else True


def _nothing(world: World, *values: JSON) -> Truth:
    return None


# --- the predicates -------------------------------------------------------------------

_ACCOUNT: Recipe = (Reading("read_account", ("user",)),)
_ALL: Recipe = (Reading("read_all"),)
_USER = ("user", "string")
_LEGS: Recipe = (
    Reading("read_booking", ("booking",)),
    Reading(
        "read_flight", (Path("leg", ("number",)),), each=(Path("read_booking", ("legs",)), "leg")
    ),
)
_TO = ("to", "string")
_AMOUNT = ("amount", "number")
_BOOKING = ("booking", "string")

FACTS: dict[str, Fact] = {
    fact.name: fact
    for fact in (
        Fact("covered", (_USER, _AMOUNT), _covered, (_ACCOUNT,), "result.balance >= amount"),
        Fact(
            "backed",
            (_USER, _AMOUNT),
            _covered,
            (_ACCOUNT, _ALL),
            "has(result.accounts) ? result.accounts[user].balance >= amount"
            " : result.balance >= amount",
        ),
        Fact("frozen", (_USER,), _frozen, (_ACCOUNT,), "result.status == 'frozen'"),
        Fact(
            "stopped",
            (_USER,),
            _frozen,
            ((Reading("read_status", ("user",)),), _ACCOUNT),
            "result.status == 'frozen'",
        ),
        Fact("keen", (_USER,), _keen, (_ACCOUNT,), "result.points / 2 > 2"),
        Fact(
            "both_open",
            (_USER, _TO),
            _both_open,
            ((Reading("read_account", ("user",)), Reading("read_status", ("to",))),),
            "results.read_account.status == 'open' && result.status == 'open'",
        ),
        Fact(
            "richer",
            (_USER, _TO),
            _richer,
            (
                (
                    Reading("read_account", ("user",), name="payer"),
                    Reading("read_account", ("to",), name="payee"),
                ),
            ),
            "results.payer.balance >= results.payee.balance",
            needs="named",
        ),
        Fact(
            "outranks",
            (_USER, _TO),
            _outranks,
            (
                (
                    Reading("read_status", ("user",), name="one"),
                    Reading("read_status", ("to",), name="other"),
                ),
            ),
            "results.one.status == 'open' && result.status != 'open'",
            needs="named",
        ),
        Fact(
            "case_closed",
            (_USER,),
            _case_closed,
            (
                (
                    Reading("find_case", ("user",)),
                    Reading("read_case", (Path("find_case", ("case_id",)),)),
                ),
            ),
            "results.read_case.status == 'closed'",
            needs="paths",
        ),
        Fact(
            "own_case",
            (_USER, ("case_id", "string")),
            _own_case,
            ((Reading("read_case", ("case_id",)),),),
            "result.owner == user",
        ),
        Fact(
            "landed",
            (_BOOKING,),
            _landed,
            (_LEGS,),
            "result.all(one, one.status == 'landed')",
            needs="for_each",
        ),
        Fact(
            "disrupted",
            (_BOOKING,),
            _disrupted,
            (_LEGS,),
            "results.read_flight.exists(one, one.status == 'cancelled')",
            needs="for_each",
        ),
        Fact(
            "on_time",
            (_BOOKING,),
            _on_time,
            (
                (
                    Reading("read_booking", ("booking",)),
                    Reading("read_flight", (Path("read_booking", ("legs", 0, "number")),)),
                ),
            ),
            "result.status != 'late'",
            needs="paths",
        ),
        Fact(
            "owner_open",
            (_BOOKING,),
            _owner_open,
            (
                (
                    Reading("read_booking", ("booking",)),
                    Reading("read_account", (Path("read_booking", ("owner",)),)),
                ),
            ),
            "result.status == 'open'",
            needs="paths",
        ),
        Fact(
            "blocked",
            (("line", "integer"),),
            _blocked,
            ((Reading("read_list"),),),
            "line in result.numbers",
        ),
        Fact(
            "member",
            (_USER, ("group", "string")),
            _member,
            ((Reading("read_group", ("group",)),),),
            "user in result.members",
        ),
        Fact(
            "has_voucher",
            (_USER,),
            _has_voucher,
            ((Reading("read_voucher", ("voucher",)),),),
            "result.owner == user && result.worth >= 10",
            asks=("voucher",),
            one_sided=True,
            needs="ask",
        ),
        Fact("small", (_AMOUNT, ("most", "number")), _small, (), "amount <= most"),
        Fact("tiny", (_AMOUNT, ("largest", "number")), _small, (), "amount <= largest"),
        Fact("halves", (_AMOUNT,), _halves, (), "amount / 2 > 2"),
        Fact("few", (("items", "array"),), _few, (), "size(items) <= 2"),
        Fact("domestic", (("address", "object"),), _domestic, (), "address.country == 'ch'"),
        Fact("agreed", (("consent", "boolean"),), _agreed, (), "consent"),
        Fact("cleared", (("note", "string"),), _cleared, (), "note in ['ok-1', 'ok-2']"),
        Fact(
            "logged_in",
            (_USER,),
            _logged_in,
            opened_by="login(user, password)",
            closed_by="logout(user)",
        ),
        Fact(
            "confirmed",
            (_USER,),
            _confirmed,
            opened_by="confirm_code(user, code)",
            closed_by="logout(user)",
        ),
        Fact(
            "present",
            (_USER,),
            _present,
            opened_by="check_in(user)",
            closed_by="close_day()",
            needs="closed_by",
        ),
        Fact(
            "linked",
            (_USER, _TO),
            _linked,
            opened_by="link(user, to)",
            closed_by="unlink(user)",
            needs="closed_by",
        ),
        Fact(
            "has_token",
            (_USER,),
            _has_token,
            ((Reading("take_token", ("user",)),),),
            "result.left > 0",
            needs="changes",
        ),
        Fact(
            "vip",
            (_USER,),
            _vip,
            ((Reading("read_group", (Constant("vip"),)),), (Reading("read_group", ("circle",)),)),
            "user in result.members",
        ),
        Fact(
            "all_sound",
            (("group", "string"),),
            _all_sound,
            (
                (
                    Reading("read_group", ("group",)),
                    Reading(
                        "read_status",
                        (Path("member", ()),),
                        each=(Path("read_group", ("members",)), "member"),
                    ),
                ),
            ),
            "!result.exists(one, one.status == 'frozen')",
            needs="for_each",
        ),
        Fact("trusted", (_USER,), _nothing, (_ACCOUNT,), judged="nobody"),
        Fact("sober", (_AMOUNT,), _nothing, (), judged="nobody"),
        Fact("polite", (_USER,), _nothing, (_ACCOUNT,), judged="model", needs="judged_by"),
    )
}


def truth_of(
    fact: Fact, world: World, values: tuple[JSON, ...], asked: Mapping[str, JSON] | None = None
) -> Truth:
    """A value that is missing or not of its type has no truth: no record speaks of it.
    ``asked``: what the user gives, where the act itself names it."""
    for (_, kind), value in zip(fact.parameters, values, strict=True):
        if value is None or not is_of_type(value, kind):
            return None
    return fact.truth(world, *values, asked or {}) if fact.asks else fact.truth(world, *values)
