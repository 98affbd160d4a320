"""Endpoints that implement the Chat Completions API."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

from sopilot.agent.retries import ProviderError
from sopilot.models.wire import (
    LONGEST_SHOWN,
    check_served,
    kind_of_refusal,
    read_reply,
    wire_request,
)
from sopilot.protocols import ModelReply, ModelRequest

RETRYABLE = frozenset({408, 409, 425, 429})


class HttpModel:
    """``url`` ends in ``/v1``. The loop owns the retries, so this class never retries.

    If ``served`` is set, an answer by any other model is a failure.
    """

    def __init__(
        self, url: str, model: str, *, key: str | None = None, served: str | None = None
    ) -> None:
        self._url = url.rstrip("/") + "/chat/completions"
        self._model = model
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._served = served
        self._limits = httpx2.Limits(max_connections=1_000)
        self._client: httpx2.AsyncClient | None = None

    @property
    def name(self) -> str:
        return self._model

    async def complete(self, request: ModelRequest) -> ModelReply:
        body = wire_request(request, self._model)
        try:
            return await self._send(body, request.timeout_seconds)
        except httpx2.TimeoutException as error:
            raise ProviderError(
                f"no answer within {request.timeout_seconds:g} s", kind="timeout"
            ) from error
        except httpx2.TransportError as error:
            raise ProviderError(
                f"the connection failed: {error or type(error).__name__}", kind="connection"
            ) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ProviderError(str(error), kind="http", retryable=False) from error

    async def _send(self, body: Mapping[str, Any], timeout: float) -> ModelReply:
        if self._client is None:
            self._client = httpx2.AsyncClient(limits=self._limits, headers=self._headers)
        response = await self._client.post(self._url, json=dict(body), timeout=timeout)
        if response.status_code >= 400:
            raise _refused(response)
        try:
            answer = json.loads(response.content)
        except (ValueError, RecursionError) as error:
            begins = shown(response.content[:LONGEST_SHOWN])[:40]
            message = f": it begins with `{begins}`" if begins else ": it is empty"
            raise ProviderError(f"the answer is not JSON{message}", kind="not-json") from error
        return check_served(read_reply(answer), self._served)

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()


def _refused(response: httpx2.Response) -> ProviderError:
    status = response.status_code
    try:
        kind = kind_of_refusal(json.loads(response.content))
    except (ValueError, RecursionError):
        kind = ""
    return ProviderError(
        f"HTTP {status}: {shown(response.content)}",
        kind=kind or f"http-{status}",
        retryable=status >= 500 or status in RETRYABLE,
        retry_after=_seconds(response.headers.get("retry-after")),
    )


def shown(content: bytes) -> str:
    return " ".join(content.decode("utf-8", "replace").split())[:LONGEST_SHOWN]


def _seconds(text: str | None) -> float | None:
    """Read `Retry-After`: a number of seconds or a date."""
    if text is None:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(text)
        return max(0.0, until.timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
