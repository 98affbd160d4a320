"""The bank's tools."""

from __future__ import annotations

from sopilot.protocols import ToolResult
from sopilot.tasks.examples.simulator import (
    State,
    answer,
    enters,
    looks_up,
    only_for,
    reads,
    reads_all,
    refuse,
)

_logged_in = only_for("logged_in", "username", "this customer is not logged in")


login = enters(
    "logged_in", "credentials", "username", "password", "the username or the password is wrong"
)
confirm_code = _logged_in(
    enters("confirmed", "credentials", "username", "code", "the code is wrong")
)
find_account = looks_up("accounts", "username", "status")
read_balance = _logged_in(
    reads("accounts", "username", "there is no such account", "balance", "overdraft_limit")
)
read_profile = _logged_in(reads("profiles", "username", "there is no such customer"))
read_case = reads("cases", "case_id", "there is no such case")
read_ledger = reads_all("today", "accounts")


@_logged_in
def list_cards(state: State, username: str) -> ToolResult:
    return answer(username=username, cards=state["cards"][username])


@_logged_in
def find_payment(state: State, username: str, payment_id: str) -> ToolResult:
    payment = state["payments"].get(payment_id)
    if payment is None or payment["username"] != username:
        return answer(found=False, payment_id=payment_id)
    return answer(found=True, payment_id=payment_id, **payment)


@_logged_in
def find_case(state: State, username: str) -> ToolResult:
    case_id = _latest_case(state, username)
    if case_id is None:
        return answer(found=False, username=username)
    status = state["cases"][case_id]["status"]
    return answer(found=True, username=username, case_id=case_id, status=status)


def screen_name(state: State, name: str) -> ToolResult:
    return answer(name=name, listed=name in state["sanctions"])


def transfer(state: State, username: str, to: str, amount: int) -> ToolResult:
    accounts = state["accounts"]
    if username not in accounts or to not in accounts:
        return refuse("one of the accounts does not exist")
    if amount <= 0:
        return refuse("the amount must be positive")
    accounts[username]["balance"] -= amount
    accounts[to]["balance"] += amount
    state["transfers"].append({"day": state["today"], "from": username, "to": to, "amount": amount})
    return answer(moved=amount, to=to)


def wire_abroad(
    state: State, username: str, beneficiary: str, amount: int, purpose: str
) -> ToolResult:
    if username not in state["accounts"]:
        return refuse("there is no such account")
    if amount <= 0:
        return refuse("the amount must be positive")
    state["accounts"][username]["balance"] -= amount
    state["wires"].append(
        {
            "day": state["today"],
            "from": username,
            "beneficiary": beneficiary,
            "amount": amount,
            "purpose": purpose,
        }
    )
    return answer(sent=amount, beneficiary=beneficiary)


def dispute_payment(state: State, username: str, payment_id: str) -> ToolResult:
    payment = state["payments"].get(payment_id)
    if payment is None or payment["username"] != username:
        return refuse("this customer made no such payment")
    case_id = f"C-{301 + len(state['cases'])}"
    payment["disputed"] = True
    state["cases"][case_id] = {
        "username": username,
        "payment_id": payment_id,
        "amount": payment["amount"],
        "status": "open",
        "documents": 0,
        "statement": "",
    }
    return answer(case_id=case_id, status="open")


def refund_dispute(state: State, username: str, amount: int) -> ToolResult:
    case_id = _latest_case(state, username)
    if case_id is None:
        return refuse("this customer has no dispute case")
    if amount <= 0:
        return refuse("the amount must be positive")
    state["cases"][case_id]["status"] = "settled"
    state["accounts"][username]["balance"] += amount
    return answer(settled_case=case_id, refunded=amount)


def close_account(state: State, username: str, payout_to: str) -> ToolResult:
    account = state["accounts"].get(username)
    if account is None or account["status"] == "closed":
        return refuse("there is no such account, or it is already closed")
    left = account["balance"]
    if left > 0:
        if payout_to not in state["accounts"] or payout_to == username:
            return refuse("name another account for the remaining balance")
        state["accounts"][payout_to]["balance"] += left
    account.update(balance=0, overdraft_limit=0, status="closed")
    return answer(closed=username, paid_out=left)


def raise_overdraft(state: State, username: str, limit: int) -> ToolResult:
    if username not in state["accounts"]:
        return refuse("there is no such account")
    state["accounts"][username]["overdraft_limit"] = limit
    return answer(username=username, overdraft_limit=limit)


def issue_card(state: State, username: str) -> ToolResult:
    if username not in state["cards"]:
        return refuse("there is no such customer")
    card_id = f"K-{50 + sum(len(cards) for cards in state['cards'].values())}"
    state["cards"][username].append(card_id)
    return answer(username=username, card_id=card_id)


def _latest_case(state: State, username: str) -> str | None:
    mine = [name for name, case in state["cases"].items() if case["username"] == username]
    return max(mine) if mine else None
