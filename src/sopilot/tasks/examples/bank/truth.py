"""What is true at the bank, read straight from the state.

Texts that need judgement are listed with the judgement of a person; a text
that is not listed has none, and asking for it is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.tasks.examples.ground_truth import Inputs, can_tell
from sopilot.tasks.examples.simulator import State

PURPOSE_IS_CONCRETE: Mapping[str, bool] = {
    "invoice 2217 of the boat yard for a new rudder": True,
    "my daughter's tuition for the spring term in Porto": True,
    "rent for the flat in Lyon, March": True,
    "a wedding gift for my cousin Leila": True,
    "private reasons": False,
    "just business, you know": False,
    "an investment a man on the telephone told me about": False,
}

STATEMENT_RULES_OUT_ACQUAINTANCES: Mapping[str, bool] = {
    "I have never heard of this shop. My card was in my wallet and nobody else has the number.": (
        True
    ),
    "Neither I nor anyone in my family bought this.": True,
    "My son sometimes borrows the card for games, it might have been him.": False,
    "I do not remember whether I ordered this after the party.": False,
}


logged_in = can_tell("password", "credentials", "username")
second_factor = can_tell("code", "credentials", "username")


def account_exists(state: State, inputs: Inputs, username: str) -> bool:
    return username in state["accounts"]


def frozen(state: State, inputs: Inputs, username: str) -> bool:
    return bool(state["accounts"].get(username, {}).get("status") == "frozen")


def funds_cover(state: State, inputs: Inputs, username: str, amount: int) -> bool:
    account = state["accounts"].get(username)
    return account is not None and bool(account["balance"] >= amount)


def overdraft_covers(state: State, inputs: Inputs, username: str, amount: int) -> bool:
    account = state["accounts"].get(username)
    return account is not None and bool(account["balance"] + account["overdraft_limit"] >= amount)


def within_limit(state: State, inputs: Inputs, amount: int, limit: int) -> bool:
    return 0 < amount <= limit


def same_account(state: State, inputs: Inputs, username: str, other: str) -> bool:
    return username == other


def address_confirmed(state: State, inputs: Inputs, username: str) -> bool:
    return bool(state["profiles"][username]["address_confirmed"])


def sanctioned(state: State, inputs: Inputs, name: str) -> bool:
    return name in state["sanctions"]


def purpose_plausible(state: State, inputs: Inputs, purpose: str) -> bool:
    return PURPOSE_IS_CONCRETE[purpose]


def payment_recent(
    state: State, inputs: Inputs, username: str, payment_id: str, window: int
) -> bool:
    payment = _payment(state, username, payment_id)
    return payment is not None and bool(payment["age_days"] <= window)


def disputed_before(state: State, inputs: Inputs, username: str, payment_id: str) -> bool:
    payment = _payment(state, username, payment_id)
    return payment is not None and bool(payment["disputed"])


def case_open(state: State, inputs: Inputs, username: str) -> bool:
    case = _case(state, username)
    return case is not None and bool(case["status"] == "open")


def case_documented(state: State, inputs: Inputs, username: str, documents: int) -> bool:
    case = _case(state, username)
    return case is not None and bool(case["documents"] >= documents)


def statement_credible(state: State, inputs: Inputs, username: str) -> bool:
    case = _case(state, username)
    return case is not None and STATEMENT_RULES_OUT_ACQUAINTANCES[case["statement"]]


def balance_empty(state: State, inputs: Inputs, username: str) -> bool:
    account = state["accounts"].get(username)
    return account is not None and bool(account["balance"] == 0)


def in_debt(state: State, inputs: Inputs, username: str) -> bool:
    return bool(state["profiles"][username]["debt"] > 0)


def good_score(state: State, inputs: Inputs, username: str, score: int) -> bool:
    return bool(state["profiles"][username]["score"] >= score)


def has_card(state: State, inputs: Inputs, username: str) -> bool:
    return bool(state["cards"][username])


def _payment(state: State, username: str, payment_id: str) -> State | None:
    result: State | None = state["payments"].get(payment_id)
    return result if result is not None and result["username"] == username else None


def _case(state: State, username: str) -> State | None:
    mine = [(name, case) for name, case in state["cases"].items() if case["username"] == username]
    return max(mine)[1] if mine else None
