"""Classes 7 to 9: older answers, the order of calls, the origin of values."""

from __future__ import annotations

from attacked_handbooks import NAMED, ORIGINS
from attacks_on_values import BALANCE, Given, State
from scripted_moves import ENTER, Cited, Desk, Move, call, say, start

from sopilot.values.json import JSON


def _falling(name: str, given: Given, state: State) -> JSON:
    """Ann's money goes elsewhere after the first look at it; Bob's stays."""
    if name != "read_account":
        return {"done": True}
    state[given["user"]] = state.get(given["user"], 0) + 1
    return {"balance": 5 if given["user"] == "ann" and state["ann"] > 1 else 500}


def _cites_the_older(user: str) -> tuple[Move, ...]:
    begin, *checked = _reads_once(user)
    return (begin, call("read_account", user=user), *checked)


def _reads_once(user: str) -> tuple[Move, ...]:
    return (
        start("transfer", user=user, amount=80, to="x"),
        ENTER,
        call("read_account", user=user),
        say(True, Cited(0)),
        call("transfer", user=user, amount=80, to="x"),
    )


READ_AGAIN = Desk(
    BALANCE.replace("irreversible: true", "irreversible: true, recheck: true"),
    _falling,
    _reads_once("bob"),
).attacked(7, "the newest no is not in the session", _reads_once("ann"), "covered")
"""The machine itself reads once more, just before the act."""


def _limits(name: str, given: Given, state: State) -> JSON:
    if name == "read_limit":
        return {"free": given["user"] != "zoe"}
    return {"balance": 5 if given.get("user") == "ann" else 9, "free": True}


def _sends(user: str, to: str) -> tuple[Move, ...]:
    """Every call of every recipe, those of ``user`` last: read in this order, ``user`` would be
    whoever was read last, and free what an account says of itself."""
    return (
        start("send", user=user, to=to),
        ENTER,
        call("read_limit", user=user),
        call("read_account", user=user),
        call("read_account", user=to),
        say(True, "read_account"),
        ENTER,
        call("read_limit", user=user),
        call("read_account", user=user),
        say(True, "read_account", "read_limit"),
        call("send", user=user, to=to),
    )


LEGS = {"flying": ["F1", "F2"], "grounded": ["F1", "F3"]}


def _origins(name: str, given: Given, state: State) -> JSON:
    if name == "find_case":
        return {"case_id": f"case-of-{given['user']}"}
    if name == "read_case":
        return {"status": "closed" if given["case_id"] == "case-of-bob" else "open"}
    if name == "read_booking":
        return {"legs": [{"number": number} for number in LEGS[given["booking"]]]}
    return {"cancelled": given.get("number") != "F2", "done": True}


def archiving(user: str, case_id: JSON) -> tuple[Move, ...]:
    return (
        start("archive", user=user),
        ENTER,
        call("find_case", user=user),
        call("read_case", case_id=case_id),
        say(True, "find_case", "read_case"),
        call("archive", user=user),
    )


def _refunds(booking: str, *flights: str) -> tuple[Move, ...]:
    return (
        start("refund", booking=booking),
        ENTER,
        call("read_booking", booking=booking),
        *(call("read_flight", number=number) for number in flights),
        say(True, "read_booking", "read_flight"),
        call("refund", booking=booking),
    )


_NAMED = Desk(NAMED, _limits, _sends("eve", "ann"))

ON_EVIDENCE = (
    Desk(BALANCE, _falling, _cites_the_older("bob")).attacked(
        7, "the older yes under the newer no", _cites_the_older("ann"), "covered"
    ),
    READ_AGAIN,
    _NAMED.attacked(8, "two calls of one action", _sends("ann", "eve"), "richer"),
    _NAMED.attacked(8, "result is what was called last", _sends("zoe", "ann"), "free"),
    Desk(ORIGINS, _origins, archiving("bob", "case-of-bob")).attacked(
        9, "somebody else's case", archiving("ann", "case-of-bob"), "case_closed"
    ),
    Desk(ORIGINS, _origins, _refunds("grounded", "F1", "F3")).attacked(
        9, "one flight of two", _refunds("flying", "F1"), "cancelled", "read_flight"
    ),
)
