"""OpenTelemetry spans by the GenAI conventions, around any model and any tools.

    model = TracedModel(model, telemetry)
    tools = TracedTools(tools, telemetry)
    with telemetry.session(session.id, agent="bank"): ...

The conventions still move: every name they give is in this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, get_tracer

from sopilot import __version__
from sopilot.protocols import Model, ModelReply, ModelRequest, ToolResult, Tools, ToolSchema
from sopilot.values.json import JSON

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
REQUEST_MODEL: Final = "gen_ai.request.model"
TEMPERATURE: Final = "gen_ai.request.temperature"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
TOOL: Final = "gen_ai.tool.name"
TOOL_CALL: Final = "gen_ai.tool.call.id"
TOOL_TYPE: Final = "gen_ai.tool.type"
ERROR: Final = "error.type"
CHAT, EXECUTE_TOOL, INVOKE_AGENT = "chat", "execute_tool", "invoke_agent"


class Telemetry:
    """Spans carry names, counts and ids; never arguments, results or text."""

    def __init__(self, tracer: Tracer | None = None, *, provider: str = "sopilot") -> None:
        self._tracer = tracer or get_tracer("sopilot", __version__)
        self._provider = provider

    @contextmanager
    def session(self, session_id: str, *, agent: str) -> Iterator[Span]:
        """One run of a session; what is spanned inside belongs to it."""
        with self._span(INVOKE_AGENT, agent, SpanKind.INTERNAL) as span:
            span.set_attributes({AGENT: agent, CONVERSATION: session_id})
            yield span

    @contextmanager
    def chat(self, model: str, request: ModelRequest) -> Iterator[Span]:
        with self._span(CHAT, model, SpanKind.CLIENT) as span:
            span.set_attribute(REQUEST_MODEL, model)
            if request.temperature is not None:
                span.set_attribute(TEMPERATURE, request.temperature)
            yield span

    @contextmanager
    def tool(self, name: str, key: str) -> Iterator[Span]:
        with self._span(EXECUTE_TOOL, name, SpanKind.INTERNAL) as span:
            session_id, _, call_id = key.partition(":")
            span.set_attributes(
                {TOOL: name, TOOL_TYPE: "function", CONVERSATION: session_id, TOOL_CALL: call_id}
            )
            yield span

    @contextmanager
    def _span(self, operation: str, subject: str, kind: SpanKind) -> Iterator[Span]:
        # By itself the library would put what an exception says into the span.
        with self._tracer.start_as_current_span(
            f"{operation} {subject}",
            kind=kind,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            span.set_attributes({OPERATION: operation, PROVIDER: self._provider})
            try:
                yield span
            except BaseException as problem:
                span.set_attribute(ERROR, type(problem).__name__)
                span.set_status(Status(StatusCode.ERROR))
                raise


class TracedModel:
    def __init__(self, model: Model, telemetry: Telemetry) -> None:
        self._model = model
        self._telemetry = telemetry

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        with self._telemetry.chat(self.name, request) as span:
            reply = await self._model.complete(request)
            span.set_attributes(
                {
                    INPUT_TOKENS: reply.usage.prompt_tokens,
                    OUTPUT_TOKENS: reply.usage.completion_tokens,
                    CACHED_TOKENS: reply.usage.cached_tokens,
                }
            )
            return reply


class TracedTools:
    def __init__(self, tools: Tools, telemetry: Telemetry) -> None:
        self._tools = tools
        self._telemetry = telemetry

    def __getattr__(self, name: str) -> Any:
        """Tools may also recall outcomes or tell the time: pass that through."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._tools, name)

    def schemas(self) -> Sequence[ToolSchema]:
        return self._tools.schemas()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        with self._telemetry.tool(name, key) as span:
            result = await self._tools.call(name, arguments, key=key)
            if not result.ok:
                span.set_attribute(ERROR, "tool_failed")
                span.set_status(Status(StatusCode.ERROR))
            return result
