"""A report for a terminal.

What a report shows of a run: one row an event, in words.

Places and moments of a run in words: what the compiler and the clock call them is no reading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sopilot.audit.findings import TITLES, Finding, NotJudged
from sopilot.audit.report import BatchCard, Report, ScoreCard
from sopilot.audit.state import RefusedGoal
from sopilot.audit.transcript_files import Transcript
from sopilot.trace.chain import SealedEvent
from sopilot.trace.events import CLOCK, HELD_CALL, OPENED, Event, identity_of
from sopilot.trace.redaction import is_reference
from sopilot.values.json import JSON
from sopilot.values.text import visible

_GROUP = re.compile(r"(all_of|any_of|in_order|first_of)_(?:(\d+)_to_)?\w+")


_TOGETHER = {
    "all_of": "all of {0} requirements",
    "any_of": "one of {0} ways",
    "in_order": "{0} requirements in their order",
    "first_of": "the first of {0} ways that holds",
}


def place_in_words(frame: str) -> str:
    """``transfer/all_of_6_to_within_limit/logged_in@ask`` is `transfer › logged in`."""
    path = frame.split("@", 1)[0].split("/")
    return " › ".join(part.replace("_", " ") for part in path if not _GROUP.fullmatch(part))


def function_in_words(name: str) -> str:
    """The handbook's own name, or what a group of checks is: only the compiler named that one."""
    match = _GROUP.fullmatch(name)
    return name if match is None else _TOGETHER[match[1]].format(match[2] or "the")


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def with_moments(value: JSON) -> JSON:
    """Numbers under names such as ``expires_at`` as dates."""
    if not isinstance(value, Mapping):
        return value
    return {
        key: moment(item)
        if (key == "at" or key.endswith("_at"))
        and isinstance(item, int | float)
        and 0 < item < 1e11
        else item
        for key, item in value.items()
    }


def render_text(report: Report) -> str:
    return "\n".join(map(visible, _lines(report)))


def render_batch_text(batch: BatchCard) -> str:
    lines = [
        f"{batch.sessions} sessions, {batch.clean} clean",
        *([f"overrides: {batch.overrides}"] if batch.overrides else []),
        *(f"cannot be judged: {n} ({reason})" for reason, n in batch.not_judged.items()),
        "outcomes: " + (_counts(dict(batch.outcomes)) or "none"),
        f"evidence coverage: {_share(batch.evidence_coverage)}",
        "verdicts: " + (_counts(dict(batch.grades)) or "none"),
        f"calls after the goal: {batch.calls_after_goal} of {batch.calls}",
    ]
    if batch.chains_broken:
        lines.append(f"broken chains: {batch.chains_broken}")
    for code, count in batch.counts.items():
        lines.append(f"  {count:>5}  {code} in {batch.sessions_with[code]} sessions")
    return "\n".join(lines)


def _lines(report: Report) -> Iterator[str]:
    card = report.score_card
    name = f"session {card.session_id}" if card.session_id else "audit"
    yield f"{name}: {verdict_words(report)}{_chain(card)}"
    if report.verdict_of:
        yield f"the verdict is that of {report.verdict_of}"
    for missing in report.not_judged:
        yield ""
        yield from _not_judged(missing)
    for override in report.overrides:
        yield ""
        by = ", ".join(override.by) or "nobody on record"
        yield f"#{override.seq} override: {override.action} was let through unproven by {by}"
        yield from (f"    {why}" for why in override.unproven)
    for finding in report.findings:
        yield ""
        yield from _finding(finding)
    for refusal in report.refusals:
        yield ""
        yield from _refusal(refusal)
    if report.checks:
        yield ""
        yield from _checks(report)
    if report.unguarded:
        yield ""
        yield f"recorded, not held: {', '.join(report.unguarded)} (the handbook guards none of it)"
    if report.unjudged is None:
        yield ""
        yield from _card(card)


def verdict_words(report: Report) -> str:
    """The verdict in a few words, for the first line of every form of the report."""
    count = len(report.findings)
    message = [] if report.unjudged is not None else [report.score_card.outcome]
    if count:
        message.append(f"{count} finding{'s' if count > 1 else ''}")
    if report.unjudged is not None:
        message.append(f"cannot be judged ({report.unjudged})")
    elif report.not_judged:
        message.append(f"{len(report.not_judged)} not judged")
    elif not count:
        waits = report.score_card.outcome == "waiting"
        message.append("no findings so far" if waits else "no findings")
    if overrides := len(report.overrides):
        message.append(f"{overrides} override{'s' if overrides > 1 else ''}")
    return ", ".join(message)


def _not_judged(missing: NotJudged) -> Iterator[str]:
    where = f"#{missing.seq} " if missing.seq is not None else ""
    yield f"{where}cannot be judged: {missing.reason}"
    if missing.explanation:
        yield f"    {missing.explanation}"


def _finding(finding: Finding) -> Iterator[str]:
    title = TITLES.get(finding.code, finding.code)
    yield f"#{finding.seq} {finding.severity} {finding.code}: {title.lower()}"
    yield f"    {finding.explanation}"
    if finding.sentence:
        yield f"    the SOP says: {finding.sentence}"
    if finding.frame:
        yield f"    at {place_in_words(finding.frame)}"


def _refusal(refusal: RefusedGoal) -> Iterator[str]:
    yield f"refused: {refusal.goal} at #{refusal.seq}"
    if refusal.reason:
        stored = any(cause.get("customer_message") for cause in refusal.causes)
        yield f"    {'reason' if stored else 'said'}: {refusal.reason}"
    if refusal.obstacle:
        yield f"    could not be carried out: {refusal.obstacle}"
    for cause in refusal.causes:
        evidence = ", ".join(f"#{seq}" for seq in cause["evidence"])
        cited = f" (evidence: {evidence})" if evidence else ""
        yield f"    required: {cause['sentence'] or cause['predicate']}"
        yield f"    found: {cause.get('found') or 'otherwise'}{cited}"
        if cause.get("customer_message"):
            yield f"    the customer is told only: {cause['customer_message']}"
        if cause["remedy"]:
            yield f"    the user could: {cause['remedy']}"
    if refusal.follows:
        yield f"    what follows: {refusal.follows}"


def _checks(report: Report) -> Iterator[str]:
    yield "what was checked:"
    for check in report.checks:
        word = "open" if check.holds is None else "yes" if check.holds else "no"
        evidence = ", ".join(f"#{seq}" for seq in check.evidence)
        message = [check.grade] if check.grade else []
        message += [f"evidence: {evidence}"] if evidence else []
        shown = f" ({'; '.join(message)})" if message else ""
        yield f"    {word:<4} {check.sentence or check.predicate}{shown}"
    for decision in report.decisions:
        why = f": {decision.reason}" if decision.reason else ""
        role = f" as {decision.role}" if decision.role else ""
        yield f"    {decision.decision} by {decision.by}{role} ({decision.identity}){why}"


def _card(card: ScoreCard) -> Iterator[str]:
    graded = f" ({_counts(dict(card.grades))})" if card.grades else ""
    yield (
        f"checks {card.checks}{graded}, {_evidence(card)}, "
        f"reused {card.reused}, rejected operations {card.rejected}"
    )
    yield f"calls of tools {card.calls}, after the goal {card.calls_after_goal}"
    if card.counts:
        yield f"findings: {_counts(dict(card.counts))}"


def _evidence(card: ScoreCard) -> str:
    """Of those that rest on an answer: what follows from the request alone needs none."""
    needing = card.checks_needing_evidence
    if not needing:
        return "none of them needs evidence"
    return f"evidence for {card.checks_with_evidence} of the {needing} that need it"


def _chain(card: ScoreCard) -> str:
    if card.chain is None:
        return ""
    return ", chain verified" if card.chain else ", CHAIN BROKEN"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _share(share: float | None) -> str:
    return "not needed" if share is None else f"{100 * share:.0f} %"


REQUEST_NOTE = "model_request"


LONGEST = 240
"""Characters of a value that a row shows."""


_NOTES = {OPENED: "session opened", HELD_CALL: "call held back", CLOCK: "the clock shows"}


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """``tone`` is ``good``, ``bad`` or nothing; ``evidence`` are the events it cites."""

    seq: int
    actor: str
    kind: str
    place: str
    says: str
    depth: int = 0
    tone: str = ""
    evidence: tuple[int, ...] = ()
    at: float | None = None


def rows_of_trace(events: Iterable[Event | SealedEvent]) -> list[TimelineRow]:
    rows = []
    for entry in events:
        event = entry.event if isinstance(entry, SealedEvent) else entry
        if event.kind == "note" and event.payload.get("name") == REQUEST_NOTE:
            continue  # what a request cost is accounting, not procedure; the trace keeps it
        path = event.frame.split("@", 1)[0]
        depth = path.count("/") if path else 0
        cited = _evidence_timeline(event.payload)
        rows.append(
            TimelineRow(
                event.seq,
                event.actor,
                event.kind,
                place_in_words(event.frame),
                _says(event.kind, event.payload),
                depth,
                _tone(event.kind, event.payload),
                cited,
                event.at,
            )
        )
    return rows


def rows_of_transcript(transcript: Transcript) -> list[TimelineRow]:
    rows = []
    for call in transcript.calls:
        answer = shown(call.value) if call.answered else "no answer"
        says = f"{call.action}({arguments(call.arguments)}) → {answer}"
        tone = "" if not call.answered else "good" if call.ok else "bad"
        place = f"message {call.message}"
        rows.append(TimelineRow(call.index, "model", "domain_call", place, says, 0, tone))
    return rows


def shown(value: JSON) -> str:
    if is_reference(value):
        return "(withheld)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def arguments(values: JSON) -> str:
    if not isinstance(values, Mapping) or is_reference(values):
        return "(withheld)" if values is not None else "(not an object)"
    return ", ".join(f"{name}={shown(value)}" for name, value in values.items())


def _says(kind: str, payload: Mapping[str, JSON]) -> str:
    match kind:
        case "start":
            again = " again" if payload.get("reactivated") else ""
            return f"{payload.get('goal')}({arguments(payload.get('arguments'))}){again}"
        case "amend":
            return arguments(payload.get("arguments"))
        case "call":
            called = function_in_words(str(payload.get("function") or payload.get("slot")))
            return f"{called}({arguments(payload.get('resolved'))})"
        case "return":
            bound = payload.get("bound")
            holds = bound.get("holds") if isinstance(bound, Mapping) else payload.get("holds")
            word = "is undecided" if holds is None else "holds" if holds else "does not hold"
            grade = f" ({payload['grade']})" if payload.get("grade") else ""
            return f"{function_in_words(str(payload.get('function')))} {word}{grade}"
        case "reuse":
            if "result" in payload:
                return f"takes over #{payload['result']}"
            return (
                f"{function_in_words(str(payload.get('function')))} from #{payload.get('producer')}"
            )
        case "select_branch":
            return f"{payload.get('label')} → {payload.get('target')}"
        case "emit_artifact":
            return f"{payload.get('name')}: {shown(payload.get('content'))}"
        case "domain_call":
            return f"{payload.get('action')}({arguments(payload.get('arguments'))})"
        case "domain_result":
            word = "" if payload.get("ok") else "failed: "
            return f"{payload.get('action')} → {word}{shown(payload.get('value'))}"
        case "decision":
            role = f" as {payload['role']}" if payload.get("role") else ""
            done = f"{payload.get('decision')} {payload.get('call_id')} by {payload.get('by')}"
            return f"{done}{role} ({identity_of(payload.get('principal'))})"
        case "note":
            named = str(payload.get("name"))
            details = with_moments(payload.get("details", {}))
            return f"{_NOTES.get(named, named.replace('_', ' '))} {shown(details)}"
        case "rejected":
            operation = payload.get("operation")
            name = operation.get("operation") if isinstance(operation, Mapping) else "?"
            return f"{name}: {shown(payload.get('reason'))}"
    for key in ("text", "summary", "reason", "goal"):
        if payload.get(key):
            return shown(payload[key])
    return ""


def _tone(kind: str, payload: Mapping[str, JSON]) -> str:
    if kind == "domain_result":
        return "good" if payload.get("ok") else "bad"
    return {"complete": "good", "fail": "bad", "rejected": "bad"}.get(kind, "")


def _evidence_timeline(payload: Mapping[str, JSON]) -> tuple[int, ...]:
    bound = payload.get("bound", payload)
    cited = bound.get("evidence", ()) if isinstance(bound, Mapping) else ()
    if not isinstance(cited, list | tuple):
        return ()
    return tuple(item for item in cited if isinstance(item, int) and not isinstance(item, bool))
