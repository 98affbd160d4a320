"""What is true at the bank, read straight from the state.

Texts that need judgement are listed with the judgement of a person; a text
that is not listed has none, and asking for it is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.tasks.examples.ground_truth import Inputs, can_tell, of_row
from sopilot.tasks.examples.simulator import State
from sopilot.tasks.examples.text_judgements import Readings, of_argument, of_result

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
account_exists = of_row("accounts", "username", lambda account: True)
frozen = of_row("accounts", "username", lambda account: account["status"] == "frozen")
funds_cover = of_row("accounts", "username", lambda account, amount: account["balance"] >= amount)
overdraft_covers = of_row(
    "accounts",
    "username",
    lambda account, amount: account["balance"] + account["overdraft_limit"] >= amount,
)
balance_empty = of_row("accounts", "username", lambda account: account["balance"] == 0)
address_confirmed = of_row("profiles", "username", lambda profile: profile["address_confirmed"])
in_debt = of_row("profiles", "username", lambda profile: profile["debt"] > 0)
good_score = of_row("profiles", "username", lambda profile, score: profile["score"] >= score)
has_card = of_row("cards", "username", lambda cards: cards)
payment_recent = of_row(
    "payments",
    "payment_id",
    lambda payment, username, window: (
        payment["username"] == username and payment["age_days"] <= window
    ),
)
disputed_before = of_row(
    "payments",
    "payment_id",
    lambda payment, username: payment["username"] == username and payment["disputed"],
)


def within_limit(state: State, inputs: Inputs, amount: int, limit: int) -> bool:
    return 0 < amount <= limit


def same_account(state: State, inputs: Inputs, username: str, other: str) -> bool:
    return username == other


def sanctioned(state: State, inputs: Inputs, name: str) -> bool:
    return name in state["sanctions"]


def purpose_plausible(state: State, inputs: Inputs, purpose: str) -> bool:
    return PURPOSE_IS_CONCRETE[purpose]


def case_open(state: State, inputs: Inputs, username: str) -> bool:
    case = _case(state, username)
    return case is not None and bool(case["status"] == "open")


def case_documented(state: State, inputs: Inputs, username: str, documents: int) -> bool:
    case = _case(state, username)
    return case is not None and bool(case["documents"] >= documents)


def statement_credible(state: State, inputs: Inputs, username: str) -> bool:
    case = _case(state, username)
    return case is not None and STATEMENT_RULES_OUT_ACQUAINTANCES[case["statement"]]


def _case(state: State, username: str) -> State | None:
    mine = [(name, case) for name, case in state["cases"].items() if case["username"] == username]
    return max(mine)[1] if mine else None


READINGS: Readings = {
    "purpose_plausible": of_argument(PURPOSE_IS_CONCRETE, "purpose"),
    "statement_credible": of_result(STATEMENT_RULES_OUT_ACQUAINTANCES, "statement"),
}
