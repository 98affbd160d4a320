"""Any endpoint that speaks the Chat Completions API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx2

from sopilot.adapters.model_wire import LONGEST_SHOWN, read_reply, wire_request
from sopilot.runtime.agent import ProviderError
from sopilot.runtime.session.protocols import ModelReply, ModelRequest

_RETRYABLE = frozenset({408, 409, 425, 429})


class HttpModel:
    """``url`` ends in ``/v1``. Never retries by itself: the loop owns the retries.

    ``extra`` goes into every request body (``max_tokens``, ``seed``, …).
    ``late_role`` is for servers whose chat template takes one system message only.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        extra: Mapping[str, Any] | None = None,
        late_role: str = "system",
        connections: int = 1_000,
    ) -> None:
        self._url = url.rstrip("/") + "/chat/completions"
        self._model = model
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._extra = dict(extra or {})
        self._late_role = late_role
        self._limits = httpx2.Limits(max_connections=connections)
        self._client: httpx2.AsyncClient | None = None

    @property
    def name(self) -> str:
        return self._model

    async def complete(self, request: ModelRequest) -> ModelReply:
        body = wire_request(request, self._model, late_role=self._late_role) | self._extra
        try:
            return await self._send(body, request.timeout_seconds)
        except httpx2.TimeoutException as error:
            raise ProviderError(f"no answer within {request.timeout_seconds:g} s") from error
        except httpx2.TransportError as error:
            raise ProviderError(
                f"the connection failed: {error or type(error).__name__}"
            ) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ProviderError(str(error), retryable=False) from error

    async def _send(self, body: Mapping[str, Any], timeout: float) -> ModelReply:
        if self._client is None:
            self._client = httpx2.AsyncClient(limits=self._limits, headers=self._headers)
        response = await self._client.post(self._url, json=dict(body), timeout=timeout)
        if response.status_code >= 400:
            raise _refused(response)
        try:
            answer = json.loads(response.content)
        except (ValueError, RecursionError) as error:
            raise ProviderError("the answer is not JSON") from error
        return read_reply(answer)

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()


def _refused(response: httpx2.Response) -> ProviderError:
    shown = " ".join(response.content.decode("utf-8", "replace").split())[:LONGEST_SHOWN]
    status = response.status_code
    return ProviderError(
        f"HTTP {status}: {shown}",
        retryable=status >= 500 or status in _RETRYABLE,
        retry_after=_seconds(response.headers.get("retry-after")),
    )


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:
        return None
