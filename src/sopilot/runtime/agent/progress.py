"""What happens in a run, for people who look on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """``kind`` is ``request``, ``assistant``, ``user``, ``call``, ``result``, ``step``, ``held``
    or ``note``; ``slot`` is what a request showed the model last."""

    kind: str
    text: str
    slot: str = ""


Watch = Callable[[Progress], None]


def nobody_watches(progress: Progress) -> None:
    """Looks away."""
