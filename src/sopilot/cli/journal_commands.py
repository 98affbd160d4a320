"""Commands that write one entry of a journal: declared, not written out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from sopilot.cli.options import IN_STORE, Decorator, all_of
from sopilot.cli.output import Output
from sopilot.protocols import SystemClock
from sopilot.runner.store_access import StoreAccess

Write = Callable[..., Any]
"""Takes ``(store, entry, details, who=, clock=)`` and returns a message, or nothing."""

Read = Callable[[dict[str, Any]], Mapping[str, Any]]


class EntryCommands:
    """``write`` puts an entry on record; ``shared`` are parameters of every command."""

    def __init__(self, group: click.Group, write: Write, *shared: Decorator) -> None:
        self._group, self._write, self._shared = group, write, shared

    def add(self, name: str, entry: str, help: str, *params: Decorator, read: Read = dict) -> None:
        """``read`` turns the values of the options into the entry's details."""

        def run(store: StoreAccess, **argument: Any) -> Output:
            details = read({key: _plain(value) for key, value in argument.items()})
            message = store.as_person(
                lambda opened, who: self._write(
                    opened, entry, details, who=who, clock=SystemClock()
                )
            )
            report = {"recorded": entry, "message": message or None}
            return Output(report, [message or "recorded"], indent=None)

        decorate = all_of(*self._shared, *params, IN_STORE)
        self._group.command(name, help=help)(decorate(run))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
