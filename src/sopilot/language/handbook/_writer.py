"""Handbook → YAML text, as a person would have written it."""

from __future__ import annotations

from sopilot.language.handbook._kinds import write_wording
from sopilot.language.handbook._model import Handbook
from sopilot.language.handbook._tables import action_to_yaml, predicate_to_yaml, procedure_to_yaml
from sopilot.language.handbook._yaml_text import Value, emit, flow, scalar


def write_handbook(handbook: Handbook) -> str:
    """Reading the text gives an equal handbook.

    That holds for every handbook the language can say: names are identifiers,
    ``any`` and ``first`` have options, no argument's name is also a handbook
    parameter's.
    """
    sections: dict[str, Value] = {"handbook": scalar(handbook.name)}
    if handbook.says:
        sections["says"] = write_wording(handbook.says)
    sections["parameters"] = {
        name: flow(one) if isinstance(one, list | dict) else scalar(one)
        for name, one in handbook.parameters.items()
    }
    sections["actions"] = {
        name: action_to_yaml(one, handbook) for name, one in handbook.actions.items()
    }
    sections["predicates"] = {
        signature(one.name, one.parameters): predicate_to_yaml(one, handbook)
        for one in handbook.predicates.values()
        if not one.made
    }
    sections["procedures"] = {
        name: procedure_to_yaml(one, handbook) for name, one in handbook.procedures.items()
    }
    lines: list[str] = []
    for key, value in sections.items():
        if value:
            emit(lines, key, value, 0)
    return "\n".join(lines) + "\n"


def signature(name: str, parameters: tuple[str, ...]) -> str:
    return f"{name}({', '.join(parameters)})"
