"""Classes 10 to 12: spelling, a model's word, values that are too long to be shown."""

from __future__ import annotations

from attacked_handbooks import DOOR, ORIGINS
from attacks_on_evidence import archiving
from attacks_on_values import Given, State
from scripted_moves import ENTER, Copied, Desk, Move, call, say, start

from sopilot.values.json import JSON

SPELLED = """
handbook: spelled
actions:
  read_order: {input: {order: string}}
  release: {input: {code: string, order: string}, irreversible: true}
predicates:
  good(code):
    says: The code {code} is good.
    verify: arguments
    verdict: code in ['ok-1']
  large(order):
    says: Half of the order {order} is more than 2.
    verify: read_order(order)
    verdict: result.total / 2 > 2
procedures:
  release: {requires: {all: [good(code), not: large(order)]}}
"""
TOTALS = {"five": 5, "five and nothing": 5.0, "four": 4}


def _totals(name: str, given: Given, state: State) -> JSON:
    return {"total": TOTALS[given["order"]]} if name == "read_order" else {"done": True}


def _releases(order: str, code: str = "ok-1") -> tuple[Move, ...]:
    return (
        start("release", code=code, order=order),
        ENTER,
        say(True, about="good"),
        ENTER,
        call("read_order", order=order),
        say(False, "read_order", about="large"),
        call("release", code=code, order=order),
    )


WORD = """
handbook: word
actions:
  release: {input: {amount: number}, irreversible: true}
  lend: {input: {amount: number}, irreversible: true}
predicates:
  reasonable(amount):
    says: The amount {amount} is reasonable.
    verify: arguments
  sensible(amount):
    says: The amount {amount} is sensible.
    verify: arguments
    judged_by: model
procedures:
  release: {requires: reasonable(amount)}
  lend: {requires: sensible(amount)}
"""


def _nothing(name: str, given: Given, state: State) -> JSON:
    return {"done": True}


LENT = (start("lend", amount=5), ENTER, say(True), call("lend", amount=5))

# Longer than what any slot shows of a value, and alike as far as it is shown.
GOOD_ORDER = "order-" + "x" * 450 + "-good"
BAD_ORDER = "order-" + "x" * 450 + "-bad"


def _orders(name: str, given: Given, state: State) -> JSON:
    """What is cut is somebody the desk knows as well: a cut value would do harm."""
    return {"known": not str(given["guest"]).endswith("-bad")}


COPIES = (
    start("open_door", guest=GOOD_ORDER),
    ENTER,
    call("look_up", guest=Copied(otherwise=GOOD_ORDER)),
    say(True, "look_up"),
    call("open_door", guest=Copied(otherwise=GOOD_ORDER)),
)

LISTS = """
handbook: lists
actions:
  look_up: {input: {guests: array}}
  invite: {input: {guests: array}, irreversible: true}
predicates:
  known(guests):
    says: The guests {guests} are known.
    verify: look_up(guests)
    verdict: result.known
procedures:
  invite: {requires: known(guests)}
"""
GUESTS = ["guest-" + "x" * 220, "guest-" + "y" * 220]


def _invited(name: str, given: Given, state: State) -> JSON:
    return {"known": given["guests"] in (GUESTS, GUESTS[:1])}


INVITED = (
    start("invite", guests=GUESTS),
    ENTER,
    call("look_up", guests=GUESTS),
    say(True, "look_up"),
)

OPEN_CASE = "case-" + "x" * 450 + "-ann"
CLOSED_CASE = "case-" + "x" * 450 + "-bob"


def _cases(name: str, given: Given, state: State) -> JSON:
    if name == "find_case":
        return {"case_id": OPEN_CASE if given["user"] == "ann" else CLOSED_CASE}
    return {"status": "open" if given.get("case_id") == OPEN_CASE else "closed"}


FOUND_CASE = Desk(ORIGINS, _cases, archiving("bob", Copied(otherwise=CLOSED_CASE))).attacked(
    12,
    "a cut value of an earlier answer",
    archiving("ann", OPEN_CASE[:79] + "…"),
    "case_closed",
    "read_case",
)
_SPELLED = Desk(SPELLED, _totals, _releases("four"))
_WORD = Desk(WORD, _nothing, LENT)
_LONG = Desk(DOOR, _orders, COPIES)

ON_WORDS = (
    _SPELLED.attacked(
        10, "text with NUL", _releases("four", code="ok-1\0evil"), "release", by_proof=False
    ),
    *(
        _SPELLED.attacked(10, f"half of {order}", _releases(order), "large")
        for order in ("five", "five and nothing")
    ),
    _WORD.attacked(
        11,
        "a model's word where nobody said that it counts",
        (start("release", amount=5), ENTER, say(True), call("release", amount=5)),
        "reasonable",
        judged="sensible",
    ),
    _WORD.attacked(
        11,
        "a model's word about another amount",
        (*LENT[:-1], call("lend", amount=6)),
        "amount",
        by_proof=False,
        judged="sensible",
    ),
    _LONG.attacked(
        12,
        "a text that the executor cut itself",
        (*COPIES[:-1], call("open_door", guest=GOOD_ORDER[:79] + "…")),
        "guest",
        by_proof=False,
    ),
    _LONG.attacked(
        12,
        "a text that was copied from another frame",
        (
            start("open_door", guest=BAD_ORDER),
            ENTER,
            start("open_door", guest=GOOD_ORDER),
            ENTER,
            call("look_up", guest=Copied(1, otherwise=GOOD_ORDER)),
            say(True, "look_up"),
            call("open_door", guest=Copied(0, otherwise=BAD_ORDER)),
        ),
        "guest",
        by_proof=False,
    ),
    Desk(LISTS, _invited, (*INVITED, call("invite", guests=Copied(otherwise=GUESTS)))).attacked(
        12,
        "one guest of a list that is too long for a frame",
        (*INVITED, call("invite", guests=GUESTS[:1])),
        "guests",
        by_proof=False,
    ),
    FOUND_CASE,
)
