"""What a model need not write under `fused`, and that it means the same as written out."""

from __future__ import annotations

import json

import pytest
from desk_runs import ScriptedModel, calls, play

from sopilot.protocols import ModelReply


async def test_a_citation_of_nothing_is_answered_and_binds_nothing() -> None:
    steps = (
        {"operation": "start", "goal": "issue_card"},
        {"operation": "call", "arguments": {"username": "anna"}},
        {"operation": "return", "holds": True, "evidence": "#999"},
    )
    replies = [calls(("pg_program_step", json.dumps(step))) for step in steps]
    model = ScriptedModel([*replies, ModelReply("I stop here.")])
    run = await play("bank", "card-first", "pg-paper", model=model)
    problems = [note["problem"] for note in run.notes("malformed_step")]
    assert any("there is no result" in str(problem) for problem in problems)
    assert "return" not in run.kinds()


@pytest.mark.parametrize("task", ["transfer-rent-share", "dispute-no-password"])
async def test_what_is_left_out_is_in_the_trace(task: str) -> None:
    """The calls that `fused` writes are shorter; what was called is the same."""
    fused, paged = await play("bank", task, "fused"), await play("bank", task, "pg")
    for kind in ("start", "domain_call"):
        made = [
            [(one.payload.get("action"), one.payload["arguments"])
             for one in run.session.own_events if one.kind == kind]
            for run in (fused, paged)
        ]  # fmt: skip
        assert made[0] == made[1]
    written = [
        arguments
        for note in fused.notes("model_request")
        for _, _, arguments in note.get("calls", ())  # type: ignore[attr-defined]
    ]
    assert sum(map(len, written)) < 200
