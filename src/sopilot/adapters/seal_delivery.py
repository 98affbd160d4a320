"""A sealed head, sent to an address with the entries that it covers."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sopilot.language.diagnostics import RunEnded
from sopilot.runtime.records.log import LogEntry, SealedHead


def post_seal(url: str, entries: Sequence[LogEntry], seal: SealedHead) -> None:
    import httpx2

    body = {"head": seal.as_json(), "entries": [entry.as_json() for entry in entries]}
    try:
        answer = httpx2.post(
            url,
            content=json.dumps(body, ensure_ascii=False).encode(),
            headers={"content-type": "application/json"},
            timeout=30.0,
        )
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise RunEnded(f"sealed, but {url} could not be reached: {problem}") from None
    if answer.status_code >= 300:
        raise RunEnded(f"sealed, but {url} refused it with status {answer.status_code}")
