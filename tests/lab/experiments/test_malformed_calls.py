"""Malformed calls reach the official evaluator and count against the run."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tiny import GOAL

from sopbench_checkout import MISSING
from sopilot.protocols import ModelReply, ModelRequest, ToolCall
from sopilot.runner.play import resume_play, start_play
from sopilot.stores.memory import MemoryStore
from sopilot.views.catalogue import view_named
from sopilot.views.step_tool import TOOL_NAME
from sopilot_lab.experiments import trial
from sopilot_lab.experiments.sweep import make_configuration
from sopilot_lab.experiments.trial import Trial, TrialRunner
from sopilot_lab.sopbench.process import Upstream, shared_upstream
from sopilot_lab.sopbench.reference import TaskReference

MALFORMED = {
    "unknown tool": ("no_such_tool", "{}"),
    "missing argument": ("find_tool", "{}"),
    "wrong type": ("find_tool", '{"tool": 5}'),
    "broken JSON": ("find_tool", '{"tool": "saw"'),
    "no object": ("find_tool", '["saw"]'),
    "too deep": ("find_tool", '{"tool": ' + "[" * 5000 + "]" * 5000 + "}"),
    "an attribute of the simulator": ("evaluation_get_database", "{}"),
    "much text": ("find_tool", json.dumps({"tool": 5, "why": "x" * 2000})),
}
NOT_DOMAIN_CALLS = {
    "bookkeeping": (TOOL_NAME, '{"op": "nonsense"}'),
    "the end of the dialog": ("end_session", '{"outcome": 7}'),
    "no call": ("None", "{}"),
}


class Blunderer:
    """Makes one call, then refuses."""

    name = "blunderer"

    def __init__(self, tool: str, arguments: str) -> None:
        self._calls = iter([(ToolCall("c1", tool, arguments),)])

    async def complete(self, request: ModelRequest) -> ModelReply:
        calls = next(self._calls, ())
        return ModelReply("" if calls else "I cannot do that.", calls)


def refusal(upstream: Upstream, goal: str = GOAL) -> TaskReference:
    """A task that passes when nothing is done."""
    return TaskReference("bank", goal, upstream.scoring("bank")[goal].index(False))


def run(
    monkeypatch: pytest.MonkeyPatch, upstream: Upstream, task: TaskReference, arm: str, call: Any
) -> Trial:
    monkeypatch.setattr(trial, "playing", lambda *_: Blunderer(*call))
    configuration = make_configuration(upstream, arm=arm, model="reference", tools="official")
    return asyncio.run(TrialRunner(configuration, upstream).run(task))


@pytest.mark.parametrize("arm", ["pg", "flat", "fused"])
@pytest.mark.parametrize("call", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_call_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, upstream: Upstream, arm: str, call: tuple[str, str]
) -> None:
    verdict = run(monkeypatch, upstream, refusal(upstream), arm, call).record.verdict
    assert verdict is not None
    assert verdict["num_function_calls"] == 1
    assert (verdict["no_tool_call_error"], verdict["success"]) == (False, False)
    assert verdict["database_match"], "nothing was run"


@pytest.mark.parametrize("arm", ["pg", "flat"])
@pytest.mark.parametrize("call", NOT_DOMAIN_CALLS.values(), ids=NOT_DOMAIN_CALLS)
def test_what_is_no_domain_call_does_not_count(
    monkeypatch: pytest.MonkeyPatch, upstream: Upstream, arm: str, call: tuple[str, str]
) -> None:
    verdict = run(monkeypatch, upstream, refusal(upstream), arm, call).record.verdict
    assert verdict is not None
    assert (verdict["num_function_calls"], verdict["success"]) == (0, True)


@pytest.mark.sopbench
@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.parametrize(
    "call",
    [
        ("no_such_tool", "{}"),
        ("get_loan", '{"username": "j"}'),
        ("get_loan", '{"username": "j", "loan_amount": "much"}'),
        ("get_loan", '{"username": '),
    ],
)
def test_the_official_evaluator_says_so(
    monkeypatch: pytest.MonkeyPatch, call: tuple[str, str]
) -> None:
    upstream = shared_upstream()
    verdict = run(monkeypatch, upstream, refusal(upstream, "get_loan"), "flat", call).record.verdict
    assert verdict is not None
    assert (verdict["no_tool_call_error"], verdict["success"]) == (False, False)


@pytest.mark.parametrize("arm", ["pg", "flat"])
@pytest.mark.parametrize("call", MALFORMED.values(), ids=MALFORMED)
async def test_a_play_from_process_to_process_keeps_it(
    monkeypatch: pytest.MonkeyPatch, upstream: Upstream, arm: str, call: tuple[str, str]
) -> None:
    monkeypatch.setattr("sopilot_lab.sopbench.process.shared_upstream", lambda: upstream)

    async def play() -> dict[str, Any]:
        store = MemoryStore()
        begun = await start_play(store, str(refusal(upstream)), view=arm)
        assert not (await begun.call(*call)).ok
        await begun.close()
        again = await resume_play(store, begun.id)  # a fresh world, rebuilt from the trace
        score = await again.finish()
        await again.close()
        return dict(score.verdict)

    verdict = await play()
    assert verdict["num_function_calls"] == 1
    assert (verdict["no_tool_call_error"], verdict["success"]) == (False, False)


async def test_over_mcp_as_well(monkeypatch: pytest.MonkeyPatch, upstream: Upstream) -> None:
    pytest.importorskip("mcp", reason="needs the extra `mcp`")
    import mcp_types as types
    from mcp.client import Client

    from sopilot.integrations.mcp.server import McpServer
    from sopilot.integrations.mcp.services import task_service
    from sopilot.integrations.mcp.sessions import SessionPool

    monkeypatch.setattr("sopilot_lab.sopbench.process.shared_upstream", lambda: upstream)

    async def play() -> dict[str, Any]:
        service = task_service(str(refusal(upstream)), view_named("flat"))
        server = McpServer(SessionPool(MemoryStore(), service))
        async with Client(server.protocol) as client:
            for name, arguments in (("no_such_tool", {}), ("find_tool", {"tool": 5})):
                made = await client.call_tool(name, arguments)
                assert isinstance(made, types.CallToolResult)
                assert made.is_error
            score = await client.call_tool("finish_task", {})
            assert isinstance(score, types.CallToolResult)
            content = score.content[0]
            assert isinstance(content, types.TextContent)
        await server.close()
        verdict: dict[str, Any] = json.loads(content.text.removeprefix("Done: "))["verdict"]
        return verdict

    verdict = await play()
    assert verdict["num_function_calls"] == 2
    assert (verdict["no_tool_call_error"], verdict["success"]) == (False, False)
