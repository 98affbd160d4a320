"""A session as the store has it: record, events and payloads, verified and replayed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sopilot.language.diagnostics import RunEnded
from sopilot.runtime.records import Register
from sopilot.runtime.session._settings import Settings, settings_from_json
from sopilot.runtime.session._store import ABOUT, SessionRecord, Store, read_session
from sopilot.runtime.session.errors import Pruned, StoreCorrupt
from sopilot.runtime.session.ledger import CallLedger
from sopilot.runtime.session.program_set import ProgramSet
from sopilot.runtime.session.recovery import program_changes, recover, whole_events
from sopilot.runtime.trace import SealedEvent, is_reference, reference
from sopilot.runtime.trace.runtime_notes import OPENED
from sopilot.runtime.vm import JSON, Configuration, Event


@dataclass(frozen=True, slots=True)
class Loaded:
    record: SessionRecord
    settings: Settings
    salt: bytes
    events: list[SealedEvent]
    whole: list[Event]
    """The same with every value in its place."""
    configuration: Configuration
    ledger: CallLedger
    register: Register
    programs: ProgramSet
    """The programs that go on: those of the last change, or the first ones."""
    first: ProgramSet
    changes: dict[int, ProgramSet]
    """The programs that hold from an event on, where the session went over to others."""


async def load(
    store: Store, session_id: str, *, known: Collection[ProgramSet] = (), even_erased: bool = False
) -> Loaded:
    """``known`` spares reading artifacts that the caller has at hand under the same hashes.
    ``even_erased``: one whose contents were erased, or are under a key that is not at hand, is
    welcome, and stands nowhere."""
    record, events = await read_session(store, session_id)
    if record.is_pruned:
        raise Pruned(session_id)
    if not even_erased and (record.is_locked or record.is_erased):
        under_key = "are under a key, and SOPILOT_KEYS names no folder of keys"
        why = under_key if record.is_locked else "were erased"
        raise RunEnded(f"the contents of session {session_id} {why}; it cannot go on")
    payloads = {} if record.is_locked else await store.payloads(session_id)
    return await loaded(store, record, events, payloads, known)


async def loaded(
    store: Store,
    record: SessionRecord,
    events: list[SealedEvent],
    payloads: Mapping[str, JSON],
    known: Collection[ProgramSet],
    settings: Settings | None = None,
) -> Loaded:
    """From what the store has of it; it is asked for programs alone that are not ``known``.
    ``settings`` are those of its metadata, where the caller has them."""
    session_id = record.id
    settings = settings or settings_from_json(record.metadata.get("settings", {}))
    erased = record.is_locked or record.is_erased
    salt = _salt(record)
    for digest, value in payloads.items():
        if reference(value, salt)["$ref"] != digest:
            raise StoreCorrupt(f"payload {digest[:12]} of session {session_id} is another value")
    hashes = stored_hashes(record)
    whole = whole_events(events, payloads)
    _check_header(record, whole)
    changes = program_changes(whole)
    named = [hashes, *(changed for _, changed in changes)]
    sets: dict[frozenset[tuple[str, str]], ProgramSet] = {}
    for one in named:
        key = frozenset(one.items())
        if key not in sets:
            sets[key] = await _program_set(store, one, known)
    recovered = recover(
        session_id,
        events,
        head=record.head,
        hashes=hashes,
        programs=sets,
        payloads=payloads,
        limits=settings.limits,
        replaying=not erased,
    )
    return Loaded(
        record,
        settings,
        salt,
        events,
        whole,
        recovered.configuration,
        recovered.ledger,
        recovered.register,
        recovered.programs,
        sets[frozenset(hashes.items())],
        {index: sets[frozenset(changed.items())] for index, changed in changes},
    )


def stored_hashes(record: SessionRecord) -> dict[str, str]:
    """Goal → hash of the programs the session was opened with."""
    hashes = record.metadata.get("programs")
    if not isinstance(hashes, Mapping):
        raise StoreCorrupt(f"session {record.id} does not name its programs")
    return {str(goal): str(digest) for goal, digest in hashes.items()}


def _check_header(record: SessionRecord, whole: Sequence[Event]) -> None:
    """What stands beside the chain, against the first event: what the session is about."""
    opening = whole[0].payload if whole else {}
    said = opening.get("details")
    if opening.get("name") != OPENED or not isinstance(said, Mapping) or is_reference(said):
        return  # a journal, or one that crashed before it was opened
    for name in ("programs", "requester", *ABOUT):
        if (said.get(name) or None) != (record.metadata.get(name) or None):
            raise StoreCorrupt(
                f"the store says another `{name}` of session {record.id} than its trace"
            )


def _salt(record: SessionRecord) -> bytes:
    try:
        return bytes.fromhex(str(record.metadata.get("salt", "")))
    except ValueError:
        raise StoreCorrupt(f"the salt of session {record.id} is damaged") from None


async def _program_set(
    store: Store, hashes: Mapping[str, str], known: Collection[ProgramSet]
) -> ProgramSet:
    for one in known:
        if one.hashes == hashes:
            return one
    texts = {digest: await store.program(digest) for digest in set(hashes.values())}
    return ProgramSet.from_texts(hashes, texts)
