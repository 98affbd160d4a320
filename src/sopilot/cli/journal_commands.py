"""Commands that write one entry of a journal: declared, not written out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from sopilot.cli.options import all_of
from sopilot.cli.output import say
from sopilot.cli.stores import signed
from sopilot.protocols import SystemClock
from sopilot.runner.opened_stores import with_person

Write = Callable[..., Any]
"""Of ``(store, entry, details, who=, clock=)``; what it returns is told, or `recorded`."""


Read = Callable[[dict[str, Any]], Mapping[str, Any]]


class EntryCommands:
    """``write`` puts an entry on record; ``shared`` are parameters of every command."""

    def __init__(self, group: click.Group, write: Write, *shared: Callable[..., Any]) -> None:
        self._group, self._write, self._shared = group, write, shared

    def add(
        self, name: str, entry: str, help: str, *params: Callable[..., Any], read: Read = dict
    ) -> None:
        """``read`` makes the entry's details of what was given."""

        def run(store_spec: str | None, token_file: Any, **argument: Any) -> None:
            details = read({key: _plain(value) for key, value in argument.items()})
            message = with_person(
                store_spec,
                token_file,
                lambda store, who: self._write(store, entry, details, who=who, clock=SystemClock()),
            )
            say(message or "recorded")

        self._group.command(name, help=help)(signed(all_of(*self._shared, *params)(run)))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
