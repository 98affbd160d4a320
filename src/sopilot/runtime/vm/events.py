"""One entry of a trace."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from sopilot.runtime.vm.values import Fields


class Actor(StrEnum):
    MODEL = "model"
    MACHINE = "machine"
    TOOL = "tool"
    USER = "user"
    OPERATOR = "operator"
    RUNTIME = "runtime"


REUSE = "reuse"
RESUMED = "resumed"
REJECTED = "rejected"


class Event(NamedTuple):
    """``kind`` is an operation's name, or ``reuse``, ``resumed``, ``rejected``.

    ``frame`` is the path of functions and the cursor where it happened:
    ``transfer/any_of_funds@check_2``.
    """

    seq: int
    at: float
    actor: str
    kind: str
    process: str | None
    frame: str
    payload: Fields
