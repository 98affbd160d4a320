"""Every operation as an event carries it, and everything that is none."""

from __future__ import annotations

from typing import Any, cast

import pytest

from sopilot.messages.errors import TraceError
from sopilot.trace.codec import decode_operation, misshapen, operation_fields
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
    Note,
    Operation,
    Return,
    SelectBranch,
    Start,
    UserSaid,
)

WRITTEN: list[tuple[Operation, dict[str, Any]]] = [
    (Start("g", {"a": 1}), {"goal": "g", "arguments": {"a": 1}}),
    (Amend({"a": 1}), {"arguments": {"a": 1}}),
    (Call("f", {"a": 1}), {"function": "f", "arguments": {"a": 1}}),
    (Call(), {"function": None, "arguments": {}}),
    (Call(None, {"$ref": None}), {"function": None, "arguments": {"$ref": None}}),
    (
        Return(False, ("#1",), 5, {"a": 1}),
        {"holds": False, "evidence": ["#1"], "value": 5, "arguments": {"a": 1}},
    ),
    (
        Return(undecided=True),
        {"holds": None, "evidence": [], "value": None, "arguments": {}, "undecided": True},
    ),
    (SelectBranch("then"), {"option": "then"}),
    (SelectBranch(), {"option": None}),
    (EmitArtifact("memo", [1]), {"name": "memo", "content": [1]}),
    (Complete("done"), {"summary": "done"}),
    (Fail("no"), {"reason": "no"}),
    (DomainCall("c", "pay", {"a": 1}), {"call_id": "c", "action": "pay", "arguments": {"a": 1}}),
    (
        DomainCall("c", "pay", {}, {"grade": "proven"}, True),
        {"call_id": "c", "action": "pay", "arguments": {}, "licence": {"grade": "proven"},
         "amended": True},
    ),
    (DomainCall("c", "pay", {}, {}),
     {"call_id": "c", "action": "pay", "arguments": {}, "licence": {}}),
    (DomainResult("c", True, 5), {"call_id": "c", "ok": True, "value": 5}),
    (
        DomainResult("c", False, None, True),
        {"call_id": "c", "ok": False, "value": None, "unknown": True},
    ),
    (UserSaid("hi"), {"text": "hi"}),
    (AssistantSaid("hi"), {"text": "hi"}),
    (UserSaid({"$ref": "sha256:1", "bytes": 2}), {"text": {"$ref": "sha256:1", "bytes": 2}}),
    (
        Decision("approve", "c", "ann", "boss", {"a": 1}, "fine"),
        {"decision": "approve", "call_id": "c", "by": "ann", "role": "boss",
         "arguments": {"a": 1}, "reason": "fine"},
    ),
    (
        Decision("expire", "c", principal={"sub": "1"}),
        {"decision": "expire", "call_id": "c", "by": "", "role": "", "arguments": {},
         "reason": "", "principal": {"sub": "1"}},
    ),
    (Note("clock", {"now": "t"}), {"name": "clock", "details": {"now": "t"}}),
    (BindEvidence(7), {"result": 7}),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "written"), WRITTEN)
def test_what_is_written_is_read(operation: Operation, written: dict[str, Any]) -> None:
    assert misshapen(operation) is None
    assert operation_fields(operation) == written
    assert decode_operation(written, operation.kind) == operation
    assert decode_operation({**written, "operation": operation.kind}) == operation


@pytest.mark.parametrize(
    ("kind", "fields", "problem"),
    [
        ("sing", {}, "unknown operation `sing`"),
        (None, {}, "unknown operation `None`"),
        (None, {"operation": ["start"]}, "unknown operation `['start']`"),
        ("start", {}, "`goal` must be a string"),
        ("start", {"goal": "g", "arguments": 5}, "`arguments` must be an object"),
        ("start", {"goal": "g", "arguments": {"$ref": "x", "bytes": 1}},
         "`arguments` is withheld: restore it before replaying"),
        ("call", {"function": 5}, "`function` must be a string"),
        ("complete", {}, "`summary` must be a string"),
        ("fail", {"reason": {"text": "no"}}, "`reason` must be a string"),
        ("return", {"evidence": ["#1", 2]}, "`evidence` must be a list of strings"),
        ("return", {"holds": 0}, "`holds` must be true or false"),
        ("domain_call", {"call_id": "c", "action": "a", "licence": 1},
         "`licence` must be an object"),
        ("domain_result", {"call_id": "c"}, "`ok` must be true or false"),
        ("bind_evidence", {"result": True}, "`result` must be a sequence number"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(kind: str | None, fields: Any, problem: str) -> None:
    with pytest.raises(TraceError) as raised:
        decode_operation(fields, kind)
    assert str(raised.value) == problem


def test_what_is_left_out_has_its_default() -> None:
    assert decode_operation({}, "call") == Call()
    assert decode_operation({}, "return") == Return()
    assert decode_operation({}, "select_branch") == SelectBranch()
    assert decode_operation({"undecided": False}, "return") == Return(undecided=False)


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        (5, "this is not an operation"),
        (None, "this is not an operation"),
        (Start(cast("str", 5)), "`goal` has the wrong type"),
        (Start("g", cast("dict[str, Any]", [])), "`arguments` has the wrong type"),
        (Return(True, ("#1", cast("str", 2))), "`evidence` must be strings"),
        (DomainResult("c", cast("bool", "yes")), "`ok` has the wrong type"),
        (BindEvidence(cast("int", "7")), "`result` has the wrong type"),
    ],
)
def test_what_is_no_operation(operation: object, problem: str) -> None:
    assert misshapen(operation) == problem
