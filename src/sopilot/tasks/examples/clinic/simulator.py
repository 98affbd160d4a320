"""The clinic's tools."""

from __future__ import annotations

from datetime import date

from sopilot.protocols import ToolResult
from sopilot.tasks.examples.simulator import (
    State,
    answer,
    enters,
    finds,
    first_with,
    looks_up,
    only_for,
    reads,
    reads_all,
    refuse,
)

_identified = only_for("identified", "patient_id", "this patient has not been identified")


identify_patient = enters(
    "identified", "secrets", "patient_id", "birth_date",
    "the patient's number or the date of birth is wrong",
)  # fmt: skip
confirm_phone = _identified(
    enters("confirmed", "secrets", "patient_id", "phone_code", "the code is wrong")
)
find_patient = looks_up("patients", "patient_id", "balance_due")
find_prescription = _identified(finds("prescriptions", "prescription_id"))
read_prescription = reads("prescriptions", "prescription_id", "there is no such prescription")
find_referral = _identified(finds("referrals", "referral_id"))
read_referral = reads("referrals", "referral_id", "there is no such referral")
read_chart = _identified(reads("charts", "patient_id", "there is no such patient"))
read_day_sheet = reads_all("today", "patients", "appointments", "calendars")


def read_slots(state: State, calendar: str, day: str) -> ToolResult:
    free = state["calendars"].get(calendar, {}).get(day, [])
    return answer(calendar=calendar, day=day, free_hours=free)


def check_insurance(state: State, patient_id: str) -> ToolResult:
    insurance = state["insurance"].get(patient_id)
    if insurance is None:
        return answer(patient_id=patient_id, active=False, covers=[])
    return answer(patient_id=patient_id, **insurance)


def read_appointment(state: State, appointment_id: str) -> ToolResult:
    appointment = state["appointments"].get(appointment_id)
    if appointment is None:
        return answer(found=False, appointment_id=appointment_id)
    hours_ahead = _hours_ahead(state, appointment["day"], appointment["hour"])
    return answer(found=True, appointment_id=appointment_id, hours_ahead=hours_ahead, **appointment)


@_identified
def read_consents(state: State, patient_id: str) -> ToolResult:
    return answer(patient_id=patient_id, recipients=state["consents"][patient_id])


@_identified
def read_results(state: State, patient_id: str, test: str) -> ToolResult:
    results = state["results"].get(patient_id, {}).get(test)
    if results is None:
        return answer(found=False, patient_id=patient_id, test=test)
    return answer(found=True, patient_id=patient_id, test=test, reviewed=results["reviewed"])


def book_visit(state: State, patient_id: str, clinician: str, day: str, hour: int) -> ToolResult:
    if clinician not in state["calendars"] or not _is_day(day):
        return refuse("there is no such clinician or day")
    appointment_id = _book(state, patient_id, clinician, day, hour)
    return answer(appointment_id=appointment_id, clinician=clinician, day=day, hour=hour)


def cancel_visit(state: State, patient_id: str, appointment_id: str, reason: str) -> ToolResult:
    appointment = state["appointments"].get(appointment_id)
    if appointment is None:
        return refuse("there is no such appointment")
    _free(state, appointment["clinician"], appointment["day"], appointment["hour"])
    appointment["status"] = "cancelled"
    appointment["reason"] = reason
    return answer(appointment_id=appointment_id, status="cancelled")


def reschedule_visit(
    state: State, patient_id: str, appointment_id: str, clinician: str, day: str, hour: int
) -> ToolResult:
    appointment = state["appointments"].get(appointment_id)
    if appointment is None or clinician not in state["calendars"] or not _is_day(day):
        return refuse("there is no such appointment, clinician or day")
    _free(state, appointment["clinician"], appointment["day"], appointment["hour"])
    _take(state, clinician, day, hour)
    appointment.update(clinician=clinician, day=day, hour=hour, moves=appointment["moves"] + 1)
    return answer(appointment_id=appointment_id, clinician=clinician, day=day, hour=hour)


def refill_prescription(state: State, patient_id: str, medicine: str) -> ToolResult:
    known = first_with(state["prescriptions"], patient_id=patient_id, medicine=medicine)
    if known is None:
        return refuse("there is nothing to hand out without a prescription")
    name, entry = known
    entry["refills_left"] -= 1
    entry["days_since_fill"] = 0
    state["handed_out"].append({"day": state["today"], "prescription": name})
    return answer(handed_out=medicine, refills_left=entry["refills_left"])


def release_results(state: State, patient_id: str, test: str, recipient: str) -> ToolResult:
    if test not in state["results"].get(patient_id, {}):
        return refuse("there are no such results")
    state["releases"].append(
        {"day": state["today"], "patient_id": patient_id, "test": test, "recipient": recipient}
    )
    return answer(sent_to=recipient, test=test)


def book_specialist(
    state: State, patient_id: str, specialty: str, day: str, hour: int
) -> ToolResult:
    if specialty not in state["calendars"] or not _is_day(day):
        return refuse("there is no such specialty or day")
    appointment_id = _book(state, patient_id, specialty, day, hour)
    return answer(appointment_id=appointment_id, specialty=specialty, day=day, hour=hour)


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _hours_ahead(state: State, day: str, hour: int) -> int:
    days = (date.fromisoformat(day) - date.fromisoformat(state["today"])).days
    return int(days * 24 + hour - state["hour_now"])


def _book(state: State, patient_id: str, calendar: str, day: str, hour: int) -> str:
    _take(state, calendar, day, hour)
    appointment_id = f"A-{70 + len(state['appointments'])}"
    state["appointments"][appointment_id] = {
        "patient_id": patient_id,
        "clinician": calendar,
        "day": day,
        "hour": hour,
        "status": "booked",
        "moves": 0,
    }
    return appointment_id


def _take(state: State, calendar: str, day: str, hour: int) -> None:
    free = state["calendars"][calendar].setdefault(day, [])
    if hour in free:
        free.remove(hour)


def _free(state: State, calendar: str, day: str, hour: int) -> None:
    free = state["calendars"][calendar].setdefault(day, [])
    if hour not in free:
        free.append(hour)
        free.sort()
