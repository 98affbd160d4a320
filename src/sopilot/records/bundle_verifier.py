"""A bundle for an auditor: the files that are made from sealed records, and the check of them.

Everything here and everything it imports is pure Python: every bundle holds it as `verify.pyz`,
which runs as `python3 verify.pyz [PUBLIC_KEY]` and needs Python 3.11 and nothing else. It shows
that every trace is whole and as it was sealed, that no session of the bundle's time is left out,
that register, deviations, handbooks and summary are what the sealed records make, and that the
heads are signed by the key you name. A person who can change the bundle can change the verifier,
too: `sopilot records verify --bundle` needs none.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sopilot.messages.errors import SopilotError
from sopilot.records.actions import ActionEntry, ActionRow
from sopilot.records.completeness import check_seals, missing_entries
from sopilot.records.deviations import DEVIATIONS, Deviation, findings_of, fold_deviations
from sopilot.records.log import (
    PREFIX,
    Entry,
    LogEntry,
    SealedHead,
    digest_of,
    is_journal,
    read_seals,
)
from sopilot.records.selection import register_csv, register_json, select
from sopilot.trace.events import MACHINE, UNAUTHENTICATED
from sopilot.trace.files import TraceFile, read_trace, verify_trace
from sopilot.values.json import JSON
from sopilot.values.text import moment, visible

CONTENTS, HEADS, ROWS, VERIFIER = "bundle.json", "heads.jsonl", "rows.jsonl", "verify.pyz"
HANDBOOKS = "handbooks"
"""The journal of versions."""


@dataclass(slots=True)
class Sealed:
    """The contents of a bundle. ``rows`` and ``journals`` are by session and by journal."""

    begin: float
    end: float
    made_at: float
    heads: Sequence[SealedHead] = ()
    rows: dict[str, list[ActionRow]] = field(default_factory=dict)
    journals: dict[str, list[Entry]] = field(default_factory=dict)

    def add(self, trace: TraceFile, rows: Iterable[Sequence[Any]]) -> None:
        self.rows[trace.session_id] = [ActionRow(*row) for row in rows]
        if is_journal(trace.session_id):
            self.journals[trace.session_id.removeprefix(PREFIX)] = [
                Entry(sealed.event.seq, sealed.event.at, str(note["name"]), dict(note["details"]))
                for sealed in trace.events
                if (note := sealed.event.payload)
            ]


def trace_file(session_id: str) -> str:
    return f"traces/{session_id}.jsonl"


def in_time(log: Iterable[LogEntry], begin: float, end: float) -> Iterator[tuple[str, str]]:
    """Yield sessions that began in that time, or may have acted in it, with the word for which."""
    last: dict[str, LogEntry] = {}
    for entry in log:
        before = last.get(entry.session_id)
        last[entry.session_id] = entry
        if before is None:
            if begin <= entry.at < end:
                yield entry.session_id, "began"
        elif entry.seq > before.seq and before.at < end and entry.at >= begin:
            yield entry.session_id, "may have acted"


def derived_files(sealed: Sealed) -> dict[str, str]:
    """Name → text of what people read: register, deviations, handbooks and summary."""
    rows = sorted(
        (
            (session_id, row)
            for session_id, own in sealed.rows.items()
            for row in own
            if sealed.begin <= row.at < sealed.end
        ),
        key=lambda item: (-item[1].at, item[0], item[1].call),
    )
    deviations = list(fold_deviations(sealed.journals.get(DEVIATIONS, ())).values())
    selected = replace(
        select(rows, total=len(rows), now=sealed.made_at), findings=findings_of(deviations)
    )
    files = {
        "register.csv": register_csv(selected.entries(), []),
        "register.json": _spelled(register_json(selected, None)),
        "deviations.json": _spelled([deviation.as_json() for deviation in deviations]),
        "SUMMARY.txt": "\n".join(_summary(sealed, selected.entries(), selected.counts, deviations)),
    }
    numbers: Counter[JSON] = Counter()
    for entry in sealed.journals.get(HANDBOOKS, ()):
        if entry.name == "version_released":
            handbook = entry.details["handbook"]
            numbers[handbook] += 1
            files[f"handbooks/{handbook}-{numbers[handbook]}.yaml"] = str(entry.details["text"])
    return files


def _spelled(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _summary(
    sealed: Sealed,
    entries: Sequence[ActionEntry],
    counts: Mapping[tuple[str, str], int],
    deviations: Sequence[Deviation],
) -> Iterator[str]:
    decisions = [decision for entry in entries for decision in entry.decisions]
    proofs = [decision.get("principal") for decision in decisions]
    methods = Counter(
        str(proof["method"]) if isinstance(proof, Mapping) else UNAUTHENTICATED for proof in proofs
    )
    head = sealed.heads[-1].head
    yield f"Records from {moment(sealed.begin)} to {moment(sealed.end)}"
    yield ""
    yield f"{sum(not is_journal(item) for item in sealed.rows)} sessions, {len(entries)} actions"
    for (action, outcome), count in sorted(counts.items()):
        yield f"  {count} x {action} {outcome}"
    yield f"  {sum(bool(entry.override) for entry in entries)} allowed without proof"
    own = f", {methods.pop(MACHINE)} of them made automatically" if methods[MACHINE] else ""
    yield f"{len(decisions)} decisions of people{own}"
    for method, count in sorted(methods.items()):
        if count:
            yield f"  {count} {method}"
    yield f"{len(deviations)} deviations"
    for state, count in sorted(Counter(item.state for item in deviations).items()):
        yield f"  {count} {state}"
    yield ""
    yield f"The log has {head.size} sealed entries; its last head is of {moment(head.at)}, root"
    yield f"{head.root}."
    yield ""
    yield f"To check all of it without this product: python3 {VERIFIER} PUBLIC_KEY"
    yield "It prints what that shows and what it doesn't. register.csv opens in a spreadsheet;"
    yield "traces/ has every event of every session, journals among them (people, handbooks,"
    yield "audits, deviations), handbooks/ the texts that were released."
    yield ""


class _Check:
    def __init__(self, folder: Path, keys: Sequence[str]) -> None:
        self._folder, self._keys = folder, keys
        self.problems: list[str] = []
        self.later: list[str] = []
        """Events behind the sealed ones, in words."""
        self.summary = ""

    def run(self) -> None:
        about = json.loads(self._text(CONTENTS))
        sealed = Sealed(about["from"], about["to"], about["made_at"])
        sessions = set(about["sessions"])
        self._files(about["files"])
        seals = read_seals(self._text(HEADS))
        sealed.heads, entries = seals.heads, seals.entries()
        known = self._keys or {head.key for head in seals.heads}
        for gap in (*check_seals(seals, known), *missing_entries(entries)):
            self.problems.append(gap.message)
        covered = entries[: max(head.head.size for head in seals.heads)]
        last = {entry.session_id: entry for entry in covered}
        for session_id, how in in_time(covered, sealed.begin, sealed.end):
            if session_id not in sessions and not is_journal(session_id):
                self.problems.append(
                    f"session {session_id} {how} in this period, but is left out of the bundle"
                )
        for session_id in last.keys() - sessions:
            if is_journal(session_id):
                self.problems.append(f"{session_id} is left out")
        rows = {
            item["session"]: item["rows"] for item in map(json.loads, self._text(ROWS).splitlines())
        }
        for session_id in sorted(sessions):
            name = trace_file(session_id)
            if not (self._folder / name).is_file():
                self.problems.append(f"the trace of session {session_id} is missing")
                continue
            trace = self._trace(name, session_id)
            if trace is not None:
                sealed.add(trace, rows.get(session_id, ()))
                self._session(trace, last.get(session_id), sealed.rows[session_id])
        for session_id in rows.keys() - sessions:
            self.problems.append(f"{ROWS} has rows of {session_id}, whose trace isn't here")
        if not self.problems:  # everything below is made from what was sealed
            self._derived(sealed, {*map(trace_file, sessions), HEADS, ROWS, VERIFIER}, about)
        self.summary = (
            f"{len(sessions)} traces from {moment(sealed.begin)} to {moment(sealed.end)} as of "
            f"{moment(sealed.made_at)}, {len(covered)} entries of the log, sealed at "
            f"{moment(max(head.head.at for head in seals.heads))}"
        )

    def _text(self, name: str) -> str:
        path = self._folder / name
        if not path.is_file():  # a link may lead to a device without an end
            raise FileNotFoundError(f"{name} isn't a file")
        return path.read_bytes().decode("utf-8", "surrogatepass")

    def _files(self, files: Mapping[str, str]) -> None:
        for name, digest in files.items():
            path = self._folder / name
            if not path.is_file():
                self.problems.append(f"{name} is missing")
            elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                self.problems.append(f"{name} differs from what was exported")
        there = {
            path.relative_to(self._folder).as_posix()
            for path in self._folder.rglob("*")
            if path.is_file()
        }
        for name in sorted(there - {*files, CONTENTS}):
            self.problems.append(f"{name} is not a file of this bundle")

    def _trace(self, name: str, session_id: str) -> TraceFile | None:
        try:
            trace = read_trace(self._text(name))
        except (SopilotError, UnicodeDecodeError) as problem:
            self.problems.append(f"{name} differs from the recorded one: {problem}")
            return None
        if trace.session_id != session_id:
            self.problems.append(f"{name}: this is the trace of {trace.session_id}")
        for item in verify_trace(trace):
            # A journal isn't opened as a session is, and a session may have no events yet.
            if item.code != "no-events" and not (
                is_journal(session_id) and item.code == "wrong-header"
            ):
                self.problems.append(f"{name} differs from the recorded one: {item}")
        return trace

    def _session(
        self, trace: TraceFile, sealed: LogEntry | None, rows: Sequence[ActionRow]
    ) -> None:
        session_id, count = trace.session_id, len(trace.events)
        if sealed is None:
            problem = (
                f"session {session_id} is in no sealed entry: it was created later, or inserted"
            )
        elif sealed.seq >= count:
            problem = f"session {session_id} has {count} events, {sealed.seq + 1} sealed"
        elif sealed.seq >= 0 and trace.events[sealed.seq].hash != sealed.hash:
            problem = f"session {session_id} isn't the one that was sealed"
        elif sealed.seq < count - 1:
            # Writing events behind the sealed ones needs no key.
            self.later.append(f"events {sealed.seq + 1} to {count - 1} of {session_id}")
            if not rows:
                return
            problem = (
                f"session {session_id} continued after the seal, which doesn't cover its "
                "action records: seal and export again"
            )
        elif digest_of(rows) != sealed.actions:
            problem = (
                f"the action records of session {session_id} differ from those that were sealed"
            )
        else:
            return
        self.problems.append(problem)

    def _derived(self, sealed: Sealed, others: set[str], about: Mapping[str, Any]) -> None:
        expected = derived_files(sealed)
        for name, text in expected.items():
            path = self._folder / name
            raw = text.encode("utf-8", "surrogatepass")
            if not path.is_file() or path.read_bytes() != raw:
                self.problems.append(f"{name} differs from what the sealed records produce")
        for name in sorted(about["files"].keys() - expected.keys() - others):
            self.problems.append(f"{name} is not a file of this bundle")


def check_bundle(folder: Path, keys: Sequence[str]) -> tuple[bool, list[str]]:
    """Return whether the bundle is whole, and the lines to print, without control characters."""
    check = _Check(folder, keys)
    try:
        check.run()
    except (
        SopilotError, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError,
        ArithmeticError,
    ) as problem:  # fmt: skip
        check.problems.append(f"this isn't a bundle, or it is damaged: {problem!r}")
    whose = "by the key you named" if keys else "by the key that the bundle names"
    lines = check.problems or [
        f"whole and complete: {check.summary} {whose}",
        *(f"not covered by the seal: {item}" for item in check.later),
        "not shown by this: that what was recorded is true, that everything was recorded, or what "
        "came after the seal",
    ]
    return not check.problems, [visible(line) for line in lines]


def main() -> None:
    """Check the bundle that contains this file."""
    keys = [
        Path(argument).read_text().strip() if Path(argument).is_file() else argument
        for argument in sys.argv[1:]
    ]
    good, lines = check_bundle(Path(sys.argv[0]).resolve().parent, keys)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.exit(0 if good else 1)
