"""What is true at the clinic, read straight from the state.

Texts that need judgement are listed with the judgement of a person; a text
that is not listed has none, and asking for it is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sopilot.tasks.examples.ground_truth import Inputs, can_tell, row_with
from sopilot.tasks.examples.simulator import State

FAMILY_OF: Mapping[str, str] = {
    "amoxicillin": "penicillins",
    "cetirizine": "antihistamines",
    "ibuprofen": "anti-inflammatories",
    "metoprolol": "beta blockers",
    "salbutamol": "beta agonists",
}

REASON_IS_EMERGENCY: Mapping[str, bool] = {
    "my father died last night": True,
    "I have a fever of 39 degrees since this morning": True,
    "all trains are cancelled because of the storm": True,
    "I am travelling that week": False,
    "a meeting at work came up": False,
    "I simply do not feel like it today": False,
}

LETTER_FITS: Mapping[tuple[str, str], bool] = {
    ("cardiology", "Palpitations at rest for two weeks, ECG advised."): True,
    ("cardiology", "Itching rash on both forearms since April."): False,
    ("dermatology", "Changing mole on the left shoulder, please assess."): True,
    ("dermatology", "Itching rash on both forearms since April."): True,
    ("dermatology", "Shortness of breath when climbing stairs."): False,
}


identified = can_tell("birth_date", "secrets", "patient_id")
phone_confirmed = can_tell("phone_code", "secrets", "patient_id")


def registered(state: State, inputs: Inputs, patient_id: str) -> bool:
    return patient_id in state["patients"]


def slot_free(state: State, inputs: Inputs, calendar: str, day: str, hour: int) -> bool:
    return hour in state["calendars"].get(calendar, {}).get(day, [])


def insured(state: State, inputs: Inputs, patient_id: str, service: str) -> bool:
    insurance = state["insurance"].get(patient_id)
    covers: list[str] = insurance["covers"] if insurance and insurance["active"] else []
    return service in covers


def owes(state: State, inputs: Inputs, patient_id: str, most: int) -> bool:
    return bool(state["patients"].get(patient_id, {}).get("balance_due", 0) > most)


def own_appointment(state: State, inputs: Inputs, patient_id: str, appointment_id: str) -> bool:
    result = state["appointments"].get(appointment_id, {})
    return bool(result.get("patient_id") == patient_id and result["status"] == "booked")


def in_notice_time(state: State, inputs: Inputs, appointment_id: str, hours: int) -> bool:
    result = state["appointments"].get(appointment_id)
    if result is None:
        return False
    start = datetime.fromisoformat(result["day"]) + timedelta(hours=result["hour"])
    now = datetime.fromisoformat(state["today"]) + timedelta(hours=state["hour_now"])
    return start - now >= timedelta(hours=hours)


def excuse_accepted(state: State, inputs: Inputs, reason: str) -> bool:
    return REASON_IS_EMERGENCY[reason]


def moved_before(state: State, inputs: Inputs, appointment_id: str) -> bool:
    return bool(state["appointments"].get(appointment_id, {}).get("moves", 0) > 0)


def prescribed(state: State, inputs: Inputs, patient_id: str, medicine: str) -> bool:
    prescription = _prescription(state, patient_id, medicine)
    return prescription is not None and not prescription["withdrawn"]


def refills_left(state: State, inputs: Inputs, patient_id: str, medicine: str) -> bool:
    prescription = _prescription(state, patient_id, medicine)
    return prescription is not None and bool(prescription["refills_left"] > 0)


def due_for_refill(state: State, inputs: Inputs, patient_id: str, medicine: str, days: int) -> bool:
    prescription = _prescription(state, patient_id, medicine)
    return prescription is not None and bool(prescription["days_since_fill"] >= days)


def allergic(state: State, inputs: Inputs, patient_id: str, medicine: str) -> bool:
    allergies = state["charts"][patient_id]["allergies"]
    return medicine in allergies or FAMILY_OF[medicine] in allergies


def results_reviewed(state: State, inputs: Inputs, patient_id: str, test: str) -> bool:
    result = state["results"].get(patient_id, {}).get(test)
    return result is not None and bool(result["reviewed"])


def same_person(state: State, inputs: Inputs, patient_id: str, recipient: str) -> bool:
    return patient_id == recipient


def consent_on_file(state: State, inputs: Inputs, patient_id: str, recipient: str) -> bool:
    return recipient in state["consents"].get(patient_id, [])


def referred(state: State, inputs: Inputs, patient_id: str, specialty: str) -> bool:
    referral = _referral(state, patient_id, specialty)
    return referral is not None and not referral["withdrawn"]


def referral_in_date(state: State, inputs: Inputs, patient_id: str, specialty: str) -> bool:
    referral = _referral(state, patient_id, specialty)
    return referral is not None and bool(referral["days_left"] >= 0)


def letter_fits(state: State, inputs: Inputs, patient_id: str, specialty: str) -> bool:
    referral = _referral(state, patient_id, specialty)
    return referral is not None and LETTER_FITS[specialty, referral["letter"]]


def _prescription(state: State, patient_id: str, medicine: str) -> State | None:
    return row_with(state["prescriptions"], patient_id=patient_id, medicine=medicine)


def _referral(state: State, patient_id: str, specialty: str) -> State | None:
    return row_with(state["referrals"], patient_id=patient_id, specialty=specialty)
