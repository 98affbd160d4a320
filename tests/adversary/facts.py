"""The predicates that handbooks are made of: how the handbook verifies one, and its truth.

A function below is the truth of the predicate that bears its name, in plain Python and written
against the simulator's records, not against the verdict. ``None``: no record says so, and the
simulator then denies both sides (see `simulator`). Its parameters are the predicate's; a name has
one type everywhere (`values.KINDS`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adversary.recipes import Recipe, recipe
from adversary.simulator import Simulator
from adversary.values import JSON, is_of_type, kind_of

Truth = bool | None
Judge = Callable[..., Truth]


@dataclass(frozen=True)
class Fact:
    """``recipes`` are alternatives; none: judged from the arguments. A gate has ``opened_by``.

    ``judged``: ``verdict`` (an expression), ``nobody`` (no expression, so it must never open
    anything) or ``model`` (the model's word counts). ``one_sided``: only its truth can be shown.
    ``done``: the call whose success in this session makes it true. ``question``: the user is
    asked, and the recipe is the machine's own. ``optional``: parameters that may be left out.
    """

    name: str
    parameters: tuple[tuple[str, str], ...] = field(compare=False)
    truth: Judge = field(compare=False)
    recipes: tuple[Recipe, ...] = ()
    verdict: str = ""
    asks: tuple[str, ...] = ()
    opened_by: str = ""
    closed_by: str = ""
    judged: str = "verdict"
    one_sided: bool = False
    done: str = ""
    principal: bool = False
    question: str = ""
    optional: tuple[str, ...] = ()


FACTS: dict[str, Fact] = {}


def fact(verdict: str = "", *ways: str | tuple[str, ...], **more: Any) -> Callable[[Judge], Judge]:
    """Declare the predicate. A way is a call, or several that one recipe makes."""

    def declare(truth: Judge) -> Judge:
        name = more.pop("name", truth.__name__)
        parameters = [p for p in inspect.signature(truth).parameters if p not in ("sim", "asked")]
        recipes = tuple(recipe(*(way if isinstance(way, tuple) else (way,))) for way in ways)
        typed = tuple((p, kind_of(p)) for p in parameters)
        FACTS[name] = Fact(name, typed, truth, recipes, verdict, **more)
        return truth

    return declare


def truth_of(
    known: Fact, sim: Simulator, values: tuple[JSON, ...], asked: Mapping[str, JSON] | None = None
) -> Truth:
    """A value that is missing or not of its type has no truth: no record speaks of it.
    ``asked``: the user's values, where the act itself names them."""
    for (name, kind), value in zip(known.parameters, values, strict=True):
        if value is None and name in known.optional:
            continue
        if value is None or not is_of_type(value, kind):
            return None
    return known.truth(sim, *values, asked or {}) if known.asks else known.truth(sim, *values)


ACCOUNT = "read_account(user)"
LEGS = ("read_booking(booking)", "read_flight(leg.number) for leg in read_booking.legs")

# --- accounts ---------------------------------------------------------------------------


def _field(sim: Simulator, user: JSON, name: str) -> JSON:
    account = sim.accounts.get(user)
    return account.get(name) if account is not None else None


@fact("result.balance >= amount", ACCOUNT)
@fact(
    "has(result.accounts) ? result.accounts[user].balance >= amount : result.balance >= amount",
    ACCOUNT,
    "read_all()",
    name="backed",
)
def covered(sim: Simulator, user: str, amount: float) -> Truth:
    balance = _field(sim, user, "balance")
    return balance >= amount if balance is not None else None


@fact("result.status == 'frozen'", ACCOUNT)
@fact("result.status == 'frozen'", "read_status(user)", ACCOUNT, name="stopped")
def frozen(sim: Simulator, user: str) -> Truth:
    status = _field(sim, user, "status")
    return status == "frozen" if status is not None else None


@fact("result.points / 2 > 2", ACCOUNT)
def keen(sim: Simulator, user: str) -> Truth:
    points = _field(sim, user, "points")
    return points / 2 > 2 if points is not None else None


@fact(
    "results.payer.balance >= results.payee.balance",
    ("payer=read_account(user)", "payee=read_account(to)"),
)
def richer(sim: Simulator, user: str, to: str) -> Truth:
    payer, payee = _field(sim, user, "balance"), _field(sim, to, "balance")
    return payer >= payee if payer is not None and payee is not None else None


@fact(
    "results.read_account.status == 'open' && result.status == 'open'",
    ("read_account(user)", "read_status(to)"),
)
def both_open(sim: Simulator, user: str, to: str) -> Truth:
    return _every([_field(sim, person, "status") for person in (user, to)], "open")


@fact(
    "results.higher.status == 'open' && result.status != 'open'",
    ("higher=read_status(user)", "lower=read_status(to)"),
)
def outranks(sim: Simulator, user: str, to: str) -> Truth:
    higher, lower = _field(sim, user, "status"), _field(sim, to, "status")
    if (higher is not None and higher != "open") or lower == "open":
        return False
    return True if higher is not None and lower is not None else None


def _every(states: list[JSON], wanted: str) -> Truth:
    """One that is known to be another decides; one that is unknown leaves it open."""
    if any(state not in (None, wanted) for state in states):
        return False
    return None if None in states else True


def _some(states: list[JSON], wanted: str) -> Truth:
    if wanted in states:
        return True
    return None if None in states else False


@fact("has(result.error)", "look_up(user)")
def unknown_account(sim: Simulator, user: str) -> Truth:
    return user not in sim.accounts


@fact("result.left > 0", "take_token(user)")
def has_token(sim: Simulator, user: str) -> Truth:
    left = sim.tokens.get(user)
    return left > 0 if left is not None else None


@fact("seconds_between(now, result.until) > 0", "read_deadline(user)")
def in_time(sim: Simulator, user: str) -> Truth:
    until = sim.deadlines.get(user)
    return sim.time < until if until is not None else None


# --- cases, bookings, lists, vouchers -----------------------------------------------------


@fact("results.read_case.status == 'closed'", ("find_case(user)", "read_case(find_case.case_id)"))
def case_closed(sim: Simulator, user: str) -> Truth:
    case = sim.cases.get(sim.case_of.get(user, ""))
    return case["status"] == "closed" if case is not None else None


@fact("result.owner == user", "read_case(case_id)")
def own_case(sim: Simulator, user: str, case_id: str) -> Truth:
    case = sim.cases.get(case_id)
    return case["owner"] == user if case is not None else None


def _leg_states(sim: Simulator, booking: str) -> list[JSON] | None:
    record = sim.bookings.get(booking)
    if record is None or record["legs"] is None:
        return None
    numbers = (leg.get("number") if leg is not None else None for leg in record["legs"])
    states = (sim.flights.get(number) for number in numbers)
    return [state["status"] if state is not None else None for state in states]


@fact("result.all(leg, leg.status == 'landed')", LEGS)
def landed(sim: Simulator, booking: str) -> Truth:
    states = _leg_states(sim, booking)
    return _every(states, "landed") if states is not None else None


@fact("results.read_flight.exists(leg, leg.status == 'cancelled')", LEGS)
def disrupted(sim: Simulator, booking: str) -> Truth:
    states = _leg_states(sim, booking)
    return _some(states, "cancelled") if states is not None else None


@fact(
    "result.status != 'late'", ("read_booking(booking)", "read_flight(read_booking.legs[0].number)")
)
def on_time(sim: Simulator, booking: str) -> Truth:
    states = _leg_states(sim, booking)
    return states[0] != "late" if states and states[0] is not None else None


@fact("result.status == 'open'", ("read_booking(booking)", "read_account(read_booking.owner)"))
def owner_open(sim: Simulator, booking: str) -> Truth:
    record = sim.bookings.get(booking)
    status = _field(sim, record["owner"], "status") if record is not None else None
    return status == "open" if status is not None else None


@fact("line in result.numbers", "read_list()")
def blocked(sim: Simulator, line: float) -> Truth:
    return line in sim.blocked


@fact("user in result.members", "read_group(group)")
def member(sim: Simulator, user: str, group: str) -> Truth:
    members = sim.groups.get(group)
    return user in members if members is not None else None


@fact("user in result.members", 'read_group("vip")', "read_group(circle)")
def vip(sim: Simulator, user: str) -> Truth:
    return member(sim, user, "vip")


@fact(
    "!result.exists(each, each.status == 'frozen')",
    ("read_group(group)", "read_status(person) for person in read_group.members"),
)
def all_sound(sim: Simulator, group: str) -> Truth:
    members = sim.groups.get(group)
    if members is None:
        return None
    frozen_somewhere = _some([_field(sim, person, "status") for person in members], "frozen")
    return None if frozen_somewhere is None else not frozen_somewhere


@fact(
    "result.all(each, each.status == 'closed')",
    (
        "read_group(group)",
        "find_case(person) for person in read_group.members",
        "read_case(entry.case_id) for entry in find_case",
    ),
)
def all_closed(sim: Simulator, group: str) -> Truth:
    members = sim.groups.get(group)
    if members is None:
        return None
    cases = [sim.cases.get(sim.case_of.get(person, "")) for person in members]
    return _every([case["status"] if case is not None else None for case in cases], "closed")


@fact(
    "result.owner == user && result.worth >= 10",
    "read_voucher(voucher)",
    asks=("voucher",),
    one_sided=True,
)
def has_voucher(sim: Simulator, user: str, asked: Mapping[str, JSON]) -> Truth:
    """Some voucher shows it; where the act names a voucher, that one must."""
    shown = [asked["voucher"]] if "voucher" in asked else list(sim.vouchers)
    vouchers = [sim.vouchers.get(name) for name in shown if isinstance(name, str)]
    good = (v is not None and v["owner"] == user and v["worth"] >= 10 for v in vouchers)
    return True if any(good) else None


# --- the arguments alone ------------------------------------------------------------------


@fact("amount <= most")
def small(sim: Simulator, amount: float, most: float) -> Truth:
    return amount <= most


@fact("amount <= largest")
def tiny(sim: Simulator, amount: float, largest: float) -> Truth:
    """Its parameter has the name of a parameter of the handbook."""
    return amount <= largest


@fact("amount / 2 > 2")
def halves(sim: Simulator, amount: float) -> Truth:
    return amount / 2 > 2


@fact("size(items) <= 2")
def few(sim: Simulator, items: list[JSON]) -> Truth:
    return len(items) <= 2


@fact("address.country == 'ch'")
def domestic(sim: Simulator, address: dict[str, JSON]) -> Truth:
    return address["country"] == "ch" if isinstance(address.get("country"), str) else None


@fact("consent")
def agreed(sim: Simulator, consent: bool) -> Truth:
    return consent


@fact("note in ['ok-1', 'ok-2']")
def cleared(sim: Simulator, note: str) -> Truth:
    return note in ("ok-1", "ok-2")


@fact("fee == null || fee < 5", optional=("fee",))
def slight(sim: Simulator, fee: float | None) -> Truth:
    return fee is None or fee < 5


def _as_kept(note: str) -> str:
    """The simulator's own books leave out what nobody sees."""
    return note.replace("\u200b", "").strip()


@fact("note.contains('bad') || note.matches('^e.il$')")
def marked(sim: Simulator, note: str) -> Truth:
    return "bad" in _as_kept(note) or _as_kept(note) == "evil"


@fact("lookup({'bad': true, 'evil': true}, note, false)")
def banned(sim: Simulator, note: str) -> Truth:
    return _as_kept(note) in ("bad", "evil")


# --- gates, deeds, the user's word --------------------------------------------------------


@fact(opened_by="login(user, password)", closed_by="logout(user)")
def logged_in(sim: Simulator, user: str) -> Truth:
    return user in sim.logged_in


@fact(opened_by="confirm_code(user, code)", closed_by="logout(user)")
def confirmed(sim: Simulator, user: str) -> Truth:
    return user in sim.factors


@fact(opened_by="check_in(user)", closed_by="close_day()")
def present(sim: Simulator, user: str) -> Truth:
    return user in sim.present


@fact(opened_by="link(user, to)", closed_by="unlink(user)")
def linked(sim: Simulator, user: str, to: str) -> Truth:
    return (user, to) in sim.linked


@fact(opened_by="serve(user)", principal=True)
def served(sim: Simulator, user: str) -> Truth:
    return sim.served == user and "counter" in sim.ways


@fact("result.user == user", opened_by="ring(phone)", principal=True)
def rang(sim: Simulator, user: str) -> Truth:
    return sim.served == user and "telephone" in sim.ways


@fact(opened_by="swipe(badge)", principal=True)
def badged(sim: Simulator, badge: str) -> Truth:
    return badge in sim.ways


@fact(done="freeze(user)")
def was_frozen(sim: Simulator, user: str) -> Truth:
    return ("freeze", user) in sim.deeds


@fact(done="deposit(user)")
def was_credited(sim: Simulator, user: str) -> Truth:
    return ("deposit", user) in sim.deeds


@fact("", 'ask_user("wants", user)', question="Do you want that, {user}?")
def wants(sim: Simulator, user: str) -> Truth:
    answer = sim.said.get((repr("wants"), repr([("user", repr(user))])))
    return {"yes": True, "no": False}.get(answer or "")


# --- nobody can show them -----------------------------------------------------------------


@fact("", ACCOUNT, judged="nobody")
@fact("", ACCOUNT, judged="model", name="polite")
def trusted(sim: Simulator, user: str) -> Truth:
    return None


@fact(judged="nobody")
def sober(sim: Simulator, amount: float) -> Truth:
    return None
