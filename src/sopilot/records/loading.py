"""Sessions as a store has them: record, events and payloads, verified and replayed.

The register is made anew from the traces here, and queried.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace

from sopilot.machine.call_ledger import CallLedger, HeldState
from sopilot.machine.machine import Machine
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.replay import program_changes, replay, whole_events
from sopilot.machine.secrets import SecretPlaces
from sopilot.machine.state import Configuration, ending_of
from sopilot.messages.errors import (
    Pruned,
    RunEnded,
    SopilotError,
    StoreCorrupt,
    TraceBroken,
    TraceError,
    raise_if_refused,
)
from sopilot.records.actions import ActionRow, Register
from sopilot.records.deviations import DEVIATIONS, findings_of, fold_deviations
from sopilot.records.journal import folded
from sopilot.records.selection import Condition, Selected, Wanted, select
from sopilot.records.store import SessionRecord, Settings, Store, read_session, settings_from_json
from sopilot.trace.chain import Head, SealedEvent, verify_chain
from sopilot.trace.events import ABOUT, OPENED, Event
from sopilot.trace.files import TraceFile
from sopilot.trace.redaction import SecretTexts, holds_secret, is_reference, reference
from sopilot.values.json import JSON, parts_of
from sopilot.values.text import counted


@dataclass(frozen=True, slots=True)
class Loaded:
    """``first`` and ``changes`` are the programs from the beginning, and those that a session went
    over to, by event; ``programs`` the last of them."""

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
    first: ProgramSet
    changes: dict[int, ProgramSet]

    @property
    def rows(self) -> list[ActionRow]:
        """The rows of the register as the trace makes them."""
        return [entry.row() for entry in self.register.entries.values()]


async def load(
    store: Store, session_id: str, *, known: Collection[ProgramSet] = (), even_erased: bool = False
) -> Loaded:
    """``known`` are programs that need not be read. ``even_erased`` also loads a session whose
    contents were erased, or are under a key that isn't here, without replaying it: only the chain
    is verified and the register made. Raise ``TraceBroken`` for a broken chain, ``TraceError``
    where the events are not what the programs make."""
    record, events = await read_session(store, session_id)
    if record.is_pruned:
        raise Pruned(session_id)
    if not even_erased and (record.is_locked or record.is_erased):
        under_key = "are encrypted, and SOPILOT_KEYS doesn't name a folder of keys"
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
    """Verify and replay these parts of a session; read only programs that aren't ``known``."""
    settings = settings or settings_from_json(record.metadata.get("settings", {}))
    salt = _salt(record)
    for digest, value in payloads.items():
        if reference(value, salt)["$ref"] != digest:
            raise StoreCorrupt(f"payload {digest[:12]} of session {record.id} was changed")
    hashes = stored_hashes(record)
    whole = whole_events(events, payloads)
    _check_header(record, whole)
    current = first = await _program_set(store, hashes, known)
    changes: dict[int, ProgramSet] = {}
    for index, changed in program_changes(whole):
        every = (*known, first, *changes.values())
        changes[index] = await _program_set(store, changed, every)
    broken = verify_chain(events, session_id=record.id, head=record.head)
    if broken is not None:
        raise TraceBroken(record.id, broken)
    has_contents = not (record.is_locked or record.is_erased)
    configuration, register, begin = Configuration(), Register(first.changing), 0
    for index in (*changes, len(events)):
        if has_contents:
            machine = current.machine(settings.limits)
            configuration = _replay(machine, configuration, whole[begin:index], begin)
        for event, sealed in zip(whole[begin:index], events[begin:index], strict=True):
            register.fold(event, sealed.event)
        begin, current = index, changes.get(index, current)
        register.changing = current.changing
    ledger = CallLedger()
    for event in whole if has_contents else ():
        ledger.fold(event)
    return Loaded(
        record, settings, salt, events, whole, configuration, ledger, register, current, first,
        changes,
    )  # fmt: skip


def _replay(
    machine: Machine, configuration: Configuration, events: Sequence[Event], offset: int
) -> Configuration:
    try:
        return replay(machine, events, begin=configuration)
    except TraceError as problem:
        if problem.index is None or not offset:
            raise
        raise TraceError(str(problem.__cause__ or problem), problem.index + offset) from problem


def stored_hashes(record: SessionRecord) -> dict[str, str]:
    """Goal → hash of the programs the session was opened with."""
    hashes = record.metadata.get("programs")
    if not isinstance(hashes, Mapping):
        raise StoreCorrupt(f"session {record.id} does not name its programs")
    return {str(goal): str(digest) for goal, digest in hashes.items()}


def _check_header(record: SessionRecord, whole: Sequence[Event]) -> None:
    """Compare the session's metadata with its first event."""
    opening = whole[0].payload if whole else {}
    details = opening.get("details")
    if opening.get("name") != OPENED or not isinstance(details, Mapping) or is_reference(details):
        return  # a journal, or one that crashed before it was opened
    for name in ("programs", "requester", *ABOUT):
        if (details.get(name) or None) != (record.metadata.get(name) or None):
            raise StoreCorrupt(f"the store and the trace of session {record.id} differ in `{name}`")


def _salt(record: SessionRecord) -> bytes:
    try:
        return bytes.fromhex(str(record.metadata.get("salt", "")))
    except ValueError:
        raise StoreCorrupt(f"the salt of session {record.id} is damaged") from None


async def _program_set(
    store: Store, hashes: Mapping[str, str], known: Collection[ProgramSet]
) -> ProgramSet:
    for item in known:
        if item.hashes == hashes:
            return item
    texts = {digest: await store.program(digest) for digest in set(hashes.values())}
    return ProgramSet.from_texts(hashes, texts)


def summarise(
    configuration: Configuration,
    ledger: CallLedger,
    register: Register,
    guarded: Container[str],
) -> dict[str, JSON]:
    """A line about a session for listings. ``status``: new, running, waiting (for approval),
    unknown (outcome), completed, refused, abandoned; without a machine, running or ended, and the
    goal is that of the latest action. ``open`` are irreversible calls under way."""
    process = configuration.process
    latest = process
    if latest is None and configuration.processes:
        latest = list(configuration.processes.values())[-1]
    if latest is not None:
        status = ending_of(latest.status, given_up=ledger.given_up == latest.id)
        goal = latest.goal
    elif register.entries:
        last = next(reversed(register.entries.values()))
        status, goal = "running", last.goal or last.action
    else:
        status, goal = "new", ""
    if latest is None and ledger.ended:
        status = "ended"
    waiting = []
    if ledger.held:
        waiting = [held.call_id for held in ledger.held.values() if held.state is HeldState.WAITING]
    if ledger.unknown:
        status = "unknown"
    elif waiting and process is not None:
        status = "waiting"
    return {
        "status": status,
        "goal": goal,
        "frame": process.frames[-1].place if process is not None and process.frames else "",
        "waiting": waiting,
        "open": _open(configuration, ledger, guarded) if configuration.pending else [],
    }


def _open(configuration: Configuration, ledger: CallLedger, guarded: Container[str]) -> list[JSON]:
    return [
        call_id
        for call_id, pending in configuration.pending.items()
        if pending.action in guarded and call_id not in ledger.unknown
    ]


async def export_trace(
    store: Store,
    session_id: str,
    *,
    payloads: bool = False,
    secrets: bool = False,
    known: dict[str, str] | None = None,
) -> TraceFile:
    """Payloads stay behind unless ``payloads`` is set: the redacted trace still verifies. Secrets
    stay behind unless ``secrets`` is set, for simulated people and for models that read their own
    words again. ``known`` are texts of programs; the export adds to them."""
    record = await store.record(session_id)
    if record.is_pruned:
        raise Pruned(session_id)
    events = await store.events(session_id)
    hashes = stored_hashes(record)
    # Ciphertext is no payload: held against its digest it would look tampered with.
    stored = {} if record.is_locked else await store.payloads(session_id)
    needed = set(hashes.values())
    for _, changed in program_changes(whole_events(events, stored)):
        needed.update(changed.values())
    known = {} if known is None else known
    for digest in sorted(needed - known.keys()):
        known[digest] = await store.program(digest)
    texts = {digest: known[digest] for digest in sorted(needed)}
    about = {name: record.metadata.get(name) for name in ABOUT}
    leaving: Mapping[str, JSON] = {}
    if payloads:
        leaving = stored if secrets else _without_secrets(hashes, texts, events, stored)
    return TraceFile(
        session_id,
        tuple(events),
        hashes,
        texts,
        about,
        tuple(await store.signatures(session_id)),
        leaving,
        str(record.metadata.get("salt", "")) if payloads else "",
    )


def _without_secrets(
    hashes: Mapping[str, str],
    texts: Mapping[str, str],
    events: Sequence[SealedEvent],
    stored: Mapping[str, JSON],
) -> Mapping[str, JSON]:
    """The payloads without secrets."""
    places = SecretPlaces(ProgramSet.from_texts(hashes, texts))
    if not places.names:
        return stored
    whole = whole_events(events, stored)
    values = SecretTexts(set[str]().union(*map(places.values_in, whole)))
    named = {
        str(result["$ref"])
        for sealed, event in zip(events, whole, strict=True)
        for result in _references(sealed.event.payload, places.kept_back_in(event))
    }
    return {
        digest: value
        for digest, value in stored.items()
        if digest not in named and not holds_secret(value, values)
    }


def _references(payload: JSON, names: frozenset[str]) -> list[Mapping[str, JSON]]:
    """The references under these names, at any depth."""
    return [
        item
        for part in parts_of(payload)
        if isinstance(part, Mapping)
        for key, item in part.items()
        if key in names and is_reference(item)
    ]


class Traces:
    """Rows of the register as the traces of a store make them; equal programs are read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[int, ProgramSet] = {}

    async def loaded(self, session_id: str) -> Loaded:
        """As ``load``; raise for a damaged session."""
        loaded = await load(self._store, session_id, known=self._known.values(), even_erased=True)
        self._known[id(loaded.first)] = loaded.first
        return loaded

    async def rows(self, session_id: str) -> tuple[Head, list[ActionRow]]:
        """The head of the session and its rows."""
        loaded = await self.loaded(session_id)
        return loaded.record.head, loaded.rows


async def rebuild_register(
    store: Store, *, tell: Callable[[str], None] = lambda _: None
) -> tuple[int, dict[str, str]]:
    """Return how many sessions were read, and why others couldn't be: their rows stay unchanged."""
    traces = Traces(store)
    problems: dict[str, str] = {}
    heads = await store.records.heads()
    for each in heads:
        try:
            while not await store.records.replace_actions(*await traces.rows(each.session_id)):
                pass  # the session went on meanwhile
        except Pruned:
            pass  # its rows are what there is
        except SopilotError as problem:
            raise_if_refused(problem)
            problems[each.session_id] = str(problem)
            tell(f"session {each.session_id}: {problem}")
    return len(heads) - len(problems), problems


async def register(
    store: Store,
    wanted: Wanted,
    conditions: Sequence[Condition] = (),
    *,
    columns: Sequence[str] = (),
) -> Selected:
    """Select actions of all sessions of the store."""
    rows = await store.records.actions(wanted)
    total = await store.records.count_actions()
    deviations = await folded(store, DEVIATIONS, fold_deviations)
    return replace(
        select(rows, conditions, total=total, columns=columns, now=wanted.now),
        findings=findings_of(deviations.values()),
    )


async def rebuild_completely(store: Store, *, tell: Callable[[str], None]) -> None:
    """Rebuild the register from the traces. Raise if that would leave a session out."""
    read, problems = await rebuild_register(store, tell=tell)
    tell(f"the action records were recomputed from the traces of {counted(read, 'session')}")
    if problems:
        raise RunEnded(
            f"{counted(len(problems), 'session')} could not be read: "
            "the action records would leave out their actions"
        )
