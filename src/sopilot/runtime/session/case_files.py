"""Audits that are kept, signed, and the deviations they open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sopilot.language.diagnostics import Severity, UserMistake, mistake
from sopilot.runtime.audit import TITLES, Report
from sopilot.runtime.records.deviations import DEVIATIONS, Deviation, fold_deviations, why_not
from sopilot.runtime.records.people import Principal
from sopilot.runtime.session._store import Store
from sopilot.runtime.session.identity import load_people, written_by
from sopilot.runtime.session.journal import Entry, folded, write
from sopilot.runtime.session.protocols import Clock
from sopilot.runtime.trace import reference
from sopilot.runtime.trace.signing import SigningKey, verify_signature
from sopilot.runtime.vm import JSON, canonical

AUDITS = "audits."
_SIGNED = ("session", "release", "head", "clean", "outcome", "findings", "checks", "by", "identity")


@dataclass(frozen=True, slots=True)
class KeptAudit:
    """``release`` is whose rules judged; ``findings`` are (code, event, sentence)."""

    number: int
    at: float
    release: str
    head: tuple[int, str]
    clean: bool
    outcome: str
    findings: tuple[tuple[str, int, str], ...]
    by: str
    key: str
    genuine: bool | None
    """Whether its signature is its key's; ``None`` without one."""


async def keep_audit(
    store: Store,
    report: Report,
    *,
    release: str,
    clock: Clock,
    key: SigningKey | None = None,
    who: Principal | None = None,
) -> int:
    """The number of the audit in the session's journal. What was found opens deviations, each
    once."""
    session_id = report.score_card.session_id or ""
    record = await store.record(session_id)
    head = record.head
    private = record.metadata.get("settings", {}).get("private") is True
    salt = bytes.fromhex(str(record.metadata.get("salt") or ""))
    said: dict[str, Any] = {
        "session": session_id,
        "release": release,
        "head": {"seq": head.seq, "hash": head.hash},
        "clean": report.clean,
        "outcome": report.score_card.outcome,
        "findings": [
            {
                "code": one.code,
                "event": one.seq,
                "explanation": TITLES.get(one.code, one.code) if private else one.explanation,
                "sentence": _digest(one.sentence, salt) if private else one.sentence,
            }
            for one in report.findings
            if one.severity is not Severity.NOTE
        ],
        "checks": dict(report.score_card.grades),
        **written_by(who),
    }
    if key is not None:
        said |= {"key": key.public, "signature": key.sign(canonical(said))}
    number = await write(store, AUDITS + session_id, "audited", said, clock=clock)
    known = {one.key for one in (await load_deviations(store)).values()}
    for finding in said["findings"]:
        if (session_id, finding["code"], finding["event"], finding["sentence"]) not in known:
            opened = {"session": session_id, **finding, **written_by(who)}
            await write(store, DEVIATIONS, "deviation_opened", opened, clock=clock)
    return number


def _digest(sentence: str, salt: bytes) -> str:
    """A name for a sentence that tells nothing: sentences name customers."""
    return f"#{reference(sentence, salt)['$ref']}"[:17] if sentence else ""


async def kept_audits(store: Store, session_id: str) -> list[KeptAudit]:
    return await folded(store, AUDITS + session_id, lambda found: [_kept(one) for one in found])


def _kept(entry: Entry) -> KeptAudit:
    it: dict[str, Any] = dict(entry.details)
    place = it.get("head") or {}
    key, genuine = str(it.get("key") or ""), None
    if key:
        signed = canonical({name: it[name] for name in _SIGNED if name in it})
        genuine = verify_signature(key, str(it.get("signature")), signed)
    return KeptAudit(
        entry.number,
        entry.at,
        str(it.get("release")),
        (int(place.get("seq") or 0), str(place.get("hash"))),
        it.get("clean") is True,
        str(it.get("outcome")),
        tuple(
            (str(one["code"]), int(one["event"]), str(one["sentence"]))
            for one in it.get("findings") or ()
        ),
        str(it.get("by") or ""),
        key,
        genuine,
    )


def differences(kept: KeptAudit, report: Report, salt: str = "") -> list[str]:
    """Where this report judges the same events otherwise than an audit that was kept. ``salt``:
    of a session whose sentences are kept as digests."""
    before = set(kept.findings)
    hidden = any(sentence.startswith("#") for _, _, sentence in kept.findings)
    now = {
        (one.code, one.seq, _digest(one.sentence, bytes.fromhex(salt)) if hidden else one.sentence)
        for one in report.findings
        if one.severity is not Severity.NOTE and one.seq <= kept.head[0]
    }
    told = [f"no longer found: {_named(one)}" for one in sorted(before - now)]
    return told + [f"newly found: {_named(one)}" for one in sorted(now - before)]


def _named(finding: tuple[str, int, str]) -> str:
    code, seq, sentence = finding
    return f"{code} at #{seq}" + (f" ({sentence})" if sentence else "")


async def load_deviations(store: Store) -> dict[int, Deviation]:
    return await folded(store, DEVIATIONS, fold_deviations)


async def continue_deviation(
    store: Store,
    number: int,
    step: str,
    details: Mapping[str, JSON],
    *,
    clock: Clock,
    who: Principal | None = None,
    by: str = "",
) -> Deviation:
    """``step``: assigned, commented, judged, closed, reopened."""
    people, known = await load_people(store), await load_deviations(store)
    one = known.get(number)
    if one is None:
        cure = "`sopilot deviations list` has their numbers"
        raise mistake("unknown-deviation", f"there is no deviation {number}", help=cure)
    writer = written_by(who, by)
    if "identity" in people.demands and who is None:
        message = "this store asks people to prove who they are"
        raise mistake("unauthenticated", message, help="give --token-file")
    problem = why_not(one, step, people.names_of(str(writer["by"])))
    if problem is not None:
        raise UserMistake([problem])
    said = {"deviation": number, **details, **writer}
    await write(store, DEVIATIONS, f"deviation_{step}", said, clock=clock)
    return (await load_deviations(store))[number]


async def deviation_step(
    store: Store, step: str, details: dict[str, Any], *, who: Principal | None, clock: Clock
) -> str:
    """As commands give it: the deviation's number and a name stand among the details."""
    number, by = details.pop("number"), details.pop("by")
    one = await continue_deviation(store, number, step, details, who=who, by=by, clock=clock)
    return f"deviation {one.number}: {one.state}"
