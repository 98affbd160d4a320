"""The guard as an HTTP service, for agents in any language.

``POST /before`` a call decides about it: ``carry_out``, ``refused``, ``missing``, ``waiting`` or
``unknown``. After ``carry_out`` the agent makes the call and reports its answer with
``POST /after``, which becomes evidence. A decision is bound to the conversation, the call's id,
the tool and its arguments. Both requests can be repeated until the call's answer is reported.

A tool that the handbook doesn't name could be an unguarded way to do what can't be undone. It is
``refused`` and noted, unless ``pass_through`` names it: then its calls are recorded.

``missing`` with a ``question`` is for the user: show it and send the call again, under another id,
with ``reply``. ``messages`` are what the user has said since, ``tell`` is what the application
knows (inputs, secrets). The tools `judge_check` and `give_values` are ``answered`` by
the service itself.

    uvicorn.run(decision_app("refunds.yaml", token="…"))
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route

from sopilot.integrations.mcp.options import actions_by_tool, require_long_token
from sopilot.integrations.pre_tool_hook import call_digest
from sopilot.messages.diagnostic import nearly_same
from sopilot.messages.errors import SopilotError, mistake
from sopilot.runner.conversations import Conversations
from sopilot.runner.guard import Missing, Refused, Waiting, not_carried_out
from sopilot.runner.hook import Failed, Reply
from sopilot.session.session import Session
from sopilot.trace.events import UNLICENSED_CALL, DomainCall
from sopilot.values.json import JSON
from sopilot.values.schema import violation
from sopilot.views.step_answers import CallAnswer, CallStatus

MOST_BYTES = 1_000_000
MOST_CALLS = 10_000
_KINDS: Mapping[type, str] = {Refused: "refused", Missing: "missing", Waiting: "waiting"}


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
    as_written: bool = False


@dataclass(slots=True, eq=False)
class _Call:
    """A call that the service decided about, until the agent reports its answer."""

    tool: str
    digest: str
    decided: asyncio.Future[dict[str, JSON]]
    answer: asyncio.Future[tuple[bool | None, JSON]]
    task: asyncio.Task[CallAnswer | None] = field(init=False)

    def decide(self, decision: str, **details: JSON) -> None:
        self.decided.set_result({"decision": decision, "digest": self.digest, **details})


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
        by_tool = actions_by_tool(conversations.handbook, pass_through)
        # A passed-through tool keeps its server: without it, its name may be an action's tool.
        self._actions = {
            tool: names[-1] if names[-1] in conversations.handbook.actions else tool
            for tool, names in by_tool.items()
        }
        guarded = [tool for tool, is_guarded in self.tools().items() if is_guarded]
        for passed in pass_through:
            near = [tool for tool in guarded if nearly_same(tool, passed)]
            if near and passed not in guarded:
                message = f"the handbook `{conversations.name}` guards `{near[0]}`, and `{passed}` "
                message += "may be the same tool, misspelt"
                cure = "correct the name in the handbook, or give the other tool its own action"
                raise mistake("missing-tool", message, help=cure)
        self._answer_seconds = answer_seconds
        self._calls: dict[tuple[str, str], _Call] = {}

    async def before(self, request: Request) -> dict[str, JSON]:
        digest = call_digest(request.tool, request.arguments)
        call = self._calls.get((request.conversation, request.id))
        if call is None:
            call = self._begin(request, digest)
        elif call.digest != digest:
            raise _BadRequest(409, "this id belongs to another call")
        elif call.answer.done():
            # An agent that uses an id twice would make a second call, unjudged and off the record.
            raise _BadRequest(409, "this call has ended: a new call needs a new id")
        return await asyncio.shield(call.decided)

    async def after(
        self, conversation: str, call_id: str, digest: str, ok: bool | None, value: JSON
    ) -> dict[str, JSON]:
        call = self._calls.get((conversation, call_id))
        if call is None:
            raise _BadRequest(404, "there is no such call")
        if call.digest != digest:
            raise _BadRequest(409, "the digest belongs to another call")
        if not call.decided.done() or call.decided.result()["decision"] != "carry_out":
            async with self._conversations.using(conversation) as hook:
                if self._was_let_through(hook.session, call, call_id):
                    raise _BadRequest(409, "the answer to this call came after a restart")
                details: dict[str, JSON] = {"tool": call.tool, "id": call_id, "digest": digest}
                await hook.session.note(UNLICENSED_CALL, details)
            raise _BadRequest(409, "this call must not be made")
        if not call.answer.done():
            call.answer.set_result((ok, value))
        answer = await asyncio.shield(call.task)
        assert answer is not None
        on_time = not call.answer.cancelled() and call.answer.result() == (ok, value)
        recorded = on_time and answer.status is CallStatus.DONE
        return {"recorded": recorded, "text": answer.text}

    def _was_let_through(self, session: Session, call: _Call, call_id: str) -> bool:
        """Whether an earlier process of the service decided so: the agent did nothing wrong."""
        return any(
            event.kind == DomainCall.kind
            and (event.payload["call_id"], event.payload["action"])
            == (call_id, self._actions.get(call.tool))
            and call_digest(call.tool, event.payload["arguments"]) == call.digest
            for event in session.own_events
        )

    def tools(self) -> dict[str, JSON]:
        """The tools that are decided about, and whether the handbook guards them."""
        actions = self._conversations.handbook.actions
        return {
            tool: name in actions and actions[name].is_guarded
            for tool, name in self._actions.items()
        }

    def _begin(self, request: Request, digest: str) -> _Call:
        while len(self._calls) >= MOST_CALLS:
            ended = next((key for key, item in self._calls.items() if item.task.done()), None)
            if ended is None:
                raise _BadRequest(503, "too many calls wait for their answers")
            del self._calls[ended]
        loop = asyncio.get_running_loop()
        call = _Call(request.tool, digest, loop.create_future(), loop.create_future())
        self._calls[request.conversation, request.id] = call
        call.task = loop.create_task(self._run(call, request))
        call.task.add_done_callback(lambda task: _fail(call, task))
        return call

    async def _run(self, call: _Call, request: Request) -> CallAnswer | None:
        async def dispatch(licensed: Mapping[str, JSON]) -> object:
            call.decide("carry_out", arguments=dict(licensed))
            ok, value = await asyncio.wait_for(call.answer, self._answer_seconds)
            if ok is None:
                return hook.reported_error(request.tool, value)
            return value if ok else Failed(value)

        async with self._conversations.using(request.conversation) as hook:
            session = hook.session
            session.tool_names = {action: tool for tool, action in self._actions.items()}
            session.supplied.update(request.tell)
            session.as_written = request.as_written
            for text in request.messages:
                await session.user_said(text)
            if request.tool in self._own:
                call.decide("answered", text=await hook.step(request.arguments, request.tool))
                return None
            if request.tool not in self._actions:
                # Without the values: only the handbook could say which of them are secret.
                inputs = sorted(request.arguments)
                await session.note("unnamed_tool", {"tool": request.tool, "inputs": inputs})
                text = (
                    f"Refused: the handbook doesn't name the tool `{request.tool}`. An operator "
                    f"can allow it with --pass-through {request.tool}."
                )
                call.decide("refused", text=text)
                return None
            with hook.replied(request.reply):
                answer, _ = await hook.attempt(
                    request.tool, request.arguments, request.id, dispatch
                )
            waiting = hook.pause(answer)
        if call.decided.done():
            return answer
        problem = not_carried_out(answer, session)
        details: dict[str, JSON] = {"text": str(problem)}
        if isinstance(problem, Missing):
            details["agenda"] = list(problem.agenda)
        if waiting is not None and waiting.question:
            details["question"] = waiting.question
        if isinstance(problem, Waiting):
            details |= {"session": problem.session, "call": problem.call_id}
        call.decide(_KINDS.get(type(problem), "unknown"), **details)
        return answer


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
    require_long_token("the token", token)
    own = handbook if isinstance(handbook, Conversations) else Conversations.of(handbook)
    decisions = Decisions(own, pass_through=pass_through, answer_seconds=answer_seconds)

    async def before(http: HttpRequest) -> JSONResponse:
        body = await _body(http, token, _BEFORE)
        if body.get("reply") is not None:
            body["reply"] = Reply(body["reply"]["question"], body["reply"]["text"])
        known = {field.name: body[field.name] for field in fields(Request) if field.name in body}
        return _Answer(await decisions.before(Request(**known)))

    async def after(http: HttpRequest) -> JSONResponse:
        body = await _body(http, token, _AFTER)
        return _Answer(
            await decisions.after(
                body["conversation"], body["id"], body["digest"], body["ok"], body.get("value")
            )
        )

    async def tools(http: HttpRequest) -> JSONResponse:
        _require_token(http, token)
        return _Answer({"tools": decisions.tools()})

    async def describe(http: HttpRequest) -> JSONResponse:
        return _Answer(OPENAPI)

    async def refuse(http: HttpRequest, problem: Exception) -> JSONResponse:
        status = problem.status if isinstance(problem, _BadRequest) else 503
        return _Answer({"error": str(problem)}, status_code=status)

    return Starlette(
        routes=[
            Route("/before", before, methods=["POST"]),
            Route("/after", after, methods=["POST"]),
            Route("/tools", tools),
            Route("/openapi.json", describe),
        ],
        exception_handlers={_BadRequest: refuse, SopilotError: refuse},
    )


class _Answer(JSONResponse):
    """In ASCII: names of tools and values can have lone surrogates."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode()


def _require_token(http: HttpRequest, token: str) -> None:
    sent = http.headers.get("authorization", "").removeprefix("Bearer ")
    if not hmac.compare_digest(sent.encode(), token.encode()):
        raise _BadRequest(401, "the token is missing or wrong")


async def _body(http: HttpRequest, token: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
    _require_token(http, token)
    raw = b""
    async for chunk in http.stream():
        raw += chunk
        if len(raw) > MOST_BYTES:
            raise _BadRequest(413, "the request is too long")
    try:
        body: dict[str, Any] = json.loads(raw)
    except (ValueError, RecursionError):
        raise _BadRequest(400, "the body isn't JSON") from None
    problem = violation(body, schema)
    if problem is not None:
        raise _BadRequest(400, problem)
    return body


# --- the description of the service ---------------------------------------------------

_PROBLEMS = {
    400: "The body can't be read.",
    401: "The token is missing or wrong.",
    404: "There is no such call.",
    409: "The id or the digest belongs to another call, or the call must not be made.",
    413: "The body is too long.",
    503: "The store can't be reached, or too many calls wait for their answers.",
}


def _object(
    required: Mapping[str, JSON], optional: Mapping[str, JSON] | None = None
) -> dict[str, JSON]:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }


def _of(kind: str, meaning: str = "", **more: JSON) -> dict[str, JSON]:
    return {"type": kind, **more, **({"description": meaning} if meaning else {})}


def _content(schema: JSON) -> dict[str, JSON]:
    return {"content": {"application/json": {"schema": schema}}}


def _operation(summary: str, answer: JSON, body: JSON = None) -> JSON:
    problem = _content(_object({"error": _of("string")}))
    statuses = (401, 503) if body is None else tuple(_PROBLEMS)
    operation: dict[str, JSON] = {
        "summary": summary,
        "security": [{"token": []}],
        "responses": {
            "200": {"description": "The answer.", **_content(answer)},
            **{str(code): {"description": _PROBLEMS[code], **problem} for code in statuses},
        },
    }
    if body is None:
        return {"get": operation}
    return {"post": {**operation, "requestBody": {"required": True, **_content(body)}}}


_CALL: Mapping[str, JSON] = {
    "conversation": _of("string", "One session of the guard."),
    "id": _of("string", "The call's id; a repeated request has the same id."),
}
_BEFORE = _object(
    {**_CALL, "tool": _of("string"), "arguments": _of("object")},
    {
        "reply": {
            **_object({"question": _of("string"), "text": _of("string", "The user's answer.")}),
            "type": ["object", "null"],
        },
        "messages": _of(
            "array", "What the user has said since the last request.", items=_of("string")
        ),
        "tell": _of("object", "Values of the application."),
        "as_written": _of("boolean", "Whether the agent can't make the call with other arguments."),
    },
)
_DECISION = _object(
    {
        "decision": {"enum": ["carry_out", "refused", "missing", "waiting", "unknown", "answered"]},
        "digest": _of("string", "Binds the decision to the tool and its arguments."),
    },
    {
        "arguments": _of("object", "With `carry_out`: call the tool with exactly these."),
        "text": _of("string", "For the model; with every other decision."),
        "agenda": _of("array", "With `missing`: the calls to make first.", items=_of("string")),
        "question": _of("string", "With `missing`: show it to the user and send `reply`."),
        "session": _of("string", "With `waiting`: for `sopilot approvals`."),
        "call": _of("string", "With `waiting`: for `sopilot approvals`."),
    },
)
_AFTER = _object(
    {
        **_CALL,
        "digest": _of("string", "Of the decision."),
        "ok": {
            "type": ["boolean", "null"],
            "description": "Whether the tool succeeded. `false`: it did nothing. `null`: it "
            "reported an error, and may have done its work before.",
        },
    },
    {"value": {"description": "The tool's answer."}},
)
_RECORDED = _object(
    {
        "recorded": _of("boolean", "Whether the answer is evidence now."),
        "text": _of("string", "For the model."),
    }
)
_TOOLS = _of(
    "object",
    "Whether the handbook guards the tool, by name.",
    additionalProperties=_of("boolean"),
)
OPENAPI: JSON = {
    "openapi": "3.1.0",
    "info": {"title": "sopilot decisions", "version": "1"},
    "paths": {
        "/before": _operation("Decide about a call.", _DECISION, _BEFORE),
        "/after": _operation(
            "Record the answer to a call that was carried out.", _RECORDED, _AFTER
        ),
        "/tools": _operation(
            "List the tools that the service decides about.", _object({"tools": _TOOLS})
        ),
    },
    "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
}
