"""The register made anew from the traces, and asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sopilot.language.diagnostics import RunEnded, SopilotError
from sopilot.language.diagnostics.plain_text import counted
from sopilot.runtime.records import ActionRow, Condition, Selected, Wanted, select
from sopilot.runtime.records.deviations import DEVIATIONS, fold_deviations
from sopilot.runtime.session._loading import Loaded, load
from sopilot.runtime.session._store import Store
from sopilot.runtime.session.errors import Pruned, raise_if_refused
from sopilot.runtime.session.journal import folded
from sopilot.runtime.session.program_set import ProgramSet
from sopilot.runtime.trace import Head


class Traces:
    """Rows of the register as the traces of a store make them; equal programs are read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[int, ProgramSet] = {}

    async def loaded(self, session_id: str) -> Loaded:
        """Raises what ``load`` does of a session that is damaged."""
        loaded = await load(self._store, session_id, known=self._known.values(), even_erased=True)
        self._known[id(loaded.first)] = loaded.first
        return loaded

    def rows_of(self, loaded: Loaded) -> list[ActionRow]:
        return [entry.row() for entry in loaded.register.entries.values()]

    async def rows(self, session_id: str) -> tuple[Head, list[ActionRow]]:
        """At which head, and which."""
        loaded = await self.loaded(session_id)
        return loaded.record.head, self.rows_of(loaded)


async def rebuild_register(
    store: Store, *, told: Callable[[str], None] = lambda _: None
) -> tuple[int, dict[str, str]]:
    """How many sessions were read, and why others could not be: their rows stay as they are."""
    traces = Traces(store)
    problems: dict[str, str] = {}
    heads = await store.records.heads()
    for head in heads:
        try:
            while not await store.records.replace_actions(*await traces.rows(head.session_id)):
                pass  # somebody went on with it meanwhile
        except Pruned:
            pass  # its rows are what there is
        except SopilotError as problem:
            raise_if_refused(problem)
            problems[head.session_id] = str(problem)
            told(f"session {head.session_id}: {problem}")
    if not problems:
        await store.records.rebuilt()
    return len(heads) - len(problems), problems


async def register(
    store: Store,
    wanted: Wanted,
    conditions: Sequence[Condition] = (),
    *,
    columns: Sequence[str] = (),
) -> Selected:
    """The actions of all sessions of the store that are asked for."""
    rows = await store.records.actions(wanted)
    total = await store.records.count_actions()
    found: dict[str, tuple[str, ...]] = {}
    for one in (await folded(store, DEVIATIONS, fold_deviations)).values():
        found[one.session_id] = (*found.get(one.session_id, ()), one.briefly)
    return replace(select(rows, conditions, total=total, columns=columns), findings=found)


async def make_anew(store: Store, *, when_due: bool, told: Callable[[str], None]) -> None:
    """From the traces, always or when it is due; one that would leave something out is none."""
    if when_due and not await store.records.rebuild_is_due():
        return
    read, problems = await rebuild_register(store, told=told)
    told(f"the register was made from the traces of {counted(read, 'session')}")
    if problems:
        raise RunEnded(
            f"{counted(len(problems), 'session')} could not be read: "
            "the register would leave out what they did"
        )
