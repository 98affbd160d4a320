"""A Chat Completions server on loopback that behaves as badly as it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Plan:
    """One answer: a body, a status, or a way to fail."""

    message: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: str | None = None
    drop: bool = False
    delay: float = 0.0
    cut: bool = False


def saying(text: str) -> Plan:
    return Plan({"role": "assistant", "content": text})


def calling(*calls: tuple[str, str]) -> Plan:
    made = [
        {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(calls)
    ]
    return Plan({"role": "assistant", "content": None, "tool_calls": made})


USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 9,
    "prompt_tokens_details": {"cached_tokens": 64},
}


class ChatServer:
    def __init__(self, plans: Sequence[Plan]) -> None:
        self._plans = list(plans)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                lines = head.split("\r\n")
                headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
                body = json.loads(await reader.readexactly(int(headers["content-length"])))
                self.requests.append(body)
                self.headers.append(headers)
                plan = self._plans[min(len(self.requests), len(self._plans)) - 1]
                await asyncio.sleep(plan.delay)
                if plan.drop:
                    writer.transport.abort()
                    return
                writer.write(self._answer(plan))
                await writer.drain()
                if plan.cut:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, plan: Plan) -> bytes:
        if plan.raw is not None:
            text = plan.raw
        elif plan.status != 200:
            text = json.dumps({"error": {"message": f"status {plan.status}"}})
        else:
            text = json.dumps({"choices": [{"index": 0, "message": plan.message}], "usage": USAGE})
        payload = text.encode()
        head = [f"HTTP/1.1 {plan.status} X", "content-type: application/json"]
        head += [f"{name}: {value}" for name, value in plan.headers.items()]
        if plan.cut:
            payload = payload[: len(payload) // 2]
            head.append("transfer-encoding: chunked")
            payload = f"{len(payload):x}\r\n".encode() + payload + b"\r\n"
        else:
            head.append(f"content-length: {len(payload)}")
        return "\r\n".join(head).encode() + b"\r\n\r\n" + payload


@asynccontextmanager
async def serving(*plans: Plan) -> AsyncIterator[ChatServer]:
    server = ChatServer(plans)
    listener = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
