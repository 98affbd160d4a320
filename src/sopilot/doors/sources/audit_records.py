"""An audit beside those of the same session that were kept before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sopilot import __version__
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
    earlier = await kept_audits(store, report.score_card.session_id or "")
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
                "differences": differences(one, report),
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
