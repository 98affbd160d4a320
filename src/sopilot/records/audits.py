"""Audits that are kept, signed, and the deviations that they open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sopilot.audit.findings import TITLES, Finding
from sopilot.audit.report import Report, kept_report
from sopilot.audit.state import Override
from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import mistake
from sopilot.protocols import Clock
from sopilot.records.deviations import DEVIATIONS, Deviation, fold_deviations, require_step
from sopilot.records.journal import folded, write
from sopilot.records.log import Entry
from sopilot.records.people import Principal, load_people, required_writer, written_by
from sopilot.records.store import SessionRecord, Store
from sopilot.trace.redaction import reference
from sopilot.trace.signing import SigningKey, verify_signature
from sopilot.values.json import JSON, canonical

_JOURNAL = "audits."
_SIGNED = (
    "session", "release", "head", "clean", "outcome", "findings", "checks", "overrides", "by",
    "identity",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeptAudit:
    """``release`` is the release that judged. ``genuine``: whether the signature is valid; ``None``
    without a signature."""

    number: int
    at: float
    release: str
    head: tuple[int, str]
    clean: bool | None
    outcome: str
    by: str
    genuine: bool | None
    findings: tuple[Finding, ...]
    grades: Mapping[str, int]
    overrides: tuple[Override, ...]


async def keep_audit(
    store: Store,
    report: Report,
    *,
    release: str,
    clock: Clock,
    key: SigningKey | None = None,
    who: Principal | None = None,
) -> int:
    """Keep the audit and open a deviation per finding, each once; return the audit's number in
    the session's journal. A report without a verdict is refused."""
    session_id = report.score_card.session_id or ""
    if report.unjudged is not None:
        message = f"session {session_id} can't be judged ({report.unjudged})"
        help = "--keep needs the contents, and the right to read them"
        raise mistake("not-judged", message, help=help)
    record = await store.record(session_id)
    private = record.metadata.get("settings", {}).get("private") is True
    salt = bytes.fromhex(str(record.metadata.get("salt") or ""))
    values: dict[str, Any] = {
        "session": session_id,
        "release": release,
        "head": {"seq": record.head.seq, "hash": record.head.hash},
        "clean": report.clean,
        "outcome": report.score_card.outcome,
        "findings": [
            {
                "code": item.code,
                "severity": str(item.severity),
                "event": item.seq,
                "explanation": str(
                    TITLES.get(item.code, item.code) if private else item.explanation
                ),
                "sentence": _sentence(item, salt if private else None),
            }
            for item in report.findings
            if item.severity is not Severity.NOTE
        ],
        "checks": dict(report.score_card.grades),
        "overrides": [
            {**item.as_json(), "unproven": [] if private else list(item.unproven)}
            for item in report.overrides
        ],
        **written_by(who),
    }
    if key is not None:
        values |= {"key": key.public, "signature": key.sign(canonical(values))}
    number = await write(store, _JOURNAL + session_id, "audited", values, clock=clock)
    known = {deviation.key for deviation in (await load_deviations(store)).values()}
    for finding in values["findings"]:
        if (session_id, finding["code"], finding["event"], finding["sentence"]) not in known:
            opened = {"session": session_id, **finding, **written_by(who)}
            await write(store, DEVIATIONS, "deviation_opened", opened, clock=clock)
    return number


def _sentence(finding: Finding, salt: bytes | None) -> str:
    """The sentence in its first language; with ``salt``, a name for it that reveals nothing:
    sentences name customers."""
    sentence = str(finding.sentence)  # plain: a translated one equals none that was read back
    if salt is None or not sentence:
        return sentence
    return f"#{reference(sentence, salt)['$ref']}"[:17]


async def kept_audits(store: Store, session_id: str) -> list[KeptAudit]:
    return await folded(store, _JOURNAL + session_id, lambda items: [*map(_read, items)])


def _read(entry: Entry) -> KeptAudit:
    it: dict[str, Any] = dict(entry.details)
    genuine = None
    if it.get("key"):
        signed = canonical({name: it[name] for name in _SIGNED if name in it})
        genuine = verify_signature(str(it["key"]), str(it.get("signature")), signed)
    head = it.get("head") or {}
    return KeptAudit(
        entry.number,
        entry.at,
        str(it.get("release")),
        (int(head.get("seq") or 0), str(head.get("hash"))),
        it.get("clean"),
        str(it.get("outcome")),
        str(it.get("by") or ""),
        genuine,
        tuple(
            Finding(
                str(item["code"]), int(item["event"]), TITLES.get(item["code"], item["code"]),
                sentence=str(item["sentence"]), severity=Severity(item["severity"]),
            )
            for item in it.get("findings") or ()
        ),
        it.get("checks") or {},
        tuple(
            Override(
                int(item["seq"]), str(item["action"]), tuple(item["by"]), tuple(item["unproven"])
            )
            for item in it.get("overrides") or ()
        ),
    )  # fmt: skip


async def stored_verdict(store: Store, record: SessionRecord) -> Report | None:
    """The newest kept audit of exactly these events, for readers who can't judge for
    themselves."""
    for audit in reversed(await kept_audits(store, record.id)):
        at_head = audit.head == (record.head.seq, record.head.hash)
        if at_head and audit.clean is not None and audit.genuine is not False:
            by = f", kept by {audit.by}" if audit.by else ""
            findings = [replace(item, sentence="") for item in audit.findings]
            return kept_report(
                findings, record.id, audit.outcome, audit.grades,
                f"audit {audit.number} of release {audit.release}{by}", audit.overrides,
            )  # fmt: skip
    return None


def differences(audit: KeptAudit, report: Report, salt: str = "") -> list[str]:
    """List the findings in which the report differs from a kept audit of the same events. ``salt``
    is needed for a private session, whose sentences are kept as digests."""
    if report.unjudged is not None:
        return []
    before = {(item.code, item.seq, item.sentence) for item in audit.findings}
    hidden = any(sentence.startswith("#") for _, _, sentence in before)
    now = {
        (item.code, item.seq, _sentence(item, bytes.fromhex(salt) if hidden else None))
        for item in report.findings
        if item.severity is not Severity.NOTE and item.seq <= audit.head[0]
    }
    return [
        f"{change}: {code} at #{seq}" + (f" ({sentence})" if sentence else "")
        for change, items in (("no longer found", before - now), ("newly found", now - before))
        for code, seq, sentence in sorted(items)
    ]


async def load_deviations(store: Store) -> dict[int, Deviation]:
    return await folded(store, DEVIATIONS, fold_deviations)


async def deviation_step(
    store: Store, step: str, details: Mapping[str, Any], *, who: Principal | None, clock: Clock
) -> str:
    """Continue a deviation: assigned, commented, judged, closed or reopened. ``details`` hold its
    ``number`` and a name, ``by``, for people without a token."""
    number, by = details["number"], details["by"]
    item = (await load_deviations(store)).get(number)
    if item is None:
        cure = "`sopilot records deviations list` shows the numbers"
        raise mistake("unknown-deviation", f"there is no deviation {number}", help=cure)
    writer = await required_writer(store, who, by)
    require_step(item, step, (await load_people(store)).names_of(str(writer["by"])))
    rest = {name: value for name, value in details.items() if name not in ("number", "by")}
    entry: dict[str, JSON] = {"deviation": number, **rest, **writer}
    await write(store, DEVIATIONS, f"deviation_{step}", entry, clock=clock)
    return f"deviation {number}: {(await load_deviations(store))[number].state}"
