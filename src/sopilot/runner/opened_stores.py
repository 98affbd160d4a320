from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from sopilot.files.sign_in import who_asks
from sopilot.protocols import SystemClock
from sopilot.records.people import Principal
from sopilot.records.privacy import is_demanded, may_read, note_reading
from sopilot.records.store import Store
from sopilot.stores.open import open_store

Answer = TypeVar("Answer")


def with_store(
    spec: str | None, use: Callable[[Store], Awaitable[Answer]], *, reading: bool = False
) -> Answer:
    """Runs ``use`` on the store and closes it, whatever happens. What only looks is
    ``reading``, and makes nothing where there is nothing."""

    answers: list[Answer] = []

    async def run() -> None:
        store = open_store(spec, reading=reading)
        try:
            answers.append(await use(store))
        finally:
            await store.close()

    asyncio.run(run())  # what it returns would be spelled out when it puts its signals back
    return answers[0]


def with_person(
    spec: str | None,
    token_file: Path | None,
    use: Callable[[Store, Principal | None], Awaitable[Answer]],
) -> Answer:
    """As ``with_store``, with whoever the token says asks for it."""

    async def run(store: Store) -> Answer:
        return await use(store, await who_asks(store, token_file))

    return with_store(spec, run)


def may_see(
    spec: str | None,
    token_file: Path | None,
    what: str,
    session_ids: Sequence[str],
    *,
    to_all: bool = False,
    or_nothing: bool = False,
) -> bool:
    """Whether contents are shown to whoever asks (``to_all``: they are, whoever it is); where
    the store demands it, on record, and that who may not is refused (``or_nothing``)."""

    async def look(store: Store) -> tuple[bool, bool]:
        who = await who_asks(store, token_file)
        return await may_read(store, who), await is_demanded(store)

    allowed, demanded = with_store(spec, look, reading=True)
    if demanded:
        with_person(
            spec,
            token_file,
            lambda store, who: note_reading(
                store,
                what,
                session_ids,
                who=who,
                clock=SystemClock(),
                to_all=to_all,
                or_nothing=or_nothing,
            ),
        )
    return allowed
