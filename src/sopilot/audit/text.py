"""A report for a terminal, in English or Chinese."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sopilot.audit.findings import Finding
from sopilot.audit.report import (
    ABANDONED,
    COMPLETED,
    REFUSED,
    BatchCard,
    Decided,
    Report,
    ScoreCard,
)
from sopilot.audit.state import CheckMade, RefusedGoal
from sopilot.audit.timeline import About, Entry, Seal, pairs, place_in_words, proof_of
from sopilot.handbook.grammar import in_language
from sopilot.machine.state import ProofLevel
from sopilot.messages.audit import LABELS, TITLES
from sopilot.messages.catalogue import worded
from sopilot.values.text import CodedText, moment, visible


def label(language: str, code: str, **fields: object) -> str:
    """The report's words for a code; a code without any stands for itself."""
    pair = LABELS.get(code) or TITLES.get(code)
    return pair[language == "zh"].format(**fields) if pair is not None else code


def speak(language: str, text: str) -> str:
    """A message or a sentence of the handbook in this language, if it has it."""
    spoken = in_language(text, language)
    return worded(spoken, language) if isinstance(spoken, CodedText) else spoken


def number_of(language: str, code: str, count: int) -> str:
    return label(language, f"{code}_{'1' if count == 1 else 'n'}", n=count)


def mark(check: CheckMade) -> str:
    """Against the requirement: met, not met, or not shown. A claim shows nothing."""
    if check.holds is None or (check.grade == ProofLevel.CLAIMED and check.needs_evidence):
        return "?"
    return "✓" if check.met else "✗"


def verdict_words(report: Report, language: str = "en") -> str:
    """The verdict in a few words, for the first line of every form of the report."""
    say = partial(label, language)
    outcome, count = report.score_card.outcome, len(report.findings)
    parts = [] if report.unjudged is not None else [outcome_words(report.score_card, language)]
    if count:
        parts.append(number_of(language, "findings", count))
    if report.unjudged is not None:
        parts.append(say("unjudged", why=_reason(language, str(report.unjudged.reason), report)))
    elif report.not_judged:
        parts.append(say("not_judged_n", n=len(report.not_judged)))
    elif not count:
        parts.append(say("no_findings_yet" if outcome == "waiting" else "no_findings"))
    if report.overrides:
        parts.append(number_of(language, "overrides", len(report.overrides)))
    return COMMAS[language].join(parts)


def outcome_words(card: ScoreCard, language: str = "en") -> str:
    """The outcome; of requests that ended differently, how many ended how."""
    ended = Counter(card.processes.values())
    if len(ended) < 2:
        return label(language, card.outcome)
    named = {label(language, outcome): number for outcome, number in ended.items()}
    if language == "zh":
        return COMMAS[language].join(f"{name} {number}" for name, number in named.items())
    return COMMAS[language].join(f"{number} {name}" for name, number in named.items())


COMMAS = {"en": ", ", "zh": "，"}
SEMICOLONS = {"en": "; ", "zh": "；"}


def _reason(language: str, reason: str, report: Report) -> str:
    explanation = report.unjudged.explanation if report.unjudged is not None else ""
    words = label(language, reason)
    return f"{words}: {speak(language, explanation)}" if explanation else words


def is_as_required(report: Report) -> bool | None:
    """Whether the outcome is the one that the requirements ask for; ``None``: not known."""
    outcome = report.score_card.outcome
    if report.unjudged is not None or outcome not in (COMPLETED, REFUSED, ABANDONED):
        return None
    if report.score_card.errors:
        return False
    known = outcome != ABANDONED and not report.not_judged and not report.overrides
    return True if known else None


def about_lines(
    about: About | None, seal: Seal | None, language: str, *, stored: bool = False
) -> Iterator[str]:
    """``stored``: the session is in a store, where seals are."""
    say = partial(label, language)
    if about is None or not about.events:
        return
    if about.begin and about.end:
        yield say("opened_to", begin=moment(about.begin), end=moment(about.end))
    if about.handbook or about.programs:
        programs = ", ".join(about.programs) or "–"
        yield say("by_handbook", handbook=about.handbook or "–", programs=programs)
    if about.requester:
        yield say("requested_by", requester=about.requester)
    if stored:
        yield seal_words(about, seal, language)


def seal_words(about: About, seal: Seal | None, language: str) -> str:
    if seal is None:
        return label(language, "not_sealed")
    code = "sealed" if seal.seq >= about.events - 1 else "sealed_part"
    return label(language, code, at=moment(seal.at), n=about.events, seq=seal.seq)


def render_text(
    report: Report,
    language: str = "en",
    about: Sequence[str] = (),
    entries: Sequence[Entry] = (),
) -> str:
    """``entries`` name the guarded calls and what became of them."""
    return "\n".join(map(visible, _lines(report, language, about, entries)))


def _lines(
    report: Report, language: str, about: Sequence[str], entries: Sequence[Entry]
) -> Iterator[str]:
    say, card = partial(label, language), report.score_card
    name = say("session", id=card.session_id) if card.session_id else say("audit")
    chain = {None: (), True: (say("chain_ok"),), False: (say("chain_broken"),)}[card.chain]
    verdict = COMMAS[language].join((verdict_words(report, language), *chain))
    yield say("first_line", name=name, verdict=verdict)
    yield from (f"    {line}" for line in about)
    if report.verdict_of:
        yield say("verdict_of", whom=report.verdict_of)
    for missing in report.not_judged:
        yield ""
        where = f"#{missing.seq} " if missing.seq is not None else ""
        yield where + say("unjudged_line", why=say(missing.reason))
        yield from _indented(speak(language, missing.explanation))
    for override in report.overrides:
        yield ""
        by = ", ".join(override.by) or say("nobody_on_record")
        yield f"#{override.seq} " + say("override_line", action=override.action, by=by)
        yield from _indented(*(speak(language, why) for why in override.unproven))
    for finding in report.findings:
        yield ""
        yield from _finding(finding, language)
    for refusal in report.refusals:
        yield ""
        yield from refusal_lines(refusal, language)
    if report.checks:
        yield ""
        yield say("checked")
        yield from (f"    {check_line(check, language)}" for check in report.checks)
    for heading, checks in () if report.checks else _proofs(report, language, entries):
        yield ""
        yield heading
        yield from (f"    {check_line(check, language)}" for check in checks)
    yield from (f"    {decision_words(item, language)}" for item in report.decisions)
    if report.unguarded:
        yield ""
        yield say("unguarded", actions=", ".join(report.unguarded))
    if report.unjudged is None:
        yield ""
        yield from _card(card, language, by_call=bool(report.proofs))


def _proofs(
    report: Report, language: str, entries: Sequence[Entry]
) -> Iterator[tuple[str, Sequence[CheckMade]]]:
    """Each guarded call with its requirements."""
    for entry in entries:
        if checks := proof_of(entry, report.proofs):
            values = ", ".join(f"{name}: {value}" for name, value in pairs(entry.arguments))
            name = f"#{entry.seq} {entry.title}({values})"
            verdict = label(language, entry.state)
            yield label(language, "first_line", name=name, verdict=verdict), checks
    if not entries:
        for seq, checks in report.proofs.items():
            yield label(language, "proof_of", seq=seq), checks


def _indented(*lines: str) -> Iterator[str]:
    return (f"    {line}" for line in lines if line)


def _finding(finding: Finding, language: str) -> Iterator[str]:
    say = partial(label, language)
    title = say(finding.code).lower()
    name = f"#{finding.seq} {say(finding.severity)} {finding.code}"
    yield say("first_line", name=name, verdict=title)
    sentence = speak(language, finding.sentence)
    yield from _indented(
        speak(language, finding.explanation),
        say("sop_says", sentence=sentence) if sentence else "",
        say("at_place", place=place_in_words(finding.frame)) if finding.frame else "",
    )


def refusal_lines(refusal: RefusedGoal, language: str) -> Iterator[str]:
    say = partial(label, language)
    yield say("refused_line", goal=refusal.goal, seq=refusal.seq)
    yield from _indented(
        say("reason", text=refusal.reason) if refusal.reason else "",
        say("not_possible", why=speak(language, refusal.obstacle)) if refusal.obstacle else "",
    )
    for cause in refusal.causes:
        yield from _indented(*cause_lines(cause, language))
    yield from _indented(say("follows", text=refusal.follows) if refusal.follows else "")


def cause_lines(cause: Mapping[str, Any], language: str) -> Iterator[str]:
    """The requirement that ruled a goal out, with the outcome, its evidence and the remedy."""
    say = partial(label, language)
    texts = {name: speak(language, cause.get(name) or "") for name in _CAUSE_TEXTS}
    cited = _cited(cause["evidence"], language)
    yield "✗ " + say("required", sentence=texts["sentence"] or str(cause["predicate"]))
    yield say("outcome_was", sentence=texts["found"] or say("otherwise")) + cited
    if texts["customer_message"]:
        yield say("customer_hears", text=texts["customer_message"])
    if texts["remedy"]:
        yield say("remedy", text=texts["remedy"])


_CAUSE_TEXTS = ("sentence", "found", "customer_message", "remedy")


def _cited(seqs: Sequence[object], language: str) -> str:
    events = ", ".join(f"#{seq}" for seq in seqs)
    cited = label(language, "evidence_of", events=events)
    return label(language, "in_brackets", text=cited) if events else ""


def check_line(check: CheckMade, language: str) -> str:
    parts = [label(language, check.grade)] if check.grade else []
    events = ", ".join(f"#{seq}" for seq in check.evidence)
    parts += [label(language, "evidence_of", events=events)] if events else []
    words = speak(language, check.sentence) or check.predicate
    shown = label(language, "in_brackets", text=SEMICOLONS[language].join(parts)) if parts else ""
    return f"{mark(check)} {words}{shown}"


def decision_words(item: Decided, language: str) -> str:
    words = label(language, "amend_decision" if item.decision == "amend" else item.decision)
    if item.decision != "expire":  # the runtime lets a request expire, not a person
        code = "decided_as" if item.role else "decided_by"
        words = label(language, code, decision=words, by=item.by, role=item.role)
        words += label(language, "in_brackets", text=label(language, item.identity))
    return words + (label(language, "because", text=item.reason) if item.reason else "")


def _card(card: ScoreCard, language: str, *, by_call: bool) -> Iterator[str]:
    """``by_call``: requirements were judged at the guarded calls, and are listed there."""
    say, needing = partial(label, language), card.checks_needing_evidence
    evidence = say("evidence_for", covered=card.checks_with_evidence, needing=needing)
    if card.checks or not by_call:
        yield say(
            "card_checks",
            n=card.checks,
            grades=say("in_brackets", text=_counts(card.grades, language)) if card.grades else "",
            evidence=evidence if needing else say("no_evidence_needed"),
            reused=card.reused,
            rejected=card.rejected,
        )
    yield say("card_calls", n=card.calls, after=card.calls_after_goal)
    if card.counts:
        counts = ", ".join(f"{code} {count}" for code, count in card.counts.items())
        yield say("card_findings", counts=counts)


def _counts(counts: Mapping[str, int], language: str) -> str:
    listed = (f"{label(language, name)} {count}" for name, count in counts.items())
    return COMMAS[language].join(listed)


def render_batch_text(batch: BatchCard, language: str = "en") -> str:
    say, share = partial(label, language), batch.evidence_coverage
    covered = say("not_needed") if share is None else f"{100 * share:.0f} %"
    lines = [
        say("batch", sessions=batch.sessions, clean=batch.clean),
        *([say("batch_overrides", n=batch.overrides)] if batch.overrides else []),
        *(say("batch_unjudged", n=n, why=say(reason)) for reason, n in batch.not_judged.items()),
        say("batch_outcomes", counts=_counts(batch.outcomes, language) or say("none")),
        say("batch_coverage", share=covered),
        say("batch_grades", counts=_counts(batch.grades, language) or say("none")),
        say("batch_after", n=batch.calls_after_goal, calls=batch.calls),
        *([say("batch_broken", n=batch.chains_broken)] if batch.chains_broken else []),
    ]
    for code, count in batch.counts.items():
        lines.append(f"  {count:>5}  " + say("batch_code", name=code, n=batch.sessions_with[code]))
    return "\n".join(lines)
