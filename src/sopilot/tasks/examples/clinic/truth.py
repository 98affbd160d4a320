"""What is true at the clinic, read straight from the state.

Texts that need judgement are listed with the judgement of a person; a text
that is not listed has none, and asking for it is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sopilot.agent.reference.judging import CannotJudge, Seen
from sopilot.tasks.examples.ground_truth import Inputs, can_tell, of_filed, of_row
from sopilot.tasks.examples.simulator import State, first_with
from sopilot.tasks.examples.text_judgements import Readings, field_of, of_argument
from sopilot.values.json import JSON

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


_PRESCRIBED = ("prescriptions", ("patient_id", "medicine"))
_REFERRED = ("referrals", ("patient_id", "specialty"))

identified = can_tell("birth_date", "secrets", "patient_id")
phone_confirmed = can_tell("phone_code", "secrets", "patient_id")
registered = of_row("patients", "patient_id", lambda patient: True)
owes = of_row("patients", "patient_id", lambda patient, most: patient["balance_due"] > most)
slot_free = of_row("calendars", "calendar", lambda days, day, hour: hour in days.get(day, []))
insured = of_row(
    "insurance",
    "patient_id",
    lambda insurance, service: insurance["active"] and service in insurance["covers"],
)
own_appointment = of_row(
    "appointments",
    "appointment_id",
    lambda visit, patient_id: visit["patient_id"] == patient_id and visit["status"] == "booked",
)
moved_before = of_row("appointments", "appointment_id", lambda visit: visit["moves"] > 0)
prescribed = of_filed(*_PRESCRIBED, lambda paper: not paper["withdrawn"])
refills_left = of_filed(*_PRESCRIBED, lambda paper: paper["refills_left"] > 0)
due_for_refill = of_filed(*_PRESCRIBED, lambda paper, days: paper["days_since_fill"] >= days)
referred = of_filed(*_REFERRED, lambda paper: not paper["withdrawn"])
referral_in_date = of_filed(*_REFERRED, lambda paper: paper["days_left"] >= 0)
consent_on_file = of_row(
    "consents", "patient_id", lambda recipients, recipient: recipient in recipients
)
results_reviewed = of_row(
    "results", "patient_id", lambda results, test: results.get(test, {}).get("reviewed")
)


def in_notice_time(state: State, inputs: Inputs, appointment_id: str, hours: int) -> bool:
    result = state["appointments"].get(appointment_id)
    if result is None:
        return False
    start = datetime.fromisoformat(result["day"]) + timedelta(hours=result["hour"])
    now = datetime.fromisoformat(state["today"]) + timedelta(hours=state["hour_now"])
    return start - now >= timedelta(hours=hours)


def excuse_accepted(state: State, inputs: Inputs, reason: str) -> bool:
    return REASON_IS_EMERGENCY[reason]


def allergic(state: State, inputs: Inputs, patient_id: str, medicine: str) -> bool:
    allergies = state["charts"][patient_id]["allergies"]
    return medicine in allergies or FAMILY_OF[medicine] in allergies


def same_person(state: State, inputs: Inputs, patient_id: str, recipient: str) -> bool:
    return patient_id == recipient


def letter_fits(state: State, inputs: Inputs, patient_id: str, specialty: str) -> bool:
    known = first_with(state["referrals"], patient_id=patient_id, specialty=specialty)
    return known is not None and LETTER_FITS[specialty, known[1]["letter"]]


def _read_letter(arguments: Mapping[str, JSON], evidence: Sequence[Seen]) -> bool:
    letter = str(arguments["specialty"]), str(field_of(evidence, "letter"))
    if letter not in LETTER_FITS:
        raise CannotJudge("no judgement of this letter is recorded")
    return LETTER_FITS[letter]


def _read_allergies(arguments: Mapping[str, JSON], evidence: Sequence[Seen]) -> bool:
    medicine = str(arguments["medicine"])
    known = field_of(evidence, "allergies")
    noted = " ".join(str(item) for item in known) if isinstance(known, Sequence) else str(known)
    return medicine in noted or FAMILY_OF[medicine] in noted


READINGS: Readings = {
    "excuse_accepted": of_argument(REASON_IS_EMERGENCY, "reason"),
    "letter_fits": _read_letter,
    "allergic": _read_allergies,
}
