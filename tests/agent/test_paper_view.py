"""The paper's runtime: seven operations, two verdicts; three views that differ in visibility."""

from __future__ import annotations

import json

import pytest
from desk_runs import RecordingModel, ScriptedModel, briefing_of, calls, play, reference, some_tasks

from sopilot.agent.toolbox import Toolbox
from sopilot.protocols import ModelReply
from sopilot.views.catalogue import VIEWS

PAPER = ("pg-paper", "full-cursor", "flat-protocol")
SEVEN = ["start", "call", "return", "select_branch", "emit_artifact", "complete", "fail"]


@pytest.mark.parametrize(("example", "task"), some_tasks(7))
async def test_only_visibility_differs_so_the_turns_are_equal(example: str, task: str) -> None:
    runs = [await play(example, task, view) for view in PAPER]
    assert len({len(run.result.requests) for run in runs}) == 1
    assert len({tuple(run.kinds()) for run in runs}) == 1
    assert {run.judgement.passed for run in runs} == {True}


@pytest.mark.parametrize(
    "said",
    [
        {"operation": "amend", "arguments": {"amount": 5}},
        {"operation": "return", "undecided": True},
        {"undecided": True},
    ],
)
@pytest.mark.parametrize("view", PAPER)
async def test_whatever_the_paper_lacks_changes_nothing(view: str, said: dict[str, object]) -> None:
    start = {"operation": "start", "goal": "transfer", "arguments": {"username": "anna"}}
    replies = [
        calls(("pg_program_step", json.dumps(start))),
        calls(("pg_program_step", json.dumps(said))),
        ModelReply("I stop here."),
    ]
    run = await play("bank", "transfer-rent-share", view, model=ScriptedModel(replies))
    assert {"amend", "return"}.isdisjoint(run.kinds())
    assert any("isn't" in str(note["problem"]) for note in run.notes("malformed_step"))


@pytest.mark.parametrize("view", PAPER)
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_no_text_offers_whatever_the_paper_lacks(view: str, language: str) -> None:
    assert VIEWS[view].automation == VIEWS["pg-paper"].automation
    step = Toolbox(VIEWS[view], briefing_of("bank", language), ()).schemas[0]
    operation: object = step.parameters["properties"]["operation"]["enum"]  # type: ignore[index,call-overload]
    assert sorted(operation) == sorted(SEVEN)  # type: ignore[call-overload]
    model = RecordingModel(reference("bank"))
    for example, task in some_tasks(6, "bank"):
        await play(example, task, view, language=language, model=model)
    requests = model.requests
    texts = {item.content for one in requests for item in one.messages if item.role != "user"}
    texts |= {f"{tool.description} {tool.parameters}" for one in requests for tool in one.tools}
    assert texts
    assert [text for text in texts if "amend" in text or "undecided" in text] == []
