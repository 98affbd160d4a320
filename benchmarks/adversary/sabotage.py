"""The guard broken on purpose, one way at a time: the campaign must find each.

A clause that could be off without anybody being robbed would be no clause, and a campaign that
does not notice would be no evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Sabotage(Protocol):
    def __call__(self) -> AbstractContextManager[None]: ...


SABOTAGES: dict[str, Sabotage] = {}


@contextmanager
def sabotaged(name: str) -> Iterator[None]:
    with SABOTAGES[name]():
        yield
