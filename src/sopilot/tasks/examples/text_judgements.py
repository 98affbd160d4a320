"""How a reader judges the texts of the bundled examples: by the tables of their ground truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sopilot.agent.reference.judging import CannotJudge, Seen, TextJudge, VerdictJudge
from sopilot.tasks.examples.bank.truth import PURPOSE_IS_CONCRETE, STATEMENT_RULES_OUT_ACQUAINTANCES
from sopilot.tasks.examples.clinic.truth import FAMILY_OF, LETTER_FITS, REASON_IS_EMERGENCY
from sopilot.tasks.examples.example import Example
from sopilot.tasks.examples.it.truth import (
    JUSTIFICATION_NAMES_A_TASK,
    REASON_NAMES_A_FAULT,
    STATEMENT_ACCEPTS_THE_LOSS,
)
from sopilot.values.json import JSON


def example_judge(example: Example) -> VerdictJudge:
    """Verdicts where the handbook has them; else the judgement of a person who read the text."""
    return VerdictJudge(example.handbook, BY_READING.get(example.name, {}))


def _argument(table: Mapping[str, bool], name: str) -> TextJudge:
    return lambda arguments, evidence: _looked_up(table, arguments[name])


def _result(table: Mapping[str, bool], field: str) -> TextJudge:
    return lambda arguments, evidence: _looked_up(table, _field(evidence, field))


def _letter_fits(arguments: Mapping[str, JSON], evidence: Sequence[Seen]) -> bool:
    letter = str(arguments["specialty"]), str(_field(evidence, "letter"))
    if letter not in LETTER_FITS:
        raise CannotJudge("no judgement of this letter is recorded")
    return LETTER_FITS[letter]


def _allergic(arguments: Mapping[str, JSON], evidence: Sequence[Seen]) -> bool:
    medicine = str(arguments["medicine"])
    known = _field(evidence, "allergies")
    noted = " ".join(str(item) for item in known) if isinstance(known, Sequence) else str(known)
    return medicine in noted or FAMILY_OF[medicine] in noted


def _field(evidence: Sequence[Seen], field: str) -> JSON:
    for item in reversed(evidence):
        if isinstance(item.value, Mapping) and field in item.value:
            return item.value[field]
    raise CannotJudge(f"no result shows `{field}`")


def _looked_up(table: Mapping[str, bool], text: JSON) -> bool:
    if not isinstance(text, str) or text not in table:
        raise CannotJudge("no judgement of this text is recorded")
    return table[text]


BY_READING: Mapping[str, Mapping[str, TextJudge]] = {
    "bank": {
        "purpose_plausible": _argument(PURPOSE_IS_CONCRETE, "purpose"),
        "statement_credible": _result(STATEMENT_RULES_OUT_ACQUAINTANCES, "statement"),
    },
    "clinic": {
        "excuse_accepted": _argument(REASON_IS_EMERGENCY, "reason"),
        "letter_fits": _letter_fits,
        "allergic": _allergic,
    },
    "it": {
        "justified": _result(JUSTIFICATION_NAMES_A_TASK, "justification"),
        "loss_accepted": _argument(STATEMENT_ACCEPTS_THE_LOSS, "statement"),
        "damage_described": _argument(REASON_NAMES_A_FAULT, "reason"),
    },
}
