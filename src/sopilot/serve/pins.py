"""Tool lists pinned by hash: what an operator approved is what is offered, to the letter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sopilot.diagnostics import Diagnostic, Place, UserMistake
from sopilot.session.protocols import JSON
from sopilot.vm import canonical, plain

_FORMAT = "sopilot_tool_pins"
PINNED_FIELDS = (
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "execution",
)
"""Everything of a tool's definition that can sway a model or a client."""


def tool_digest(definition: Mapping[str, JSON]) -> str:
    """Of a definition as it stands on the wire. Absent and null are the same."""
    kept = {name: definition[name] for name in PINNED_FIELDS if definition.get(name) is not None}
    return hashlib.sha256(canonical(plain(kept))).hexdigest()


@dataclass(frozen=True, slots=True)
class Drift:
    """A tool that is not the approved one. ``approved`` is ``None`` for one that is new."""

    upstream: str
    tool: str
    approved: str | None
    found: str | None

    def __str__(self) -> str:
        if self.approved is None:
            what = "is new since the tools were approved"
        elif self.found is None:
            what = "is offered no more"
        else:
            what = "is described otherwise than when it was approved"
        return f"`{self.tool}` of `{self.upstream}` {what}"


class Pins:
    """Approved digests by upstream and tool, in a file of their own or in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._approved: dict[str, dict[str, str]] = _read(path) if path is not None else {}

    def knows(self, upstream: str) -> bool:
        return upstream in self._approved

    def approve(self, upstream: str, found: Mapping[str, str]) -> None:
        self._approved[upstream] = dict(found)
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps({_FORMAT: 1, "upstreams": self._approved}, indent=2, sort_keys=True)
            beside = self._path.with_suffix(".new")
            beside.write_text(text + "\n", encoding="utf-8")
            beside.replace(self._path)

    def drifts(self, upstream: str, found: Mapping[str, str]) -> tuple[Drift, ...]:
        approved = self._approved.get(upstream, {})
        return tuple(
            Drift(upstream, tool, approved.get(tool), found.get(tool))
            for tool in sorted({*approved, *found})
            if approved.get(tool) != found.get(tool)
        )


def _read(path: Path) -> dict[str, dict[str, str]]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise _broken(path, f"the pins cannot be read: {problem}") from None
    upstreams = document.get("upstreams") if isinstance(document, dict) else None
    if not isinstance(upstreams, dict) or document.get(_FORMAT) != 1:
        raise _broken(path, "this is not a file of pinned tools")
    return {str(name): dict(tools) for name, tools in upstreams.items()}


def _broken(path: Path, message: str) -> UserMistake:
    # Never replaced by itself: whoever can damage the file could approve anything.
    cure = "restore it, or remove it and approve the tools again"
    return UserMistake([Diagnostic("broken-pins", message, Place(str(path)), cure)])
