"""What happens in a run, for people who look on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sopilot.language.render import quote_value
from sopilot.runtime.session.protocols import JSON


@dataclass(frozen=True, slots=True)
class Progress:
    """``kind`` is ``request``, ``assistant``, ``user``, ``call``, ``result``, ``step``, ``held``
    or ``note``; ``slot`` is what a request showed the model last."""

    kind: str
    text: str
    slot: str = ""


Watch = Callable[[Progress], None]


def shown_call(name: str, arguments: Mapping[str, JSON]) -> str:
    values = ", ".join(f"{key}={quote_value(value)}" for key, value in arguments.items())
    return f"{name}({values})"


def nobody_watches(progress: Progress) -> None:
    """Looks away."""
