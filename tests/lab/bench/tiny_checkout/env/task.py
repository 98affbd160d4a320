"""How a task is put into words."""

from __future__ import annotations

from typing import Any

from env.variables import domain_assistant_keys


def get_default_dep_full(domain: str, option: str) -> dict[str, Any]:
    return domain_assistant_keys[domain].requirements


def get_single_dep_verb(domain: str, leaf: list[Any], parameters: dict[str, Any]) -> str:
    text: str = domain_assistant_keys[domain].positive_constraint_descriptions[leaf[1]]
    return text.format_map({**parameters, **leaf[2]})


def task_default_dep_full(
    domain: str, option: str, form: str, *, dependency_verb_dep_orig: bool
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    return {}, get_default_dep_full(domain, option), {}


def task_initializer(domain: str, task: dict[str, Any], *rest: Any) -> tuple[Any, ...]:
    assistant = domain_assistant_keys[domain]
    user = {"instructions": f"You want this: {task['user_instruction']}"}
    tools = [{"type": "function", "function": each} for each in assistant.actions]
    return None, user, {"instructions": assistant.instructions, "tools": tools}, None
