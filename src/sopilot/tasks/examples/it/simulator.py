"""The IT desk's tools."""

from __future__ import annotations

from sopilot.protocols import ToolResult
from sopilot.tasks.examples.simulator import (
    State,
    answer,
    enter,
    find_filed,
    look_up,
    only_for,
    record,
    refuse,
)

_signed_in = only_for("signed_in", "employee", "this employee is not signed in")


def sign_in(state: State, employee: str, badge: str) -> ToolResult:
    entered = enter(state, "signed_in", "secrets", "employee", employee, badge=badge)
    return entered or refuse("the name or the badge number is wrong")


@_signed_in
def confirm_token(state: State, employee: str, token: str) -> ToolResult:
    entered = enter(state, "confirmed", "secrets", "employee", employee, token=token)
    return entered or refuse("the number on the token does not match")


def find_employee(state: State, employee: str) -> ToolResult:
    shown = ("active", "manager", "security_hold")
    return look_up(state["employees"], *shown, employee=employee)


@_signed_in
def read_training(state: State, employee: str) -> ToolResult:
    result = state["employees"][employee]
    return answer(employee=employee, courses=result["courses"], clearance=result["clearance"])


@_signed_in
def find_request(state: State, employee: str, group: str) -> ToolResult:
    return find_filed(state["requests"], "request_id", employee=employee, group=group)


def read_request(state: State, request_id: str) -> ToolResult:
    return record(state["requests"], "there is no such request", request_id=request_id)


def read_group(state: State, group: str) -> ToolResult:
    return look_up(state["groups"], group=group)


def read_device(state: State, device: str) -> ToolResult:
    return look_up(state["devices"], device=device)


def read_stock(state: State, kind: str) -> ToolResult:
    return answer(kind=kind, count=state["stock"].get(kind, 0))


def read_software(state: State, software: str) -> ToolResult:
    return look_up(state["software"], software=software)


def read_inventory(state: State) -> ToolResult:
    return answer(
        today=state["today"],
        devices=state["devices"],
        stock=state["stock"],
        software=state["software"],
        groups=state["groups"],
    )


def reset_password(state: State, employee: str, account: str) -> ToolResult:
    if account not in state["employees"]:
        return refuse("there is no such account")
    state["password_resets"].append({"day": state["today"], "account": account, "by": employee})
    return answer(account=account, message="a new password was sent to the account's telephone")


def grant_access(state: State, employee: str, group: str) -> ToolResult:
    if group not in state["groups"] or employee not in state["employees"]:
        return refuse("there is no such group or employee")
    members = state["groups"][group]["members"]
    if employee not in members:
        members.append(employee)
    return answer(employee=employee, group=group)


def install_software(state: State, employee: str, device: str, software: str) -> ToolResult:
    if device not in state["devices"] or software not in state["software"]:
        return refuse("there is no such device or product")
    state["devices"][device]["software"].append(software)
    state["software"][software]["licences_free"] -= 1
    return answer(device=device, software=software)


def wipe_device(state: State, employee: str, device: str, statement: str) -> ToolResult:
    if device not in state["devices"]:
        return refuse("there is no such device")
    state["devices"][device].update(status="wiped", software=[])
    state["wiped"].append({"day": state["today"], "device": device, "statement": statement})
    return answer(device=device, status="wiped")


def replace_device(state: State, employee: str, device: str, reason: str) -> ToolResult:
    result = state["devices"].get(device)
    if result is None:
        return refuse("there is no such device")
    if state["stock"].get(result["kind"], 0) < 1:
        return refuse("there is none left of this kind")
    replacement = f"N-{len(state['devices']) + 1:02d}"
    result.update(status="in repair", owner=None, fault=reason)
    state["stock"][result["kind"]] -= 1
    state["devices"][replacement] = {
        "owner": employee,
        "kind": result["kind"],
        "status": "in use",
        "days_since_backup": 0,
        "software": [],
    }
    return answer(returned=device, handed_out=replacement)


def hand_over_device(state: State, employee: str, device: str, to: str) -> ToolResult:
    if device not in state["devices"]:
        return refuse("there is no such device")
    state["devices"][device].update(owner=to, software=[], days_since_backup=0)
    return answer(device=device, owner=to)
