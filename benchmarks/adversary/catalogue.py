"""The predicates that handbooks are made of: how the handbook verifies one, and its truth.

The truth is written against the records, not against the verdict. ``None``: no record says so,
and the world then denies both sides (see `world`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from adversary import truths
from adversary.recipes import Constant, Path, Reading, Recipe
from adversary.truths import Truth
from adversary.values import JSON, is_of_type
from adversary.world import World


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
    done: str = ""
    """The call whose success in this session makes it true."""
    principal: bool = False
    question: str = ""
    """The user is asked; the recipe is then the machine's own."""
    optional: tuple[str, ...] = ()
    """Parameters that may be without a value."""


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
        Fact("covered", (_USER, _AMOUNT), truths.covered, (_ACCOUNT,), "result.balance >= amount"),
        Fact(
            "backed",
            (_USER, _AMOUNT),
            truths.covered,
            (_ACCOUNT, _ALL),
            "has(result.accounts) ? result.accounts[user].balance >= amount"
            " : result.balance >= amount",
        ),
        Fact("frozen", (_USER,), truths.frozen, (_ACCOUNT,), "result.status == 'frozen'"),
        Fact(
            "stopped",
            (_USER,),
            truths.frozen,
            ((Reading("read_status", ("user",)),), _ACCOUNT),
            "result.status == 'frozen'",
        ),
        Fact("keen", (_USER,), truths.keen, (_ACCOUNT,), "result.points / 2 > 2"),
        Fact(
            "both_open",
            (_USER, _TO),
            truths.both_open,
            ((Reading("read_account", ("user",)), Reading("read_status", ("to",))),),
            "results.read_account.status == 'open' && result.status == 'open'",
        ),
        Fact(
            "richer",
            (_USER, _TO),
            truths.richer,
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
            truths.outranks,
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
            truths.case_closed,
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
            truths.own_case,
            ((Reading("read_case", ("case_id",)),),),
            "result.owner == user",
        ),
        Fact(
            "landed",
            (_BOOKING,),
            truths.landed,
            (_LEGS,),
            "result.all(one, one.status == 'landed')",
            needs="for_each",
        ),
        Fact(
            "disrupted",
            (_BOOKING,),
            truths.disrupted,
            (_LEGS,),
            "results.read_flight.exists(one, one.status == 'cancelled')",
            needs="for_each",
        ),
        Fact(
            "on_time",
            (_BOOKING,),
            truths.on_time,
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
            truths.owner_open,
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
            truths.blocked,
            ((Reading("read_list"),),),
            "line in result.numbers",
        ),
        Fact(
            "member",
            (_USER, ("group", "string")),
            truths.member,
            ((Reading("read_group", ("group",)),),),
            "user in result.members",
        ),
        Fact(
            "has_voucher",
            (_USER,),
            truths.has_voucher,
            ((Reading("read_voucher", ("voucher",)),),),
            "result.owner == user && result.worth >= 10",
            asks=("voucher",),
            one_sided=True,
            needs="ask",
        ),
        Fact("small", (_AMOUNT, ("most", "number")), truths.small, (), "amount <= most"),
        Fact("tiny", (_AMOUNT, ("largest", "number")), truths.small, (), "amount <= largest"),
        Fact("halves", (_AMOUNT,), truths.halves, (), "amount / 2 > 2"),
        Fact("few", (("items", "array"),), truths.few, (), "size(items) <= 2"),
        Fact("domestic", (("address", "object"),), truths.domestic, (), "address.country == 'ch'"),
        Fact("agreed", (("consent", "boolean"),), truths.agreed, (), "consent"),
        Fact("cleared", (("note", "string"),), truths.cleared, (), "note in ['ok-1', 'ok-2']"),
        Fact(
            "logged_in",
            (_USER,),
            truths.logged_in,
            opened_by="login(user, password)",
            closed_by="logout(user)",
        ),
        Fact(
            "confirmed",
            (_USER,),
            truths.confirmed,
            opened_by="confirm_code(user, code)",
            closed_by="logout(user)",
        ),
        Fact(
            "present",
            (_USER,),
            truths.present,
            opened_by="check_in(user)",
            closed_by="close_day()",
            needs="closed_by",
        ),
        Fact(
            "linked",
            (_USER, _TO),
            truths.linked,
            opened_by="link(user, to)",
            closed_by="unlink(user)",
            needs="closed_by",
        ),
        Fact(
            "has_token",
            (_USER,),
            truths.has_token,
            ((Reading("take_token", ("user",)),),),
            "result.left > 0",
            needs="changes",
        ),
        Fact(
            "vip",
            (_USER,),
            truths.vip,
            ((Reading("read_group", (Constant("vip"),)),), (Reading("read_group", ("circle",)),)),
            "user in result.members",
        ),
        Fact(
            "all_sound",
            (("group", "string"),),
            truths.all_sound,
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
        Fact(
            "all_closed",
            (("group", "string"),),
            truths.all_closed,
            (
                (
                    Reading("read_group", ("group",)),
                    Reading(
                        "find_case",
                        (Path("member", ()),),
                        each=(Path("read_group", ("members",)), "member"),
                    ),
                    Reading(
                        "read_case",
                        (Path("found", ("case_id",)),),
                        each=(Path("find_case", ()), "found"),
                    ),
                ),
            ),
            "result.all(one, one.status == 'closed')",
            needs="for_each",
        ),
        Fact(
            "unknown_account",
            (_USER,),
            truths.unknown_account,
            ((Reading("look_up", ("user",)),),),
            "has(result.error)",
        ),
        Fact("was_frozen", (_USER,), truths.was_frozen, done="freeze(user)"),
        Fact("was_credited", (_USER,), truths.was_credited, done="deposit(user)"),
        Fact("served", (_USER,), truths.served, opened_by="serve(user)", principal=True),
        Fact(
            "rang",
            (_USER,),
            truths.rang,
            verdict="result.user == user",
            opened_by="ring(phone)",
            principal=True,
        ),
        Fact(
            "badged",
            (("badge", "string"),),
            truths.badged,
            opened_by="swipe(badge)",
            principal=True,
        ),
        Fact(
            "in_time",
            (_USER,),
            truths.in_time,
            ((Reading("read_deadline", ("user",)),),),
            "seconds_between(now, result.until) > 0",
        ),
        Fact(
            "slight",
            (("fee", "number"),),
            truths.slight,
            (),
            "fee == null || fee < 5",
            optional=("fee",),
        ),
        Fact(
            "wants",
            (_USER,),
            truths.wants,
            ((Reading("ask_user", (Constant("wants"), "user")),),),
            question="Do you want that, {user}?",
        ),
        Fact(
            "marked",
            (("note", "string"),),
            truths.marked,
            (),
            "note.contains('bad') || note.matches('^e.il$')",
            needs="look-alikes",
        ),
        Fact(
            "banned",
            (("note", "string"),),
            truths.banned,
            (),
            "lookup({'bad': true, 'evil': true}, note, false)",
            needs="look-alikes",
        ),
        Fact("trusted", (_USER,), truths.nothing, (_ACCOUNT,), judged="nobody"),
        Fact("sober", (_AMOUNT,), truths.nothing, (), judged="nobody"),
        Fact("polite", (_USER,), truths.nothing, (_ACCOUNT,), judged="model", needs="judged_by"),
    )
}


def truth_of(
    fact: Fact, world: World, values: tuple[JSON, ...], asked: Mapping[str, JSON] | None = None
) -> Truth:
    """A value that is missing or not of its type has no truth: no record speaks of it.
    ``asked``: what the user gives, where the act itself names it."""
    for (name, kind), value in zip(fact.parameters, values, strict=True):
        if value is None and name in fact.optional:
            continue
        if value is None or not is_of_type(value, kind):
            return None
    return fact.truth(world, *values, asked or {}) if fact.asks else fact.truth(world, *values)
