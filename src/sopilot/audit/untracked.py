"""Sessions without a machine: their trace has calls and results, but no process that ran.

They are judged like a transcript of anybody's agent, with two things more: the chain of
the trace, and every goal that was gone for, in its turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from sopilot.audit.auditing import judge_chain
from sopilot.audit.finding import Finding
from sopilot.audit.foreign import audit_transcript
from sopilot.audit.report import ABANDONED, Report, card
from sopilot.audit.run import Judge, Refusal
from sopilot.audit.state import is_withheld
from sopilot.audit.transcript import Transcript, TranscriptCall
from sopilot.diagnostics import UserMistake
from sopilot.handbook import Handbook
from sopilot.vm.events import Event
from sopilot.vm.trace import Head, SealedEvent


def audit_untracked(
    handbook: Handbook,
    events: Sequence[Event],
    *,
    goal: str | None,
    chain: Sequence[SealedEvent],
    session_id: str | None = None,
    judge: Judge | None = None,
    head: Head | None = None,
) -> Report:
    """``goal`` is what the user came for, where that is known: it judges a session in which no
    goal was gone for. ``chain`` are the events as they were sealed."""
    transcript = transcript_of(events)
    reports = [
        audit_transcript(handbook, part, goal=name, judge=judge, session_id=session_id)
        for name, part in _parts(handbook, transcript, goal)
    ]
    broken, whole = judge_chain(chain, session_id, head)
    found: dict[tuple[str, int, str | None], Finding] = {}
    for report in reports:
        for finding in report.findings:
            found.setdefault((finding.code, finding.seq, finding.predicate), finding)
    findings = [*([broken] if broken else []), *sorted(found.values(), key=lambda one: one.seq)]
    refusals: list[Refusal] = [refusal for report in reports for refusal in report.refusals]
    cards = [report.score_card for report in reports]
    return Report(
        tuple(findings),
        card(
            findings,
            session_id=session_id,
            outcome=cards[-1].outcome if cards else ABANDONED,
            calls=len(transcript.calls),
            calls_after_goal=cards[-1].calls_after_goal if cards else 0,
            checks=sum(one.checks for one in cards),
            needing=sum(one.checks_needing_evidence for one in cards),
            covered=sum(one.checks_with_evidence for one in cards),
            chain=whole,
        ),
        tuple(refusals),
    )


def transcript_of(events: Sequence[Event]) -> Transcript:
    """A call's index is its event's number, so that a finding names the event."""
    calls: dict[str, TranscriptCall] = {}
    made: list[str] = []
    said = 0
    for event in events:
        payload = event.payload
        said += event.kind == "user_said"
        if event.kind not in ("domain_call", "domain_result"):
            continue
        name = str(payload["call_id"])
        if any(is_withheld(value) for value in payload.values()):
            raise UserMistake("values of this trace are withheld: calls cannot be judged")
        if event.kind == "domain_call":
            arguments = payload["arguments"]
            assert isinstance(arguments, dict)
            calls[name] = TranscriptCall(event.seq, event.seq, str(payload["action"]), arguments)
            made.append(name)
        elif name in calls:
            asked, ok = calls[name], bool(payload["ok"])
            calls[name] = TranscriptCall(
                asked.index, asked.message, asked.action, asked.arguments,
                ok, payload.get("value"), True, ok,
            )  # fmt: skip
    return Transcript(tuple(calls[name] for name in made), len(events), max(0, said - 1))


def _parts(
    handbook: Handbook, transcript: Transcript, goal: str | None
) -> list[tuple[str, Transcript]]:
    """Each goal with the calls up to its success; the last one with everything."""
    goals = {one.action: name for name, one in handbook.procedures.items()}
    if goal is not None:
        goals[handbook.procedures[goal].action] = goal
    attempted = [call for call in transcript.calls if call.action in goals]
    reached = {goals[call.action]: call.index for call in reversed(attempted) if call.ok}
    named = list(dict.fromkeys(goals[call.action] for call in attempted))
    named = named or ([goal] if goal is not None else [])
    ends: list[tuple[int, str]] = sorted(
        (reached.get(name, len(transcript.calls) + transcript.messages), name) for name in named
    )
    parts = []
    for place, (end, name) in enumerate(ends):
        last = place == len(ends) - 1
        kept = [call for call in transcript.calls if last or call.index <= end]
        parts.append((name, Transcript(tuple(kept), transcript.messages, transcript.replies)))
    return parts
