"""Every session of a store, judged: in parts, by several processes or on a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sopilot.adapters.worker_processes import On, in_parts
from sopilot.doors.sources.audit_inputs import session_input
from sopilot.doors.sources.audit_records import on_record
from sopilot.doors.terminal.output import progress
from sopilot.doors.terminal.stores import may_see, with_person, with_store
from sopilot.language.diagnostics import SopilotError
from sopilot.language.diagnostics.plain_text import Lines
from sopilot.runtime.audit import BatchCard, Report, batch, together
from sopilot.runtime.audit.text_report import render_batch_text
from sopilot.runtime.records import read_moment
from sopilot.runtime.records.people import Principal
from sopilot.runtime.session import Store
from sopilot.runtime.session.privacy import EVERY
from sopilot.runtime.session.protocols import JSON
from sopilot.runtime.trace import load_key

_PART = 250
_NAMED = 20


@dataclass(frozen=True, slots=True)
class _Part:
    spec: str | None
    token_file: Path | None
    key_file: Path | None
    keep: bool
    masked: bool
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """``found``: session → finding → how often. ``unjudged``: session → why not."""

    card: BatchCard
    found: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unjudged: Mapping[str, str] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        return not self.found and not self.unjudged

    def as_json(self) -> dict[str, JSON]:
        return {
            "clean": self.clean,
            "batch": self.card.as_json(),
            "found": {session: dict(codes) for session, codes in self.found.items()},
            "unjudged": dict(self.unjudged),
        }

    def lines(self) -> Iterator[str]:
        yield Lines(render_batch_text(self.card))
        for title, rows in (
            ("with findings", {one: _codes(codes) for one, codes in self.found.items()}),
            ("not judged", self.unjudged),
        ):
            if rows:
                shown = min(_NAMED, len(rows))
                yield f"\n{title} ({shown} of {len(rows)}{'; all: --json' * (shown < len(rows))}):"
            for session, why in list(rows.items())[:_NAMED]:
                yield f"  {session}  {why}"


def audit_store(
    spec: str | None,
    *,
    token_file: Path | None = None,
    begin: str | None = None,
    end: str | None = None,
    keep: bool = False,
    key_file: Path | None = None,
    workers: int | None = None,
    on: On = "local",
) -> Judged:
    """Those that were opened from ``begin`` to ``end``, by as many ``workers`` as there are
    processors, unless told. A session that cannot be judged ends nothing: it is named."""
    asked = f"every session, {begin or 'ever'} to {end or 'now'}"
    masked = not may_see(spec, token_file, "audit", [asked])
    first = read_moment(begin) if begin is not None else 0.0
    last = read_moment(end, whole_day=True) if end is not None else float("inf")

    async def listed(store: Store) -> list[str]:
        found = await store.sessions(limit=EVERY)
        return [one.id for one in reversed(found) if first <= one.created_at <= last]

    ids = with_store(spec, listed, reading=True)
    parts = [
        _Part(spec, token_file, key_file, keep, masked, tuple(ids[start : start + _PART]))
        for start in range(0, len(ids), _PART)
    ]
    done: list[Judged] = []
    for one in in_parts(_judged, parts, workers=workers or os.cpu_count() or 1, on=on):
        done.append(one)
        so_far = sum(each.card.sessions + len(each.unjudged) for each in done)
        progress(f"{so_far} of {len(ids)} sessions", same_line=True)
    return Judged(
        together(one.card for one in done),
        {session: codes for one in done for session, codes in one.found.items()},
        {session: why for one in done for session, why in one.unjudged.items()},
    )


def _judged(part: _Part) -> Judged:
    if part.keep:
        return with_person(part.spec, part.token_file, lambda store, who: _all_of(part, store, who))
    return with_store(part.spec, lambda store: _all_of(part, store), reading=True)


async def _all_of(part: _Part, store: Store, who: Principal | None = None) -> Judged:
    key = load_key(part.key_file) if part.key_file is not None else None
    known: dict[str, str] = {}
    reports: list[Report] = []
    found: dict[str, Mapping[str, int]] = {}
    unjudged: dict[str, str] = {}
    for session_id in part.ids:
        try:
            given = await session_input(
                store, session_id, handbook=None, goal=None, masked=part.masked, known=known
            )
            (audited,) = given.audit()
            if part.keep:
                await on_record(store, audited.report, keep=True, key=key, who=who)
        except SopilotError as problem:
            unjudged[session_id] = str(problem)
            continue
        reports.append(audited.report)
        if not audited.report.clean:
            found[session_id] = audited.report.score_card.counts
    return Judged(batch(reports), found, unjudged)


def _codes(codes: Mapping[str, int]) -> str:
    return ", ".join(code if count == 1 else f"{code} × {count}" for code, count in codes.items())
