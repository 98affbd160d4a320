"""What is true at the IT desk, read straight from the state.

Texts that need judgement are listed with the judgement of a person; a text
that is not listed has none, and asking for it is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.tasks.examples.ground_truth import Inputs, can_tell, row_with
from sopilot.tasks.examples.simulator import State

JUSTIFICATION_NAMES_A_TASK: Mapping[str, bool] = {
    "I prepare the quarterly sales deck and need last year's figures.": True,
    "I take over the monthly salary run from October on.": True,
    "I check the bonus payments of my team for the audit.": True,
    "I archive the drawings of finished projects.": True,
    "I am curious what the others sell.": False,
    "Everybody else has it too.": False,
}

STATEMENT_ACCEPTS_THE_LOSS: Mapping[str, bool] = {
    "I know that whatever was not backed up is gone, go ahead.": True,
    "Erase it, I can live without the files of the last month.": True,
    "Erase it, but I must get my photographs back.": False,
    "I am not sure what is on it.": False,
}

REASON_NAMES_A_FAULT: Mapping[str, bool] = {
    "the screen stays black since it fell off the table": True,
    "the battery swells and it no longer switches on": True,
    "the microphone is dead, I cannot make calls": True,
    "I would like a newer model": False,
    "the colour does not suit me": False,
}


signed_in = can_tell("badge", "secrets", "employee")
token_confirmed = can_tell("token", "secrets", "employee")


def employed(state: State, inputs: Inputs, employee: str) -> bool:
    return bool(state["employees"].get(employee, {}).get("active", False))


def same_person(state: State, inputs: Inputs, employee: str, account: str) -> bool:
    return employee == account


def manages(state: State, inputs: Inputs, employee: str, account: str) -> bool:
    return bool(state["employees"].get(account, {}).get("manager") == employee)


def security_hold(state: State, inputs: Inputs, account: str) -> bool:
    return bool(state["employees"].get(account, {}).get("security_hold", False))


def request_filed(state: State, inputs: Inputs, employee: str, group: str) -> bool:
    request = _request(state, employee, group)
    return request is not None and not request["withdrawn"]


def request_approved(state: State, inputs: Inputs, employee: str, group: str) -> bool:
    request = _request(state, employee, group)
    return request is not None and bool(request["decision"] == "approved")


def justified(state: State, inputs: Inputs, employee: str, group: str) -> bool:
    request = _request(state, employee, group)
    return request is not None and JUSTIFICATION_NAMES_A_TASK[request["justification"]]


def trained(state: State, inputs: Inputs, employee: str, course: str) -> bool:
    return course in state["employees"].get(employee, {}).get("courses", [])


def member_of(state: State, inputs: Inputs, employee: str, group: str) -> bool:
    return employee in state["groups"].get(group, {}).get("members", [])


def sensitive(state: State, inputs: Inputs, group: str) -> bool:
    return bool(state["groups"].get(group, {}).get("sensitive", False))


def cleared(state: State, inputs: Inputs, employee: str, level: int) -> bool:
    return bool(state["employees"].get(employee, {}).get("clearance", 0) >= level)


def device_owned(state: State, inputs: Inputs, employee: str, device: str) -> bool:
    return bool(state["devices"].get(device, {}).get("owner") == employee)


def licence_free(state: State, inputs: Inputs, software: str) -> bool:
    return bool(state["software"].get(software, {}).get("licences_free", 0) > 0)


def reported_lost(state: State, inputs: Inputs, device: str) -> bool:
    return bool(state["devices"].get(device, {}).get("status") == "lost")


def backed_up(state: State, inputs: Inputs, device: str, days: int) -> bool:
    result = state["devices"].get(device)
    return result is not None and bool(result["days_since_backup"] <= days)


def loss_accepted(state: State, inputs: Inputs, statement: str) -> bool:
    return STATEMENT_ACCEPTS_THE_LOSS[statement]


def damage_described(state: State, inputs: Inputs, reason: str) -> bool:
    return REASON_NAMES_A_FAULT[reason]


def in_stock(state: State, inputs: Inputs, device: str) -> bool:
    result = state["devices"].get(device)
    return result is not None and bool(state["stock"].get(result["kind"], 0) > 0)


def _request(state: State, employee: str, group: str) -> State | None:
    return row_with(state["requests"], employee=employee, group=group)
