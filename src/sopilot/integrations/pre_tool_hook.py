"""The guard for coding agents: answers the JSON of their hooks before and after a tool call.

The agent starts a process per event, so the sessions are in the decision service
(`sopilot guard serve`), and this asks it. The hook says nothing about tools that the handbook
doesn't name. If the service can't be reached, every call is denied.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from sopilot.messages.errors import UserMistake
from sopilot.values.json import JSON

BEFORE, AFTER, FAILED = "PreToolUse", "PostToolUse", "PostToolUseFailure"


def answer_hook(event: Mapping[str, Any], url: str, token: str) -> dict[str, JSON] | None:
    """The answer to one event of the agent; ``None`` if the guard has nothing to say."""
    kind = event.get("hook_event_name")
    try:
        known = _ask(url, token, "/tools")["tools"]
        if kind not in (BEFORE, AFTER, FAILED) or event.get("tool_name") not in known:
            return None
        bound = {"conversation": event["session_id"], "id": event["tool_use_id"]}
        call = {"tool": event["tool_name"], "arguments": event["tool_input"]}
        # Asked again under its id, the service answers as before.
        decided = _ask(url, token, "/before", {**bound, **call})
        if kind != BEFORE:
            if decided["decision"] == "carry_out":
                report = {"ok": kind == AFTER, "value": event.get("tool_response")}
                _ask(url, token, "/after", {**bound, "digest": decided["digest"], **report})
            return None
    except KeyError as missing:
        return _denied(f"the event has no {missing}") if kind == BEFORE else None
    except (OSError, ValueError) as problem:
        return _denied(f"the guard can't be asked: {problem}") if kind == BEFORE else None
    if decided["decision"] != "carry_out":
        return _denied(decided["text"])
    if decided["arguments"] != event["tool_input"]:
        return _denied(f"Call it with these arguments: {json.dumps(decided['arguments'])}")
    return _decision("allow", "proven") if known[event["tool_name"]] else None


def _denied(why: str) -> dict[str, JSON]:
    return _decision("deny", why)


def _decision(decision: str, why: str) -> dict[str, JSON]:
    named = {"permissionDecision": decision, "permissionDecisionReason": why}
    return {"hookSpecificOutput": {"hookEventName": BEFORE, **named}}


def _ask(url: str, token: str, path: str, body: Mapping[str, JSON] | None = None) -> Any:
    if not url.startswith(("http://", "https://")):
        raise UserMistake(f"`{url}` is not an address of the decision service")
    request = urllib.request.Request(
        url.rstrip("/") + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as problem:
        with problem:
            text = problem.read().decode("utf-8", "replace")
        raise ValueError(f"{problem.code} {text[:200]}") from None
