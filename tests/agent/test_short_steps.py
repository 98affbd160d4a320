"""What a model need not write under `fused`, and that it means the same as written out."""

from __future__ import annotations

import json

import pytest
from desk_runs import ScriptedModel, calls, played

from sopilot.protocols import ModelReply


def test_a_citation_of_nothing_is_answered_and_binds_nothing() -> None:
    model = ScriptedModel(
        [
            calls(("pg_program_step", json.dumps({"operation": "start", "goal": "issue_card"}))),
            calls(
                (
                    "pg_program_step",
                    json.dumps({"operation": "call", "arguments": {"username": "anna"}}),
                )
            ),
            calls(
                (
                    "pg_program_step",
                    json.dumps({"operation": "return", "holds": True, "evidence": "#999"}),
                )
            ),
            ModelReply("I stop here."),
        ]
    )
    run = played("bank", "card-first", "pg-paper", model=model)
    problems = [note["problem"] for note in run.notes("malformed_step")]
    assert any("there is no result" in str(problem) for problem in problems)
    assert "return" not in run.kinds()


@pytest.mark.parametrize("task", ["transfer-rent-share", "dispute-no-password"])
def test_what_is_left_out_is_in_the_trace(task: str) -> None:
    """The calls that `fused` writes are shorter; what was called is the same."""
    fused, paged = played("bank", task, "fused"), played("bank", task, "pg")
    made = [
        [
            (one.payload["action"], one.payload["arguments"])
            for one in run.session.own_events
            if one.kind == "domain_call"
        ]
        for run in (fused, paged)
    ]
    assert made[0] == made[1]
    starts = [
        one.payload["arguments"]
        for run in (fused, paged)
        for one in run.session.own_events
        if one.kind == "start"
    ]
    assert starts[0] == starts[-1]
    written = [
        arguments
        for note in fused.notes("model_request")
        for _, _, arguments in note.get("calls", ())  # type: ignore[attr-defined]
    ]
    assert sum(map(len, written)) < 200
