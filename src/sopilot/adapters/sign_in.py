"""Who somebody is, by what they hold: one way for every door."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from sopilot.adapters.openid import subject_of
from sopilot.language.diagnostics import Diagnostic, Place, UserMistake, mistake
from sopilot.runtime.records.people import Principal
from sopilot.runtime.session import Clock, Store, SystemClock
from sopilot.runtime.session.identity import TOKEN_PREFIX, load_people

TOKEN_VARIABLE = "SOPILOT_TOKEN"
_LONGEST = 1 << 16


async def sign_in(store: Store, token: str, *, clock: Clock | None = None) -> Principal:
    """By a named token of this store, or a signed one of a provider that it believes."""
    people = await load_people(store)
    if token.startswith(TOKEN_PREFIX):
        found = people.of_token(token, (clock or SystemClock()).now())
    else:
        issuer, subject = await asyncio.to_thread(subject_of, token, people.providers)
        found = people.of_subject(issuer, subject)
    if isinstance(found, Diagnostic):
        raise UserMistake([found])
    return found


async def who_asks(store: Store, token_file: Path | None) -> Principal | None:
    """By a file, else by the environment; nobody without either."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    if token_file is not None:
        try:
            with open(token_file, encoding="utf-8") as file:
                token = file.read(_LONGEST)
        except (OSError, UnicodeDecodeError) as problem:
            raise mistake(
                "no-token", f"cannot be read: {problem}", Place(str(token_file))
            ) from None
    return await sign_in(store, token.strip()) if token.strip() else None
