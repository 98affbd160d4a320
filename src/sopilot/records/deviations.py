"""What was found wrong and what was done about it: each deviation has a life. Pure.

Folded from the entries of a journal: nothing of it can be changed, only continued.

Audits that are kept, signed, and the deviations they open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sopilot.audit.findings import TITLES, Finding
from sopilot.audit.report import Report, kept_report
from sopilot.audit.state import Override
from sopilot.messages.diagnostic import Diagnostic, Severity
from sopilot.messages.errors import UserMistake, mistake
from sopilot.protocols import Clock
from sopilot.records.journal import Entry, folded, write
from sopilot.records.people import Principal, load_people, written_by
from sopilot.records.selection import read_moment
from sopilot.records.store import SessionRecord, Store
from sopilot.trace.redaction import reference
from sopilot.trace.signing import SigningKey, verify_signature
from sopilot.values.json import JSON, canonical, same_name
from sopilot.values.text import moment, table

DISPOSITIONS = ("true", "false-alarm", "accepted-risk")

DEVIATIONS = "deviations"
"""The journal."""

OPEN, JUDGED, CLOSED = "open", "judged", "closed"


@dataclass(slots=True)
class Deviation:
    """``number`` is that of the entry that opened it. ``history`` is every later entry."""

    number: int
    at: float
    session_id: str
    code: str
    seq: int
    explanation: str
    sentence: str = ""
    opened_by: str = ""
    state: str = OPEN
    owner: str = ""
    due: float | None = None
    disposition: str = ""
    cause: str = ""
    remedy: str = ""
    judged_by: str = ""
    closed_by: str = ""
    history: list[dict[str, JSON]] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str, int, str]:
        return self.session_id, self.code, self.seq, self.sentence

    @property
    def briefly(self) -> str:
        """Its code, and what people made of it."""
        return f"{self.code} ({self.disposition or self.state})"

    def overdue(self, now: float) -> bool:
        return self.state != CLOSED and self.due is not None and now >= self.due

    def fits(self, state: str | None, session_id: str | None, overdue: bool, now: float) -> bool:
        request = state in (None, self.state) and session_id in (None, self.session_id)
        return request and (self.overdue(now) or not overdue)

    def as_json(self) -> dict[str, JSON]:
        return {
            "deviation": self.number,
            "at": self.at,
            "session": self.session_id,
            "code": self.code,
            "event": self.seq,
            "explanation": self.explanation,
            "sentence": self.sentence,
            "state": self.state,
            "owner": self.owner or None,
            "due": self.due,
            "disposition": self.disposition or None,
            "cause": self.cause or None,
            "remedy": self.remedy or None,
            "judged_by": self.judged_by or None,
            "closed_by": self.closed_by or None,
            "history": list(self.history),
        }


def fold_deviations(
    entries: Iterable[tuple[int, float, str, Mapping[str, JSON]]],
) -> dict[int, Deviation]:
    deviations: dict[int, Deviation] = {}
    for number, at, name, it in entries:
        if name == "deviation_opened":
            deviations[number] = Deviation(
                number, at, str(it["session"]), str(it["code"]), _whole(it["event"]),
                str(it["explanation"]), str(it.get("sentence") or ""), str(it.get("by") or ""),
            )  # fmt: skip
            continue
        item = deviations.get(_whole(it.get("deviation")))
        if item is None:
            continue
        item.history.append({"at": at, "entry": name, **it})
        if name == "deviation_assigned":
            due = it.get("due")
            item.owner = str(it.get("owner") or item.owner)
            item.due = float(due) if isinstance(due, int | float) else item.due
        elif name == "deviation_judged":
            item.state, item.judged_by = JUDGED, str(it.get("by") or "")
            item.disposition = str(it.get("disposition"))
            item.cause, item.remedy = str(it.get("cause") or ""), str(it.get("remedy") or "")
        elif name == "deviation_closed":
            item.state, item.closed_by = CLOSED, str(it.get("by") or "")
        elif name == "deviation_reopened":
            item.state, item.judged_by, item.closed_by = OPEN, "", ""
    return deviations


def _whole(value: JSON) -> int:
    return value if isinstance(value, int) else -1


def why_not(deviation: Deviation, step: str, by: set[str]) -> Diagnostic | None:
    """What keeps somebody (under any of these names) from taking this step."""
    if not by - {""}:
        return Diagnostic("nobody", "whoever does this must be named")
    if deviation.state == CLOSED and step not in ("commented", "reopened"):
        return Diagnostic("closed", f"deviation {deviation.number} is closed: reopen it first")
    if step == "closed":
        if deviation.state != JUDGED:
            return Diagnostic("not-judged", f"deviation {deviation.number} has no disposition yet")
        if same_name(deviation.judged_by) in by or same_name(deviation.owner) in by - {""}:
            return Diagnostic(
                "same-person",
                f"deviation {deviation.number} is closed by a second person: "
                f"not who judged or owns it",
            )
    return None


def deviation_lines(deviations: Sequence[Deviation], known: int, now: float) -> Iterator[str]:
    if deviations:
        header = ("NO", "STATE", "FINDING", "OWNER", "DUE", "DISPOSITION", "CLOSED BY", "SESSION")
        yield table([_row(item, now) for item in deviations], header)
        yield ""
    yield f"{len(deviations)} of {known} deviations"


def _row(deviation: Deviation, now: float) -> tuple[str, ...]:
    due = (
        "-"
        if deviation.due is None
        else moment(deviation.due - 1)[:10] + (" late" if deviation.overdue(now) else "")
    )
    return (
        str(deviation.number),
        deviation.state,
        f"{deviation.code} #{deviation.seq}",
        deviation.owner or "-",
        due,
        deviation.disposition or "-",
        deviation.closed_by or "-",
        deviation.session_id,
    )


def due_date(text: str | None) -> float | None:
    return None if text is None else read_moment(text, whole_day=True)


AUDITS = "audits."

_SIGNED = (
    "session", "release", "head", "clean", "outcome", "findings", "checks", "overrides", "by",
    "identity",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeptAudit:
    """``release`` is whose rules judged; ``findings`` are (code, event, sentence)."""

    number: int
    at: float
    release: str
    head: tuple[int, str]
    clean: bool | None
    outcome: str
    findings: tuple[tuple[str, int, str], ...]
    by: str
    key: str
    genuine: bool | None
    """Whether its signature is its key's; ``None`` without one."""
    severities: tuple[Severity, ...] = ()
    grades: Mapping[str, int] = field(default_factory=dict)
    overrides: tuple[Override, ...] = ()


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
    once. Only somebody who can judge the session has a verdict to keep."""
    if report.unjudged is not None:
        message = f"session {report.score_card.session_id} can't be judged ({report.unjudged})"
        raise mistake("not-judged", message, help="--keep needs rights to the contents, and them")
    session_id = report.score_card.session_id or ""
    record = await store.record(session_id)
    head = record.head
    private = record.metadata.get("settings", {}).get("private") is True
    salt = bytes.fromhex(str(record.metadata.get("salt") or ""))
    values: dict[str, Any] = {
        "session": session_id,
        "release": release,
        "head": {"seq": head.seq, "hash": head.hash},
        "clean": report.clean,
        "outcome": report.score_card.outcome,
        "findings": [
            {
                "code": item.code,
                "severity": str(item.severity),
                "event": item.seq,
                "explanation": TITLES.get(item.code, item.code) if private else item.explanation,
                "sentence": _digest(item.sentence, salt) if private else item.sentence,
            }
            for item in report.findings
            if item.severity is not Severity.NOTE
        ],
        "checks": dict(report.score_card.grades),
        "overrides": [
            {
                **override.as_json(),
                "unproven": [] if private else list(override.unproven),
            }
            for override in report.overrides
        ],
        **written_by(who),
    }
    if key is not None:
        values |= {"key": key.public, "signature": key.sign(canonical(values))}
    number = await write(store, AUDITS + session_id, "audited", values, clock=clock)
    known = {load_deviation.key for load_deviation in (await load_deviations(store)).values()}
    for finding in values["findings"]:
        if (session_id, finding["code"], finding["event"], finding["sentence"]) not in known:
            opened = {"session": session_id, **finding, **written_by(who)}
            await write(store, DEVIATIONS, "deviation_opened", opened, clock=clock)
    return number


def _digest(sentence: str, salt: bytes) -> str:
    """A name for a sentence that tells nothing: sentences name customers."""
    return f"#{reference(sentence, salt)['$ref']}"[:17] if sentence else ""


async def kept_audits(store: Store, session_id: str) -> list[KeptAudit]:
    return await folded(store, AUDITS + session_id, lambda result: [_kept(item) for item in result])


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
        it.get("clean"),
        str(it.get("outcome")),
        tuple(
            (str(item["code"]), int(item["event"]), str(item["sentence"]))
            for item in it.get("findings") or ()
        ),
        str(it.get("by") or ""),
        key,
        genuine,
        tuple(Severity(item["severity"]) for item in it.get("findings") or ()),
        it.get("checks") or {},
        tuple(
            Override(
                int(item["seq"]), str(item["action"]), tuple(item["by"]), tuple(item["unproven"])
            )
            for item in it.get("overrides") or ()
        ),
    )


async def stored_verdict(store: Store, record: SessionRecord) -> Report | None:
    """The newest kept audit of exactly these events, as a report: a verdict for readers who
    can't judge for themselves."""
    place = (record.head.seq, record.head.hash)
    for kept_audit in reversed(await kept_audits(store, record.id)):
        if (
            kept_audit.head == place
            and kept_audit.clean is not None
            and kept_audit.genuine is not False
        ):
            findings = tuple(
                Finding(code, seq, TITLES.get(code, code), severity=severity)
                for (code, seq, _), severity in zip(
                    kept_audit.findings, kept_audit.severities, strict=True
                )
            )
            by = f", kept by {kept_audit.by}" if kept_audit.by else ""
            message = f"audit {kept_audit.number} of release {kept_audit.release}{by}"
            return kept_report(
                findings,
                record.id,
                kept_audit.outcome,
                kept_audit.grades,
                message,
                kept_audit.overrides,
            )
    return None


def differences(kept_audit: KeptAudit, report: Report, salt: str = "") -> list[str]:
    """Where this report judges the same events otherwise than an audit that was kept. ``salt``:
    of a session whose sentences are kept as digests."""
    if report.unjudged is not None:
        return []
    before = set(kept_audit.findings)
    hidden = any(sentence.startswith("#") for _, _, sentence in kept_audit.findings)
    now = {
        (
            finding.code,
            finding.seq,
            _digest(finding.sentence, bytes.fromhex(salt)) if hidden else finding.sentence,
        )
        for finding in report.findings
        if finding.severity is not Severity.NOTE and finding.seq <= kept_audit.head[0]
    }
    messages = [f"no longer found: {_named(item)}" for item in sorted(before - now)]
    return messages + [f"newly found: {_named(item)}" for item in sorted(now - before)]


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
    item = known.get(number)
    if item is None:
        cure = "`sopilot records deviations list` has their numbers"
        raise mistake("unknown-deviation", f"there is no deviation {number}", help=cure)
    writer = written_by(who, by)
    if "identity" in people.demands and who is None:
        message = "this store asks people to prove who they are"
        raise mistake("unauthenticated", message, help="give --token-file")
    problem = why_not(item, step, people.names_of(str(writer["by"])))
    if problem is not None:
        raise UserMistake([problem])
    replies = {"deviation": number, **details, **writer}
    await write(store, DEVIATIONS, f"deviation_{step}", replies, clock=clock)
    return (await load_deviations(store))[number]


async def deviation_step(
    store: Store, step: str, details: dict[str, Any], *, who: Principal | None, clock: Clock
) -> str:
    """As commands give it: the deviation's number and a name stand among the details."""
    number, by = details.pop("number"), details.pop("by")
    item = await continue_deviation(store, number, step, details, who=who, by=by, clock=clock)
    return f"deviation {item.number}: {item.state}"
