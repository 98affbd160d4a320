"""The guard as an HTTP service, for agents in any language.

``POST /before`` a call decides about it: ``carry_out``, ``refused``, ``missing``, ``waiting`` or
``unknown``. After ``carry_out`` the agent makes the call and reports its answer with
``POST /after``, which becomes evidence. A decision is bound to the conversation, the call's id,
the tool and its arguments. Both requests can be repeated: they are answered as before.

A tool that the handbook doesn't name could be an unguarded way to do what can't be undone. It is
``refused`` and noted, unless ``pass_through`` names it: then its calls are recorded.

``missing`` with a ``question`` is for the user: show it and send the call again, under another id,
with ``reply``. ``messages`` are what the user has said since, ``tell`` is what the application
knows (inputs, secrets). The tool `judge_check` is ``answered`` by the service itself.

    uvicorn.run(decision_app("refunds.yaml", token="…"))
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route

from sopilot.handbook.model import CONFIRM
from sopilot.messages.errors import SopilotError, mistake
from sopilot.runner.conversations import Conversations
from sopilot.runner.guard import Missing, Refused, Waiting, not_carried_out
from sopilot.runner.hook import Failed, Reply
from sopilot.values.json import JSON, canonical, plain
from sopilot.views.answers import CallAnswer, CallStatus

MOST_BYTES = 1_000_000
MOST_CALLS = 10_000
SHORTEST_TOKEN = 16
_KINDS: Mapping[type, str] = {Refused: "refused", Missing: "missing", Waiting: "waiting"}
_TEXT: Mapping[str, JSON] = {"type": "string"}
_DECISIONS = ("carry_out", "refused", "missing", "waiting", "unknown", "answered")


class _BadRequest(Exception):
    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """A call that an agent wants to make."""

    conversation: str
    id: str
    tool: str
    arguments: Mapping[str, JSON]
    reply: Reply | None = None
    messages: Sequence[str] = ()
    tell: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Call:
    """A call that the service decided about, until the agent reports its answer."""

    digest: str
    decided: asyncio.Future[dict[str, JSON]]
    answer: asyncio.Future[tuple[bool, JSON]]
    task: asyncio.Task[CallAnswer | None] | None = None


class Decisions:
    """Decides about calls before they are made, and records their answers.

    ``answer_seconds``: an answer that takes longer makes the outcome unknown.
    """

    def __init__(
        self,
        conversations: Conversations,
        *,
        pass_through: Sequence[str] = (),
        answer_seconds: float = 300.0,
    ) -> None:
        if not conversations.view.guard:
            message = f"the view `{conversations.view.name}` needs a bookkeeping tool"
            raise mistake("not-a-guard", message, help="use `guard`")
        if conversations.reads and not conversations.can_read:
            message = (
                "the decision service can't make calls by itself, and this handbook needs them"
            )
            cure = (
                "leave out `recheck` and the view `guard-auto`; or use `sopilot gateway`, which "
                "reads by itself; or in Python `Conversations.of(…, reader=TOOLS)`"
            )
            raise mistake("no-reader", message, help=cure)
        self._conversations = conversations
        self._own = {schema.name for schema in conversations.own_tools}
        self._actions = {
            action.tool or name: name
            for name, action in conversations.handbook.actions.items()
            if action.offered
        }
        for name, action in conversations.handbook.actions.items():
            if not action.offered and {name, action.tool} & {*pass_through}:
                message = f"the handbook says that `{name}` is not offered"
                raise mistake("not-offered", message, help="leave out --pass-through for it")
        self._actions = {**{name: name for name in pass_through}, **self._actions}
        self._answer_seconds = answer_seconds
        self._calls: dict[tuple[str, str], _Call] = {}

    async def before(self, request: Request) -> dict[str, JSON]:
        bound = {"tool": request.tool, "arguments": dict(request.arguments)}
        digest = sha256(canonical(plain(bound))).hexdigest()
        call = self._calls.get((request.conversation, request.id))
        if call is None:
            call = self._begin(request, digest)
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
            async with self._conversations.using(conversation) as hook:
                await hook.session.note("unlicensed_call", {"id": call_id, "digest": digest})
            raise _BadRequest(409, "this call must not be made")
        if not call.answer.done():
            call.answer.set_result((ok, value))
        answer = await asyncio.shield(call.task)
        assert answer is not None
        return {"recorded": answer.status is CallStatus.DONE, "text": answer.text}

    def tools(self) -> dict[str, JSON]:
        """The tools that are decided about, and whether the handbook guards them."""
        actions = self._conversations.handbook.actions
        return {
            tool: name in actions and actions[name].is_guarded
            for tool, name in self._actions.items()
        }

    def _begin(self, request: Request, digest: str) -> _Call:
        while len(self._calls) >= MOST_CALLS:
            ended = next((key for key, item in self._calls.items() if _is_over(item)), None)
            if ended is None:
                raise _BadRequest(503, "too many calls wait for their answers")
            del self._calls[ended]
        loop = asyncio.get_running_loop()
        call = _Call(digest, loop.create_future(), loop.create_future())
        self._calls[request.conversation, request.id] = call
        call.task = loop.create_task(self._run(call, request))
        call.task.add_done_callback(lambda task: _fail(call, task))
        return call

    async def _run(self, call: _Call, request: Request) -> CallAnswer | None:
        async def dispatch(licensed: Mapping[str, JSON]) -> object:
            decided: dict[str, JSON] = {"decision": "carry_out", "arguments": dict(licensed)}
            call.decided.set_result({**decided, "digest": call.digest})
            ok, value = await asyncio.wait_for(call.answer, self._answer_seconds)
            return value if ok else Failed(value)

        async with self._conversations.using(request.conversation) as hook:
            session = hook.session
            session.supplied.update(request.tell)
            for text in request.messages:
                await session.user_said(text)
            if request.tool in self._own:
                text = await hook.step(request.arguments, request.tool)
                call.decided.set_result(
                    {"decision": "answered", "text": text, "digest": call.digest}
                )
                return None
            if request.tool not in self._actions:
                details: dict[str, JSON] = {
                    "tool": request.tool,
                    "arguments": dict(request.arguments),
                }
                await session.note("unnamed_tool", details)
                text = (
                    f"Refused: the handbook doesn't name the tool `{request.tool}`. An operator "
                    f"can allow it with --pass-through {request.tool}."
                )
                call.decided.set_result(
                    {"decision": "refused", "text": text, "digest": call.digest}
                )
                return None
            with hook.replied(request.reply):
                action = self._actions[request.tool]
                answer, _ = await hook.attempt(action, request.arguments, request.id, dispatch)
            waiting = hook.pause(answer)
        if call.decided.done():
            return answer
        problem = not_carried_out(answer, session.id)
        decided: dict[str, JSON] = {
            "decision": _KINDS.get(type(problem), "unknown"),
            "text": str(problem),
            "digest": call.digest,
        }
        if isinstance(problem, Missing):
            decided["agenda"] = list(problem.agenda)
        if waiting is not None and waiting.question:
            decided["question"] = waiting.question
            decided["only_confirm"] = _is_only_confirmation(answer)
        if isinstance(problem, Waiting):
            decided |= {"session": problem.session, "call": problem.call_id}
        call.decided.set_result(decided)
        return answer


def _is_only_confirmation(answer: CallAnswer) -> bool:
    """Whether the call is proven but for the user's yes to this very call."""
    needs = answer.plan.needs if answer.plan is not None else ()
    return [call.act.action for need in needs for call in need.calls] == [CONFIRM]


def _is_over(call: _Call) -> bool:
    return call.task is not None and call.task.done()


def _fail(call: _Call, task: asyncio.Task[CallAnswer | None]) -> None:
    problem = None if task.cancelled() else task.exception()
    if problem is not None and not call.decided.done():
        call.decided.set_exception(problem)


def decision_app(
    handbook: str | PathLike[str] | Conversations,
    *,
    token: str,
    pass_through: Sequence[str] = (),
    answer_seconds: float = 300.0,
) -> Starlette:
    """The service as an ASGI application. Clients send ``Authorization: Bearer TOKEN``."""
    if len(token) < SHORTEST_TOKEN:
        message = f"the token has fewer than {SHORTEST_TOKEN} characters"
        cure = "make one with: python -c 'import secrets; print(secrets.token_hex(32))'"
        raise mistake("short-token", message, help=cure)
    own = handbook if isinstance(handbook, Conversations) else Conversations.of(handbook)
    decisions = Decisions(own, pass_through=pass_through, answer_seconds=answer_seconds)

    async def before(http: HttpRequest) -> JSONResponse:
        return JSONResponse(await decisions.before(await _wanted(http, token)))

    async def after(http: HttpRequest) -> JSONResponse:
        body = await _body(http, token, conversation=str, id=str, digest=str, ok=bool)
        return JSONResponse(
            await decisions.after(
                body["conversation"], body["id"], body["digest"], body["ok"], body.get("value")
            )
        )

    async def tools(http: HttpRequest) -> JSONResponse:
        _require_token(http, token)
        return JSONResponse({"tools": decisions.tools()})

    async def describe(http: HttpRequest) -> JSONResponse:
        return JSONResponse(OPENAPI)

    async def refuse(http: HttpRequest, problem: Exception) -> JSONResponse:
        status = problem.status if isinstance(problem, _BadRequest) else 503
        return JSONResponse({"error": str(problem)}, status_code=status)

    return Starlette(
        routes=[
            Route("/before", before, methods=["POST"]),
            Route("/after", after, methods=["POST"]),
            Route("/tools", tools),
            Route("/openapi.json", describe),
        ],
        exception_handlers={_BadRequest: refuse, SopilotError: refuse},
    )


def _require_token(http: HttpRequest, token: str) -> None:
    sent = http.headers.get("authorization", "").removeprefix("Bearer ")
    if not hmac.compare_digest(sent.encode(), token.encode()):
        raise _BadRequest(401, "the token is missing or wrong")


async def _wanted(http: HttpRequest, token: str) -> Request:
    body = await _body(http, token, conversation=str, id=str, tool=str, arguments=dict)
    reply, messages, tell = body.get("reply"), body.get("messages", []), body.get("tell", {})
    if reply is not None:
        parts = [reply.get(name) for name in Reply._fields] if isinstance(reply, dict) else [None]
        if not all(isinstance(part, str) for part in parts):
            raise _BadRequest(400, "`reply` needs `question` and `text`")
        reply = Reply(*parts)
    texts = isinstance(messages, list) and all(isinstance(text, str) for text in messages)
    if not texts or not isinstance(tell, dict):
        raise _BadRequest(400, "`messages` must be a list of texts, `tell` an object")
    known = {name: body[name] for name in ("conversation", "id", "tool", "arguments")}
    return Request(**known, reply=reply, messages=messages, tell=tell)


async def _body(http: HttpRequest, token: str, **fields: type) -> dict[str, Any]:
    _require_token(http, token)
    raw = b""
    async for chunk in http.stream():
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
            {
                **_NAMES,
                "tool": _TEXT,
                "arguments": {"type": "object"},
                "reply": {
                    "type": "object",
                    "properties": {"question": _TEXT, "text": _TEXT},
                    "required": ["question", "text"],
                },
                "messages": {"type": "array", "items": _TEXT},
                "tell": {"type": "object"},
            },
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
