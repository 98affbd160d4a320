"""Read and write text and YAML files that people name; problems are user mistakes.

Reading is bounded: a device has no end, and a few YAML aliases can stand for endless values.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from sopilot.messages.diagnostic import Diagnostic, Place
from sopilot.messages.errors import UserMistake, mistake
from sopilot.program.codec import program_from_yaml
from sopilot.program.model import Program

_MOST_BYTES = 1 << 30

_MOST_OF_A_STREAM = 64 << 20
"""A device or a pipe has no size, and perhaps no end."""

_CHUNK_BYTES = 1 << 20


def whole_bytes(path: Path) -> bytes:
    """Read a whole file; raise ``OSError`` if it is too large for memory."""
    with open(path, "rb") as file:
        about = os.fstat(file.fileno())
        sized = stat.S_ISREG(about.st_mode) and about.st_size > 0
        most, length = _MOST_BYTES if sized else _MOST_OF_A_STREAM, 0
        parts: list[bytes] = []
        while length <= most and about.st_size <= most:
            part = file.read(_CHUNK_BYTES)
            if not part:
                return b"".join(parts)
            parts.append(part)
            length += len(part)
    message = f"it is larger than {most >> 20} MB, or never ends"
    raise OSError(errno.EFBIG, message, os.fspath(path))


def whole_text(path: Path) -> str:
    """Read a whole text file, with line ends as `\n`."""
    text = whole_bytes(path).decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_text(path: Path) -> str:
    try:
        return whole_text(path)
    except FileNotFoundError:
        message, cure = "there is no such file", "check the name and the folder"
    except IsADirectoryError:
        message, cure = "this is a folder", "name a file in it"
    except UnicodeDecodeError:
        message, cure = "the file is not UTF-8 text", "save it as UTF-8"
    except OSError as error:
        message, cure = f"the file cannot be read: {error.strerror}", "check its permissions"
        if error.errno == errno.EFBIG:
            cure = "name a smaller file; if this is a stream, name the file itself"
    raise mistake("unreadable-file", message, Place(str(path)), cure)


def require_new(paths: Iterable[Path], cure: str) -> None:
    there = [path for path in paths if os.path.exists(path)]
    if there:
        message = "the file is already there"
        raise UserMistake(
            [Diagnostic("file-exists", message, Place(str(path)), cure) for path in there]
        )


def write_whole(
    path: Path,
    contents: str | bytes,
    cure: str = "name a place you may write to",
    *,
    private: bool = False,
) -> None:
    """Write the old file or the new one, never a part: an interruption must not cost a file.
    ``private`` files, which hold people's words, are readable by their owner alone."""
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(contents.encode() if isinstance(contents, str) else contents)
            if not private:
                Path(draft).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
            Path(draft).replace(target)
        except OSError:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        message = f"the file cannot be written: {error.strerror}"
        raise mistake("cannot-write", message, Place(str(path)), cure) from error


def is_program_text(text: str) -> bool:
    """Program artifacts name their format first; handbooks do not."""
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            return stripped.startswith("sopilot_program:")
    return False


def is_program_file(source: str) -> bool:
    path = Path(source)
    return os.path.isfile(path) and is_program_text(read_text(path))


def load_program(path: Path) -> Program:
    return program_from_yaml(read_text(path), str(path))


_MOST_VALUES = 1_000_000


def load_yaml(text: str) -> Any:
    """Load YAML. Raise ``yaml.YAMLError`` if its aliases stand for endless values."""
    document = yaml.safe_load(text)
    counted, waiting = 0, [document]
    while waiting:
        value = waiting.pop()
        inner = list(value.values()) if isinstance(value, dict) else value
        if isinstance(inner, list):
            counted += len(inner)
            if counted > _MOST_VALUES:
                raise yaml.YAMLError("its aliases stand for too many values, or for themselves")
            waiting += inner
    return document
