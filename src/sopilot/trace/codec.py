"""Operations as JSON objects and back: what events carry and replay reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

from sopilot.messages.errors import TraceError
from sopilot.trace.events import (
    Amend,
    AssistantSaid,
    BindEvidence,
    Call,
    Complete,
    Decision,
    DomainCall,
    DomainResult,
    EmitArtifact,
    Fail,
    JudgeCheck,
    Note,
    Operation,
    Return,
    SelectBranch,
    Start,
    Text,
    UserSaid,
)
from sopilot.values.json import JSON, plain, plain_mapping

Given = Mapping[str, JSON]


def operation_fields(operation: Operation) -> dict[str, Any]:
    """The operation's own fields, as plain values that nobody else holds."""
    return _FIELDS[type(operation)](operation)


def _encode_start(it: Start) -> dict[str, JSON]:
    fields: dict[str, JSON] = {
        "goal": plain(it.goal),
        "arguments": plain_mapping(it.arguments),
    }
    if it.act:
        fields["act"] = plain(it.act)
    return fields


def _encode_call(it: Call) -> dict[str, JSON]:
    return {"function": plain(it.function), "arguments": plain_mapping(it.arguments)}


def _encode_return(it: Return) -> dict[str, JSON]:
    fields = {
        "holds": it.holds,
        "evidence": [plain(cited) for cited in it.evidence],
        "value": plain(it.value),
        "arguments": plain_mapping(it.arguments),
    }
    if it.undecided:
        fields["undecided"] = True
    return fields


def _encode_decision(it: Decision) -> dict[str, JSON]:
    fields: dict[str, JSON] = {
        "decision": plain(it.decision),
        "call_id": plain(it.call_id),
        "by": plain(it.by),
        "role": plain(it.role),
        "arguments": plain_mapping(it.arguments),
        "reason": plain(it.reason),
    }
    if it.principal:
        fields["principal"] = plain_mapping(it.principal)
    return fields


def _encode_domain_call(it: DomainCall) -> dict[str, JSON]:
    fields = {
        "call_id": plain(it.call_id),
        "action": plain(it.action),
        "arguments": plain_mapping(it.arguments),
    }
    if it.licence is not None:
        fields["licence"] = plain_mapping(it.licence)
    if it.amended:
        fields["amended"] = True
    return fields


def _encode_domain_result(it: DomainResult) -> dict[str, JSON]:
    fields = {"call_id": plain(it.call_id), "ok": it.ok, "value": plain(it.value)}
    if it.unknown:
        fields["unknown"] = True
    return fields


_FIELDS: dict[type, Callable[..., dict[str, JSON]]] = {
    Start: _encode_start,
    Amend: lambda it: {"arguments": plain_mapping(it.arguments)},
    Call: _encode_call,
    Return: _encode_return,
    SelectBranch: lambda it: {"option": plain(it.option)},
    EmitArtifact: lambda it: {"name": plain(it.name), "content": plain(it.content)},
    Complete: lambda it: {"summary": plain(it.summary)},
    Fail: lambda it: {"reason": plain(it.reason)},
    DomainCall: _encode_domain_call,
    DomainResult: _encode_domain_result,
    UserSaid: lambda it: {"text": plain(it.text)},
    AssistantSaid: lambda it: {"text": plain(it.text)},
    Decision: _encode_decision,
    Note: lambda it: {"name": plain(it.name), "details": plain_mapping(it.details)},
    BindEvidence: lambda it: {"result": it.result},
    JudgeCheck: lambda it: {
        "function": plain(it.function),
        "arguments": plain_mapping(it.arguments),
        "holds": it.holds,
        "evidence": list(it.evidence),
    },
}


_WORDS = (str, dict, Mapping)


_OBJECT = (dict, Mapping)


_SHAPES: dict[type, tuple[tuple[str, tuple[type, ...]], ...]] = {
    Start: (("goal", (str,)), ("arguments", _OBJECT), ("act", (str,))),
    Amend: (("arguments", _OBJECT),),
    Call: (("function", (str, NoneType)), ("arguments", _OBJECT)),
    Return: (
        ("holds", (bool, NoneType)),
        ("evidence", (tuple,)),
        ("arguments", _OBJECT),
        ("undecided", (bool,)),
    ),
    SelectBranch: (("option", (str, NoneType)),),
    EmitArtifact: (("name", (str,)),),
    Complete: (("summary", _WORDS),),
    Fail: (("reason", _WORDS),),
    DomainCall: (
        ("call_id", (str,)),
        ("action", (str,)),
        ("arguments", _OBJECT),
        ("licence", (dict, Mapping, NoneType)),
        ("amended", (bool,)),
    ),
    DomainResult: (("call_id", (str,)), ("ok", (bool,)), ("unknown", (bool,))),
    UserSaid: (("text", _WORDS),),
    AssistantSaid: (("text", _WORDS),),
    Decision: (
        ("decision", (str,)),
        ("call_id", (str,)),
        ("by", (str,)),
        ("role", (str,)),
        ("arguments", _OBJECT),
        ("reason", _WORDS),
        ("principal", _OBJECT),
    ),
    Note: (("name", (str,)), ("details", _OBJECT)),
    JudgeCheck: (
        ("function", (str,)),
        ("arguments", _OBJECT),
        ("holds", (bool,)),
        ("evidence", (tuple,)),
    ),
    BindEvidence: (("result", (int,)),),
}


def misshapen(operation: object) -> str | None:
    """What keeps an object from being an operation: callers are not always type-checked."""
    shape = _SHAPES.get(type(operation))
    if shape is None:
        return "this is not an operation"
    for name, types in shape:
        value = getattr(operation, name)
        if type(value) not in types and not isinstance(value, types):
            return f"`{name}` has the wrong type"
    if isinstance(operation, Return) and not all(
        isinstance(one, str) for one in operation.evidence
    ):
        return "`evidence` must be strings"
    return None


def decode_operation(fields: Given, kind: str | None = None) -> Operation:
    """The operation in a JSON object; its name is ``kind`` or stands under ``operation``."""
    name = kind if kind is not None else fields.get("operation")
    decoder = _DECODERS.get(name) if isinstance(name, str) else None
    if decoder is None:
        raise TraceError(f"unknown operation `{name}`")
    return decoder(fields)


def _string(fields: Given, key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise TraceError(f"`{key}` must be a string")
    return value


def _optional_string(fields: Given, key: str) -> str | None:
    return None if fields.get(key) is None else _string(fields, key)


def _text(fields: Given, key: str) -> Text:
    value = fields.get(key)
    if isinstance(value, Mapping) and "$ref" in value:
        return value
    return _string(fields, key)


def _object(fields: Given, key: str) -> Mapping[str, JSON]:
    value = fields.get(key, {})
    if not isinstance(value, Mapping):
        raise TraceError(f"`{key}` must be an object")
    if "$ref" in value:
        raise TraceError(f"`{key}` is withheld: restore it before replaying")
    return value


def _boolean(fields: Given, key: str) -> bool:
    value = fields.get(key)
    if not isinstance(value, bool):
        raise TraceError(f"`{key}` must be true or false")
    return value


def _decode_return(fields: Given) -> Return:
    cited = fields.get("evidence", [])
    if not isinstance(cited, list) or not all(isinstance(one, str) for one in cited):
        raise TraceError("`evidence` must be a list of strings")
    holds = None if fields.get("holds") is None else _boolean(fields, "holds")
    undecided = "undecided" in fields and _boolean(fields, "undecided")
    arguments = _object(fields, "arguments")
    return Return(holds, tuple(cited), fields.get("value"), arguments, undecided)


def _decode_decision(fields: Given) -> Decision:
    return Decision(
        _string(fields, "decision"),
        _string(fields, "call_id"),
        _string(fields, "by"),
        _string(fields, "role"),
        _object(fields, "arguments"),
        _text(fields, "reason"),
        _object(fields, "principal") if "principal" in fields else {},
    )


def _decode_judgement(fields: Given) -> JudgeCheck:
    evidence = fields.get("evidence")
    if not isinstance(evidence, list | tuple) or not all(type(seq) is int for seq in evidence):
        raise TraceError("`evidence` must be a list of sequence numbers")
    return JudgeCheck(
        _string(fields, "function"),
        _object(fields, "arguments"),
        _boolean(fields, "holds"),
        tuple(evidence),
    )


def _decode_bind(fields: Given) -> BindEvidence:
    result = fields.get("result")
    if not isinstance(result, int) or isinstance(result, bool):
        raise TraceError("`result` must be a sequence number")
    return BindEvidence(result)


_DECODERS: dict[str, Callable[[Given], Operation]] = {
    "start": lambda fields: Start(
        _string(fields, "goal"),
        _object(fields, "arguments"),
        _string(fields, "act") if "act" in fields else "",
    ),
    "judge_check": _decode_judgement,
    "amend": lambda fields: Amend(_object(fields, "arguments")),
    "call": lambda fields: Call(_optional_string(fields, "function"), _object(fields, "arguments")),
    "return": _decode_return,
    "select_branch": lambda fields: SelectBranch(_optional_string(fields, "option")),
    "emit_artifact": lambda fields: EmitArtifact(_string(fields, "name"), fields.get("content")),
    "complete": lambda fields: Complete(_text(fields, "summary")),
    "fail": lambda fields: Fail(_text(fields, "reason")),
    "domain_call": lambda fields: DomainCall(
        _string(fields, "call_id"),
        _string(fields, "action"),
        _object(fields, "arguments"),
        _object(fields, "licence") if "licence" in fields else None,
        "amended" in fields and _boolean(fields, "amended"),
    ),
    "domain_result": lambda fields: DomainResult(
        _string(fields, "call_id"),
        _boolean(fields, "ok"),
        fields.get("value"),
        "unknown" in fields and _boolean(fields, "unknown"),
    ),
    "user_said": lambda fields: UserSaid(_text(fields, "text")),
    "assistant_said": lambda fields: AssistantSaid(_text(fields, "text")),
    "decision": _decode_decision,
    "note": lambda fields: Note(_string(fields, "name"), _object(fields, "details")),
    "bind_evidence": _decode_bind,
}
