"""Tool lists pinned by hash: what an operator approved is what is offered, to the letter."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sopilot.files.text import whole_text
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import UserMistake, mistake
from sopilot.values.json import JSON, canonical, plain_mapping
from sopilot.values.text import visible

if sys.platform != "win32":
    import fcntl


_FORMAT = "sopilot_tool_pins"


_VERSION = 2


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


_LONGEST_TOLD = 200


Definition = Mapping[str, JSON]


def pinned(definition: Definition) -> dict[str, JSON]:
    """What counts of a definition as it stands on the wire. Absent and null are the same."""
    return plain_mapping(
        {name: definition[name] for name in PINNED_FIELDS if definition.get(name) is not None}
    )


def tool_digest(definition: Definition) -> str:
    return hashlib.sha256(canonical(pinned(definition))).hexdigest()


@dataclass(frozen=True, slots=True)
class Drift:
    """A tool that is not the approved one. ``approved`` is ``None`` for one that is new,
    ``found`` for one that is gone. Its text says nothing that the tool says."""

    upstream: str
    tool: str
    approved: str | None
    found: str | None
    changes: str = ""
    """Field by field, what was approved and what is said now, as one line of JSON each: for
    the operator, who has to judge it."""

    def __str__(self) -> str:
        if self.approved is None:
            what = "is new since the tools were approved"
        elif self.found is None:
            what = "is offered no more"
        else:
            what = "is described otherwise than when it was approved"
        return f"`{one_line(self.tool)}` of `{one_line(self.upstream)}` {what}"


class Pins:
    """Approved definitions by upstream and tool, in a file of their own or in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._approved: dict[str, dict[str, Definition]] = _read(path) if path is not None else {}

    def knows(self, upstream: str) -> bool:
        return upstream in self._approved

    def of(self, upstream: str) -> Mapping[str, Definition]:
        return self._approved.get(upstream, {})

    def approve(self, upstream: str, found: Mapping[str, Definition]) -> None:
        """All that the server offers, and nothing else of it."""
        with self._changing() as approved:
            approved[upstream] = {name: pinned(one) for name, one in found.items()}

    def approve_first(self, upstream: str, found: Mapping[str, Definition]) -> None:
        """As ``approve``, unless the server is known by now, be it to another process."""
        with self._changing() as approved:
            approved.setdefault(upstream, {name: pinned(one) for name, one in found.items()})

    def approve_one(self, upstream: str, tool: str, found: Definition | None) -> None:
        """``None`` for a tool that is offered no more."""
        with self._changing() as approved:
            tools = approved.setdefault(upstream, {})
            if found is None:
                tools.pop(tool, None)
            else:
                tools[tool] = pinned(found)

    async def written(self) -> None:
        """On record, and as others have left it."""

    def drifts(self, upstream: str, found: Mapping[str, Definition]) -> tuple[Drift, ...]:
        approved = self.of(upstream)
        return tuple(
            drift
            for tool in sorted({*approved, *found})
            if (drift := _drift(upstream, tool, approved.get(tool), found.get(tool))) is not None
        )

    @contextmanager
    def _changing(self) -> Iterator[dict[str, dict[str, Definition]]]:
        """The file as it is now, which others may have written to, changed in one go."""
        if self._path is None:
            yield self._approved
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self._path):
            approved = _read(self._path)
            yield approved
            _write(self._path, approved)
        self._approved = approved


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    # A file beside it: the pins themselves are replaced, and a lock on them would be lost.
    with path.with_name(f"{path.name}.lock").open("a") as lock:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(path: Path, approved: Mapping[str, Mapping[str, Definition]]) -> None:
    kept = {
        upstream: {
            tool: {"sha256": tool_digest(one), "definition": dict(one)}
            for tool, one in tools.items()
        }
        for upstream, tools in approved.items()
    }
    text = json.dumps({_FORMAT: _VERSION, "upstreams": kept}, indent=2, sort_keys=True)
    handle, beside = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(beside, path)
    except OSError:
        Path(beside).unlink(missing_ok=True)
        raise


def _drift(
    upstream: str, tool: str, approved: Definition | None, found: Definition | None
) -> Drift | None:
    before = tool_digest(approved) if approved is not None else None
    after = tool_digest(found) if found is not None else None
    if before == after:
        return None
    old, new = approved or {}, pinned(found or {})
    changes = "; ".join(
        f"{name}: {_told(old.get(name))} -> {_told(new.get(name))}"
        for name in PINNED_FIELDS
        if old.get(name) != new.get(name)
    )
    return Drift(upstream, tool, before, after, changes if before and after else "")


def _told(value: JSON) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= _LONGEST_TOLD else f"{text[:_LONGEST_TOLD]}…"


def one_line(text: str) -> str:
    """A name that somebody else chose: no line break and no control character of its own."""
    return visible(text)[:_LONGEST_TOLD]


def _read(path: Path) -> dict[str, dict[str, Definition]]:
    try:
        document = json.loads(whole_text(path))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as problem:
        raise _broken(path, f"the pins cannot be read: {problem}") from None
    upstreams = document.get("upstreams") if isinstance(document, dict) else None
    if not isinstance(upstreams, dict) or document.get(_FORMAT) != _VERSION:
        raise _broken(path, "this is not a file of pinned tools")
    return {name: _read_tools(path, name, tools) for name, tools in upstreams.items()}


def _read_tools(path: Path, upstream: str, tools: JSON) -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    for tool, pin in tools.items() if isinstance(tools, dict) else ():
        definition = pin.get("definition") if isinstance(pin, dict) else None
        if not isinstance(definition, dict) or pin.get("sha256") != tool_digest(definition):
            raise _broken(path, f"`{tool}` of `{upstream}` does not have the hash it was given")
        found[tool] = definition
    return found


def _broken(path: Path, message: str) -> UserMistake:
    # Never replaced by itself: whoever can damage the file could approve anything.
    cure = "restore it, or remove it and approve the tools again"
    return mistake("broken-pins", message, Place(str(path)), cure)
