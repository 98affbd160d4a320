"""The option `--store`, and a command's work on what it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import click

from sopilot.cli.beside import beside
from sopilot.cli.options import NEW_FILE, all_of
from sopilot.messages.errors import mistake
from sopilot.runner.opened_stores import may_see, with_store
from sopilot.stores.open import open_store

LAST, ID_LENGTH, RECENT = "last", 32, 10_000


STORE = click.option(
    "--store",
    "store_spec",
    metavar="sqlite:PATH|postgres:DSN",
    envvar="SOPILOT_STORE",
    help="Session store. Default: sessions.db in your data folder.",
)


def digests_beside(
    spec: str | None, *, worth: bool
) -> AbstractContextManager[Callable[[], Mapping[str, str] | None]]:
    """The register's digests, read by a process of its own, where that is worth one."""
    open_store(spec, reading=True)  # what that takes is then loaded once, for both
    return beside(_digests, spec, worth=worth)


def _digests(spec: str | None) -> Mapping[str, str]:
    return with_store(spec, lambda store: store.records.digests(), reading=True)


BY = click.option(
    "--as",
    "by",
    default="",
    metavar="NAME",
    help="Your name. Taken from the token if you pass one.",
)


TOKEN_FILE = click.option(
    "--token-file",
    type=NEW_FILE,
    help="File with your access token. Default: the variable SOPILOT_TOKEN.",
)


signed = all_of(TOKEN_FILE, STORE)
"""A token, and the store that it is for."""


def session_named(spec: str | None, name: str) -> str:
    """The full id of a session: `last`, a unique prefix of at least four characters, or the id."""
    if name != LAST and not 4 <= len(name) < ID_LENGTH:
        return name
    records = with_store(spec, lambda store: store.sessions(limit=RECENT), reading=True)
    if name == LAST:
        if not records:
            raise mistake("no-session", "the store has no sessions", help="see `sopilot run`")
        return records[0].id
    matches = [record.id for record in records if record.id.startswith(name)]
    if len(matches) > 1 and name not in matches:
        shown = ", ".join(matches[:3])
        message = f"`{name}` is the beginning of {len(matches)} session ids"
        raise mistake("ambiguous-session", message, help=f"write more characters: {shown}")
    return matches[0] if len(matches) == 1 else name


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
