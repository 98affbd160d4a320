"""How a task is put into words."""

from __future__ import annotations

from typing import Any

from env.variables import domain_assistant_keys, domain_keys

_HEADS = {
    "and": "ALL of these conditions must be met:",
    "or": "ANY ONE of these conditions must be met:",
    "chain": "These steps must be completed in order:",
}


def get_default_dep_full(domain: str, option: str, expanded: bool = True) -> dict[str, Any]:
    return domain_assistant_keys[domain].requirements


def get_single_dep_verb(domain: str, leaf: list[Any], parameters: dict[str, Any]) -> str:
    text: str = domain_assistant_keys[domain].positive_constraint_descriptions[leaf[1]]
    return text.format_map({**parameters, **leaf[2]})


def _worded(domain: str, tree: Any, parameters: dict[str, Any]) -> list[str]:
    if not tree:
        return ["None"]
    if tree[0] == "single":
        return [get_single_dep_verb(domain, tree, parameters)]
    lines = [_HEADS[tree[0]]]
    for number, part in enumerate(tree[1], 1):
        first, *rest = _worded(domain, part, parameters)
        sign = f"{number}." if tree[0] == "chain" else "\u2022"
        lines += [f"{sign} {first}", *(f"  {line.strip()}" for line in rest)]
    return lines


def task_default_dep_full(
    domain: str, option: str, form: str, *, dependency_verb_dep_orig: bool
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    trees = get_default_dep_full(domain, option)
    values = domain_keys[f"{domain}_strict"]().evaluation_get_dependency_parameters()
    described = {
        name: "\n".join(_worded(domain, trees.get(name), values))
        for name in domain_assistant_keys[domain].action_descriptions
    }
    return {}, trees, described


def create_assistant(
    domain: str, shuffle: bool, mode: str, included: None, constraints: str | None = None
) -> dict[str, Any]:
    assistant = domain_assistant_keys[domain]
    tools = [{"type": "function", "function": each} for each in assistant.actions]
    text = assistant.instructions
    if constraints:
        text += f"\n\n\n{constraints}"
    return {"instructions": text, "tools": tools}


def task_initializer(
    domain: str,
    task: dict[str, Any],
    innate: Any,
    requires: Any,
    described: dict[str, str],
    *rest: Any,
) -> tuple[Any, ...]:
    user = {"instructions": f"You want this: {task['user_instruction']}"}
    own = _worded(domain, task["constraints_original"], task["constraint_parameters"])
    said = described | {task["user_goal"]: "\n".join(own)}
    last = [name for name in said if said[name] == "None" and name.startswith("internal_")]
    text = ["### Actions with Constraints:"]
    text += [f"* {name}:\n{said[name]}" for name in said if name not in last]
    text.append("### Internal Verification Functions:")
    text += [f"* {name}" for name in last if name != "internal_get_database"]
    return None, user, create_assistant(domain, False, "prompt", None, "\n\n".join(text)), None
