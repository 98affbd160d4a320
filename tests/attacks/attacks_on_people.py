"""Class 15: somebody else is identified in between, by another way."""

from __future__ import annotations

from attacks_on_values import Given, State
from scripted_moves import ENTER, Case, Desk, call, say, start

from sopilot.values.json import JSON

SAME_PARAMETER = """
handbook: orders
actions:
  by_mail: {input: {email: string}, changes: []}
  by_phone: {input: {number: string}, changes: []}
  cancel: {input: {customer: string}, irreversible: true}
predicates:
  mailed(customer):
    says: The customer {customer} was found by mail.
    established_by: by_mail(email)
    verdict: result.customer == customer
    principal: true
  phoned(customer):
    says: The customer {customer} was found by telephone.
    established_by: by_phone(number)
    verdict: result.customer == customer
    principal: true
procedures:
  cancel: {requires: mailed(customer)}
"""
OTHER_PARAMETER = SAME_PARAMETER.replace(
    """phoned(customer):
    says: The customer {customer} was found by telephone.
    established_by: by_phone(number)
    verdict: result.customer == customer
""",
    """phoned(number):
    says: Somebody with the number {number} is on the line.
    established_by: by_phone(number)
""",
)
_CUSTOMERS = {"a@x": "anna", "b@x": "bob", "11": "anna", "22": "bob"}


def _found(name: str, given: Given, state: State) -> JSON:
    if name == "cancel":
        return {"done": True}
    (key,) = given.values()
    return {"customer": _CUSTOMERS[str(key)]}


_ANNA = (
    start("cancel", customer="anna"),
    call("by_mail", email="a@x"),
    ENTER,
    say(True, "by_mail"),
)
_ACT = call("cancel", customer="anna")


_BOB = call("by_phone", number="22")
_HONEST = (*_ANNA, _BOB, call("by_mail", email="a@x"), _ACT)

ON_PEOPLE: tuple[Case, ...] = tuple(
    Desk(handbook, _found, _HONEST).attacked(
        15, f"somebody else by {way}", (*_ANNA, _BOB, _ACT), "`mailed` must be true"
    )
    for way, handbook in {"telephone": SAME_PARAMETER, "a number": OTHER_PARAMETER}.items()
)
