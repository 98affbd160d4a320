"""Spans of a whole run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs the extra `otel`")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sopilot.agent.loop import open_run, run_session
from sopilot.agent.reference.executor import Reference
from sopilot.integrations.telemetry import Telemetry, TracedModel, TracedTools
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.runner.play import playable_task
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.examples.example import load_example
from sopilot.tasks.examples.judge import example_judge
from sopilot.values.json import JSON
from sopilot.views.catalogue import view_named


def test_a_run_as_spans() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(provider.get_tracer("test"))
    task = playable_task("bank/transfer-wrong-password")
    user = task.simulation.user
    assert user is not None

    async def run() -> tuple[str, int, int]:
        session = await open_run(
            MemoryStore(),
            task.briefing,
            view_named("pg"),
            tools=TracedTools(task.simulation.tools, telemetry),
        )
        model = TracedModel(Reference(example_judge(load_example("bank"))), telemetry)
        with telemetry.session(session.id, agent="bank"):
            result = await run_session(
                session, task.briefing, view=view_named("pg"), model=model, user=user
            )
        return session.id, len(result.requests), result.domain_calls

    session_id, requests, calls = asyncio.run(run())
    spans: dict[str, list[ReadableSpan]] = {}
    for span in exporter.get_finished_spans():
        attributes = dict(span.attributes or {})
        spans.setdefault(str(attributes["gen_ai.operation.name"]), []).append(span)
        assert attributes["gen_ai.provider.name"] == "sopilot"
    (root,) = spans["invoke_agent"]
    assert root.name == "invoke_agent bank"
    assert dict(root.attributes or {})["gen_ai.conversation.id"] == session_id
    assert (len(spans["chat"]), len(spans["execute_tool"])) == (requests, calls)
    assert all(
        span.parent is not None and span.parent.span_id == root.context.span_id
        for span in (*spans["chat"], *spans["execute_tool"])
    )
    failed = [span for span in spans["execute_tool"] if not span.status.is_ok]
    assert [span.name for span in failed] == ["execute_tool login"]
    text = " ".join(span.to_json() for span in exporter.get_finished_spans())
    assert "anna" not in text, "no argument and no word leaves with a span"


def test_what_a_tool_raises_is_named_on_its_span() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    class Broken:
        def schemas(self) -> Sequence[ToolSchema]:
            return ()

        async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
            raise KeyError("anna")

    tools = TracedTools(Broken(), Telemetry(provider.get_tracer("test")))
    with pytest.raises(KeyError):
        asyncio.run(tools.call("login", {}, key="s:c"))
    (span,) = exporter.get_finished_spans()
    attributes = dict(span.attributes or {})
    assert (attributes["error.type"], attributes["gen_ai.tool.call.id"]) == ("KeyError", "c")
    assert not span.status.is_ok
    assert "anna" not in span.to_json()
