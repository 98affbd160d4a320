"""The view that mandates the books and tells nothing: no slot, no position in any answer."""

from __future__ import annotations

import asyncio
import re

import pytest
from desk_runs import play

from sopilot.agent.budgets import Budgets
from sopilot.machine.machine import Machine, Outcome
from sopilot.protocols import Message, ModelReply, ModelRequest, ToolCall
from sopilot.tasks.examples.example import load_example
from sopilot.trace.events import Event
from sopilot.views.answers import Answers, step_answer
from sopilot.views.catalogue import VIEWS

TELLING = re.compile(r"Now at |Fits: |Position: |Next: ")


class Listening:
    def __init__(self, inner, wrong: bool = False) -> None:  # type: ignore[no-untyped-def]
        self._inner, self._wrong = inner, wrong
        self.asked: list[ModelRequest] = []

    name = "listening"

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        if self._wrong and len(self.asked) == 4:
            asked = '{"operation": "complete", "summary": "done"}'
            return ModelReply("", (ToolCall("call_77", "pg_program_step", asked),))
        reply: ModelReply = await self._inner.complete(request)
        return reply


def listened(
    task_id: str = "transfer-rent-share", *, wrong: bool = False, refresh: int = 50
) -> list[ModelRequest]:
    example = load_example("bank")
    heard: list[Listening] = []

    def listen(model):  # type: ignore[no-untyped-def]
        heard.append(Listening(model, wrong))
        return heard[-1]

    played = asyncio.run(
        play(
            example,
            example.task(task_id),
            VIEWS["flat-protocol"],
            wrap=listen,
            budgets=Budgets(refresh_actions=refresh),
        )
    )
    assert played.judgement.passed, played.judgement.reasons
    return heard[0].asked


def told(requests: list[ModelRequest]) -> list[Message]:
    return [message for request in requests for message in request.messages[1:]]


def test_nothing_tells_where_the_program_stands() -> None:
    requests = listened()
    assert len(requests) > 5
    assert {request.messages[0] for request in requests} == {requests[0].messages[0]}
    assert "goal" in requests[0].messages[0].content
    for message in told(requests):
        assert message.role != "system"
        assert not TELLING.search(message.content), message.content
    steps = [m.content for m in told(requests) if m.name == "pg_program_step"]
    assert steps
    assert all(re.fullmatch(r"Done: \w+\.(\nPassed .+)*", text) for text in steps)


def test_a_step_that_does_not_fit_is_refused_without_telling_what_would() -> None:
    answers = {m.content for m in told(listened(wrong=True)) if m.name == "pg_program_step"}
    assert "Nothing was done: this step does not fit where the program stands." in answers
    assert not any(TELLING.search(text) for text in answers)


@pytest.mark.parametrize("refresh", [2, 5])
def test_a_refreshed_context_keeps_the_books(refresh: int) -> None:
    last = listened(refresh=refresh)[-1]
    kept = [m.content for m in last.messages if m.name == "pg_program_step"]
    assert {"Done: start.", "Done: call.", "Done: return."} <= set(kept)


def test_checks_that_the_machine_passed_are_told_for_they_are_books() -> None:
    machine = Machine({}, hashes={})
    event = Event(1, 0.0, "model", "return", "p1", "refund/small@judge", {})
    passed = [{"label": "check_login", "ground": "the gate is open"}]
    told = {"did": "return", "passed": passed, "frame": "x@y"}
    outcome = Outcome(machine.initial(), (event,), True, lambda _: told)
    assert step_answer(outcome, Answers.BLIND) == (
        "Done: return.\nPassed check_login: the gate is open."
    )
    assert step_answer(outcome, Answers.SHORT) == "Done: return."
