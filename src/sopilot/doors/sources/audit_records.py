"""An audit beside those of the same session that were kept before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sopilot import __version__
from sopilot.doors.sources.audit_inputs import ForeignInput, TraceInput
from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.audit import Report
from sopilot.runtime.records.people import Principal
from sopilot.runtime.session import Store, SystemClock
from sopilot.runtime.session.case_files import differences, keep_audit, kept_audits
from sopilot.runtime.trace.signing import SigningKey


async def on_record(
    store: Store,
    report: Report,
    *,
    keep: bool,
    key: SigningKey | None = None,
    who: Principal | None = None,
    release: str = __version__,
) -> dict[str, Any]:
    """What earlier audits judged otherwise, and under which number this one was kept."""
    session_id = report.score_card.session_id or ""
    earlier = await kept_audits(store, session_id)
    salt = str((await store.record(session_id)).metadata.get("salt") or "")
    found: dict[str, Any] = {}
    if earlier:
        found["earlier_audits"] = [
            {
                "audit": one.number,
                "at": one.at,
                "release": one.release,
                "by": one.by or None,
                "clean": one.clean,
                "signature_holds": one.genuine,
                "differences": differences(one, report, salt),
            }
            for one in earlier
        ]
    if keep:
        found["kept"] = await keep_audit(
            store, report, release=release, clock=SystemClock(), key=key, who=who
        )
    return found


def record_lines(records: Mapping[str, Any]) -> Iterator[str]:
    for one in records.get("earlier_audits", ()):
        for difference in one["differences"]:
            earlier = f"audit {one['audit']} of release {one['release']}"
            yield f"judged otherwise than {earlier}: {difference}"
        if one["signature_holds"] is False:
            yield f"the signature of audit {one['audit']} does not hold"
    if "kept" in records:
        yield f"kept as audit {records['kept']}"


def chain_check(given: TraceInput | ForeignInput) -> tuple[dict[str, Any], list[str]]:
    """Whether chain and signatures hold, as data and as lines."""
    if isinstance(given, ForeignInput):
        raise UserMistake("a transcript has no chain to verify: only traces and sessions do")
    problems = given.verify()
    listed = [{"code": p.code, "message": p.message, "event": p.index} for p in problems]
    events, signed = len(given.trace.events), len(given.trace.signatures)
    whole = f"{events} events, chain whole, {signed} signed heads agree"
    return {"verified": not problems, "problems": listed}, list(map(str, problems)) or [whole]
