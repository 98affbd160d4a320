"""Tool results of MCP servers: what the trace holds of them, and what a client is given.

Text of a tool stands as one line of JSON, so that none of it can pass for the
runtime's. Pictures and sound go through as they are. Nothing is lost: the
blocks as the server sent them ride along where no model reads them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence

import mcp_types as types

from sopilot.session.protocols import JSON, ToolResult

SESSION_META = "sopilot/session"
RUNTIME_META = "sopilot/runtime"
UPSTREAM_META = "sopilot/upstream"


def recorded(given: types.CallToolResult) -> ToolResult:
    """``value`` is the structured content if there is any; else what the text says, as JSON
    where it is JSON; binary content by its digest."""
    if given.structured_content is not None:
        return ToolResult(not given.is_error, given.structured_content)
    values = [_value(block) for block in given.content]
    return ToolResult(not given.is_error, values[0] if len(values) == 1 else values)


def _value(block: types.ContentBlock) -> JSON:
    if isinstance(block, types.TextContent):
        return _read(block.text)
    if isinstance(block, types.ImageContent | types.AudioContent):
        return {"type": block.type, "mime_type": block.mime_type, **_digest(block.data)}
    if isinstance(block, types.EmbeddedResource):
        held = block.resource
        if isinstance(held, types.TextResourceContents):
            return {"type": "resource", "uri": held.uri, "text": held.text}
        return {"type": "resource", "uri": held.uri, **_digest(held.blob)}
    return {"type": "resource_link", "uri": block.uri, "name": block.name}


def _read(text: str) -> JSON:
    """Objects and lists are read; a bare ``12`` or ``true`` may be somebody's text."""
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _digest(data: str) -> dict[str, JSON]:
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raw = data.encode()
    return {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


def runtime_text(text: str) -> types.TextContent:
    return types.TextContent(text=text, _meta={RUNTIME_META: True})


def answered(
    answer: str,
    slot: str,
    *,
    ok: bool,
    session_id: str,
    given: object = None,
    extra: Mapping[str, JSON] | None = None,
) -> types.CallToolResult:
    """``answer`` is the runtime's line with the tool's value in it; the slot comes last."""
    blocks: list[types.ContentBlock] = [runtime_text(answer)]
    structured: JSON = None
    meta: dict[str, JSON] = {SESSION_META: session_id, **(extra or {})}
    if isinstance(given, types.CallToolResult):
        blocks.extend(block for block in given.content if _is_binary(block))
        structured = given.structured_content
        meta[UPSTREAM_META] = {"content": _texts(given.content), "_meta": given.meta}
    if slot:
        blocks.append(runtime_text(slot))
    return types.CallToolResult(
        content=blocks, structured_content=structured, is_error=not ok, _meta=meta
    )


def _is_binary(block: types.ContentBlock) -> bool:
    if isinstance(block, types.EmbeddedResource):
        return isinstance(block.resource, types.BlobResourceContents)
    return isinstance(block, types.ImageContent | types.AudioContent)


def _texts(blocks: Sequence[types.ContentBlock]) -> list[JSON]:
    return [
        block.model_dump(by_alias=True, mode="json", exclude_none=True)
        for block in blocks
        if not _is_binary(block)
    ]
