"""No request is longer than the model's context, by whoever's count."""

from __future__ import annotations

import pytest

from small_desks import programs_of
from sopilot.agent.budgets import Budgets
from sopilot.agent.result import Ending, SessionResult
from sopilot.agent.retries import CONTEXT, ProviderError
from sopilot.protocols import ModelReply, ModelRequest, Served, Usage
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.example_tasks import example_tasks
from sopilot.tasks.examples.example import load_example
from sopilot.tasks.run import Conditions, run_task
from sopilot.tasks.task import Task
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS


def a_task() -> Task:
    example = load_example("bank")
    programs = programs_of(example.handbook)
    return example_tasks(example, Briefing(example.handbook, programs))[0]


class Talker:
    """Says something with every turn, and counts ``per_request`` tokens more each time."""

    name = "talker"

    def __init__(self, per_request: int = 0, refuses: ProviderError | None = None) -> None:
        self.requests: list[ModelRequest] = []
        self._per_request = per_request
        self._refuses = refuses

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        if self._refuses is not None:
            raise self._refuses
        used = Usage(self._per_request * len(self.requests), 0, 5, 2)
        return ModelReply("What else do you know?", (), used, Served("stop", "talker-1", "f", "r"))


async def run(model: Talker, **budgets: float | None) -> SessionResult:
    task = a_task()
    limits = Budgets(**{"user_turns": 50, "agent_turns": 40, **budgets})  # type: ignore[arg-type]
    conditions = Conditions(VIEWS["flat"], model, budgets=limits)
    return (await run_task(task, task.open(), conditions, store=MemoryStore())).run


async def test_a_provider_counts_and_the_next_request_is_not_sent() -> None:
    model = Talker(per_request=10_000)
    result = await run(model, context_tokens=45_000)
    assert (result.ending, result.budget) == (Ending.BUDGET, "context_tokens")
    counted = [one.prompt_tokens for one in result.requests]
    assert counted == [10_000, 20_000, 30_000, 40_000, 50_000], "none after one beyond the limit"


async def test_without_a_count_characters_tell() -> None:
    model = Talker()
    result = await run(model, context_tokens=100)
    assert (result.ending, result.budget) == (Ending.BUDGET, "context_tokens")
    assert model.requests == []


async def test_an_endpoint_that_finds_it_too_long_is_the_models_limit_too() -> None:
    result = await run(Talker(refuses=ProviderError("too long", kind=CONTEXT, retryable=False)))
    assert (result.ending, result.budget) == (Ending.BUDGET, "context_tokens")


@pytest.mark.parametrize("temperature", [None, 0.3])
async def test_sampling_is_sent_and_what_was_served_is_kept(temperature: float | None) -> None:
    model = Talker(per_request=10)
    result = await run(model, temperature=temperature, seed=7, reply_tokens=99, agent_turns=2)
    sent = model.requests[0]
    assert (sent.temperature, sent.seed, sent.reply_tokens) == (temperature, 7, 99)
    first = result.as_json()["requests"][0]
    assert (first["finish_reason"], first["served_model"]) == ("stop", "talker-1")
    assert (first["fingerprint"], first["response_id"]) == ("f", "r")
    assert result.usage.reasoning_tokens == 2 * len(result.requests)
