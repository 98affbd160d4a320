"""The guard for coding agents: answers the JSON of their hooks before and after a tool call.

The agent starts a process per event, so the sessions are in the decision service
(`sopilot guard serve`), and this asks it. Tools that the handbook doesn't name are left to the
agent's own permissions and noted in the session. If the service can't be reached, every call is
denied.

A call that needs the user's answer is denied. The agent's own prompt can't stand for the answer:
after it, the agent makes the call without asking the hook again, and the proof may be void by then.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from sopilot.messages.diagnostic import nearly_same
from sopilot.messages.errors import UserMistake
from sopilot.values.json import JSON, canonical, plain

_CANNOT_ASK = (
    "A hook can't ask the user. Serve this tool with `sopilot gateway`: the gateway asks the user "
    "and makes the call itself. Or write `confirm: false` in the handbook, and rely on the prompt "
    "of the agent."
)
BEFORE, AFTER, FAILED = "PreToolUse", "PostToolUse", "PostToolUseFailure"
ANSWER_SECONDS = 15.0
"""How long to wait for each answer of the service. A hook asks up to three times, and agents stop
a hook after a minute and then make the call."""


def answer_hook(event: Mapping[str, Any], url: str, token: str) -> dict[str, JSON] | None:
    """The answer to one event of the agent; ``None`` if the guard has nothing to say."""
    kind = event.get("hook_event_name", BEFORE)
    if kind not in (BEFORE, AFTER, FAILED):
        if "tool_name" not in event:
            return None
        return _decision("deny", f"the guard doesn't know the event {json.dumps(kind)}")
    try:
        return _answered(kind, event, url, token)
    except UserMistake:
        raise
    except Exception as problem:  # an agent makes the call if its hook breaks off
        missing = isinstance(problem, KeyError)
        why = f"the event has no {problem}" if missing else f"the guard can't be asked: {problem}"
        if kind == BEFORE:
            return _decision("deny", why)
        return {"decision": "block", "reason": f"The guard didn't record this call: {why}"}


def _answered(kind: str, event: Mapping[str, Any], url: str, token: str) -> dict[str, JSON] | None:
    tool, arguments = event["tool_name"], event["tool_input"]
    known = _ask(url, token, "/tools")["tools"]
    bound = {"conversation": event["session_id"], "id": event["tool_use_id"]}
    call = {"tool": tool, "arguments": arguments}
    if kind != BEFORE and tool in known:
        # The service isn't asked now: it would decide about a call that is made already.
        value = event.get("tool_response", event.get("error"))
        ok = kind == AFTER and not _is_error(value)
        # A guarded tool that reports an error may have done its work before.
        report = {"ok": ok or (None if known[tool] else False), "value": value}
        answer = _ask(url, token, "/after", {**bound, "digest": call_digest(**call), **report})
        return None if answer["recorded"] else {"decision": "block", "reason": answer["text"]}
    decided = _ask(url, token, "/before", {**bound, **call, "as_written": True})
    if tool not in known:
        return _if_misspelt(tool, known) if kind == BEFORE else None
    if decided["decision"] != "carry_out":
        cure = f" {_CANNOT_ASK}" if "question" in decided else ""
        return _decision("deny", decided["text"] + cure)
    if decided["arguments"] == arguments:
        return _decision("allow", "proven") if known[tool] else None
    # A shortened value, say. The service would wait for the answer to the call that it let through.
    why = f"Call it with these arguments: {json.dumps(decided['arguments'])}"
    denied: dict[str, JSON] = {"ok": False, "value": {"error": f"not called: {why}"}}
    _ask(url, token, "/after", {**bound, "digest": decided["digest"], **denied})
    return _decision("deny", why)


def call_digest(tool: str, arguments: Mapping[str, JSON]) -> str:
    """What binds a decision to its call."""
    bound = {"tool": tool, "arguments": dict(arguments)}
    return sha256(canonical(plain(bound))).hexdigest()


def _is_error(value: object) -> bool:
    """Whether an MCP server marked its result so. Not every agent has an event for that."""
    return isinstance(value, Mapping) and any(map(value.get, ("isError", "is_error")))


def _if_misspelt(tool: str, known: Mapping[str, bool]) -> dict[str, JSON] | None:
    """Deny an unnamed tool that the handbook may guard: under a misspelt name, or without the
    name of its server."""
    for guarded, is_guarded in known.items():
        if is_guarded and any(nearly_same(guarded, each) for each in (tool, tool.split("__")[-1])):
            why = f"The handbook guards `{guarded}`. If it means this tool, write `tool: {tool}`."
            return _decision("deny", f"{why} If it doesn't, give `{tool}` an action of its own.")
    return None


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
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as problem:
        with problem:
            text = problem.read().decode("utf-8", "replace")
        raise ValueError(f"{problem.code} {text[:200]}") from None
