"""What a folder's own Python does wrong is told by its file, its line and its cure."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sopilot.language.diagnostics import Place, SopilotError, UserMistake, mistake
from sopilot.runtime.session.protocols import Tools, ToolSchema

_CODE = "bad-folder-code"


@contextmanager
def own_code(file: Path, hook: str) -> Iterator[None]:
    """``hook`` of ``file`` runs inside. What it raises for people is told as it is."""
    try:
        yield
    except SopilotError:
        raise
    except Exception as problem:  # it is somebody else's: whatever it raises
        message = f"`{hook}` broke off with {type(problem).__name__}: {problem}"
        raise mistake(_CODE, message, _place(file, problem), "mend it there") from problem


def wrong_kind(file: Path, hook: str, given: object, wanted: str) -> UserMistake:
    if inspect.iscoroutine(given):
        given.close()  # else Python warns of it, too
        what, wanted = "is `async def`, and must not be", f"write `def`, and return {wanted}"
    else:
        what = "gave nothing" if given is None else "gave something else"
        wanted = f"return {wanted}"
    return mistake(_CODE, f"`{hook}` {what}", Place(str(file)), wanted)


def checked_tools(file: Path, hook: str, given: object) -> Tools:
    """``given`` is what ``hook`` gave: tools whose schemas can be listed."""
    if not isinstance(given, Tools):
        wanted = "an object with `schemas()` and an async `call(name, arguments, *, key)`"
        raise wrong_kind(file, hook, given, wanted)
    with own_code(file, "schemas()"):
        listed = given.schemas()
        if not isinstance(listed, list | tuple) or not all(
            isinstance(one, ToolSchema) for one in listed
        ):
            raise wrong_kind(
                file, "schemas()", listed, "a list of `ToolSchema(name, description, …)`"
            )
    return given


def _place(file: Path, problem: Exception) -> Place:
    """The innermost line of the folder's own, else the file."""
    if isinstance(problem, SyntaxError) and problem.filename:
        return Place(problem.filename, problem.lineno or 0, problem.offset or 0)
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        if Path(frame.filename).is_relative_to(file.parent):
            return Place(frame.filename, frame.lineno or 0, (frame.colno or 0) + 1)
    return Place(str(file))
