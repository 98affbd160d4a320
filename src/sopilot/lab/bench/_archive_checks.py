"""What must not be published: credentials, places of this machine, people, upstream's text."""

from __future__ import annotations

import functools
import getpass
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from sopilot.lab.bench.reference import DOMAINS
from sopilot.lab.bench.sopbench_process import Upstream

_CREDENTIALS: Final = (
    re.compile(r"\b(sk|rk|pk)-[A-Za-z0-9_-]{16,}"),
    re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b"),
    re.compile(r"\b(ghp|gho|ghs|github_pat|hf|xox[bap])_[A-Za-z0-9_]{16,}"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    re.compile(
        r"(?i)\b(api[_-]?key|secret|token|authorization)\b['\"]?\s*[:=]\s*['\"]?[\w.-]{16,}"
    ),
    re.compile(r"(?i)\bbearer\s+[\w.-]{16,}"),
    re.compile(r"\b\w+://[^/\s:@]+:[^/\s:@]+@"),
)
_PATHS: Final = re.compile(
    r"(?<![\w.:/])/(home|root|Users|tmp|var|work|mnt|opt|srv|private|data)/[\w.-]+"
    r"|\b[A-Za-z]:\\\\?[\w.-]+\\"
)
_MAIL: Final = re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.]{2,}\b")
_ORDINARY: Final = frozenset({"root", "user", "runner", "admin", "localhost", "ubuntu", "debian"})
_FRAGMENT = 48
"""So many characters in a row are nobody's coincidence."""
_FEWEST_SPACES = 3


@dataclass(frozen=True, slots=True)
class ArchiveRefusal:
    name: str
    code: str
    message: str
    help: str


def check_file(
    name: str, text: str, *, upstream: Upstream | None, forbidden: Sequence[str] = ()
) -> Iterator[ArchiveRefusal]:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        yield ArchiveRefusal(
            name, "archive-path", "this name leads out of the archive", "rename it"
        )
    if any(part.startswith(".") for part in path.parts):
        yield ArchiveRefusal(name, "archive-hidden", "this is a hidden file", "leave it out")
    for pattern in _CREDENTIALS:
        if pattern.search(text):
            yield ArchiveRefusal(
                name,
                "archive-credential",
                "this looks like a credential",
                "remove it, and revoke it",
            )
            break
    found = _PATHS.search(text)
    if found is not None:
        yield ArchiveRefusal(
            name, "archive-absolute-path", f"an absolute path: `{found[0]}`", "make it relative"
        )
    for word in {*_own_names(), *forbidden}:
        if word and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text):
            yield ArchiveRefusal(name, "archive-person", f"it names `{word}`", "remove the name")
    mail = _MAIL.search(text)
    if mail is not None:
        yield ArchiveRefusal(
            name, "archive-person", "it holds a mail address", "remove the address"
        )
    if upstream is not None:
        yield from _of_upstream(name, text, upstream)


def _of_upstream(name: str, text: str, upstream: Upstream) -> Iterator[ArchiveRefusal]:
    known = _fragments(upstream)
    for start in range(len(text) - _FRAGMENT + 1):
        fragment = text[start : start + _FRAGMENT]
        if fragment in known:
            yield ArchiveRefusal(
                name,
                "archive-upstream",
                f"text of SOPBench: `{fragment[:24]}…`",
                "SOPBench has no licence: leave its text out",
            )
            return


@functools.cache
def _fragments(upstream: Upstream) -> frozenset[str]:
    """Every run of so many characters in what upstream wrote for people: descriptions,
    instructions, requests. Names, however long, are no text."""
    texts: list[str] = []
    for domain in DOMAINS:
        _strings(upstream.metadata(domain), texts)
        for tasks in upstream.tasks(domain).values():
            for task in tasks:
                texts += [task["user_prompt"], task["user_instruction"]]
    pieces = [piece for text in texts for piece in re.split(r"\{[^}]*\}|\n", text)]
    return frozenset(
        fragment
        for piece in {piece.strip() for piece in pieces}
        for start in range(len(piece) - _FRAGMENT + 1)
        if (fragment := piece[start : start + _FRAGMENT]).count(" ") >= _FEWEST_SPACES
    )


def _strings(value: Any, into: list[str]) -> None:
    if isinstance(value, str):
        into.append(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            _strings(item, into)
    elif isinstance(value, list):
        for item in value:
            _strings(item, into)


@functools.cache
def _own_names() -> frozenset[str]:
    """Of this machine and its user, unless everybody's machine is called so."""
    try:
        names = {getpass.getuser(), socket.gethostname(), socket.gethostname().split(".")[0]}
    except (OSError, KeyError):
        return frozenset()
    return frozenset(name for name in names if len(name) > 3 and name not in _ORDINARY)
