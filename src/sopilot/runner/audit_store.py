"""The audit of every session of a store, in parts and in parallel; audits that were recorded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sopilot import __version__
from sopilot.audit.findings import NotJudged, Unjudgeable
from sopilot.audit.report import BatchCard, Report, batch, not_judged, simply_clean, together
from sopilot.audit.text import render_batch_text
from sopilot.messages.errors import SopilotError, UserMistake
from sopilot.protocols import SystemClock
from sopilot.records.audits import differences, keep_audit, kept_audits
from sopilot.records.people import Principal
from sopilot.records.selection import read_moment
from sopilot.records.store import Store
from sopilot.runner.audit_inputs import ForeignInput, TraceInput, session_input
from sopilot.runner.processes import On, in_parts
from sopilot.runner.store_access import StoreAccess
from sopilot.trace.signing import SigningKey, load_key
from sopilot.values.json import JSON
from sopilot.values.text import Lines


async def on_record(
    store: Store,
    report: Report,
    *,
    keep: bool,
    key: SigningKey | None = None,
    who: Principal | None = None,
    release: str = __version__,
) -> dict[str, Any]:
    """Differences from earlier audits of the session, and the number of this one if recorded."""
    session_id = report.score_card.session_id or ""
    earlier = await kept_audits(store, session_id)
    salt = str((await store.record(session_id)).metadata.get("salt") or "")
    values: dict[str, Any] = {}
    if earlier:
        values["earlier_audits"] = [
            {
                "audit": item.number,
                "at": item.at,
                "release": item.release,
                "by": item.by or None,
                "clean": simply_clean(item.clean, overridden=bool(item.overrides)),
                "signature_holds": item.genuine,
                "differences": differences(item, report, salt),
            }
            for item in earlier
        ]
    if keep:
        values["kept"] = await keep_audit(
            store, report, release=release, clock=SystemClock(), key=key, who=who
        )
    return values


def record_lines(records: Mapping[str, Any]) -> Iterator[str]:
    for item in records.get("earlier_audits", ()):
        for difference in item["differences"]:
            earlier = f"audit {item['audit']} of release {item['release']}"
            yield f"judged differently from {earlier}: {difference}"
        if item["signature_holds"] is False:
            yield f"the signature of audit {item['audit']} is invalid"
    if "kept" in records:
        yield f"kept as audit {records['kept']}"


def chain_check(trace_input: TraceInput | ForeignInput) -> tuple[dict[str, Any], list[str]]:
    """Check chain and signatures; the result as data and as lines."""
    if isinstance(trace_input, ForeignInput):
        raise UserMistake(
            "a transcript has no hash chain to verify; only traces and sessions have one"
        )
    problems = trace_input.verify()
    listed = [{"code": p.code, "message": p.message, "event": p.index} for p in problems]
    events, signed = len(trace_input.trace.events), len(trace_input.trace.signatures)
    whole = f"{events} events, chain intact, {signed} signed heads agree"
    return {"verified": not problems, "problems": listed}, list(map(str, problems)) or [whole]


_PART = 250
_NAMED = 20
"""Sessions that the text names; JSON names all."""


@dataclass(frozen=True, slots=True)
class _Part:
    access: StoreAccess
    key_file: Path | None
    keep: bool
    masked: bool
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """Codes of findings and their counts by session, and the reason by session that couldn't be
    judged."""

    card: BatchCard
    findings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    not_judged: Mapping[str, str] = field(default_factory=dict)
    sessions: int = 0

    @property
    def clean(self) -> bool | None:
        return False if self.findings else None if self.not_judged else True

    def as_json(self) -> dict[str, JSON]:
        return {
            "clean": simply_clean(self.clean, overridden=self.card.overrides > 0),
            "batch": self.card.as_json(),
            "found": {session: dict(codes) for session, codes in self.findings.items()},
            "not_judged": dict(self.not_judged),
        }

    def lines(self, language: str = "en") -> Iterator[str]:
        yield Lines(render_batch_text(self.card, language))
        for title, rows in (
            ("with findings", {item: _codes(codes) for item, codes in self.findings.items()}),
            ("can't be judged", self.not_judged),
        ):
            if rows:
                shown = min(_NAMED, len(rows))
                yield f"\n{title} ({shown} of {len(rows)}{'; all: --json' * (shown < len(rows))}):"
            for session, why in list(rows.items())[:_NAMED]:
                yield f"  {session}  {why}"


def audit_store(
    access: StoreAccess,
    *,
    begin: str | None = None,
    end: str | None = None,
    keep: bool = False,
    key_file: Path | None = None,
    workers: int | None = None,
    on: On = "local",
    progress: Callable[[str], None] = lambda text: None,
) -> Judged:
    """Judge the sessions opened from ``begin`` to ``end``, by default with a worker per core."""
    request = f"every session, {begin or 'ever'} to {end or 'now'}"
    masked = not access.may_see("audit", [request])
    first = read_moment(begin) if begin is not None else 0.0
    last = read_moment(end, whole_day=True) if end is not None else float("inf")

    async def listed(store: Store) -> list[str]:
        sessions = await store.sessions(limit=None)
        return [item.id for item in reversed(sessions) if first <= item.created_at <= last]

    ids = access.read(listed)
    parts = [
        _Part(access, key_file, keep, masked, tuple(ids[start : start + _PART]))
        for start in range(0, len(ids), _PART)
    ]
    done: list[Judged] = []
    for part in in_parts(_judged, parts, workers=workers or os.cpu_count() or 1, on=on):
        done.append(part)
        progress(f"{sum(item.sessions for item in done)} of {len(ids)} sessions")
    return Judged(
        together(item.card for item in done),
        {session: codes for item in done for session, codes in item.findings.items()},
        {session: why for item in done for session, why in item.not_judged.items()},
        sum(item.sessions for item in done),
    )


def _judged(part: _Part) -> Judged:
    if part.keep:
        return part.access.as_person(lambda store, who: _all_of(part, store, who))
    return part.access.read(lambda store: _all_of(part, store))


async def _all_of(part: _Part, store: Store, who: Principal | None = None) -> Judged:
    key = load_key(part.key_file) if part.key_file is not None else None
    known: dict[str, str] = {}
    reports: list[Report] = []
    findings: dict[str, Mapping[str, int]] = {}
    unjudged: dict[str, str] = {}
    for session_id in part.ids:
        try:
            value = await session_input(
                store, session_id, handbook=None, goal=None, masked=part.masked, known=known
            )
            report = value.audit()[0].report
        except SopilotError as problem:
            report = not_judged(NotJudged(Unjudgeable.UNREADABLE, str(problem)), session_id)
        if part.keep and report.unjudged is None and not report.verdict_of:
            await on_record(store, report, keep=True, key=key, who=who)
        reports.append(report)
        if report.clean is False:
            findings[session_id] = report.score_card.counts
        elif report.clean is None:
            unjudged[session_id] = str(report.not_judged[0])
    return Judged(batch(reports), findings, unjudged, len(reports))


def _codes(codes: Mapping[str, int]) -> str:
    return ", ".join(code if count == 1 else f"{code} × {count}" for code, count in codes.items())
