"""What is true at the IT desk, read straight from the state.

Texts that need judgement are listed with the judgement of a person; a text
that is not listed has none, and asking for it is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.tasks.examples.ground_truth import Inputs, can_tell, of_filed, of_row
from sopilot.tasks.examples.simulator import State
from sopilot.tasks.examples.text_judgements import Readings, of_argument, of_result

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


_FILED = ("requests", ("employee", "group"))

signed_in = can_tell("badge", "secrets", "employee")
token_confirmed = can_tell("token", "secrets", "employee")
employed = of_row("employees", "employee", lambda person: person["active"])
manages = of_row("employees", "account", lambda person, employee: person["manager"] == employee)
security_hold = of_row("employees", "account", lambda person: person["security_hold"])
trained = of_row("employees", "employee", lambda person, course: course in person["courses"])
cleared = of_row("employees", "employee", lambda person, level: person["clearance"] >= level)
request_filed = of_filed(*_FILED, lambda request: not request["withdrawn"])
request_approved = of_filed(*_FILED, lambda request: request["decision"] == "approved")
justified = of_filed(*_FILED, lambda request: JUSTIFICATION_NAMES_A_TASK[request["justification"]])
member_of = of_row("groups", "group", lambda group, employee: employee in group["members"])
sensitive = of_row("groups", "group", lambda group: group["sensitive"])
device_owned = of_row("devices", "device", lambda device, employee: device["owner"] == employee)
reported_lost = of_row("devices", "device", lambda device: device["status"] == "lost")
backed_up = of_row("devices", "device", lambda device, days: device["days_since_backup"] <= days)
licence_free = of_row("software", "software", lambda product: product["licences_free"] > 0)


def same_person(state: State, inputs: Inputs, employee: str, account: str) -> bool:
    return employee == account


def loss_accepted(state: State, inputs: Inputs, statement: str) -> bool:
    return STATEMENT_ACCEPTS_THE_LOSS[statement]


def damage_described(state: State, inputs: Inputs, reason: str) -> bool:
    return REASON_NAMES_A_FAULT[reason]


def in_stock(state: State, inputs: Inputs, device: str) -> bool:
    known = state["devices"].get(device)
    return known is not None and bool(state["stock"].get(known["kind"], 0) > 0)


READINGS: Readings = {
    "justified": of_result(JUSTIFICATION_NAMES_A_TASK, "justification"),
    "loss_accepted": of_argument(STATEMENT_ACCEPTS_THE_LOSS, "statement"),
    "damage_described": of_argument(REASON_NAMES_A_FAULT, "reason"),
}
