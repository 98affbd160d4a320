"""Contents of sessions: stored beside the trace, read on record, erased without breaking the chain.

A policy, folded from a journal, says how long contents are kept and what must not be erased.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from sopilot.messages.errors import LeaseHeld, StoreCorrupt, UserMistake, mistake
from sopilot.protocols import Clock
from sopilot.records.journal import folded, write
from sopilot.records.log import PREFIX, Entry, is_journal
from sopilot.records.people import People, Principal, load_people, written_by
from sopilot.records.store import Append, Lease, SessionRecord, Settings, Store
from sopilot.values.json import JSON, Fields, parts_of
from sopilot.values.text import counted, moment

ERASED, PRUNED = "erased", "pruned"
HOLD_SET, HOLD_LIFTED = "hold_set", "hold_lifted"

ANY = "*"
"""Of a handbook without a period of its own."""

_ENDINGS = ("completed", "refused", "abandoned", "ended", "running", "waiting", "unknown", "new")
"""The statuses of `sopilot sessions list`."""


class Hold(NamedTuple):
    """Its words stand beside the journal, under ``ref``, and are ``None`` once they are erased:
    they may name a person."""

    what: str | None
    why: str
    ref: str = ""


@dataclass(slots=True)
class Policy:
    columns: frozenset[str] = frozenset()
    """Arguments that stand in register and trace: amounts, currencies, nothing of a person."""
    periods: dict[str, float] = field(default_factory=dict)
    """Class of sessions (a handbook, one goal of it, how they ended) → seconds that their contents
    are kept after the last event."""
    readers: frozenset[str] = frozenset()
    """Roles that may read contents; empty: everybody."""
    hold_entries: dict[int, Hold] = field(default_factory=dict)
    """Entry of the journal → a hold that was not lifted."""
    lifted: list[Hold] = field(default_factory=list)
    pruned: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Session → the head that it had when its events were deleted."""
    erased: set[str] = field(default_factory=set)
    """Sessions whose contents were erased on record."""

    @property
    def holds(self) -> dict[str, str]:
        """Session, or a text to search for → why it must not be erased."""
        every = self.hold_entries.values()
        return {hold.what: hold.why for hold in every if hold.what is not None}

    def due(
        self, handbook: str, updated_at: float, now: float, *, goal: str = "", status: str = ""
    ) -> bool:
        """Whether the period of the narrowest class of the session is over."""
        for name in (f"{handbook}/{goal}", handbook, ANY):
            for item in (f"{name}@{status}", name):
                if item in self.periods:
                    return now - updated_at >= self.periods[item]
        return False


def period_details(values: Mapping[str, Any]) -> dict[str, Any]:
    """A class of sessions, and how many days its contents are kept."""
    name, at, status = str(values["kind"]).partition("@")
    if not name or (at and status not in _ENDINGS):
        raise mistake(
            "no-class",
            f"`{values['kind']}` isn't a class of sessions",
            help=f"HANDBOOK, HANDBOOK/GOAL or {ANY}, optionally followed by one of "
            + ", ".join(f"@{item}" for item in _ENDINGS),
        )
    return {"handbook": values["kind"], "seconds": values["days"] * 86_400}


def fold_policy(entries: Iterable[Entry]) -> Policy:
    policy = Policy()
    for number, _, name, it in entries:
        match name:
            case "columns_named":
                policy.columns = frozenset(it["columns"])
            case "period_set":
                policy.periods[str(it["handbook"])] = float(it["seconds"])
            case "readers_named":
                policy.readers = frozenset(it["roles"])
            case "hold_set":
                words = it["beside"]
                hold = Hold(words.get("what"), str(words.get("why")), words["ref"])
                policy.hold_entries[number] = hold
            case "hold_lifted":
                held = policy.hold_entries
                policy.lifted += [held.pop(item) for item in it["holds"] if item in held]
            case "pruned":
                for session_id, (seq, digest) in it["sessions"].items():
                    policy.pruned[session_id] = (int(seq), str(digest))
            case "erased":
                policy.erased.update(it["sessions"])
    return policy


JOURNAL = "privacy"
READING = "reading"
_LEASE_SECONDS = 600.0

_KEYS = "keys"
_DEMANDS = frozenset({"privacy", _KEYS})


async def load_policy(store: Store, *, up_to: int | None = None) -> Policy:
    """The policy now, or as of an entry of the journal."""

    last = None if up_to is None else up_to + 1
    policy = await folded(store, JOURNAL, lambda entries: fold_policy(entries[:last]))
    if up_to is None and any(hold.what is None for hold in policy.hold_entries.values()):
        raise StoreCorrupt("the text of a legal hold is missing, although nobody lifted the hold")
    return policy


async def change_policy(
    store: Store,
    name: str,
    details: Mapping[str, JSON],
    *,
    who: Principal | None,
    clock: Clock,
    commit: Callable[[Append], Awaitable[None]] | None = None,
) -> None:
    """The words of a hold stay outside of the journal's chain: they may name a person.
    ``commit`` writes the entry in one transaction with what it reports."""
    await require_entitled(store, who)
    beside: Mapping[str, JSON] | None = None
    if name == HOLD_SET:
        details, beside = {}, details
    elif name == HOLD_LIFTED:
        held = (await load_policy(store)).hold_entries
        numbers: list[JSON] = [item for item in held if held[item].what == details["what"]]
        if not numbers:
            raise mistake("no-hold", f"there is no hold on `{details['what']}`")
        details = {"holds": numbers}
    entry = {**details, **written_by(who)}
    await write(store, JOURNAL, name, entry, clock=clock, beside=beside, commit=commit)


async def require_entitled(store: Store, who: Principal | None) -> None:
    if not (await load_people(store)).may_manage(who, "privacy"):
        raise mistake(
            "not-entitled",
            "only the role `privacy` or an administrator can do this",
            help="pass the token of one of them: sopilot --token-file",
        )


async def settings_here(store: Store, people: People, settings: Settings) -> Settings:
    """Make sessions private where the store requires it. Raise where it requires keys and has
    none."""
    if _KEYS in people.demands and not getattr(store, "encrypts", False):
        raise _no_keys("contents of new sessions must be encrypted here")
    if settings.private or not _DEMANDS & people.demands:
        return settings
    policy = await load_policy(store)
    return replace(settings, private=True, columns=policy.columns)


async def may_read(store: Store, who: Principal | None) -> bool:
    """Whether a person sees contents, or only that there are some."""
    readers = (await load_policy(store)).readers
    return not readers or bool(readers & (await load_people(store)).roles_of(who))


async def is_demanded(store: Store) -> bool:
    return bool(_DEMANDS & (await load_people(store)).demands)


def _no_keys(message: str) -> UserMistake:
    return mistake("no-keys", message, help="set SOPILOT_KEYS to the folder of the keys")


async def note_reading(
    store: Store,
    what: str,
    session_ids: Sequence[str],
    *,
    who: Principal | None,
    clock: Clock,
    to_all: bool = False,
    or_nothing: bool = False,
) -> None:
    """Record who looks at contents, before they are shown. ``to_all``: everybody is shown them;
    ``or_nothing``: a person who may not read them is refused."""
    shown = to_all or await may_read(store, who)
    values: dict[str, JSON] = {"what": what, "sessions": list(session_ids), "contents": shown}
    if or_nothing and not shown:
        values["refused"] = True
    await write(store, READING, "read", {**values, **written_by(who)}, clock=clock)


async def sessions_with(
    store: Store, texts: Sequence[str], among: Sequence[SessionRecord] | None = None
) -> list[SessionRecord]:
    """Find sessions, of all or ``among`` these, that contain one of the texts anywhere."""
    results = []
    for record in await store.sessions(limit=None) if among is None else among:
        if record.is_locked:
            raise _no_keys("contents are encrypted, and can't be searched without their keys")
        values: list[JSON] = [event.event.payload for event in await store.events(record.id)]
        values += [await store.payloads(record.id), record.metadata]
        if _names(values, texts):
            results.append(record)
    return results


def _names(value: JSON, texts: Sequence[str]) -> bool:
    """Whether the value contains one of the texts, in any case, width and composition."""
    wanted = [plain for text in texts if (plain := _comparable(text))]
    return any(item in _comparable(text) for text in _texts_in(value) for item in wanted)


def _comparable(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _texts_in(value: JSON) -> Iterator[str]:
    """Every text and number in a value, unescaped: in JSON, a quote in a name would hide it."""
    for part in parts_of(value):
        if isinstance(part, Mapping):
            yield from part
        elif isinstance(part, str):
            yield part
            if part[:1] in ("{", "[") or "\\" in part:
                with suppress(ValueError, RecursionError):
                    yield from _texts_in(json.loads(part))  # tools often answer with JSON in a text
        elif isinstance(part, bool | int | float):
            yield json.dumps(part)


@dataclass(frozen=True, slots=True)
class Erasure:
    """The sessions that were erased, and those that were not: each field but the first is a reason
    to leave a session as it is. The fields are those of its JSON."""

    erased: tuple[str, ...]
    held: Mapping[str, str]
    """Session → why it is on legal hold."""
    inside_the_chain: tuple[str, ...]
    running: tuple[str, ...]
    unfinished: tuple[str, ...]
    noted: tuple[str, ...] = ()
    """Journals with a subject's name in what people wrote there."""

    @property
    def all_erased(self) -> bool:
        return not any((self.held, *(getattr(self, name) for name in _LEFT)))

    def as_json(self) -> dict[str, JSON]:
        return asdict(self)

    def lines(self) -> list[str]:
        return [
            f"the contents of {counted(len(self.erased), 'session')} were erased",
            *(f"{item} is on hold: {why}" for item, why in self.held.items()),
            *(f"{item} {why}" for name, why in _LEFT.items() for item in getattr(self, name)),
        ]


_LEFT = {
    "inside_the_chain": "was opened without privacy: its contents are part of its chain",
    "running": "is running: try again when it has ended",
    "unfinished": "has a call that waits for people, or whose outcome is unknown, and couldn't be "
    "decided any more: erase it with --unfinished",
    "noted": "contains it in people's own words, which are part of its chain",
}


async def erase_wanted(
    store: Store,
    *,
    subjects: Sequence[str],
    session_ids: Sequence[str],
    due: bool,
    why: str,
    unfinished: bool = False,
    who: Principal | None,
    clock: Clock,
) -> Erasure:
    """Erase the sessions that name a subject, those of ``session_ids``, and those that are due."""
    if not (subjects or session_ids or due):
        raise UserMistake("name what to erase: --subject, --session or --due")
    await require_entitled(store, who)  # nobody else learns which sessions name a person
    await store.require_deletion()
    if _names(why, subjects):
        raise mistake(
            "reason-names-subject",
            "the reason stays on record, but it names the person to erase",
            help="name the request, not the person",
        )
    every = [
        *(await sessions_with(store, subjects) if subjects else ()),
        *[await store.record(session_id) for session_id in session_ids],
        *(await due_sessions(store, clock.now()) if due else ()),
    ]
    records = list({record.id: record for record in every}.values())
    holds = [
        hold.ref for hold in (await load_policy(store)).lifted if _names([*hold[:2]], subjects)
    ]
    if holds:
        await store.erase_payloads(PREFIX + JOURNAL, holds)
    done = await erase_contents(store, records, why, unfinished=unfinished, who=who, clock=clock)
    if holds and not done.erased:
        await store.erase({})  # a file keeps no byte of what was forgotten, either
    if not subjects:
        return done
    heads = await store.records.heads()
    journals = [
        await store.record(head.session_id) for head in heads if is_journal(head.session_id)
    ]
    noted = await sessions_with(store, subjects, journals)
    return replace(done, noted=tuple(record.id for record in noted))


def reading_lines(readings: Sequence[Entry]) -> list[str]:
    lines = []
    for reading in readings:
        it: Fields = reading.details
        seen = "contents" if it["contents"] else "refused" if it.get("refused") else "masked"
        who = f"{it['by'] or 'someone'}, {it['identity']}"
        lines.append(
            f"{moment(reading.at)} {it['what']} {', '.join(it['sessions'])} ({seen}) by {who}"
        )
    return [*lines, f"{len(readings)} on record"]


async def erase_contents(
    store: Store,
    records: Sequence[SessionRecord],
    why: str,
    *,
    unfinished: bool = False,
    who: Principal | None,
    clock: Clock,
) -> Erasure:
    """Erase contents. Chains, heads and register stay, and verify. Sessions with a call that waits
    are left alone unless ``unfinished``."""
    held = await on_hold(store, records)
    bare, waiting, wanted = [], [], []
    for record in records:
        if record.id in held or is_journal(record.id) or record.is_erased:
            continue
        if record.metadata.get("settings", {}).get("private") is not True:
            bare.append(record.id)
        elif record.is_unfinished and not unfinished:
            waiting.append(record.id)
        else:
            wanted.append(record.id)
    async with stopped_sessions(store, wanted, clock=clock) as (stopped, running):
        erased = {}
        for record in stopped:
            # The session may have gone on since ``records`` were read.
            if record.is_unfinished and not unfinished:
                waiting.append(record.id)
            else:
                erased[record.id] = record.metadata_when_erased(clock.now())
        if erased:
            values: dict[str, JSON] = {"sessions": list(erased), "why": why}
            await change_policy(
                store, ERASED, values, who=who, clock=clock,
                commit=partial(store.erase, erased),
            )  # fmt: skip
    return Erasure(tuple(erased), held, tuple(bare), tuple(running), tuple(waiting))


@asynccontextmanager
async def stopped_sessions(
    store: Store, session_ids: Iterable[str], *, clock: Clock
) -> AsyncIterator[tuple[list[SessionRecord], list[str]]]:
    """Take the lease of each session, so that it can't go on inside the block. Yield the records
    of the free ones and the ids of the running ones."""
    stopped, running = [], []
    leases: list[Lease] = []
    try:
        for session_id in session_ids:
            try:
                leases.append(
                    await store.acquire(
                        session_id, owner="deleting", now=clock.now(), lease_seconds=_LEASE_SECONDS
                    )
                )
            except LeaseHeld:
                running.append(session_id)
                continue
            stopped.append(await store.record(session_id))
        yield stopped, running
    finally:
        for lease in leases:
            await store.release(lease)


async def on_hold(store: Store, records: Sequence[SessionRecord]) -> dict[str, str]:
    """Session → why it must not be deleted."""
    holds, among = (await load_policy(store)).holds, {record.id for record in records}
    results = {session_id: why for session_id, why in holds.items() if session_id in among}
    for what, why in holds.items():
        for record in await sessions_with(store, [what]):
            if record.id in among:
                results.setdefault(record.id, why)
    return results


async def due_sessions(store: Store, now: float) -> list[SessionRecord]:
    """Sessions whose contents are older than their period."""
    policy = await load_policy(store)
    return [
        session
        for session in await store.sessions(limit=None)
        if not session.is_erased
        and policy.due(
            str(session.metadata.get("handbook") or ""),
            session.updated_at,
            now,
            goal=str(session.summary.get("goal") or ""),
            status=str(session.summary.get("status") or ""),
        )
    ]
