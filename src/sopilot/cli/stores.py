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

STORE = click.option(
    "--store",
    "store_spec",
    metavar="sqlite:PATH|postgres:DSN",
    envvar="SOPILOT_STORE",
    help="Where sessions are kept. Default: sessions.db in the user's data folder.",
)


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
