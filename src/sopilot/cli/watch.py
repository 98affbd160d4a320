"""A run, shown to a person while it happens."""

from __future__ import annotations

from pathlib import Path

from sopilot.agent.result import Progress
from sopilot.cli.output import heading, marked, say

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
    """Prints a run while it happens."""

    def __init__(self, *, quiet: bool, frames: bool, person: bool) -> None:
        self._quiet = quiet
        self._frames = frames
        self._person = person
        self._slot = ""

    def __call__(self, progress: Progress) -> None:
        if self._quiet:
            return
        if progress.kind == "request":
            if self._frames and progress.slot and progress.slot != self._slot:
                say(_boxed(progress.slot), dim=True)
                self._slot = progress.slot
            return
        if self._person and progress.kind not in ("assistant", "held", "note"):
            return
        mark, colour = _MARKS.get(progress.kind, ("  ", None))
        marked(mark, progress.text, fg=colour, bold=bool(colour))


class ScenarioWatcher:
    """Shows a run to a person: each frame once, then what was said and done."""

    def __init__(self) -> None:
        self._slot = ""

    def __call__(self, progress: Progress) -> None:
        if progress.kind == "request":
            if progress.slot and progress.slot != self._slot:
                heading("\nthe model sees")
                say("\n".join(f"  | {line}" for line in progress.slot.split("\n")))
            self._slot = progress.slot
            return
        say(f"{progress.kind:>9}  {progress.text}")


def _boxed(text: str) -> str:
    return "\n".join(f"    │ {line}" for line in text.split("\n"))


def interrupted(judged: int, number: int, output: Path | None) -> SystemExit:
    stored = "; the same command goes on from here" if output is not None else ""
    say(f"\ninterrupted: {judged} of {number} tasks were judged just now{stored}", err=True)
    return SystemExit(130)
