"""OpenTelemetry spans of tool calls, by the GenAI conventions.

    telemetry = Telemetry()
    conversations = Conversations.of("refunds.yaml", telemetry=telemetry)

The conventions still move: every name they give is in this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, get_tracer

from sopilot import __version__

CONVERSATION: Final = "gen_ai.conversation.id"
TOOL: Final = "gen_ai.tool.name"
EXECUTE_TOOL: Final = "execute_tool"


class Telemetry:
    """Spans carry names and ids; never arguments, results or text."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer or get_tracer("sopilot", __version__)

    @contextmanager
    def tool(self, name: str, key: str) -> Iterator[Span]:
        """``key`` is ``SESSION:CALL``."""
        session_id, _, call_id = key.partition(":")
        # By itself the library would put what an exception says into the span.
        with self._tracer.start_as_current_span(
            f"{EXECUTE_TOOL} {name}",
            kind=SpanKind.INTERNAL,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            span.set_attributes(
                {
                    "gen_ai.operation.name": EXECUTE_TOOL,
                    "gen_ai.provider.name": "sopilot",
                    TOOL: name,
                    "gen_ai.tool.type": "function",
                    CONVERSATION: session_id,
                    "gen_ai.tool.call.id": call_id,
                }
            )
            try:
                yield span
            except BaseException as problem:
                span.set_attribute("error.type", type(problem).__name__)
                span.set_status(Status(StatusCode.ERROR))
                raise
