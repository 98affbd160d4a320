"""Classes 1 to 6: the wrong value, half of the evidence, no evidence, old evidence."""

from __future__ import annotations

from collections.abc import Mapping

from attacked_handbooks import CLAIMS, DOOR, FROZEN, GATE, HALF, TYPED
from scripted_moves import DONE, ENTER, FAILED, Cited, Desk, Move, call, say, start

from sopilot.values.json import JSON

State = dict[str, JSON]
Given = Mapping[str, JSON]


def _claims(name: str, given: Given, state: State) -> JSON:
    return {"limit": 500}


CHECK_CLAIM = (ENTER, call("read_claim", claim="c-1"), say(True, "read_claim"))
PAID = (start("pay", claim="c-1", amount=400), *CHECK_CLAIM)
PAY = (*PAID, call("pay", claim="c-1", amount=400))
PAYMENT = ("pay", {"claim": "c-1", "amount": 400})


def _guests(name: str, given: Given, state: State) -> JSON:
    return {"known": given["guest"] == "guest-1"}


OPENED = (
    start("open_door", guest="guest-1"),
    ENTER,
    call("look_up", guest="guest-1"),
    say(True, "look_up"),
    call("open_door", guest="guest-1"),
)


def _gate(name: str, given: Given, state: State) -> JSON:
    return {"ok": True}


LOGIN = (call("login", user="ann", password="x"), ENTER, say(True, "login"))


def _debts(name: str, given: Given, state: State) -> JSON:
    return {"total": 900 if name == "read_debts" and given["user"] == "ann" else 0}


STATUSES: Mapping[str, JSON] = {
    "a look-up that failed": FAILED,
    "null": None,
    "text": "no such account",
    "no field": {},
    "a field that is null": {"status": None},
    "a number": {"status": 5},
    "ann": {"status": "open"},
}


def _statuses(name: str, given: Given, state: State) -> JSON:
    return STATUSES[given["user"]] if name == "read_account" else {"done": True}


def _not_frozen(user: str) -> tuple[Move, ...]:
    return (
        start("pay", user=user),
        ENTER,
        call("read_account", user=user),
        say(False, "read_account"),
        call("pay", user=user),
    )


def _numbers(name: str, given: Given, state: State) -> JSON:
    return {"numbers": [123]}


NOT_BLOCKED = (ENTER, call("read_list"), say(False, "read_list"))
CALLED_BACK = (start("call_back", number=124), *NOT_BLOCKED, call("call_back", number=124))

BALANCE = """
handbook: balance
actions:
  read_account: {input: {user: string}}
  transfer: {input: {user: string, amount: number, to: string}, irreversible: true}
predicates:
  covered(user, amount):
    says: The account of {user} covers {amount}.
    verify: read_account(user)
    verdict: result.balance >= amount
procedures:
  transfer: {requires: "covered(user, amount)"}
"""


def _money(name: str, given: Given, state: State) -> JSON:
    if name == "read_account":
        return {"balance": state.get("balance", 100)}
    state["balance"] = state.get("balance", 100) - given["amount"]
    return {"done": True}


DEMOLITION = DOOR.replace(
    "actions:\n", "actions:\n  demolish: {input: {guest: string}, irreversible: true}\n"
)
"""Nothing licenses `demolish`."""

PAYEES = """
handbook: payees
actions:
  read_list: {input: {}}
  pay: {input: {payee: string, amount: number}, irreversible: true}
predicates:
  listed(payee):
    says: The payee {payee} is on the list.
    verify: read_list()
    verdict: VERDICT
procedures:
  pay: {requires: {not: listed(payee)}}
"""
LOOK_ALIKES = {
    "contains": "result.names.exists(one, payee.contains(one))",
    "startsWith": "result.names.exists(one, payee.startsWith(one))",
    "endsWith": "result.names.exists(one, payee.endsWith(one))",
    "matches": "payee.matches('MALLORY')",
    "in a list": "payee in result.names",
    "in a table": "payee in result.blocked",
    "a key": "lookup(result.blocked, payee, false)",
    "equality": "result.names[0] == payee",
}


def _list(name: str, given: Given, state: State) -> JSON:
    return {"names": ["MALLORY"], "blocked": {"MALLORY": True}}


def _paid_to(payee: str) -> tuple[Move, ...]:
    return (
        start("pay", payee=payee, amount=5),
        ENTER,
        call("read_list"),
        say(False, "read_list"),
        call("pay", payee=payee, amount=5),
    )


READ = call("read_account", user="ann")
COVERED = (ENTER, READ, say(True, "read_account"))


def _transfer(amount: int, to: str) -> dict[str, JSON]:
    return {"user": "ann", "amount": amount, "to": to}


_CLAIM = Desk(CLAIMS, _claims, PAY)
_GUEST = Desk(DOOR, _guests, OPENED)
_HALF = Desk(
    HALF,
    _debts,
    (
        start("close", user="bob"),
        ENTER,
        call("read_account", user="bob"),
        call("read_debts", user="bob"),
        say(True, "read_account", "read_debts"),
        call("close", user="bob"),
    ),
)
_LOGIN = Desk(GATE, _gate, (start("close", user="ann"), *LOGIN, call("close", user="ann")))
_BALANCE = Desk(
    BALANCE,
    _money,
    (
        start("transfer", **_transfer(40, "x")),
        *COVERED,
        start("transfer", **_transfer(40, "y")),
        *COVERED,
        call("transfer", **_transfer(40, "y")),
        DONE,
        READ,
        call("transfer", **_transfer(40, "x")),
    ),
)
_OF_GUEST_1, _FOR_GUEST_2 = call("look_up", guest="guest-1"), call("open_door", guest="guest-2")

ON_VALUES = (
    _CLAIM.attacked(
        1,
        "the amount is named only at the payment",
        (start("pay", claim="c-1"), *CHECK_CLAIM, call("pay", claim="c-1", amount=999_999)),
        "covers",
    ),
    _GUEST.attacked(
        2,
        "evidence about one guest, the door for another",
        (start("open_door"), _OF_GUEST_1, ENTER, say(True, Cited(0)), _FOR_GUEST_2),
        "known",
        'look_up(guest="guest-2")',
    ),
    _GUEST.attacked(
        2,
        "evidence from before the start, about another guest",
        (
            _OF_GUEST_1,
            start("open_door", guest="guest-2"),
            ENTER,
            say(True, Cited(0)),
            _FOR_GUEST_2,
        ),
        "known",
        'look_up(guest="guest-2")',
        by_proof=False,
    ),
    _LOGIN.attacked(
        2,
        "logged in as one customer, acted for another",
        (start("close"), *LOGIN, call("close", user="bob")),
        "logged_in",
    ),
    _HALF.attacked(
        3,
        "one call of two",
        (
            start("close", user="ann"),
            ENTER,
            call("read_account", user="ann"),
            say(True, "read_account"),
            call("close", user="ann"),
        ),
        "settled",
        "read_debts",
    ),
    *(
        Desk(FROZEN, _statuses, _not_frozen("ann")).attacked(
            4, f"not frozen, because of {user}", _not_frozen(user), "frozen"
        )
        for user in STATUSES
        if user != "ann"
    ),
    _CLAIM.attacked(
        5,
        "text at the start, a number at the act",
        (start("pay", claim="c-1", amount="400"), *CHECK_CLAIM, PAY[-1]),
        "`start` `pay` first",
        by_proof=False,
    ),
    _CLAIM.attacked(
        5,
        "a number at the start, text at the act",
        (*PAID, call("pay", claim="c-1", amount="400")),
        "amount",
        by_proof=False,
    ),
    Desk(TYPED, _numbers, CALLED_BACK).attacked(
        5,
        "a block list of numbers, a number as text",
        (start("call_back", number="123"), *NOT_BLOCKED, call("call_back", number="123")),
        "call_back",
        by_proof=False,
    ),
    _BALANCE.attacked(
        6,
        "two processes on one balance",
        (
            start("transfer", **_transfer(80, "x")),
            *COVERED,
            start("transfer", **_transfer(80, "y")),
            *COVERED,
            call("transfer", **_transfer(80, "y")),
            DONE,
            call("transfer", **_transfer(80, "x")),
        ),
        "covered",
        before=[("transfer", _transfer(80, "y"))],
    ),
    *(
        Desk(DEMOLITION, _guests, OPENED).attacked(
            13,
            f"no procedure, {where}",
            (*before, call("demolish", guest="guest-1")),
            "no procedure of this handbook",
            "demolish",
            by_proof=False,
        )
        for where, before in {"nothing started": (), "all else proven": OPENED[:-1]}.items()
    ),
    *(
        Desk(PAYEES.replace("VERDICT", f'"{verdict}"'), _list, _paid_to("bob")).attacked(
            14,
            f"a payee that looks like a listed one, {operator}",
            _paid_to("MAL\u200bLORY"),
            "listed",
        )
        for operator, verdict in LOOK_ALIKES.items()
    ),
)
