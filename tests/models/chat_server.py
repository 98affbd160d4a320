"""A Chat Completions server on loopback that behaves as badly as it is told."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
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

    @property
    def text(self) -> str:
        if self.raw is not None:
            return self.raw
        if self.status != 200:
            return json.dumps({"error": {"message": f"status {self.status}", "code": None}})
        return json.dumps({"choices": [{"index": 0, "message": self.message}], "usage": USAGE})


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


class ChatServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, plan: Callable[[bytes], Plan]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.plan = plan
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ChatServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.server.requests.append(json.loads(body))
        plan = self.server.plan(body)
        time.sleep(plan.delay)
        self.close_connection = plan.drop or plan.cut
        if plan.drop:
            # A reset, not a polite end.
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
            return
        payload, length = plan.text.encode(), ("content-length", str(len(plan.text.encode())))
        if plan.cut:
            half = payload[: len(payload) // 2]
            payload, length = b"%x\r\n%b\r\n" % (len(half), half), ("transfer-encoding", "chunked")
        self.send_response(plan.status)
        for name, value in (("content-type", "application/json"), length, *plan.headers.items()):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *arguments: object) -> None:
        """Stay silent."""


@contextmanager
def serving(*plans: Plan, plan: Callable[[bytes], Plan] | None = None) -> Iterator[ChatServer]:
    """Answer by the plans in turn, the last one again and again, or by ``plan`` of the request."""
    in_turn = chain(plans, repeat(plans[-1])) if plans else iter(())
    server = ChatServer(plan or (lambda _: next(in_turn)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
