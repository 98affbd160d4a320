"""Handbook versions of a store: released, signed off, and asked for before a session opens.

A session goes on with the version it began with, also when a later one is in force by then;
going over to another needs one that may run itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.diagnostics import UserMistake, mistake
from sopilot.runtime.records.people import People, Principal
from sopilot.runtime.records.versions import Version, Versions, author_of, fold_versions
from sopilot.runtime.session._store import Store
from sopilot.runtime.session.identity import load_people, written_by
from sopilot.runtime.session.journal import folded, write
from sopilot.runtime.session.protocols import Clock
from sopilot.runtime.vm import JSON
from sopilot.runtime.vm.values import Fields, same_name

JOURNAL = "handbooks"


async def load_versions(store: Store) -> Versions:
    return await folded(
        store,
        JOURNAL,
        lambda found: fold_versions((one.at, one.name, one.details) for one in found),
    )


async def require_released(
    store: Store, people: People, handbook: str, programs: Mapping[str, str], at: float
) -> None:
    """Nothing runs unsigned where the store demands sign-off."""
    if "sign-off" not in people.demands:
        return
    problem = (await load_versions(store)).objection(handbook, programs, at)
    if problem is not None:
        raise UserMistake([problem])


async def authors_of(store: Store, metadata: Fields) -> frozenset[str]:
    """Who wrote what a session runs by: they do not decide in it."""
    programs = metadata.get("programs") or {}
    return author_of(await load_versions(store), str(metadata.get("handbook") or ""), programs)


async def release(
    store: Store,
    handbook: str,
    *,
    text: str,
    programs: Mapping[str, str],
    begin: float,
    end: float | None,
    coverage: JSON,
    clock: Clock,
    who: Principal | None,
    by: str,
) -> Version:
    writer = await _writer(store, who, by)
    if end is not None and end <= begin:
        raise mistake("no-time", "this version would end before it begins")
    said: dict[str, JSON] = {
        "handbook": handbook,
        "text": text,
        "programs": dict(programs),
        "from": begin,
        "to": end,
        "coverage": coverage,
        **writer,
    }
    await write(store, JOURNAL, "version_released", said, clock=clock)
    return (await load_versions(store)).of[handbook][-1]


async def sign_off(
    store: Store, entry: str, details: Fields, *, who: Principal | None, clock: Clock
) -> str:
    """``details``: handbook, number, and by whom where nobody proved it."""
    writer = await _writer(store, who, details["by"])
    one = await _found(store, details["handbook"], details["number"])
    if same_name(one.author) in (await load_people(store)).names_of(str(writer["by"])):
        raise mistake("author", f"{one.author} wrote it: somebody else signs it off")
    return await _continue(store, entry, one, writer, clock)


async def withdraw(
    store: Store, entry: str, details: Fields, *, who: Principal | None, clock: Clock
) -> str:
    writer = await _writer(store, who, details["by"])
    one = await _found(store, details["handbook"], details["number"])
    return await _continue(store, entry, one, writer, clock)


async def _continue(
    store: Store, entry: str, one: Version, writer: Mapping[str, JSON], clock: Clock
) -> str:
    said = {"handbook": one.handbook, "version": one.number, **writer}
    await write(store, JOURNAL, entry, said, clock=clock)
    now = await _found(store, one.handbook, one.number)
    state = f"signed off by {', '.join(now.signed)}" if entry.endswith("off") else "withdrawn"
    return f"version {one.number} of {one.handbook}: {state}"


async def _found(store: Store, handbook: str, number: int) -> Version:
    return (await load_versions(store)).known(handbook, number)


async def _writer(store: Store, who: Principal | None, by: str) -> dict[str, JSON]:
    if who is None and "identity" in (await load_people(store)).demands:
        message = "this store asks people to prove who they are"
        raise mistake("unauthenticated", message, help="give --token-file")
    writer = written_by(who, by)
    if not same_name(str(writer["by"])):
        raise mistake("nobody", "whoever does this must be named: --as, or a token")
    return writer
