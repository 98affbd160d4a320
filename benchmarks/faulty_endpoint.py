"""A Chat Completions endpoint on loopback that answers as a scripted model does, and fails in
twelve ways as often as it is told.

Whether a request fails depends on what it asks and how often it was asked before, on nothing
else: two sweeps meet the same faults, whatever the order of their tasks.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from sopilot.models.wire import text
from sopilot.protocols import Message, ModelRequest, ToolCall, ToolSchema
from sopilot_lab.experiments.entrants import ControlModel

FAULTS: Final = (
    "429", "400", "401", "500", "hang", "html", "cut-json", "empty", "filter", "wrong-schema",
    "dropped", "wrong-model",
)  # fmt: skip
MODEL: Final = "scripted-1"
HANG_SECONDS: Final = 2.0
_HTML: Final = b"<!doctype html><html><body>Bad gateway</body></html>"


def request_from_wire(body: Mapping[str, Any]) -> ModelRequest:
    messages = [
        Message(
            message["role"],
            text(message.get("content"), "content"),
            tuple(
                ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
                for call in message.get("tool_calls") or ()
            ),
            message.get("tool_call_id"),
        )
        for message in body["messages"]
    ]
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    named = [
        Message(m.role, m.content, m.tool_calls, m.tool_call_id, names.get(m.tool_call_id or ""))
        for m in messages
    ]
    tools = [tool["function"] for tool in body.get("tools", ())]
    return ModelRequest(
        named,
        [
            ToolSchema(tool["name"], tool.get("description", ""), tool["parameters"])
            for tool in tools
        ],
    )


def scripted_answer(body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of `call-everything` in one half of the tasks and `refuse-always` in the
    other, so that some pass; a user says one sentence."""
    if not body.get("tools"):
        return {"role": "assistant", "content": "I have told you everything. ###END###"}
    request = next(text(m["content"], "") for m in body["messages"] if m["role"] == "user")
    refuses = hashlib.sha256(request.encode()).digest()[0] % 2
    control = ControlModel("refuse-always" if refuses else "call-everything")
    reply = asyncio.run(control.complete(request_from_wire(body)))
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in reply.tool_calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    return message | ({"tool_calls": calls} if calls else {})


def completion(message: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {
        "id": f"answer-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "system_fingerprint": "fp-1",
        "choices": [{"index": 0, "message": dict(message), "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "total_tokens": 110,
            "completion_tokens_details": {"reasoning_tokens": 4},
        },
    }


class Endpoint:
    """``fault`` is one of ``FAULTS``, or ``None`` for a clean one."""

    def __init__(self, fault: str | None = None, rate: float = 0.0, seed: int = 0) -> None:
        self.fault, self.rate, self.seed = fault, rate, seed
        self.asked: Counter[str] = Counter()
        self.failed = 0
        self._lock = threading.Lock()

    def fails(self, body: bytes) -> bool:
        key = hashlib.sha256(body).hexdigest()
        with self._lock:
            self.asked[key] += 1
            drawn = hashlib.sha256(f"{self.seed} {self.fault} {key} {self.asked[key]}".encode())
            failing = int(drawn.hexdigest()[:8], 16) / 2**32 < self.rate
            self.failed += failing
        return failing and self.fault is not None

    @property
    def requests(self) -> int:
        return sum(self.asked.values())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    endpoint: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.endpoint.fails(body):
            self._fail(str(self.endpoint.fault), json.loads(body))
        else:
            answer = completion(scripted_answer(json.loads(body)), self.endpoint.requests)
            self._send(200, json.dumps(answer).encode())

    def _fail(self, fault: str, body: Mapping[str, Any]) -> None:
        whole = completion(scripted_answer(body), 0)
        choice = whole["choices"][0]
        if fault.isdecimal():
            error = {"error": {"message": f"status {fault}", "code": None}}
            self._send(int(fault), json.dumps(error).encode())
            return
        if fault == "hang":
            time.sleep(HANG_SECONDS)
        if fault in ("dropped", "hang"):
            # A reset, not a polite end.
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
            self.connection.close()
            return
        if fault == "empty":
            choice["message"] = {"role": "assistant", "content": ""}
        elif fault == "filter":
            choice["message"] = {"role": "assistant", "content": "I cannot"}
            choice["finish_reason"] = "content_filter"
        elif fault == "wrong-schema":
            choice["message"] = {"role": "assistant", "content": {"text": 5}}
        elif fault == "wrong-model":
            whole["model"] = "another-model"
            choice["message"] = {"role": "assistant", "content": "I refuse."}
        payload = json.dumps(whole).encode()
        if fault == "cut-json":
            payload = payload[: len(payload) // 2]
        self._send(200, _HTML if fault == "html" else payload)

    def _send(self, status: int, payload: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""

    def finish(self) -> None:
        try:
            super().finish()
        except (OSError, ValueError):
            self.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


@contextmanager
def serving(endpoint: Endpoint) -> Iterator[str]:
    """Its address, as ``--model`` takes it."""
    handler = type("Handler", (_Handler,), {"endpoint": endpoint})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1#{MODEL}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
