"""Which MCP servers a gateway stands in front of, as people write it down."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sopilot.files.addresses import require_url
from sopilot.files.settings import filled
from sopilot.files.text import whole_text
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import UserMistake, mistake
from sopilot.values.json import JSON


@dataclass(frozen=True, slots=True)
class UpstreamSpec:
    """A command to start, or a URL to reach. ``headers`` may hold credentials."""

    name: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def parse_upstream(text: str) -> UpstreamSpec:
    """``[NAME=]URL`` or ``[NAME=]COMMAND ARGUMENTS…``."""
    name, mark, rest = text.partition("=")
    if not mark or not name.replace("-", "").replace("_", "").isalnum():
        name, rest = "", text
    if rest.startswith(("http://", "https://")):
        return UpstreamSpec(name or rest, url=require_url(rest))
    try:
        command = tuple(shlex.split(rest))
    except ValueError as problem:
        raise _mistake(f"`{text}` cannot be read as a command: {problem}", text) from None
    if not command:
        raise _mistake(f"`{text}` names no MCP server", text)
    return UpstreamSpec(name or rest.strip(), command=command)


def read_upstreams(path: Path) -> tuple[UpstreamSpec, ...]:
    """A file in the shape that MCP clients share: ``{"mcpServers": {name: {...}}}``."""
    try:
        document = json.loads(whole_text(path))
    except (OSError, ValueError, RecursionError) as problem:
        raise _mistake(f"the file of MCP servers cannot be read: {problem}", str(path)) from None
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict) or not servers:
        raise _mistake("there is no `mcpServers` object in it", str(path))
    return tuple(
        _entry(name, filled(entry, str(path)), str(path)) for name, entry in servers.items()
    )


def _entry(name: str, entry: JSON, source: str) -> UpstreamSpec:
    fields = entry if isinstance(entry, dict) else {}
    url, command = fields.get("url", ""), fields.get("command", "")
    if bool(url) == bool(command):
        raise _mistake(f"`{name}` needs either `command` or `url`", source)
    return UpstreamSpec(
        name,
        command=(str(command), *map(str, _list(fields.get("args")))) if command else (),
        environment=_texts(fields.get("env")),
        url=require_url(str(url)) if url else "",
        headers=_texts(fields.get("headers")),
    )


def _list(value: JSON) -> Sequence[JSON]:
    return value if isinstance(value, list) else ()


def _texts(value: JSON) -> dict[str, str]:
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, dict) else {}


def _mistake(message: str, source: str) -> UserMistake:
    cure = 'a URL, a command line, or a file with {"mcpServers": {NAME: {"command": …}}}'
    return mistake("bad-upstream", message, Place(source), cure)
