"""A bundle for an auditor: register, traces, log and heads, journals, handbooks, a verifier."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from sopilot.messages.errors import mistake
from sopilot.protocols import SystemClock
from sopilot.records import offline_verifier
from sopilot.records.actions import ActionEntry
from sopilot.records.deviations import Deviation, load_deviations
from sopilot.records.journal import PREFIX, is_journal
from sopilot.records.loading import Traces, export_trace, register
from sopilot.records.log import SealedHead, lines_of
from sopilot.records.privacy import READING
from sopilot.records.selection import Wanted, register_csv, register_json
from sopilot.records.store import Store
from sopilot.records.versions import load_versions
from sopilot.trace import ed25519
from sopilot.trace.events import MACHINE, UNAUTHENTICATED
from sopilot.trace.files import write_trace
from sopilot.values.json import JSON, spell
from sopilot.values.text import moment


async def bundle_files(
    store: Store, begin: float, end: float, *, payloads: bool = False
) -> dict[str, str]:
    """Name → text. Sessions that began in that time or did something in it, and all journals."""
    now = SystemClock().now()
    log, seals = await store.records.log(), await store.records.seals()
    if not seals:
        raise mistake("not-sealed", "nothing was sealed yet", help="`sopilot records seal` first")
    result = await register(store, Wanted(begin, end, now=now))
    entries = result.entries(None)
    entries_of_log = [item.as_json() for item in log]
    began = {session_id for session_id, _ in offline_verifier.in_time(entries_of_log, begin, end)}
    every = {head.session_id for head in await store.records.heads()}
    journals = {item for item in every if is_journal(item)}
    # The export itself is on record there; where it is the first reading, no seal covers that.
    begun = {PREFIX + READING} - {item.session_id for item in log[: seals[-1].head.size]}
    acted = {entry.session_id for entry in entries}
    chosen = sorted(((began | acted) & every | journals) - begun)
    traces, files, rows = Traces(store), {}, []
    for session_id in chosen:
        trace = await export_trace(store, session_id, payloads=payloads)
        files[f"traces/{session_id}.jsonl"] = write_trace(trace)
        _, own = await traces.rows(session_id)
        rows.append(json.dumps({"session": session_id, "rows": [list(row) for row in own]}))
    versions = await load_versions(store)
    for version in (item for known in versions.of.values() for item in known):
        files[f"handbooks/{version.handbook}-{version.number}.yaml"] = version.text
    deviations = list((await load_deviations(store)).values())
    files |= {
        "register.csv": register_csv(entries, [], now),
        "register.json": json.dumps(register_json(result, None, now), ensure_ascii=False, indent=1),
        "deviations.json": json.dumps(
            [deviation.as_json() for deviation in deviations], ensure_ascii=False, indent=1
        ),
        "rows.jsonl": "".join(f"{line}\n" for line in rows),
        "heads.jsonl": "".join(
            f"{line}\n" for line in (*lines_of(log), *(spell(seal.as_json()) for seal in seals))
        ),
        "verify.py": _verifier(),
        "SUMMARY.txt": _summary(begin, end, chosen, entries, result.counts, deviations, seals),
    }
    about: dict[str, JSON] = {
        "sopilot_bundle": 1,
        "from": begin,
        "to": end,
        "made_at": now,
        "sessions": chosen,
        "files": {
            name: hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            for name, text in sorted(files.items())
        },
    }
    return {**files, "bundle.json": json.dumps(about, ensure_ascii=False, indent=1)}


def _verifier() -> str:
    """In one file, which needs Python and nothing else."""
    own = Path(offline_verifier.__file__).read_text("utf-8")
    _, _, signing = Path(ed25519.__file__).read_text("utf-8").partition("import hashlib\n\n")
    return own.replace(f"from {ed25519.__name__} import signed_by\n", signing)


def _summary(
    begin: float,
    end: float,
    sessions: Sequence[str],
    entries: Sequence[ActionEntry],
    counts: Mapping[tuple[str, str], int],
    deviations: Sequence[Deviation],
    seals: Sequence[SealedHead],
) -> str:
    decided = [decision for entry in entries for decision in entry.decisions]
    proofs = [reply.get("principal") for reply in decided]
    methods = Counter(
        str(proof["method"]) if isinstance(proof, Mapping) else UNAUTHENTICATED for proof in proofs
    )
    states = Counter(deviation.state for deviation in deviations)
    head = seals[-1].head
    own = [session for session in sessions if not is_journal(session)]
    return "\n".join(
        [
            f"Records from {moment(begin)} to {moment(end)}",
            "",
            f"{len(own)} sessions, {len(entries)} actions",
            *(
                f"  {count} x {action} {outcome}"
                for (action, outcome), count in sorted(counts.items())
            ),
            f"  {sum(bool(entry.override) for entry in entries)} let through without proof",
            f"{len(decided)} decisions of people"
            + (f", {methods.pop(MACHINE)} of them the machine's own" if methods[MACHINE] else ""),
            *(f"  {count} {method}" for method, count in sorted(methods.items()) if count),
            f"{len(deviations)} deviations",
            *(f"  {count} {state}" for state, count in sorted(states.items())),
            "",
            f"The log has {head.size} sealed entries; its last head is of {moment(head.at)}, root",
            f"{head.root}.",
            "",
            "To check all of it without this product: python3 verify.py PUBLIC_KEY",
            "It says what is shown by that and what is not. register.csv opens in a spreadsheet;",
            "traces/ has every event of every session, journals among them (people, handbooks,",
            "audits, deviations), handbooks/ the texts that held.",
            "",
        ]
    )
