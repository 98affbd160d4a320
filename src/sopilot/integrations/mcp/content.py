"""Tool results of MCP servers, for the trace and for clients.

A tool's text stands as one line of JSON, so that none of it can pass for the runtime's own
text; that includes text in an image's or a sound's block and in an embedded resource. Images,
sound, resources and links pass as what they are. Nothing is lost: the blocks as the server sent
them travel in `_meta`, without the marks that only the runtime may set.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

import mcp_types as types
from pydantic import BaseModel

from sopilot.protocols import ToolResult
from sopilot.runner.json_values import as_json
from sopilot.values.json import JSON
from sopilot.values.text import visible

SESSION_META = "sopilot/session"
RUNTIME_META = "sopilot/runtime"
UPSTREAM_META = "sopilot/upstream"
KEY_META = "sopilot/key"
_OWN_MARKS = "sopilot/"
Value = TypeVar("Value")
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml")


def recorded(result: types.CallToolResult) -> ToolResult:
    """``value`` is the structured content if there is any; else what the text says, as JSON
    where it is JSON; binary content by its digest."""
    if result.structured_content is not None:
        return ToolResult(not result.is_error, result.structured_content)
    values = [_value(block) for block in result.content]
    return ToolResult(not result.is_error, values[0] if len(values) == 1 else values)


def _value(block: types.ContentBlock) -> JSON:
    if isinstance(block, types.TextContent):
        return as_json(block.text)
    if isinstance(block, types.ImageContent | types.AudioContent):
        held = {"type": block.type, "mime_type": block.mime_type}
        return {**held, **_data(block.data, block.mime_type)}
    if isinstance(block, types.EmbeddedResource):
        resource = block.resource
        if isinstance(resource, types.TextResourceContents):
            return {"type": "resource", "uri": resource.uri, "text": resource.text}
        held = {"type": "resource", "uri": resource.uri}
        return {**held, **_data(resource.blob, resource.mime_type)}
    return {"type": "resource_link", "uri": block.uri, "name": block.name}


def _data(data: str, mime_type: str | None) -> dict[str, JSON]:
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raw = data.encode()
    if _is_text(mime_type):
        return {"text": raw.decode("utf-8", "replace")}
    return {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


def _runtime_text(text: str) -> types.TextContent:
    return types.TextContent(text=text, _meta={RUNTIME_META: True})


def answered(
    answer: str,
    frame: str,
    *,
    ok: bool,
    session_id: str,
    upstream: types.CallToolResult | None = None,
) -> types.CallToolResult:
    """``answer`` is the runtime's line with the tool's value in it; the frame comes last."""
    blocks: list[types.ContentBlock] = [_runtime_text(answer)]
    structured: JSON = None
    meta: dict[str, JSON] = {SESSION_META: session_id}
    if upstream is not None:
        upstream = without_marks(upstream)
        blocks.extend(_on_one_line(block) for block in upstream.content if _passes(block))
        structured = upstream.structured_content
        meta[UPSTREAM_META] = {"content": _texts(upstream.content), "_meta": upstream.meta}
    if frame:
        blocks.append(_runtime_text(frame))
    return types.CallToolResult(
        content=blocks, structured_content=structured, is_error=not ok, _meta=meta
    )


def _passes(block: types.ContentBlock) -> bool:
    """As a block of its own; the others are in the runtime's line."""
    if isinstance(block, types.ImageContent | types.AudioContent):
        return not _is_text(block.mime_type)
    return not isinstance(block, types.TextContent)


def _has_text(block: types.ContentBlock) -> bool:
    if isinstance(block, types.EmbeddedResource):
        held = block.resource
        return isinstance(held, types.TextResourceContents) or _is_text(held.mime_type)
    return isinstance(block, types.ResourceLink)


def _on_one_line(block: types.ContentBlock) -> types.ContentBlock:
    """The block with its words quoted; as they were, they ride along."""
    if isinstance(block, types.ResourceLink):
        words = {"name": block.name, "title": block.title, "description": block.description}
        return block.model_copy(
            update={name: item and visible(item) for name, item in words.items()}
        )
    if not isinstance(block, types.EmbeddedResource) or not _has_text(block):
        return block
    held = block.resource
    text = (
        held.text
        if isinstance(held, types.TextResourceContents)
        else _data(held.blob, held.mime_type)["text"]
    )
    quoted = types.TextResourceContents(
        uri=held.uri,
        mime_type=held.mime_type,
        text=visible(json.dumps(text, ensure_ascii=False)),
        _meta=held.meta,
    )
    return block.model_copy(update={"resource": quoted})


def _is_text(mime_type: str | None) -> bool:
    """Whether a client might show it to its model as words."""
    kind = (mime_type or "").partition(";")[0].strip().lower()
    return kind.startswith(_TEXT_TYPES) or kind.endswith(("+json", "+xml", "+yaml"))


def _texts(blocks: Sequence[types.ContentBlock]) -> list[JSON]:
    return [
        block.model_dump(by_alias=True, mode="json", exclude_none=True)
        for block in blocks
        if not _passes(block) or _has_text(block)
    ]


def without_marks(value: Value) -> Value:
    """A copy of a message without the runtime's own marks, which a server could forge."""
    if isinstance(value, list):
        return [without_marks(item) for item in value]  # type: ignore[return-value]
    if not isinstance(value, BaseModel):
        return value
    changed = {
        name: _foreign(item) if name == "meta" else without_marks(item) for name, item in value
    }
    return value.model_copy(update=changed)


def _foreign(meta: Mapping[str, JSON] | None) -> dict[str, JSON] | None:
    if meta is None:
        return None
    return {name: item for name, item in meta.items() if not name.lower().startswith(_OWN_MARKS)}
