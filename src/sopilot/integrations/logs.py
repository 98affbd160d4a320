"""Log lines for operators: text, or one JSON object each with its request and session."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from sopilot.values.text import place_of, visible

LOG = logging.getLogger("sopilot")
FORMATS = ("text", "json")
_ABOUT: ContextVar[Mapping[str, object] | None] = ContextVar("sopilot_about", default=None)


@contextmanager
def about(**fields: object) -> Iterator[None]:
    """Add fields to every line that is logged inside: a request, a session, an owner."""
    token = _ABOUT.set({**(_ABOUT.get() or {}), **fields})
    try:
        yield
    finally:
        _ABOUT.reset(token)


def log_to_stderr(form: str = "text") -> None:
    """Libraries log text that servers and clients sent: print one line each, made visible."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines() if form == "json" else _Text())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    LOG.setLevel(logging.INFO if form == "json" else logging.WARNING)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        mark = "sopilot: " if record.name == LOG.name else ""
        problem = _problem(record)
        cause = f": {problem['problem']} ({problem['place']})" if problem else ""
        return mark + visible(record.getMessage().rstrip() + cause)


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: Mapping[str, object] = getattr(record, "fields", {})
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": visible(record.getMessage().rstrip()),
            **_problem(record),
            **({} if record.name == LOG.name else {"logger": record.name}),
            **(_ABOUT.get() or {}),
            **fields,
        }
        return visible(json.dumps(line, ensure_ascii=False, default=str))


def _problem(record: logging.LogRecord) -> dict[str, str]:
    """The innermost cause of an exception and its place, for the same line."""
    raised = record.exc_info[1] if record.exc_info else None
    if raised is None:
        return {}
    while isinstance(raised, BaseExceptionGroup):
        raised = raised.exceptions[0]
    return {"problem": visible(f"{type(raised).__name__}: {raised}"), "place": place_of(raised)}
