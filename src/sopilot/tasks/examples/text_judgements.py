"""How a reader judges the texts of the bundled examples: by the tables of their ground truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sopilot.agent.reference.judging import CannotJudge, Seen, TextJudge
from sopilot.values.json import JSON

Readings = Mapping[str, TextJudge]
"""By predicate, for those without a verdict."""


def of_argument(table: Mapping[str, bool], name: str) -> TextJudge:
    """By what a person said of the argument's text."""
    return lambda arguments, evidence: looked_up(table, arguments[name])


def of_result(table: Mapping[str, bool], field: str) -> TextJudge:
    """By what a person said of a text in the answers."""
    return lambda arguments, evidence: looked_up(table, field_of(evidence, field))


def field_of(evidence: Sequence[Seen], field: str) -> JSON:
    for item in reversed(evidence):
        if isinstance(item.value, Mapping) and field in item.value:
            return item.value[field]
    raise CannotJudge(f"no result shows `{field}`")


def looked_up(table: Mapping[str, bool], text: JSON) -> bool:
    if not isinstance(text, str) or text not in table:
        raise CannotJudge("no judgement of this text is recorded")
    return table[text]
