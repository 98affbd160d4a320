"""The files of a bundle for an auditor, from a store."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path

import sopilot
from sopilot.messages.errors import mistake
from sopilot.protocols import SystemClock
from sopilot.records.bundle_verifier import (
    CONTENTS,
    HEADS,
    ROWS,
    VERIFIER,
    Sealed,
    derived_files,
    in_time,
    trace_file,
)
from sopilot.records.loading import Traces, export_trace
from sopilot.records.log import PREFIX, is_journal, lines_of
from sopilot.records.privacy import READING
from sopilot.records.selection import Wanted
from sopilot.records.store import Store
from sopilot.trace.files import write_trace
from sopilot.values.json import JSON, spell

_VERIFIER_PARTS = (
    "__init__.py", "values/*.py", "messages/*.py", "trace/*.py", "records/__init__.py",
    "records/actions.py", "records/bundle_verifier.py", "records/completeness.py",
    "records/deviations.py", "records/log.py", "records/merkle_tree.py", "records/selection.py",
)  # fmt: skip


async def bundle_files(
    store: Store, begin: float, end: float, *, payloads: bool = False
) -> dict[str, bytes]:
    """Name → contents: sessions that began in that time or acted in it, and all journals."""
    log, heads = await store.records.log(), await store.records.seals()
    if not heads:
        raise mistake("not-sealed", "nothing was sealed yet", help="`sopilot records seal` first")
    sealed = Sealed(begin, end, SystemClock().now(), heads)
    actions = await store.records.actions(Wanted(begin, end))
    chosen = {session_id for session_id, _ in (*in_time(log, begin, end), *actions)}
    stored = {head.session_id for head in await store.records.heads()}
    # The export itself is on record there; where it is the first reading, no seal covers that.
    unsealed = {PREFIX + READING} - {item.session_id for item in log[: heads[-1].head.size]}
    sessions = sorted((chosen & stored | set(filter(is_journal, stored))) - unsealed)
    traces, files, rows = Traces(store), {}, []
    for session_id in sessions:
        trace = await export_trace(store, session_id, payloads=payloads)
        files[trace_file(session_id)] = write_trace(trace)
        _, own = await traces.rows(session_id)
        sealed.add(trace, own)
        rows.append(json.dumps({"session": session_id, "rows": [list(row) for row in own]}))
    files |= derived_files(sealed)
    files[ROWS] = "".join(f"{line}\n" for line in rows)
    sealed_lines = (*lines_of(log), *(spell(seal.as_json()) for seal in heads))
    files[HEADS] = "".join(f"{line}\n" for line in sealed_lines)
    raw = {name: text.encode("utf-8", "surrogatepass") for name, text in files.items()}
    raw[VERIFIER] = _verifier()
    about: dict[str, JSON] = {
        "sopilot_bundle": 1,
        "from": begin,
        "to": end,
        "made_at": sealed.made_at,
        "sessions": sessions,
        "files": {name: hashlib.sha256(raw[name]).hexdigest() for name in sorted(raw)},
    }
    return {**raw, CONTENTS: json.dumps(about, ensure_ascii=False, indent=1).encode()}


def _verifier() -> bytes:
    """A Python archive with `bundle` and the modules that it imports."""
    package, out = Path(sopilot.__file__).parent, io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "__main__.py", "from sopilot.records.bundle_verifier import main\n\nmain()\n"
        )
        for pattern in _VERIFIER_PARTS:
            for path in sorted(package.glob(pattern)):
                archive.writestr(f"sopilot/{path.relative_to(package)}", path.read_bytes())
    return out.getvalue()
