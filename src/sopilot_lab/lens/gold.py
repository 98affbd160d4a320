"""The move that was right at a place: what the session did, where that fits; else what fits. Pure.

A move is written as far as its name (`{"tool": "login"`), in the shape in which
models without tool calls answer: its probability is about which move, not about
the spelling of values.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from sopilot.machine.affordances import Shape, fits
from sopilot.machine.machine import Machine
from sopilot.machine.state import Configuration
from sopilot.trace.events import Event
from sopilot.values.json import JSON
from sopilot.views.step_tool import TOOL_NAME

ASKS = '{"say": "'
_NAMED = {
    "start": "goal",
    "call": "function",
    "return": "holds",
    "select_branch": "option",
    "emit_artifact": "name",
}


def gold_move(
    machine: Machine, configuration: Configuration, did: Sequence[Event], goal: str | None
) -> str | None:
    """``did`` is what came of the model's reply; ``goal`` what the user wants, for the move
    that no cursor knows. ``None`` where only a judgement could tell."""
    shapes = fits(machine.programs, configuration)
    if configuration.active is None:
        shapes = [shape for shape in shapes if goal is None or shape["goal"] == goal]
        return spelled(shapes[0]) if len(shapes) == 1 else None
    at_cursor = [shape for shape in shapes if shape["operation"] != "fail"] or shapes
    for event in did:
        for shape in at_cursor:
            if _is(shape, event):
                return spelled({**shape, **_decided(shape, event)})
    first = at_cursor[0]
    if first["operation"] == "ask_user":
        ready = [item for item in at_cursor if item["operation"] == "domain_call"]
        first = next((item for item in ready if not item.get("missing")), first)
    return spelled(first)


def made_move(did: Sequence[Event]) -> str | None:
    """For arms without a machine: the first call that the session made there."""
    for event in did:
        if event.kind == "domain_call":
            return spelled({"operation": "domain_call", "action": event.payload["action"]})
        if event.kind == "note" and event.payload["name"] == "end_session":
            return f'{{"tool": {json.dumps("end_session")}'
    return None


def spelled(shape: Shape) -> str | None:
    operation = shape["operation"]
    if operation == "ask_user":
        return ASKS
    if operation == "domain_call":
        return f'{{"tool": {json.dumps(shape["action"])}'
    opened = f'{{"tool": "{TOOL_NAME}", "arguments": {{"operation": "{operation}"'
    field = _NAMED.get(operation)
    if field is None:
        return opened
    if shape.get(field) is None:
        return None
    return f"{opened}, {json.dumps(field)}: {json.dumps(shape[field], ensure_ascii=False)}"


def _is(shape: Shape, event: Event) -> bool:
    kind, payload = event.kind, event.payload
    if shape["operation"] != kind:
        return False
    if kind == "domain_call":
        return bool(shape["action"] == payload["action"])
    if kind == "select_branch":
        return payload.get("option") in (None, shape.get("option"))
    return True


def _decided(shape: Shape, event: Event) -> dict[str, JSON]:
    if event.kind == "return" and shape.get("holds") is None:
        return {"holds": event.payload.get("holds")}
    return {}
