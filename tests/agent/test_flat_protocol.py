"""The view that mandates the books and tells nothing: no slot, no position in any answer."""

from __future__ import annotations

import re

import pytest
from desk_runs import RecordingModel, play, reference

from sopilot.agent.budgets import Budgets
from sopilot.machine.machine import Machine, Outcome
from sopilot.protocols import Message, ModelReply, ModelRequest, ToolCall
from sopilot.trace.events import Event
from sopilot.views.step_answers import Answers, step_answer

TELLING = re.compile(r"Now at |Fits: |Position: |Next: ")


class Hasty(RecordingModel):
    """Completes the request much too early."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = await super().complete(request)
        if len(self.requests) == 4:
            asked = '{"operation": "complete", "summary": "done"}'
            return ModelReply("", (ToolCall("call_77", "pg_program_step", asked),))
        return reply


async def listened(*, wrong: bool = False, refresh: int = 50) -> list[ModelRequest]:
    model = (Hasty if wrong else RecordingModel)(reference("bank"))
    budgets = Budgets(refresh_actions=refresh)
    task = "transfer-rent-share"
    run = await play("bank", task, "flat-protocol", model=model, budgets=budgets)
    assert run.judgement.passed, run.judgement.reasons
    return model.requests


def told(requests: list[ModelRequest]) -> list[Message]:
    return [message for request in requests for message in request.messages[1:]]


async def test_nothing_tells_where_the_program_stands() -> None:
    requests = await listened()
    assert len(requests) > 5
    assert {request.messages[0] for request in requests} == {requests[0].messages[0]}
    assert "goal" in requests[0].messages[0].content
    for message in told(requests):
        assert message.role != "system"
        assert not TELLING.search(message.content), message.content
    steps = [m.content for m in told(requests) if m.name == "pg_program_step"]
    assert steps
    assert all(re.fullmatch(r"Done: \w+\.(\nPassed .+)*", text) for text in steps)


async def test_a_step_that_does_not_fit_is_refused_without_telling_what_would() -> None:
    answers = {m.content for m in told(await listened(wrong=True)) if m.name == "pg_program_step"}
    assert "Nothing was done: this step doesn't fit the program's current position." in answers
    assert not any(TELLING.search(text) for text in answers)


@pytest.mark.parametrize("refresh", [2, 5])
async def test_a_refreshed_context_keeps_the_books(refresh: int) -> None:
    last = (await listened(refresh=refresh))[-1]
    kept = [m.content for m in last.messages if m.name == "pg_program_step"]
    assert {"Done: start.", "Done: call.", "Done: return."} <= set(kept)


def test_checks_that_the_machine_passed_are_told_for_they_are_books() -> None:
    machine = Machine({}, hashes={})
    passed = {"label": "check_login", "ground": "the gate is open"}
    events = (
        Event(1, 0.0, "model", "return", "p1", "refund/small@judge", {}),
        Event(2, 0.0, "machine", "reuse", "p1", "refund@check_login", passed),
    )
    outcome = Outcome(machine.initial(), events, True)
    assert step_answer(outcome, machine, Answers.BLIND) == (
        "Done: return.\nPassed check_login: the gate is open."
    )
    assert step_answer(outcome, machine, Answers.SHORT) == "Done: return."
