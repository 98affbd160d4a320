"""The people of a store: read from its journal, and changed by those who may."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from sopilot.language.diagnostics import UserMistake, mistake
from sopilot.runtime.records.people import (
    ADDED,
    ADMINISTRATOR,
    People,
    Principal,
    added,
    fold_people,
    token_digest,
    why_not,
)
from sopilot.runtime.session._store import Store
from sopilot.runtime.session.journal import folded, write
from sopilot.runtime.session.protocols import Clock
from sopilot.runtime.trace.identity import identity_of
from sopilot.runtime.vm import JSON
from sopilot.runtime.vm.values import same_name

JOURNAL = "people"
TOKEN_PREFIX = "sop_"
REQUESTER = "requester"
"""In a session's ``extra``: who asks, where a door knows it."""


async def load_people(store: Store) -> People:
    return await folded(
        store, JOURNAL, lambda found: fold_people((one.name, one.details) for one in found)
    )


async def change_people(
    store: Store, name: str, details: Mapping[str, JSON], *, who: Principal | None, clock: Clock
) -> None:
    """Written with whoever did it. Once an administrator can prove who they are, only one may."""
    people = await load_people(store)
    if people.has_administrator():
        person = people.person(who.name) if who is not None else None
        if person is None or ADMINISTRATOR not in person.roles:
            raise mistake(
                "not-administrator",
                "only an administrator changes the people of this store",
                help="give an administrator's token: --token-file",
            )
    said = added(people, details) if name == ADDED else details
    problem = why_not(people, name, said)
    if problem is not None:
        raise UserMistake([problem])
    await write(store, JOURNAL, name, {**said, **written_by(who)}, clock=clock)


def written_by(who: Principal | None, name: str = "") -> dict[str, JSON]:
    """Who stands behind an entry of a journal, and how they proved it."""
    principal = who.as_json() if who is not None else None
    by = who.name if who is not None and who.name else name
    return {"by": by, "identity": identity_of(principal)}


async def issue_token(
    store: Store,
    entry: str,
    details: Mapping[str, JSON],
    *,
    who: Principal | None,
    clock: Clock,
) -> str:
    """The token itself, which is kept nowhere: the journal has its hash. ``details``: person,
    token (its name), expires_at."""
    people = await load_people(store)
    person, name = str(details["person"]), str(details["token"])
    found = people.person(person)
    if found is None:
        raise mistake("unknown-person", f"`{person}` is nobody here", help="`sopilot people add`")
    if any(same_name(one.name) == same_name(name) for one in people.tokens.values()):
        raise mistake("token-exists", f"there is a token `{name}` already")
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    said = {**details, "person": found.name, "sha256": token_digest(token)}
    await change_people(store, entry, said, who=who, clock=clock)
    return token
