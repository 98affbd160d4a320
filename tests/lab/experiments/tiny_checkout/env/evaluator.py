"""The oracle: right ending, right state, everything needed called before the goal."""

from __future__ import annotations

import copy
from typing import Any

from env.variables import domain_keys


def evaluator_function_directed_graph(
    domain_str: str,
    task: dict[str, Any],
    log_msg_fcall: list[Any],
    func_calls: list[dict[str, Any]],
    results: dict[str, Any],
    default_constraint_option: str,
) -> dict[str, Any]:
    goal, should = task["user_goal"], bool(task["action_should_succeed"])
    names = [call["tool_name"] for call in func_calls]
    succeeded = any(call["tool_name"] == goal and call["content"] is True for call in func_calls)
    before = set(names[: names.index(goal)]) if goal in names else set()
    expected = domain_keys[domain_str](copy.deepcopy(task["initial_database"]))
    if should:
        known = task["user_known"]
        getattr(expected, goal)(username=known["username"], tool=known["tool"])
    verdict = {
        "user_goal": goal,
        "action_should_succeed": should,
        "num_messages": len(log_msg_fcall) - 1,
        "num_function_calls": len(func_calls),
        "no_tool_call_error": not any(
            str(call["content"]).startswith("Error: Tool")
            or not hasattr(expected, call["tool_name"])
            for call in func_calls
        ),
        "constraint_not_violated": succeeded <= should,
        "database_match": results["final_database"] == expected.data,
        "action_successfully_called": succeeded,
        "dirgraph_satisfied": not should or _met(task["directed_action_graph"], 0, before, goal),
    }
    verdict["action_called_correctly"] = succeeded == should
    flags = ("no_tool_call_error", "constraint_not_violated", "database_match")
    flags += ("dirgraph_satisfied", "action_called_correctly")
    return verdict | {"success": all(verdict[flag] for flag in flags)}


def _met(graph: dict[str, Any], node: int, before: set[str], goal: str) -> bool:
    needed = [target for source, target in graph["connections"] if source == node]
    parts = [_met(graph, each, before, goal) for each in needed]
    own = graph["nodes"][node]
    if own == "or":
        return any(parts)
    return all(parts) and (own == "and" or own[0] == goal or own[0] in before)
