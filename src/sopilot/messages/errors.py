"""Every exception that sopilot raises, by the person who must act: the user, the operator of
the session, or the developers.

A mistake that a model can correct is an answer to it, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sopilot.messages.diagnostic import Diagnostic, Place, render_diagnostics

_NOWHERE = Place()


class SopilotError(Exception):
    """Everything the project raises on purpose."""


class UserMistake(SopilotError):
    """A mistake that a person can fix by changing an input. ``diagnostics`` lists every problem."""

    def __init__(self, diagnostics: Sequence[Diagnostic] | str) -> None:
        if isinstance(diagnostics, str):
            diagnostics = [Diagnostic("misuse", diagnostics)]
        self.diagnostics = tuple(diagnostics)
        super().__init__(render_diagnostics(self.diagnostics))


def mistake(code: str, message: str, place: Place = _NOWHERE, help: str = "") -> UserMistake:
    """Return a mistake with one diagnostic."""
    return UserMistake([Diagnostic(code, message, place, help)])


def unnamed() -> UserMistake:
    """The mistake of a step that needs a person's name."""
    return mistake("nobody", "your name is required", help="pass `--as NAME`, or a token")


class RunEnded(SopilotError):
    """A run can't continue: a budget is spent, the store is lost or a provider is unreachable."""


class InternalBug(SopilotError):
    """A promise of this code base was broken. Never the user's fault."""


class StoreUnavailable(RunEnded):
    """A write failed, or its outcome is unknown: disk full, locked, server gone.

    The session in memory is unchanged; ``Session.reload`` reads the store again.
    """


class OutcomeUnrecorded(StoreUnavailable):
    """A call was sent, but its outcome couldn't be recorded: never report it as not carried
    out. The session records the outcome once the store is back."""

    def __init__(self, action: str, problem: Exception) -> None:
        super().__init__(
            f"`{action}` was sent, and its outcome is unknown, because it couldn't be recorded "
            f"({problem}): don't call it again"
        )


class StoreCorrupt(StoreUnavailable):
    """The store's file is damaged. Restore a copy; nothing was changed."""


def raise_if_refused(problem: SopilotError) -> None:
    """Raise if the store failed, because that says nothing about the requested session."""
    if isinstance(problem, StoreUnavailable) and not isinstance(problem, StoreCorrupt):
        raise problem


class StoreTooNew(UserMistake):
    """The store was written by a release that this one cannot read."""


class LeaseHeld(RunEnded):
    """Another owner has the session. ``expires_at`` is when it may be taken over."""

    def __init__(self, session_id: str, owner: str, expires_at: float, now: float) -> None:
        self.session_id = session_id
        self.owner = owner
        self.expires_at = expires_at
        self.seconds_left = max(0.0, expires_at - now)
        super().__init__(
            f"session {session_id} is owned by `{owner}` for another {self.seconds_left:.0f} s; "
            "wait, or take it over explicitly"
        )


class Pruned(RunEnded):
    """The store no longer has the session's events, only its head, log entries and actions."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(
            f"session {session_id} was pruned: its events are in an archive or a backup, "
            "if there is one"
        )


class LeaseLost(RunEnded):
    """The session has another owner now, so nothing was written. ``sent``: the call whose
    outcome was lost."""

    def __init__(self, session_id: str, sent: str = "") -> None:
        self.session_id = session_id
        self.sent = sent
        unknown = f"; `{sent}` was sent, and its outcome is unknown" if sent else ""
        super().__init__(
            f"session {session_id} now has another owner; nothing was written{unknown}"
        )


class Conflict(RunEnded):
    """The stored head differs from the head that this writer continued from."""

    def __init__(self, session_id: str, expected: int, number: int) -> None:
        self.session_id = session_id
        super().__init__(
            f"session {session_id} is at event {number}, not {expected}; nothing was written"
        )


class UnknownSession(UserMistake):
    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(
            [
                Diagnostic(
                    "unknown-session",
                    f"there is no session `{session_id}` in this store",
                    help="`sopilot sessions list` lists them",
                )
            ]
        )


class SessionExists(UserMistake):
    def __init__(self, session_id: str) -> None:
        super().__init__([Diagnostic("session-exists", f"session `{session_id}` already exists")])


class ProgramChanged(UserMistake):
    """``changes`` maps a goal to its (stored, present) hash; ``None`` where there is none."""

    def __init__(self, changes: Mapping[str, tuple[str | None, str | None]]) -> None:
        self.changes = dict(changes)
        super().__init__(
            [
                Diagnostic(
                    "program-changed",
                    f"the program of `{goal}` isn't the program that this session started with "
                    f"({_short(stored)} then, {_short(present)} now)",
                    help="resume with the stored program, or accept the change explicitly",
                )
                for goal, (stored, present) in sorted(self.changes.items())
            ]
        )


class TraceBroken(RunEnded):
    """The chain of a stored trace is broken. ``index`` is the first broken event."""

    def __init__(self, session_id: str, index: int) -> None:
        self.session_id = session_id
        self.index = index
        super().__init__(
            f"the trace of session {session_id} is broken at event {index}: "
            "it was changed or damaged after it was written, so it can't be continued"
        )


def _short(sha256: str | None) -> str:
    return sha256[:12] if sha256 else "none"


class TraceError(SopilotError):
    """A malformed trace, or a trace of other programs. ``index`` is the event's place."""

    def __init__(self, message: str, index: int | None = None) -> None:
        self.index = index
        super().__init__(message if index is None else f"event {index}: {message}")
