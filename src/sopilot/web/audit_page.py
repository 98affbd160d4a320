"""The page of an audit: verdict, facts, findings, checks, and one card per call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from sopilot.audit.findings import Finding
from sopilot.audit.report import Report, counted_checks
from sopilot.audit.text import (
    COMMAS,
    cause_lines,
    decision_words,
    is_as_required,
    label,
    mark,
    number_of,
    outcome_words,
    seal_words,
    speak,
)
from sopilot.audit.timeline import (
    About,
    Seal,
    about_session,
    entries_of,
    entries_of_transcript,
    pairs,
    place_in_words,
    proof_of,
    rows_of,
)
from sopilot.audit.transcript_files import Transcript
from sopilot.trace.events import Event
from sopilot.values.text import moment
from sopilot.web.pages import render


def render_audit(
    report: Report,
    events: Sequence[Event] = (),
    *,
    transcript: Transcript | None = None,
    seal: Seal | None = None,
    stored: bool = False,
    name: str = "",
    language: str = "en",
) -> str:
    about = about_session(events)
    entries = entries_of(events, report.proofs)
    entries += entries_of_transcript(transcript) if transcript is not None else []
    overridden = {override.seq for override in report.overrides}
    for entry in entries:
        if entry.state == "carried_out" and entry.seq in overridden:
            entry.state = "overridden"
    rows = rows_of(events)
    by_event: dict[int, list[Finding]] = {}
    for finding in report.findings:
        by_event.setdefault(finding.seq, []).append(finding)
    return render(
        "audit.html",
        language=language,
        title=label(language, "audit_of", name=name or report.score_card.session_id or "–"),
        verdict=_verdict(report, language),
        facts=_facts(report, about, seal if stored else None, language, stored=stored),
        tiles=_tiles(report, language) if report.unjudged is None else [],
        report=report,
        entries=entries,
        rows=rows,
        by_event=by_event,
        carded={seq for entry in entries for seq in entry.events},
        known={row.seq for row in rows} | {seq for entry in entries for seq in entry.events},
        say=partial(label, language),
        speak=partial(speak, language),
        cause_lines=lambda cause: list(cause_lines(cause, language)),
        decision=lambda item: decision_words(item, language),
        mark=mark,
        proof=lambda entry: proof_of(entry, report.proofs),
        pairs=pairs,
        moment=moment,
        place=place_in_words,
    )


def _verdict(report: Report, language: str) -> tuple[str, str]:
    say = partial(label, language)
    count = len(report.overrides)
    overrides = [number_of(language, "overrides", count)] if count else []
    if report.clean is False:
        tone = "bad" if report.score_card.errors else "warn"
        parts = [number_of(language, "findings", len(report.findings)), *overrides]
        if report.not_judged:
            parts.append(say("not_judged_n", n=len(report.not_judged)))
        return COMMAS[language].join(parts), tone
    if report.unjudged is not None:
        return say("unjudged_line", why=say(report.unjudged.reason)), ""
    if report.clean is None:
        unjudged = say("only_result_unjudged", n=len(report.not_judged))
        return COMMAS[language].join([*overrides, unjudged]), "warn" if overrides else ""
    if overrides:
        return say("overrides_else", overrides=overrides[0]), "warn"
    if report.score_card.outcome == "waiting":
        return say("waits_clean"), ""
    return say("clean"), "good"


def _facts(
    report: Report, about: About, seal: Seal | None, language: str, *, stored: bool
) -> list[tuple[str, str]]:
    say = partial(label, language)
    times = [moment(at) for at in (about.begin, about.end) if at]
    facts = {
        "Session": report.score_card.session_id or "",
        "Time": say("opened_to", begin=times[0], end=times[1]) if len(times) == 2 else "",
        "Handbook": about.handbook,
        "Program": ", ".join(about.programs),
        "Requester": about.requester,
        "Model": about.model,
        "View": about.view,
        "Seal": seal_words(about, seal, language) if stored else "",
    }
    return [(say(name), value) for name, value in facts.items() if value]


def _tiles(report: Report, language: str) -> list[tuple[str, object, str]]:
    say, card = partial(label, language), report.score_card
    as_required, outcome = is_as_required(report), outcome_words(card, language)
    words = {
        True: say("as_required", outcome=outcome),
        False: say("against", outcome=outcome),
        None: outcome,
    }
    tones = {True: "good", False: "bad", None: "warn" if report.overrides else ""}
    checks = counted_checks(report.checks, report.proofs)
    marks = Counter(mark(check) for check in checks)
    shares = say("met_of", met=marks["✓"], unmet=marks["✗"])
    if marks["?"]:
        shares = COMMAS[language].join([shares, say("not_shown", n=marks["?"])])
    needing, coverage = card.checks_needing_evidence, card.evidence_coverage
    evidence = say("n_of_needed", n=card.checks_with_evidence, needed=needing)
    shown = say("none_needed") if coverage is None else evidence
    tone = "bad" if coverage is not None and coverage < 1 else ""
    chains = {True: ("chain_true", "good"), False: ("chain_false", "bad")}
    chain = [chains[card.chain]] if card.chain is not None else []
    return [
        (say("Outcome"), words[as_required], tones[as_required]),
        *([(say("Checks"), shares, "")] if checks else []),
        *([(say("Evidence"), shown, tone)] if card.checks or not report.proofs else []),
        (say("Calls"), card.calls, ""),
        *((say("Chain"), say(code), tone) for code, tone in chain),
    ]
