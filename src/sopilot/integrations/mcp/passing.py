"""What upstream servers have beside tools: resources, templates, prompts, completions, logs.

It is passed on as it is, but for the runtime's own marks, which a server could forge. The
runtime's own resources and prompts win over an upstream's of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from sopilot.integrations.mcp.call_link import CallLink
from sopilot.integrations.mcp.checked_upstream import CheckedUpstream
from sopilot.integrations.mcp.content import foreign
from sopilot.integrations.mcp.kept_connection import UpstreamFailed
from sopilot.integrations.mcp.upstream import Listing, McpRefused, Page

OWN_SCHEME = "sopilot:"


Found = TypeVar("Found", bound=BaseModel)


class Passing:
    """Over one session's connections, ``upstream`` by name. What cannot be asked is told to
    ``tell`` and left out of lists."""

    def __init__(
        self,
        names: Sequence[str],
        upstream: Callable[[str], CheckedUpstream],
        tell: Callable[[str], None],
    ) -> None:
        self._names = tuple(names)
        self._upstream = upstream
        self._tell = tell
        self._homes: dict[str, str] = {}
        """Where a URI, a template or a prompt was found."""

    async def resources(self, link: CallLink) -> list[types.Resource]:
        listed = self._listed(types.ListResourcesRequest, types.ListResourcesResult, link)
        found = [(name, one) for name, page in await listed for one in page.resources]
        return [one for name, one in found if self._kept(name, one.uri)]

    async def templates(self, link: CallLink) -> list[types.ResourceTemplate]:
        listed = self._listed(
            types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult, link
        )
        found = [(name, one) for name, page in await listed for one in page.resource_templates]
        return [one for name, one in found if self._kept(name, one.uri_template)]

    async def prompts(self, link: CallLink) -> list[types.Prompt]:
        listed = self._listed(types.ListPromptsRequest, types.ListPromptsResult, link)
        found = [(name, one) for name, page in await listed for one in page.prompts]
        return [one for name, one in found if self._kept(name, f"prompt {one.name}")]

    async def read(
        self, params: types.ReadResourceRequestParams, link: CallLink
    ) -> types.ReadResourceResult:
        request = types.ReadResourceRequest(params=params)
        return await self._first(params.uri, request, types.ReadResourceResult, link)

    async def subscribe(self, params: types.SubscribeRequestParams, link: CallLink) -> None:
        request = types.SubscribeRequest(params=params)
        await self._first(params.uri, request, types.EmptyResult, link)

    async def unsubscribe(self, params: types.UnsubscribeRequestParams, link: CallLink) -> None:
        request = types.UnsubscribeRequest(params=params)
        await self._first(params.uri, request, types.EmptyResult, link)

    async def prompt(
        self, params: types.GetPromptRequestParams, link: CallLink
    ) -> types.GetPromptResult:
        request = types.GetPromptRequest(params=params)
        return await self._first(f"prompt {params.name}", request, types.GetPromptResult, link)

    async def complete(
        self, params: types.CompleteRequestParams, link: CallLink
    ) -> types.CompleteResult:
        ref = params.ref
        key = f"prompt {ref.name}" if isinstance(ref, types.PromptReference) else ref.uri
        request = types.CompleteRequest(params=params)
        return await self._first(key, request, types.CompleteResult, link)

    async def set_level(self, level: types.LoggingLevel) -> None:
        for name in self._names:
            try:
                await self._upstream(name).set_log_level(level)
            except (UpstreamFailed, McpRefused) as problem:
                self._tell(str(problem))

    # --- whom to ask ----------------------------------------------------------------

    async def _listed(
        self, request: type[Listing], answer: type[Page], link: CallLink
    ) -> list[tuple[str, Page]]:
        found: list[tuple[str, Page]] = []
        for name in self._names:
            upstream = self._upstream(name)
            try:
                if _has(await upstream.can(), request(params=None).method):
                    pages = [page async for page in upstream.pages(request, answer, link)]
                    found += [(name, _unmarked(page)) for page in pages]
            except (UpstreamFailed, McpRefused) as problem:
                self._tell(str(problem))
        return found

    def _kept(self, upstream: str, key: str) -> bool:
        """The first server that has it keeps it; what is called as the runtime's own is not
        passed on."""
        if key.lower().startswith(OWN_SCHEME):
            return False
        return self._homes.setdefault(key, upstream) == upstream

    async def _first(
        self, key: str, request: types.ClientRequest, answer: type[Found], link: CallLink
    ) -> Found:
        """From the server that listed it; else from the first that knows it."""
        problem: Exception | None = None
        for name in self._candidates(key):
            upstream = self._upstream(name)
            try:
                if _has(await upstream.can(), request.method):
                    return _unmarked(await upstream.ask(request, answer, link))
            except (UpstreamFailed, McpRefused) as one:
                problem = one
        raise MCPError(types.INVALID_PARAMS, str(problem or f"no upstream has `{key}`"))

    def _candidates(self, key: str) -> Iterator[str]:
        if key.lower().startswith(OWN_SCHEME):
            return
        home = self._homes.get(key)
        yield from (home,) if home is not None else self._names


def _has(can: types.ServerCapabilities, method: str) -> bool:
    """Whether a server says that it has what ``method`` asks for."""
    part = method.partition("/")[0]
    return getattr(can, {"completion": "completions"}.get(part, part), None) is not None


def _unmarked(found: Found) -> Found:
    return type(found).model_validate(_without(found.model_dump(by_alias=True, exclude_none=True)))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: foreign(one) if name == "_meta" and isinstance(one, dict) else _without(one)
            for name, one in value.items()
        }
    return [_without(one) for one in value] if isinstance(value, list) else value
