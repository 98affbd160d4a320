"""Diagnostics: a code, a lower-case message, a place and optional help; and their collector."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sopilot.messages.catalogue import sentence
from sopilot.values.text import visible


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a diagnostic points: a file with line and column, or a path inside an object."""

    source: str = ""
    line: int = 0
    column: int = 0
    path: str = ""

    def __str__(self) -> str:
        where = self.source or "<input>"
        if self.line:
            where += f":{self.line}:{self.column}"
        if self.path:
            where += f" ({self.path})" if self.line else f": {self.path}"
        return where


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem of a file, with its place and, if possible, help."""

    code: str
    message: str
    place: Place = Place()
    help: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        """A line, and one for the help: names and values of others make no line of their own."""
        where = f"{self.place}: " if self.place != Place() else ""
        text = visible(f"{where}{self.severity}[{self.code}]: {self.message}")
        return f"{text}\n  help: {visible(self.help)}" if self.help else text

    def as_json(self) -> dict[str, object]:
        return {
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            "file": self.place.source,
            "line": self.place.line,
            "column": self.place.column,
            "path": self.place.path,
            "help": self.help,
        }


def render_diagnostics(diagnostics: Iterable[Diagnostic]) -> str:
    return "\n".join(str(diagnostic) for diagnostic in diagnostics)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The help text that names the nearest known name, or the known ones when none is near."""
    names = sorted(set(known) - {word})
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if near:
        return sentence("did-you-mean", name=near[0])
    if not names:
        return ""
    shown = ", ".join(f"`{name}`" for name in names[:8])
    return sentence("known-names", names=shown + (", …" if len(names) > 8 else ""))


def nearly_same(name: str, other: str) -> bool:
    """Whether one name may be the other, misspelt: they differ in case and separators, in one
    letter too many, or in two letters swapped."""
    names = (re.sub(r"[\W_]+", "", each).lower() for each in (name, other))
    short, long = sorted(names, key=len)
    places = range(len(long))
    left_out = {long[:at] + long[at + 1 :] for at in places}
    swapped = {long[:at] + long[at : at + 2][::-1] + long[at + 2 :] for at in places}
    return short in {*left_out, *swapped}


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
        self._diagnostics: dict[Diagnostic, None] = {}
        self.errors = 0
        self._left_out = 0

    @property
    def failed(self) -> bool:
        return self.errors > 0

    def error(self, code: str, message: str, at: Positioned, help: str = "") -> None:
        self.errors += 1
        self._add(code, message, at, help, Severity.ERROR)

    def warning(self, code: str, message: str, at: Positioned, help: str = "") -> None:
        self._add(code, message, at, help, Severity.WARNING)

    def _add(self, code: str, message: str, at: Positioned, help: str, severity: Severity) -> None:
        if len(self._diagnostics) >= MOST:
            self._left_out += 1
            return
        place = Place(self.source, at.line, at.column)
        self._diagnostics.setdefault(Diagnostic(code, message, place, help, severity))

    def diagnostics(self) -> list[Diagnostic]:
        """Every diagnostic once, in the order of the source."""
        result = sorted(
            self._diagnostics, key=lambda item: (item.place.line, item.place.column, item.code)
        )
        if self._left_out:
            message = f"{self._left_out} more mistakes are not shown"
            result.append(Diagnostic("too-many-mistakes", message, Place(self.source)))
        return result
