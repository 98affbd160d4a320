"""Questions to the user, asked by the client: MCP's elicitation, in both protocol eras.

Up to 2025-11-25 the server sends the client a request. Since 2026-07-28 the server answers the
call with the question and the client calls again with the answer: a round. Meanwhile the call
is parked.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass

import mcp_types as types
from mcp.shared.exceptions import MCPError

from sopilot.integrations.mcp.client_call import (
    CURRENT_CALL,
    ELICITATION,
    Caller,
    ClientCall,
    Context,
)
from sopilot.session.questions import AGAIN, CannotAsk, UserAnswer
from sopilot.session.session import Session
from sopilot.values.json import same

PARKED_SECONDS = 600.0
"""A client that doesn't come back within this time has not answered."""
_ANSWER = {"type": "string", "title": "Your answer"}
_CLOSED = {**_ANSWER, "enum": ["yes", "no"]}


class AskThroughClient:
    """Asks the user through the client whose call is being handled.

    A client that declines has not answered: "no" may be the answer that lets a call through. So
    has one that gives its call up, or that makes the same call again while the question is open.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._open: dict[str, asyncio.Future[types.ElicitResult | types.ErrorData]] = {}
        """Questions that clients have not answered yet."""

    async def __call__(self, question: str, about: str, closed: bool) -> UserAnswer | None:
        call = CURRENT_CALL.get()
        if call is None or not call.can(ELICITATION):
            raise CannotAsk
        schema = {
            "type": "object",
            "properties": {"answer": _CLOSED if closed else _ANSWER},
            "required": ["answer"],
        }
        form = types.ElicitRequestFormParams(message=question, requested_schema=schema)
        request = types.ElicitRequest(params=form)
        asking = asyncio.ensure_future(call.ask(request, types.ElicitResult, ELICITATION))
        key = question.removesuffix(f"\n{AGAIN}")
        if (earlier := self._open.get(key)) is not None:
            earlier.cancel()
        self._open[key] = asking
        try:
            with call.on_cancel(asking.cancel):
                await asyncio.wait({asking}, timeout=PARKED_SECONDS)
        finally:
            asking.cancel()
            if self._open.get(key) is asking:
                del self._open[key]
        result = None if asking.cancelled() or not asking.done() else asking.result()
        if result is None or isinstance(result, types.ErrorData) or result.action != "accept":
            return None
        text = (result.content or {}).get("answer")
        if not isinstance(text, str):
            return None
        await self._session.assistant_said(question)
        outcome = await self._session.user_said(text)
        return UserAnswer(text, outcome.events[0].seq)


@dataclass(eq=False)
class ParkedCall:
    call: ClientCall
    params: types.CallToolRequestParams
    task: asyncio.Task[types.CallToolResult]
    timer: asyncio.TimerHandle | None = None


class ParkedCalls:
    """Calls that wait for their client's next round, by the state that the client sends back.

    The state is a random handle that is valid once, for the same caller, tool and arguments.
    """

    def __init__(self) -> None:
        self._parked: dict[str, ParkedCall] = {}

    async def answer(self, parked: ParkedCall) -> types.CallToolResult | types.InputRequiredResult:
        """The call's result, or its next questions."""
        raised = asyncio.ensure_future(parked.call.rounds.raised())
        try:
            await asyncio.wait({parked.task, raised}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            parked.call.cancel()
            parked.call.rounds.answer({})
            raise
        finally:
            raised.cancel()
        if parked.task.done():
            return parked.task.result()
        state = secrets.token_urlsafe(24)
        self._parked[state] = parked
        loop = asyncio.get_running_loop()
        parked.timer = loop.call_later(PARKED_SECONDS, self._expire, state)
        return types.InputRequiredResult(input_requests=raised.result(), request_state=state)

    def resume(
        self, caller: Caller, params: types.CallToolRequestParams, ctx: Context
    ) -> ParkedCall:
        parked = self._parked.get(params.request_state or "")
        if (
            parked is None
            or parked.call.caller != caller
            or parked.params.name != params.name
            or not same(parked.params.arguments or {}, params.arguments or {})
        ):
            raise MCPError(types.INVALID_PARAMS, "`requestState` belongs to no waiting call")
        del self._parked[params.request_state or ""]
        if parked.timer is not None:
            parked.timer.cancel()
        parked.call.attach(ctx)
        parked.call.rounds.answer(params.input_responses or {})
        return parked

    def close(self) -> None:
        for state in tuple(self._parked):
            self._expire(state)

    def _expire(self, state: str) -> None:
        parked = self._parked.pop(state, None)
        if parked is not None:
            if parked.timer is not None:
                parked.timer.cancel()
            parked.call.rounds.answer({})
