"""A store as people name it, opened for each piece of work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sopilot.messages.errors import mistake
from sopilot.protocols import SystemClock
from sopilot.records.people import Principal
from sopilot.records.privacy import is_demanded, may_read, note_reading
from sopilot.records.store import Store
from sopilot.runner.sign_in import who_asks
from sopilot.stores.memory import MemoryStore
from sopilot.stores.open import open_store


def store_or_memory(store: Store | str | None) -> Store:
    """The store, or the store that the text names; a new store in memory for ``None``."""
    return open_store(store) if isinstance(store, str) else store or MemoryStore()


Answer = TypeVar("Answer")
LAST, ID_LENGTH, SHORTEST_PREFIX, RECENT = "last", 32, 4, 10_000


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """The store that ``spec`` names, and the token of the caller. Each method opens the store and
    closes it, whatever happens."""

    spec: str | None = None
    token_file: Path | None = None

    def read(self, use: Callable[[Store], Awaitable[Answer]]) -> Answer:
        """Like ``write``, but never create a store."""
        return self.write(use, reading=True)

    def write(self, use: Callable[[Store], Awaitable[Answer]], *, reading: bool = False) -> Answer:
        answers: list[Answer] = []

        async def run() -> None:
            store = open_store(self.spec, reading=reading)
            try:
                answers.append(await use(store))
            finally:
                await store.close()

        asyncio.run(run())  # a returned value would be printed when it restores its signals
        return answers[0]

    def as_person(self, use: Callable[[Store, Principal | None], Awaitable[Answer]]) -> Answer:
        """Like ``write``, with the person whose token it is."""

        async def run(store: Store) -> Answer:
            return await use(store, await who_asks(store, self.token_file))

        return self.write(run)

    def may_see(
        self, what: str, subjects: Sequence[str], *, to_all: bool = False, or_nothing: bool = False
    ) -> bool:
        """Whether the caller may read contents. If the store requires privacy, record the reading:
        ``to_all`` if any caller may read, ``or_nothing`` if a refused caller gets nothing."""

        async def look(store: Store) -> tuple[bool, bool]:
            who = await who_asks(store, self.token_file)
            return await may_read(store, who), await is_demanded(store)

        allowed, demanded = self.read(look)
        if demanded:
            self.as_person(
                lambda store, who: note_reading(
                    store, what, subjects, who=who, clock=SystemClock(),
                    to_all=to_all, or_nothing=or_nothing,
                )
            )  # fmt: skip
        return allowed

    def require_readable(
        self, what: str, subjects: Sequence[str], *, contents: bool = True
    ) -> None:
        """Refuse callers who may not read the ``contents`` they want; record the request."""
        if not self.may_see(what, subjects, or_nothing=contents) and contents:
            raise mistake(
                "not-entitled",
                "your role may not read contents",
                help="pass the token of a person who may: sopilot --token-file",
            )

    def session_id(self, name: str) -> str:
        """The full id: ``last``, a unique prefix, or the id itself."""
        if name != LAST and not SHORTEST_PREFIX <= len(name) < ID_LENGTH:
            return name
        records = self.read(lambda store: store.sessions(limit=RECENT))
        if name == LAST:
            if not records:
                raise mistake("no-session", "the store has no sessions", help="see `sopilot run`")
            return records[0].id
        matches = [record.id for record in records if record.id.startswith(name)]
        if len(matches) > 1 and name not in matches:
            message = f"`{name}` is the beginning of {len(matches)} session ids"
            help = f"write more characters: {', '.join(matches[:3])}"
            raise mistake("ambiguous-session", message, help=help)
        return matches[0] if len(matches) == 1 else name
