"""The guard as an HTTP service, for agents in any language.

``POST /before`` a call decides about it: ``carry_out``, ``refused``, ``missing``, ``waiting`` or
``unknown``. After ``carry_out`` the agent makes the call and reports its answer with
``POST /after``, which becomes evidence. A decision is bound to the conversation, the call's id
and the digest of its arguments. Both requests can be repeated: they are answered as before.

    uvicorn.run(decision_app("refunds.yaml", token="…"))
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from sopilot.messages.errors import SopilotError, mistake
from sopilot.runner.conversation import Conversations, Failed
from sopilot.runner.guard import Missing, Refused, Waiting, not_carried_out
from sopilot.values.json import JSON, canonical, plain
from sopilot.views.answers import CallAnswer, CallStatus

MOST_BYTES = 1_000_000
MOST_CALLS = 10_000
SHORTEST_TOKEN = 16
_KINDS: Mapping[type, str] = {Refused: "refused", Missing: "missing", Waiting: "waiting"}
_TEXT: Mapping[str, JSON] = {"type": "string"}
_DECISIONS = ("carry_out", "refused", "missing", "waiting", "unknown")


class _BadRequest(Exception):
    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


@dataclass(slots=True, eq=False)
class _Call:
    """A call that the service decided about, until the agent reports its answer."""

    digest: str
    decided: asyncio.Future[dict[str, JSON]]
    answer: asyncio.Future[tuple[bool, JSON]]
    task: asyncio.Task[CallAnswer] | None = None


class Decisions:
    """Decides about calls before they are made, and records their answers.

    ``answer_seconds``: an answer that takes longer makes the outcome unknown.
    """

    def __init__(self, conversations: Conversations, *, answer_seconds: float = 300.0) -> None:
        if not conversations.view.guard:
            message = f"the view `{conversations.view.name}` needs a bookkeeping tool"
            raise mistake("not-a-guard", message, help="use `guard`")
        self._conversations = conversations
        self._answer_seconds = answer_seconds
        self._calls: dict[tuple[str, str], _Call] = {}

    async def before(
        self, conversation: str, call_id: str, tool: str, arguments: Mapping[str, JSON]
    ) -> dict[str, JSON]:
        digest = sha256(canonical(plain({"tool": tool, "arguments": dict(arguments)}))).hexdigest()
        call = self._calls.get((conversation, call_id))
        if call is None:
            call = self._begin(conversation, call_id, tool, arguments, digest)
        elif call.digest != digest:
            raise _BadRequest(409, "this id belongs to another call")
        return await asyncio.shield(call.decided)

    async def after(
        self, conversation: str, call_id: str, digest: str, ok: bool, value: JSON
    ) -> dict[str, JSON]:
        call = self._calls.get((conversation, call_id))
        if call is None or call.task is None:
            raise _BadRequest(404, "there is no such call")
        if call.digest != digest:
            raise _BadRequest(409, "the digest belongs to another call")
        if not call.decided.done() or call.decided.result()["decision"] != "carry_out":
            raise _BadRequest(409, "this call must not be made")
        if not call.answer.done():
            call.answer.set_result((ok, value))
        answer = await asyncio.shield(call.task)
        return {"recorded": answer.status is CallStatus.DONE, "text": answer.text}

    def _begin(
        self,
        conversation: str,
        call_id: str,
        tool: str,
        arguments: Mapping[str, JSON],
        digest: str,
    ) -> _Call:
        while len(self._calls) >= MOST_CALLS:
            ended = next((key for key, item in self._calls.items() if _is_over(item)), None)
            if ended is None:
                raise _BadRequest(503, "too many calls wait for their answers")
            del self._calls[ended]
        loop = asyncio.get_running_loop()
        call = _Call(digest, loop.create_future(), loop.create_future())
        self._calls[conversation, call_id] = call
        call.task = loop.create_task(self._run(call, conversation, call_id, tool, arguments))
        call.task.add_done_callback(lambda task: _fail(call, task))
        return call

    async def _run(
        self,
        call: _Call,
        conversation: str,
        call_id: str,
        tool: str,
        arguments: Mapping[str, JSON],
    ) -> CallAnswer:
        async def dispatch(licensed: Mapping[str, JSON]) -> object:
            decided: dict[str, JSON] = {"decision": "carry_out", "arguments": dict(licensed)}
            call.decided.set_result({**decided, "digest": call.digest})
            ok, value = await asyncio.wait_for(call.answer, self._answer_seconds)
            return value if ok else Failed(value)

        async with self._conversations.using(conversation) as hook:
            answer, _ = await hook.attempt(tool, arguments, call_id, dispatch)
        if not call.decided.done():
            problem = not_carried_out(answer, hook.session.id)
            decided: dict[str, JSON] = {
                "decision": _KINDS.get(type(problem), "unknown"),
                "text": str(problem),
                "digest": call.digest,
            }
            if isinstance(problem, Missing):
                decided["agenda"] = list(problem.agenda)
            if isinstance(problem, Waiting):
                decided |= {"session": problem.session, "call": problem.call_id}
            call.decided.set_result(decided)
        return answer


def _is_over(call: _Call) -> bool:
    return call.task is not None and call.task.done()


def _fail(call: _Call, task: asyncio.Task[CallAnswer]) -> None:
    problem = None if task.cancelled() else task.exception()
    if problem is not None and not call.decided.done():
        call.decided.set_exception(problem)


def decision_app(
    handbook: str | PathLike[str] | Conversations, *, token: str, answer_seconds: float = 300.0
) -> Starlette:
    """The service as an ASGI application. Clients send ``Authorization: Bearer TOKEN``."""
    if len(token) < SHORTEST_TOKEN:
        message = f"the token has fewer than {SHORTEST_TOKEN} characters"
        cure = "make one with: python -c 'import secrets; print(secrets.token_hex(32))'"
        raise mistake("short-token", message, help=cure)
    own = handbook if isinstance(handbook, Conversations) else Conversations.of(handbook)
    decisions = Decisions(own, answer_seconds=answer_seconds)

    async def before(request: Request) -> JSONResponse:
        body = await _body(request, token, conversation=str, id=str, tool=str, arguments=dict)
        decided = await decisions.before(
            body["conversation"], body["id"], body["tool"], body["arguments"]
        )
        return JSONResponse(decided)

    async def after(request: Request) -> JSONResponse:
        body = await _body(request, token, conversation=str, id=str, digest=str, ok=bool)
        return JSONResponse(
            await decisions.after(
                body["conversation"], body["id"], body["digest"], body["ok"], body.get("value")
            )
        )

    async def describe(request: Request) -> JSONResponse:
        return JSONResponse(OPENAPI)

    async def refuse(request: Request, problem: Exception) -> JSONResponse:
        status = problem.status if isinstance(problem, _BadRequest) else 503
        return JSONResponse({"error": str(problem)}, status_code=status)

    return Starlette(
        routes=[
            Route("/before", before, methods=["POST"]),
            Route("/after", after, methods=["POST"]),
            Route("/openapi.json", describe),
        ],
        exception_handlers={_BadRequest: refuse, SopilotError: refuse},
    )


async def _body(request: Request, token: str, **fields: type) -> dict[str, Any]:
    sent = request.headers.get("authorization", "").removeprefix("Bearer ")
    if not hmac.compare_digest(sent.encode(), token.encode()):
        raise _BadRequest(401, "the token is missing or wrong")
    raw = b""
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > MOST_BYTES:
            raise _BadRequest(413, "the request is too long")
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise _BadRequest(400, "the body must be a JSON object")
    for name, kind in fields.items():
        if not isinstance(body.get(name), kind):
            raise _BadRequest(400, f"`{name}` is missing or has the wrong type")
    return body


def _operation(summary: str, properties: Mapping[str, JSON], required: list[str]) -> JSON:
    schema: JSON = {"type": "object", "properties": properties, "required": required}
    content: JSON = {"application/json": {"schema": {"type": "object"}}}
    answer: JSON = {"description": "The decision or the record.", "content": content}
    return {
        "post": {
            "summary": summary,
            "security": [{"token": []}],
            "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
            "responses": {
                "200": answer,
                "400": {"description": "The body can't be read."},
                "401": {"description": "The token is missing or wrong."},
                "409": {"description": "The id or the digest belongs to another call."},
            },
        }
    }


_NAMES: Mapping[str, JSON] = {"conversation": _TEXT, "id": _TEXT}
OPENAPI: JSON = {
    "openapi": "3.1.0",
    "info": {"title": "sopilot decisions", "version": "1"},
    "paths": {
        "/before": _operation(
            f"Decide about a call: {', '.join(_DECISIONS)}.",
            {**_NAMES, "tool": _TEXT, "arguments": {"type": "object"}},
            ["conversation", "id", "tool", "arguments"],
        ),
        "/after": _operation(
            "Record the answer to a call that was carried out.",
            {**_NAMES, "digest": _TEXT, "ok": {"type": "boolean"}, "value": {}},
            ["conversation", "id", "digest", "ok"],
        ),
    },
    "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
}
