"""What a session or a store refuses, and whose move it is."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.diagnostics import Diagnostic, RunEnded, SopilotError, UserMistake


class StoreUnavailable(RunEnded):
    """Nothing was written, or nobody can say whether it was: disk full, locked, server gone.

    The session in memory is as it was; ``Session.reload`` finds out what the store holds.
    """


class StoreCorrupt(StoreUnavailable):
    """The store's file is not what was written. Restore a copy; nothing was changed."""


def raise_if_refused(problem: SopilotError) -> None:
    """A store that is gone or refuses says nothing about the session that was asked for."""
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
    """Its events are no longer in this store; its head, its log entries and its actions are."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(
            f"session {session_id} was pruned: its events are in an archive or a back-up, if any"
        )


class LeaseLost(RunEnded):
    """Somebody else owns the session now. What was to be written was not."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"session {session_id} has another owner now; nothing was written")


class Conflict(RunEnded):
    """The stored head is not the one this writer continued from."""

    def __init__(self, session_id: str, expected: int, found: int) -> None:
        self.session_id = session_id
        super().__init__(
            f"session {session_id} stands at event {found}, not at {expected}; nothing was written"
        )


class UnknownSession(UserMistake):
    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(
            [
                Diagnostic(
                    "unknown-session",
                    f"there is no session `{session_id}` in this store",
                    help="`sopilot sessions` lists them",
                )
            ]
        )


class SessionExists(UserMistake):
    def __init__(self, session_id: str) -> None:
        super().__init__([Diagnostic("session-exists", f"session `{session_id}` exists already")])


class ProgramChanged(UserMistake):
    """``changes`` maps a goal to its (stored, present) hash; ``None`` where there is none."""

    def __init__(self, changes: Mapping[str, tuple[str | None, str | None]]) -> None:
        self.changes = dict(changes)
        super().__init__(
            [
                Diagnostic(
                    "program-changed",
                    f"the program of `{goal}` is not the one this session was started with "
                    f"({_short(stored)} then, {_short(present)} now)",
                    help="resume with the stored program, or accept the change explicitly",
                )
                for goal, (stored, present) in sorted(self.changes.items())
            ]
        )


class TraceBroken(RunEnded):
    """A stored trace whose chain does not hold. ``index`` is the first broken event."""

    def __init__(self, session_id: str, index: int) -> None:
        self.session_id = session_id
        self.index = index
        super().__init__(
            f"the trace of session {session_id} is broken at event {index}: "
            "it was changed or damaged after it was written, and is not continued"
        )


def _short(sha256: str | None) -> str:
    return sha256[:12] if sha256 else "none"
