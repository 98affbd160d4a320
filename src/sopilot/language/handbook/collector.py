"""Collects what is wrong with a source, so that everything is said in one go."""

from __future__ import annotations

from typing import Protocol

from sopilot.language.diagnostics import Diagnostic, Place, Severity

MOST = 200
"""Diagnostics kept from one source: enough to work with, little enough to read."""


class Positioned(Protocol):
    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


class DiagnosticCollector:
    def __init__(self, source: str) -> None:
        self.source = source
        self._found: dict[Diagnostic, None] = {}
        self.errors = 0
        self._left_out = 0

    @property
    def failed(self) -> bool:
        return self.errors > 0

    def error(
        self, code: str, message: str, at: Positioned, help: str = "", *, offset: int = 0
    ) -> None:
        """``offset`` moves the place right, to a character inside the node's text."""
        self.errors += 1
        self._add(code, message, at, help, offset, Severity.ERROR)

    def warning(self, code: str, message: str, at: Positioned, help: str = "") -> None:
        self._add(code, message, at, help, 0, Severity.WARNING)

    def _add(
        self, code: str, message: str, at: Positioned, help: str, offset: int, severity: Severity
    ) -> None:
        if len(self._found) >= MOST:
            self._left_out += 1
            return
        place = Place(self.source, at.line, at.column + offset)
        self._found.setdefault(Diagnostic(code, message, place, help, severity))

    def diagnostics(self) -> list[Diagnostic]:
        """Every diagnostic once, in the order of the source."""
        found = sorted(self._found, key=lambda one: (one.place.line, one.place.column, one.code))
        if self._left_out:
            message = f"{self._left_out} more mistakes are not shown"
            found.append(Diagnostic("too-many-mistakes", message, Place(self.source)))
        return found
