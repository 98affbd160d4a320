"""The paper's runtime: seven operations, two verdicts; three views that differ in visibility."""

from __future__ import annotations

import asyncio
import json

import pytest
from desk_runs import RecordingModel, ScriptedModel, briefing_of, calls, play, played

from sopilot.agent.reference.executor import Reference
from sopilot.agent.toolbox import Toolbox
from sopilot.protocols import ModelReply
from sopilot.tasks.examples.example import bundled_names, load_example
from sopilot.tasks.examples.judge import example_judge
from sopilot.views.catalogue import VIEWS

PAPER = ("pg-paper", "full-cursor", "flat-protocol")
SEVEN = ["start", "call", "return", "select_branch", "emit_artifact", "complete", "fail"]
TASKS = [(example, task.id) for example in bundled_names()
         for task in load_example(example).tasks[::7]]  # fmt: skip


@pytest.mark.parametrize(("example", "task"), TASKS)
def test_only_visibility_differs_so_the_turns_are_equal(example: str, task: str) -> None:
    loaded = load_example(example)
    runs = [asyncio.run(play(loaded, loaded.task(task), VIEWS[view])) for view in PAPER]
    assert len({len(run.result.requests) for run in runs}) == 1
    assert len({tuple(run.kinds()) for run in runs}) == 1
    assert {run.judgement.passed for run in runs} == {True}


@pytest.mark.parametrize("view", PAPER)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_tool_has_the_papers_operations_and_verdicts(view: str, language: str) -> None:
    assert VIEWS[view].automation == VIEWS["pg-paper"].automation
    step = Toolbox(VIEWS[view], briefing_of("bank", language), ()).schemas[0]
    fields = step.parameters["properties"]
    assert sorted(fields["operation"]["enum"]) == sorted(SEVEN)  # type: ignore[index,call-overload]
    assert "undecided" not in fields  # type: ignore[operator]
    text = step.description + json.dumps(step.parameters)
    assert "amend" not in text
    assert "undecided" not in text


@pytest.mark.parametrize(
    "said",
    [
        {"operation": "amend", "arguments": {"amount": 5}},
        {"operation": "return", "undecided": True},
        {"undecided": True},
    ],
)
@pytest.mark.parametrize("view", PAPER)
def test_whatever_the_paper_lacks_changes_nothing(view: str, said: dict[str, object]) -> None:
    start = {"operation": "start", "goal": "transfer", "arguments": {"username": "anna"}}
    replies = [
        calls(("pg_program_step", json.dumps(start))),
        calls(("pg_program_step", json.dumps(said))),
        ModelReply("I stop here."),
    ]
    run = played("bank", "transfer-rent-share", view, model=ScriptedModel(replies))
    assert {"amend", "return"}.isdisjoint(run.kinds())
    assert any("isn't" in str(note["problem"]) for note in run.notes("malformed_step"))


@pytest.mark.parametrize("view", PAPER)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_text_offers_whatever_the_paper_lacks(view: str, language: str) -> None:
    example = load_example("bank")
    model = RecordingModel(Reference(example_judge(example)))
    for task in example.tasks[::6]:
        asyncio.run(play(example, task, VIEWS[view], language=language, model=model))
    requests = model.requests
    texts = {item.content for one in requests for item in one.messages if item.role != "user"}
    texts |= {f"{tool.description} {tool.parameters}" for one in requests for tool in one.tools}
    assert texts
    assert [text for text in texts if "amend" in text or "undecided" in text] == []
