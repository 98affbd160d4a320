"""A run, shown to a person while it happens."""

from __future__ import annotations

from pathlib import Path

from sopilot.agent.result import RETRY, Progress
from sopilot.cli.output import Exit, marked, say, warn

_MARKS = {
    "user": ("user", "green"),
    "assistant": ("agent", "cyan"),
    "call": ("  call", None),
    "result": ("  ", None),
    "step": ("  step", "bright_black"),
    "held": ("  held", "yellow"),
    "note": ("  note", "yellow"),
}


class Watcher:
    """Prints a run while it happens: ``frames`` too, and to a ``person`` who is served only what
    the agent says. If it is ``quiet``, only retries are reported."""

    def __init__(self, *, quiet: bool = False, frames: bool = False, person: bool = False) -> None:
        self._quiet = quiet
        self._frames = frames
        self._person = person
        self._slot = ""

    def __call__(self, progress: Progress) -> None:
        if progress.kind == RETRY:
            warn(progress.text)
        elif self._quiet or (
            self._person and progress.kind not in ("request", "assistant", "held", "note")
        ):
            return
        elif progress.kind == "request":
            if self._frames and progress.slot and progress.slot != self._slot:
                say("\n".join(f"    │ {line}" for line in progress.slot.split("\n")), dim=True)
                self._slot = progress.slot
        else:
            mark, colour = _MARKS.get(progress.kind, ("  ", None))
            marked(mark, progress.text, fg=colour, bold=bool(colour))


def interrupted(judged: int, number: int, output: Path | None) -> SystemExit:
    stored = "; the same command resumes" if output is not None else ""
    say(f"\ninterrupted: {judged} of {number} tasks were judged just now{stored}", err=True)
    return SystemExit(Exit.INTERRUPTED)
