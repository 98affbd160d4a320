"""The loop: budgets, malformed calls, several calls, providers that fail, ends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from desk_runs import Played, ScriptedModel, briefing_of, calls, play, reference
from hypothesis import given, settings
from hypothesis import strategies as st

from json_values import JSONS
from sopilot.agent.approvers import ScriptedUser
from sopilot.agent.budgets import Budgets
from sopilot.agent.loop import open_run, run_session
from sopilot.agent.result import Ending
from sopilot.agent.retries import ProviderError, Retries
from sopilot.messages.errors import UserMistake
from sopilot.protocols import Model, ModelReply, ModelRequest, Usage
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.examples.example import load_example
from sopilot.views.catalogue import VIEWS
from sopilot_lab.experiments.model_user import ModelUser

EXAMPLE = load_example("bank")
TASK = EXAMPLE.task("dispute-electronics")
ASK = ModelReply("What is your name?")


async def run(model: Model, view: str = "pg", **options: Any) -> Played:
    return await play("bank", TASK.id, view, model=model, **options)


class SlowClock:
    """Every look at it takes ten seconds."""

    def __init__(self) -> None:
        self._now = 1_000.0

    def now(self) -> float:
        self._now += 10.0
        return self._now


@pytest.mark.parametrize(
    ("budget", "model", "options"),
    [
        ("agent_turns", calls(("read_ledger", "{}")), {"agent_turns": 4}),
        ("domain_calls", calls(("read_ledger", "{}")), {"domain_calls": 2}),
        ("user_turns", ASK, {"user_turns": 2}),
    ],
)
async def test_every_budget_fires_and_says_so(
    budget: str, model: ModelReply, options: dict[str, int]
) -> None:
    done = await run(ScriptedModel([model]), budgets=Budgets(**options))
    assert (done.result.ending, done.result.budget) == (Ending.BUDGET, budget)
    assert done.notes("budget") == [{"budget": budget, "limit": options[budget]}]
    assert len(done.world.calls) <= options.get("domain_calls", 30)
    assert done.result.agent_turns <= options.get("agent_turns", 150)
    assert done.result.user_turns <= options.get("user_turns", 3)


async def test_the_wall_clock_fires_between_turns() -> None:
    model = ScriptedModel([calls(("read_ledger", "{}"))])
    done = await run(model, budgets=Budgets(wall_seconds=200, domain_calls=1000), clock=SlowClock())
    assert (done.result.ending, done.result.budget) == (Ending.BUDGET, "wall_seconds")
    assert done.world.calls


class Slow:
    """Takes ``seconds`` for every answer, and fails ``failures`` times first."""

    name = "slow"

    def __init__(self, seconds: float, *, failures: int = 0, quick: int = 0) -> None:
        self._seconds = seconds
        self._failures = failures
        self._quick = quick

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self._failures:
            self._failures -= 1
            raise ProviderError("HTTP 503")
        if self._quick:
            self._quick -= 1
        else:
            await asyncio.sleep(self._seconds)
        return calls(("read_ledger", "{}"))


@pytest.mark.parametrize("seconds", [0.15, 0.25])
async def test_a_slow_model_that_answers_spends_its_wall_clock(seconds: float) -> None:
    done = await run(Slow(seconds), budgets=Budgets(wall_seconds=0.4))
    assert (done.result.ending, done.result.budget) == (Ending.BUDGET, "wall_seconds")
    assert done.notes("infrastructure_failure") == []


@pytest.mark.parametrize(
    ("model", "request_seconds", "problem"),
    [
        (Slow(30), 600, "slow: no answer within 0."),
        (Slow(30), 0.2, "slow: no answer within 0.2 s"),
        (Slow(30, failures=1), 600, "slow: HTTP 503"),
        (Slow(30, quick=3), 600, "slow: no answer within 0."),
        (Slow(0, failures=100), 600, "slow: HTTP 503"),
    ],
    ids=["never", "given up once", "failed, then silent", "died midway", "pausing"],
)
async def test_a_silent_provider_is_no_spent_budget(
    model: Slow, request_seconds: float, problem: str
) -> None:
    budgets = Budgets(wall_seconds=0.31, request_seconds=request_seconds)
    done = await run(model, budgets=budgets, retries=Retries(first_seconds=0.05))
    assert (done.result.ending, done.result.budget) == (Ending.INFRASTRUCTURE_FAILURE, None)
    assert done.result.reason.startswith(problem)
    assert "0.31 wall seconds" in done.result.reason
    assert done.notes("infrastructure_failure")[0]["problem"] == done.result.reason
    assert done.notes("budget") == []


async def test_the_context_is_refreshed() -> None:
    whole = await play("bank", "transfer-rent-share")
    refreshed = await play("bank", "transfer-rent-share", budgets=Budgets(refresh_actions=3))
    assert len(refreshed.notes("refresh")) >= 5
    assert not whole.notes("refresh")
    assert refreshed.judgement.passed
    assert refreshed.world.calls == whole.world.calls
    shorter = max(one.messages for one in refreshed.result.requests)
    assert shorter < max(one.messages for one in whole.result.requests)


@pytest.mark.parametrize("view", ["pg", "state-only", "full-cursor"])
@settings(deadline=None, max_examples=8)
@given(every=st.integers(1, 12))
async def test_a_refresh_at_any_step_changes_nothing(view: str, every: int) -> None:
    for task in ("transfer-no-code", "wire-boat-yard", "dispute-instead-of-card"):
        done = await play("bank", task, view, budgets=Budgets(refresh_actions=every))
        assert done.judgement.passed, (task, done.judgement.reasons)


async def test_malformed_calls_are_answered() -> None:
    bad = [
        ("read_balance", "{username: anna}"),
        ("read_balance", "[1]"),
        ("read_balanse", "{}"),
        ("read_balance", "{}"),
        ("read_balance", '{"username": 3}'),
        ("read_balance", '{"username": "anna", "who": 1}'),
        ("pg_program_step", '{"operation": "jump"}'),
        ("pg_program_step", "nonsense"),
    ]
    model = ScriptedModel([calls(*bad), ASK])
    done = await run(model, budgets=Budgets(user_turns=0))
    answers = [m.content for m in model.requests[1].messages if m.role == "tool"]
    assert len(answers) == len(bad)
    expected = [
        "not JSON", "must be a JSON object", "did you mean `read_balance`", "also needs `username`",
        "must be of type string", "has no argument `who`", "must be one of start", "not JSON",
    ]  # fmt: skip
    for answer, part in zip(answers, expected, strict=True):
        assert answer.startswith("Not done: ")
        assert part in answer
    assert len(done.notes("malformed_call")) == 6
    assert len(done.notes("malformed_step")) == 2
    assert done.world.calls == ()


async def test_several_calls_are_done_in_order() -> None:
    start = json.dumps({"operation": "start", "goal": "dispute_payment", "arguments": {}})
    login = json.dumps({"username": "anna", "password": "heron-42"})
    model = ScriptedModel(
        [
            calls(
                ("pg_program_step", start), ("login", login), ("nothing", "{}"), ("read_ledger", "")
            ),
            ASK,
        ]
    )
    done = await run(model, budgets=Budgets(user_turns=0))
    assert [call.name for call in done.world.calls] == ["login", "read_ledger"]
    tools = [m for m in model.requests[1].messages if m.role == "tool"]
    assert [m.tool_call_id for m in tools] == ["c0", "c1", "c2", "c3"]
    assert [bool(m.content) for m in tools] == [True] * 4
    assert done.kinds().index("start") < done.kinds().index("domain_call")


async def test_empty_replies_end_the_run() -> None:
    done = await run(ScriptedModel([ModelReply("")]))
    assert done.result.ending is Ending.ABANDONED
    assert len(done.notes("malformed_call")) == 3


@pytest.mark.parametrize(
    ("outcome", "goal", "ending"),
    [
        ("refused", False, Ending.REFUSED),
        ("executed", True, Ending.EXECUTED),
        ("executed", False, Ending.ABANDONED),
        ("refused", True, Ending.EXECUTED),
    ],
)
async def test_ends_without_a_machine(outcome: str, goal: bool, ending: Ending) -> None:
    act = ("dispute_payment", json.dumps({"username": "anna", "payment_id": "P-1001"}))
    end = ("end_session", json.dumps({"outcome": outcome, "reason": "so"}))
    model = ScriptedModel([calls(*([act] if goal else []), end)])
    assert (await run(model, "official")).result.ending is ending


async def test_a_user_who_leaves_ends_the_dialog() -> None:
    polite = ModelReply("I cannot do that. Goodbye.")
    user = ScriptedUser("Hello", {}, follow_ups=["Really not?"])
    done = await run(ScriptedModel([polite]), "official", user=user)
    assert (done.result.ending, done.result.user_turns) == (Ending.REFUSED, 1)
    user = ScriptedUser("Hello", {})
    assert (await run(ScriptedModel([polite]), user=user)).result.ending is Ending.ABANDONED


async def test_views_without_a_machine_do_not_guard() -> None:
    tools = EXAMPLE.make_tools(TASK)
    with pytest.raises(UserMistake, match="can't guard `close_account`"):
        await open_run(MemoryStore(), briefing_of("bank"), VIEWS["flat"], tools=tools)


async def test_held_calls_without_an_operator_wait() -> None:
    store = MemoryStore()
    task = EXAMPLE.task("refund-unknown-shop")
    briefing = briefing_of("bank")
    session = await open_run(store, briefing, VIEWS["pg"], tools=EXAMPLE.make_tools(task))
    model = reference("bank")

    async def go_on() -> Ending:
        user = ScriptedUser(task.request, task.inputs, goal=task.goal)
        result = await run_session(session, briefing, view=VIEWS["pg"], model=model, user=user)
        return result.ending

    assert await go_on() is Ending.WAITING
    (call,) = session.held_calls
    await session.decide("approve", call.call_id, by="Ada", role="supervisor")
    assert await go_on() is Ending.EXECUTED
    made = [one for one in session.tools.calls if one.name == "refund_dispute"]  # type: ignore[union-attr]
    assert len(made) == 1


class Flaky:
    """Fails a number of times before every good reply."""

    name = "flaky"

    def __init__(self, failures: int, *, retryable: bool = True) -> None:
        self._failures = failures
        self._failed = 0
        self._retryable = retryable

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self._failed < self._failures:
            self._failed += 1
            raise ProviderError("HTTP 500", retryable=self._retryable)
        self._failed = 0
        return ModelReply("Goodbye.", usage=Usage(100, 40, 7))


QUICK = Retries(attempts=3, first_seconds=0.001)


async def test_provider_errors_are_retried() -> None:
    done = await run(Flaky(2), retries=QUICK)
    assert done.result.ending is not Ending.INFRASTRUCTURE_FAILURE
    assert done.result.requests[0].attempts == 3
    assert done.result.requests[0].cached_tokens == 40
    assert done.result.usage.prompt_tokens == 100 * done.result.agent_turns
    assert len(done.notes("model_request")) == done.result.agent_turns


@pytest.mark.parametrize(("model", "attempts"), [(Flaky(3), 3), (Flaky(1, retryable=False), 1)])
async def test_infrastructure_failures_are_kept_apart(model: Flaky, attempts: int) -> None:
    done = await run(model, retries=QUICK)
    assert done.result.ending is Ending.INFRASTRUCTURE_FAILURE
    assert done.notes("infrastructure_failure")[0]["attempts"] == attempts
    assert "HTTP 500" in done.result.reason


async def test_a_user_played_by_a_model() -> None:
    voice = ScriptedModel([ModelReply("anna"), ModelReply("###END###")])
    user = ModelUser(voice, "You are anna.", "I want to dispute a payment.")
    done = await run(ScriptedModel([ASK]), user=user)
    said = [one.payload["text"] for one in done.session.own_events if one.kind == "user_said"]
    assert said == ["I want to dispute a payment.", "anna"]
    assert done.result.ending is Ending.ABANDONED
    assert "anna" in voice.requests[0].messages[0].content


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["pg_program_step", "login", "read_ledger", "transfer", "x"]),
            st.text(max_size=20)
            | st.dictionaries(
                st.sampled_from(["operation", "goal", "username", "holds"]), JSONS
            ).map(json.dumps),
        ),
        max_size=4,
    )
)
async def test_no_model_reply_escapes(pairs: list[tuple[str, str]]) -> None:
    model = ScriptedModel([calls(*pairs) if pairs else ASK, ASK])
    done = await run(model, budgets=Budgets(user_turns=1, agent_turns=6))
    assert done.result.ending in set(Ending)
