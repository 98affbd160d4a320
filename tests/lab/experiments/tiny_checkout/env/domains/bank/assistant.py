"""What the shed's agent is told."""

from __future__ import annotations

from typing import Any, ClassVar

from env.domains.bank.shed import Shed


def _schema(name: str, *inputs: str) -> dict[str, Any]:
    properties = {each: {"type": "string", "description": f"The {each}."} for each in inputs}
    parameters = {"type": "object", "properties": properties, "required": list(inputs)}
    return {"name": name, "parameters": parameters}


class Assistant:
    name = "Shed"
    instructions = "You lend the tools of a shed to its members, and take them back in the evening."
    system = Shed
    actions = (
        _schema("login_user", "username", "identification"),
        _schema("find_tool", "tool"),
        _schema("read_fees", "username"),
        _schema("internal_get_database"),
        _schema("lend_tool", "username", "tool"),
    )
    # `take_back` is described and not offered: nobody can carry it out.
    action_descriptions: ClassVar[dict[str, Any]] = {
        "login_user": "Lets a member in.",
        "find_tool": "Looks a tool up.",
        "read_fees": "Reads what a member owes.",
        "internal_get_database": "Reads everything.",
        "lend_tool": "Lends a tool to a member.",
        "take_back": "Takes a tool back.",
    }
    action_returns = dict.fromkeys(action_descriptions, "Tells whether it worked.")
    action_innate_dependencies: ClassVar[dict[str, Any]] = {}
    constraint_links: ClassVar[dict[str, Any]] = {
        "logged_in_user": ("login_user", {"username": "username"})
    }
    constraint_processes: ClassVar[dict[str, Any]] = {
        "tool_is_here": [
            "or",
            [
                ["single", "find_tool", {"tool": "tool"}],
                ["single", "internal_get_database", {}],
            ],
        ],
        "fees_are_low": [
            "or",
            [
                ["single", "read_fees", {"username": "username"}],
                ["single", "internal_get_database", {}],
            ],
        ],
    }
    positive_constraint_descriptions: ClassVar[dict[str, Any]] = {
        "logged_in_user": "The member {username} has said the word at the door.",
        "tool_is_here": "The tool {tool} hangs in the shed.",
        "fees_are_low": "The member {username} owes at most {most_owed}.",
    }
    negative_constraint_descriptions: ClassVar[dict[str, Any]] = {
        name: f"It is not so: {text}" for name, text in positive_constraint_descriptions.items()
    }
    requirements: ClassVar[dict[str, Any]] = {
        "read_fees": ["single", "logged_in_user", {"username": "username"}],
    }
