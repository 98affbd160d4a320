"""The IT desk's tools."""

from __future__ import annotations

from sopilot.protocols import ToolResult
from sopilot.tasks.examples.simulator import (
    State,
    answer,
    enters,
    finds,
    looks_up,
    only_for,
    reads,
    reads_all,
    refuse,
)

_signed_in = only_for("signed_in", "employee", "this employee is not signed in")


sign_in = enters(
    "signed_in", "secrets", "employee", "badge", "the name or the badge number is wrong"
)
confirm_token = _signed_in(
    enters("confirmed", "secrets", "employee", "token", "the number on the token does not match")
)
find_employee = looks_up("employees", "employee", "active", "manager", "security_hold")
find_request = _signed_in(finds("requests", "request_id"))
read_request = reads("requests", "request_id", "there is no such request")
read_group = looks_up("groups", "group")
read_device = looks_up("devices", "device")
read_software = looks_up("software", "software")
read_training = _signed_in(
    reads("employees", "employee", "there is no such employee", "courses", "clearance")
)
read_inventory = reads_all("today", "devices", "stock", "software", "groups")


def read_stock(state: State, kind: str) -> ToolResult:
    return answer(kind=kind, count=state["stock"].get(kind, 0))


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
