"""What is asked of one upstream server, and how its answers are understood."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

import httpx2
import mcp_types as types
import pydantic_core
from mcp.client import Client
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp_types.methods import SERVER_RESULTS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, TypeAdapter, ValidationError

from sopilot.integrations.mcp.asking import NotSent, Result
from sopilot.integrations.mcp.call_link import CallLink
from sopilot.integrations.mcp.content import KEY_META
from sopilot.integrations.mcp.kept_connection import KeptConnection, UpstreamFailed
from sopilot.integrations.mcp.upstream_spec import UpstreamSpec
from sopilot.messages.errors import RunEnded
from sopilot.values.json import JSON

_DEFINITE = frozenset({types.INVALID_PARAMS, types.METHOD_NOT_FOUND})
"""Errors by which a server says that it did nothing."""


_MOST_PAGES = 100


_MOST_ROUNDS = 10
"""In which a server may ask for something before it does what it was asked for."""


_LATER_WORDS = frozenset({"resultType", "ttlMs", "cacheScope"})
"""Of results since 2026-07-28: in an older one they would mean nothing."""


_CALL, _LIST = "tools/call", "tools/list"


_LOG_LEVEL = "io.modelcontextprotocol/logLevel"


Found = TypeVar("Found")


Answer = TypeVar("Answer", bound=BaseModel)


Page = TypeVar("Page", bound=types.PaginatedResult)


Listing = TypeVar(
    "Listing",
    types.ListToolsRequest,
    types.ListResourcesRequest,
    types.ListResourceTemplatesRequest,
    types.ListPromptsRequest,
)


class _Request(NamedTuple):
    """As it is spelled on the wire. The library's model of it is for the library alone: what a
    gateway asks most goes past it."""

    model: type[types.ClientRequest]
    method: str
    params: dict[str, Any]

    @property
    def what(self) -> str:
        return self.params.get("name") or self.method

    def data(self) -> dict[str, Any]:
        """A copy, to which the library adds what every request carries."""
        params = dict(self.params)
        if "_meta" in params:
            params["_meta"] = dict(params["_meta"])
        return {"method": self.method, "params": params}


class McpRefused(RunEnded):
    """The server answered that it did not carry the call out."""


class McpUpstream(KeptConnection):
    def __init__(self, spec: UpstreamSpec, *, timeout_seconds: float = 300.0) -> None:
        super().__init__(spec, timeout_seconds=timeout_seconds)
        self._pages: dict[str | None, tuple[bytes, Any]] = {}
        """By cursor, the tools as they were last listed."""

    async def tools(self, link: CallLink | None = None) -> list[types.Tool]:
        pages = self.pages(types.ListToolsRequest, types.ListToolsResult, link)
        return [tool async for page in pages for tool in page.tools]

    async def pages(
        self, request: type[Listing], answer: type[Page], link: CallLink | None = None
    ) -> AsyncIterator[Page]:
        method, params = _method(request), dict[str, Any]()
        await self._connected()
        here = self.generation  # all pages are of one list
        for _ in range(_MOST_PAGES):
            page = await self._put(_Request(request, method, params), answer, link, here)
            yield page
            if not page.next_cursor:
                return
            params = {"cursor": page.next_cursor}
        raise UpstreamFailed(f"`{self.spec.name}` lists without end")

    async def can(self) -> types.ServerCapabilities:
        return (await self._connected()).server_capabilities

    async def call(
        self,
        name: str,
        arguments: Mapping[str, JSON],
        link: CallLink | None = None,
        *,
        key: str = "",
        generation: int | None = None,
    ) -> types.CallToolResult:
        """Raises ``McpRefused`` for a call that was not carried out, ``UpstreamFailed``
        where that cannot be known: a lost connection, no answer in time, a cancellation.
        With a ``generation`` the call is made on that connection or not at all. The ``key``
        goes with it: people ask the server by it how the call ended."""
        # Not the client's own `call_tool`: it keeps results back that do not fit their schema.
        params: dict[str, Any] = {"name": name, "arguments": dict(arguments)}
        if key:
            params["_meta"] = {KEY_META: key}
        request = _Request(types.CallToolRequest, _CALL, params)
        return await self._put(request, types.CallToolResult, link, generation)

    async def ask(
        self, request: types.ClientRequest, answer: type[Answer], link: CallLink | None = None
    ) -> Answer:
        data = request.model_dump(by_alias=True, mode="json", exclude_none=True)
        asked = _Request(type(request), data["method"], data.get("params") or {})
        return await self._put(asked, answer, link)

    async def _put(
        self,
        request: _Request,
        answer: type[Answer],
        link: CallLink | None,
        generation: int | None = None,
    ) -> Answer:
        client = await self._connected()
        if generation is not None and generation != self.generation:
            raise McpRefused(f"the connection to `{self.spec.name}` was lost before {request.what}")
        relay = link.relay if link is not None else None
        if relay is not None:
            self._under_way.append(relay)
        try:
            asked = self._rounds(client, request, answer, link)
            if not self._past(request):
                asked = self._answer(request.what, asked, link)
            return await self._understood(asked)
        finally:
            if relay is not None:
                self._under_way.remove(relay)

    async def _rounds(
        self, client: Client, request: _Request, answer: type[Answer], link: CallLink | None
    ) -> Answer:
        """Since 2026-07-28 a server that needs something first says so, and is asked again."""
        if self._modern and self.log_level is not None:
            request.params["_meta"] = {
                **request.params.get("_meta", {}),
                _LOG_LEVEL: self.log_level,
            }
        wanted = _or_more_asked(answer) if self._modern else answer
        wire = self._wire
        for _ in range(_MOST_ROUNDS):
            found = await self._sent(client, request, wanted, link)
            if not isinstance(found, types.InputRequiredResult):
                given: Answer = found
                return given
            responses = {}
            for key, one in (found.input_requests or {}).items():
                about = ClientRequestContext(session=client.session, request_id=key)
                asking = client.session.dispatch_input_request(about, one)
                said = await self._in_time(request.what, asyncio.ensure_future(asking), link)
                if isinstance(said, types.ErrorData):
                    raise McpRefused(f"`{self.spec.name}` needs more: {said.message}")
                responses[key] = said.model_dump(by_alias=True, mode="json", exclude_none=True)
            more = {"inputResponses": responses or None, "requestState": found.request_state}
            # What was asked before must not stand beside it.
            asked = {name: one for name, one in request.params.items() if name not in more}
            given_now = {name: one for name, one in more.items() if one is not None}
            request = request._replace(params={**asked, **given_now})
            if self._wire is not wire:
                raise McpRefused(f"the connection to `{self.spec.name}` was lost before it went on")
        raise McpRefused(f"`{self.spec.name}` asks without end")

    def _past(self, request: _Request) -> bool:
        """Lists and calls of tools go past the client, to the same effect. Over HTTP older servers
        have streams that are taken up again: the library does that."""
        wire = self._wire
        if wire is None or wire.off or (self.spec.url and not self._modern):
            return False
        return request.method in (_CALL, _LIST)

    async def _sent(
        self,
        client: Client,
        request: _Request,
        answer: type[Answer] | TypeAdapter[Any],
        link: CallLink | None,
    ) -> Any:
        progress = link.progress if link is not None else None
        if not self._past(request):
            whole = request.model.model_validate(request.data(), by_name=False)
            return await client.session.send_request(whole, answer, progress_callback=progress)
        assert self._wire is not None
        data, options = request.data(), CallOptions()
        client.session._stamp(data, options)
        method, params = request.method, data["params"]
        asked = self._wire.ask(method, params, options.get("headers", {}), progress)
        raw = await self._in_time(request.what, asked, link)
        if method != _LIST:
            return _read(method, self._version, raw, answer)
        # Mostly nothing has changed. Spelled out, because `True` and 1 are equal in Python.
        cursor, spelled = params.get("cursor"), pydantic_core.to_json(raw)
        before, page = self._pages.get(cursor, (b"", None))
        if page is None or before != spelled:
            page = _read(method, self._version, raw, answer)
            if len(self._pages) >= _MOST_PAGES:
                self._pages.clear()
            self._pages[cursor] = spelled, page
        return page

    async def set_log_level(self, level: types.LoggingLevel) -> None:
        """Also of connections that are made later."""
        self.log_level = level
        client = await self._connected()
        if client.server_capabilities.logging is None:
            return
        if not self._modern:
            params = types.SetLevelRequestParams(level=level)
            await self.ask(types.SetLevelRequest(params=params), types.EmptyResult)

    async def _in_time(
        self, what: str, asked: asyncio.Future[Found], link: CallLink | None
    ) -> Found:
        """Unless the client gives up before, where that does no harm. Whoever is not waited for
        any more is told so."""
        whys: list[str] = []

        def give_up(why: str) -> None:
            whys.append(f"`{what}` of `{self.spec.name}`: {why}")
            asked.cancel()

        late = f"there was no answer within {self._timeout:g} s"
        timer = asyncio.get_running_loop().call_later(self._timeout, give_up, late)
        spoilt = partial(give_up, "its answer cannot be read")
        self._asked.append(spoilt)
        left = partial(give_up, "it was cancelled")
        cancelled = link.cancelled if link is not None and not link.irreversible else None
        if cancelled is not None:
            cancelled.then.append(left)
            if cancelled.is_set():
                left()
        try:
            return await asked
        except asyncio.CancelledError:
            if whys:
                raise UpstreamFailed(whys[0]) from None
            raise
        finally:
            timer.cancel()
            self._asked.remove(spoilt)
            if cancelled is not None:
                cancelled.then.remove(left)

    async def _answer(
        self, what: str, request: Coroutine[Any, Any, Answer], link: CallLink | None
    ) -> Answer:
        """What the library asks, in a task of its own: it is cancelled as it expects."""
        return await self._in_time(what, asyncio.ensure_future(request), link)

    async def _understood(self, asked: Coroutine[Any, Any, Answer]) -> Answer:
        try:
            return await asked
        except McpRefused:
            raise
        except NotSent as problem:
            await self.close()
            raise McpRefused(f"`{self.spec.name}`: {problem.error.message}") from None
        except MCPError as problem:
            if problem.error.code in _DEFINITE:
                raise McpRefused(problem.error.message) from None
            if problem.error.code == types.CONNECTION_CLOSED:
                await self.close()
            raise UpstreamFailed(f"`{self.spec.name}`: {problem.error.message}") from None
        except ValidationError as problem:
            first = problem.errors()[0]["msg"]
            raise UpstreamFailed(f"`{self.spec.name}` gave no answer of MCP: {first}") from None
        except (OSError, httpx2.HTTPError, RuntimeError) as problem:
            await self.close()
            raise UpstreamFailed(f"`{self.spec.name}`: {problem}") from None


def _read(method: str, version: str, raw: Result, answer: type[Answer] | TypeAdapter[Any]) -> Any:
    """As the library's client does: in the words of the version that is spoken."""
    shape = _shape(method, version)
    if shape is not None:
        shape.validate_python(raw, by_name=False)
    if version not in MODERN_PROTOCOL_VERSIONS:
        raw = {name: one for name, one in raw.items() if name not in _LATER_WORDS}
    if isinstance(answer, TypeAdapter):
        return answer.validate_python(raw, by_name=False)
    return answer.model_validate(raw, by_name=False)


@cache
def _shape(method: str, version: str) -> TypeAdapter[Any] | None:
    known: Any = SERVER_RESULTS.get((method, version))
    return None if known is None else TypeAdapter(known)


@cache
def _method(request: type[types.ClientRequest]) -> str:
    return str(request.model_fields["method"].default)


@cache
def _or_more_asked(answer: type[Answer]) -> TypeAdapter[Any]:
    shape: Any = answer | types.InputRequiredResult
    return TypeAdapter(shape)
