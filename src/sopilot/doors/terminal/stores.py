"""The option `--store`, and a command's work on what it names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import click

from sopilot.adapters.sign_in import who_asks
from sopilot.adapters.store_by_name import open_store
from sopilot.doors.terminal.beside import beside
from sopilot.doors.terminal.option_types import NEW_FILE, all_of
from sopilot.language.diagnostics import mistake
from sopilot.runtime.records.people import Principal
from sopilot.runtime.session import Store, SystemClock
from sopilot.runtime.session.privacy import is_demanded, may_read, note_reading

Answer = TypeVar("Answer")

STORE = click.option(
    "--store",
    "store_spec",
    metavar="sqlite:PATH|postgres:DSN",
    envvar="SOPILOT_STORE",
    help="Where sessions are kept. Default: sessions.db in the user's data folder.",
)


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


def digests_beside(
    spec: str | None, *, worth: bool
) -> AbstractContextManager[Callable[[], Mapping[str, str] | None]]:
    """The register's digests, read by a process of its own, where that is worth one."""
    open_store(spec, reading=True)  # what that takes is then loaded once, for both
    return beside(_digests, spec, worth=worth)


def _digests(spec: str | None) -> Mapping[str, str]:
    return with_store(spec, lambda store: store.records.digests(), reading=True)


BY = click.option("--as", "by", default="", metavar="NAME", help="Who; a token says so itself.")
TOKEN_FILE = click.option(
    "--token-file",
    type=NEW_FILE,
    help="Your token, or a provider's; else what SOPILOT_TOKEN holds.",
)


signed = all_of(TOKEN_FILE, STORE)
"""By whoever has the token, on this store."""


def with_person(
    spec: str | None,
    token_file: Path | None,
    use: Callable[[Store, Principal | None], Awaitable[Answer]],
) -> Answer:
    """As ``with_store``, with whoever the token says asks for it."""

    async def run(store: Store) -> Answer:
        return await use(store, await who_asks(store, token_file))

    return with_store(spec, run)


def require_readable(
    spec: str | None,
    token_file: Path | None,
    what: str,
    session_ids: Sequence[str],
    *,
    contents: bool = True,
) -> None:
    """Where ``contents`` are wanted at all; that somebody asked is on record either way."""
    if not may_see(spec, token_file, what, session_ids, or_nothing=contents) and contents:
        raise mistake(
            "not-entitled",
            "contents are shown to other roles alone",
            help="give the token of somebody who may read them: --token-file",
        )


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
