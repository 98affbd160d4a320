"""Judge returns: is there evidence, is it the right evidence, does it say so."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sopilot.audit.guarded_calls import disagree
from sopilot.audit.leaf_reading import Moment, RecipeAnswers, Unreadable, grade_of, opens
from sopilot.audit.state import (
    AuditState,
    CheckMade,
    Judged,
    ProcessView,
    UnmetCheck,
    actual_sentence,
    covered,
    filled_sentence,
    step_of,
)
from sopilot.handbook.wording import fill
from sopilot.machine.evidence import Citation, admissible, bind_evidence, fits_result, frame_answers
from sopilot.machine.layout import Position
from sopilot.machine.replay import Step
from sopilot.machine.state import NEVER, Bound, CallRecord, ProofLevel
from sopilot.messages.catalogue import sentence
from sopilot.messages.diagnostic import Severity
from sopilot.program.model import Check, Function, Kind
from sopilot.program.walk import passed_values
from sopilot.trace.events import Event
from sopilot.values.json import JSON

_BESIDE = ("evidence-wrong-call", "evidence-wrong-arguments")
"""Evidence about something else: harmless where the right evidence is there too."""


_LONGEST_NUMBER = 12
"""Digits of a citation by number."""


@dataclass
class ReturnReview:
    """One return of a rule or gate, before the frame is closed."""

    run: AuditState
    event: Event
    process: ProcessView
    here: Position
    holds: bool | None
    citations: Sequence[str]
    cited: Citation
    has_finding: bool = False

    @property
    def function(self) -> Function:
        return self.here.layout.function

    @property
    def predicate(self) -> str:
        return self.function.judges

    @property
    def wanted(self) -> bool:
        """The outcome that the caller requires."""
        frames = self.here.process.frames
        caller = step_of(self.here.program, frames[-2]) if len(frames) > 1 else None
        return caller.wanted if isinstance(caller, Check) else True

    def find(
        self, code: str, explanation: str, severity: Severity = Severity.ERROR, **details: Any
    ) -> None:
        self.has_finding = True
        self.run.find(
            code,
            self.event,
            explanation,
            process=self.process,
            predicate=self.predicate,
            sentence=self.run.sentence_of(self.here),
            severity=severity,
            **details,
        )

    def judge(self) -> None:
        admitted = self._admitted()
        excused = self._stays_shut()
        needs = bool(self.here.layout.recipes)
        complete = covered(self.here, admitted)
        failed = any(not r.ok for r in admitted)
        telling = [r for r in admitted if r.ok or isinstance(r.value, bool)]
        self._judge_citations(shown=complete or failed or excused or not needs)
        if self.holds is None:
            needs = False  # undecided claims nothing, so nothing has to show it
        if needs and not admitted and not complete and not self.has_finding and not excused:
            self.find(
                "return-without-evidence",
                sentence("audit.no-evidence", predicate=self.predicate, verdict=_word(self.holds)),
            )
        elif needs and admitted and self.holds and failed and not self._told_by(telling):
            self.find(
                "unproven-verdict",
                sentence("audit.verifiers-failed", predicate=self.predicate),
                # Where no machine can judge, a failed look-up may be the answer.
                Severity.ERROR if self.function.verdict else Severity.NOTE,
                evidence=[r.seq for r in admitted],
            )
        elif needs and admitted and not complete and not failed:
            self.find(
                "incomplete-evidence",
                sentence(
                    "audit.part-of-recipe", predicate=self.predicate, verdict=_word(self.holds)
                ),
                Severity.WARNING,
                evidence=[r.seq for r in admitted],
            )
        judged, undecided = self._machine_verdict(admitted, telling)
        if undecided and self.holds:
            self.find(
                "unproven-verdict",
                sentence("audit.verdict-untold", predicate=self.predicate),
                evidence=[r.seq for r in telling],
                verdict=self.function.verdict or "",
            )
        if judged is not None and self.holds is not None and judged != self.holds:
            self.find(
                "evidence-contradicts-verdict",
                sentence(
                    "audit.evidence-says",
                    predicate=self.predicate,
                    verdict=_word(self.holds),
                    other=_word(judged),
                ),
                evidence=[r.seq for r in admitted],
                verdict=self.function.verdict or "",
            )
        if self.holds is not None and not self.grade:
            needs = False  # not judged, so neither covered nor uncovered
        proven = (ProofLevel.PROVEN, ProofLevel.STATED, ProofLevel.ATTESTED)
        self.run.checks.append(
            CheckMade(
                self.event.seq,
                self.process.id,
                self.event.frame,
                self.predicate,
                self.run.sentence_of(self.here, wanted=self.wanted),
                self.holds,
                self.cited.evidence,
                needs,
                not needs or self.grade in proven,
                self.grade,
                self.wanted,
            )
        )

    def _admitted(self) -> list[CallRecord]:
        """The results that count here: the cited ones, and all that the frame gathered, whatever
        form the citation has."""
        frame = self.here.frame
        at_hand = {*self.cited.evidence, *frame.borrowed}
        return [
            result
            for result in self.here.process.results
            if (result.seq in at_hand or result.opened == frame.opened)
            and admissible(self.here, result)
        ]

    def _stays_shut(self) -> bool:
        """Whether a gate needs no call here. It may stay shut on the user's word alone, because
        asking is one of its steps. A gate that must be shut is not opened to find that out: the
        session shows it, as it shows what was done."""
        if self.function.kind is not Kind.GATE:
            return False
        if not self.holds and self.here.frame.opened in self.process.spoken_in:
            return True
        shown = self.function.is_fact or (self.holds is False and not self.wanted)
        return shown and self.grade == ProofLevel.PROVEN

    @cached_property
    def grade(self) -> str:
        """The verdict's proof level by the trace alone; empty where a value that it needs is
        withheld."""
        if self.holds is None:
            return ""
        recorded, result = self.event.payload.get("grade"), self.event.payload.get("arguments")
        try:
            shown = grade_of(
                Moment(self.run, self.process, self.here.process.known),
                self.here,
                self.holds,
                frozenset(self.cited.evidence),
                result if isinstance(result, Mapping) else {},
            )
        except Unreadable as why:
            explanation = sentence("audit.verdict-rests", predicate=self.predicate)
            self.run.leave_unjudged(self.event, explanation, reason=why.reason)
            return ""
        if recorded is not None and recorded != shown:
            what = sentence("audit.the-verdict", predicate=self.predicate)
            disagree(
                self.run, self.event, self.process, what, recorded, shown, predicate=self.predicate
            )
        return str(shown)

    def _judge_citations(self, *, shown: bool) -> None:
        """``shown``: what verifies the rule is at hand, so that a further citation, of something
        that was only read, takes nothing away."""
        exact: set[int] = set() if self.citations else set(self.cited.evidence)
        for citation in self.citations:
            hits = bind_evidence(self.here, [citation]).evidence
            number = citation.strip().removeprefix("#")
            by_number = number.isascii() and number.isdigit() and len(number) <= _LONGEST_NUMBER
            if not hits:
                self._judge_unresolved(citation, int(number) if by_number else None)
            elif by_number:
                exact.update(hits)
            else:
                named = self._results(hits)
                if not any(self._problem(r) is None for r in named):
                    self._report(named[-1], shown=shown)
        for result in self._results(exact):
            self._report(result, shown=shown)

    def _results(self, seqs: Collection[int]) -> list[CallRecord]:
        return [result for result in self.here.process.results if result.seq in seqs]

    def _judge_unresolved(self, cited: str, number: int | None) -> None:
        calls = self.run.session_calls
        if number is not None and any(
            not call.awaited and number in (call.seq, call.answered) for call in calls
        ):
            why = sentence("audit.other-process", cited=cited)
            self.find("evidence-outside-interval", why, cited=cited)
        else:
            why = sentence("audit.no-such-result", cited=cited)
            self.find("evidence-unresolved", why, cited=cited)

    def _problem(self, result: CallRecord) -> tuple[str, str] | None:
        acts, frame = self.here.layout.recipe_acts, self.here.frame
        seq, action = result.seq, result.action
        if not any(act.action == result.action for act in acts):
            return "evidence-wrong-call", sentence(
                "audit.result-wrong-call", seq=seq, action=action
            )
        if not any(fits_result(self.here, act, result) for act in acts):
            why = sentence("audit.result-other-values", seq=seq, action=action)
            return "evidence-wrong-arguments", why
        taken_fresh = result.opened == frame.opened or result.seq in frame.borrowed
        changed = self.here.configuration.goal_seq
        if not taken_fresh and result.seq <= changed:
            why = sentence("audit.result-stale", seq=result.seq, changed=changed)
            return "evidence-stale", why
        return None

    def _report(self, result: CallRecord, *, shown: bool) -> None:
        problem = self._problem(result)
        if problem is not None:
            code, why = problem
            harmless = shown and code in _BESIDE and self.run.only_reads(result.action)
            severity = Severity.NOTE if harmless else Severity.ERROR
            self.find(code, why, severity, evidence=[result.seq])

    def _told_by(self, telling: Sequence[CallRecord]) -> bool:
        """Whether the calls that answered suffice; a gate opens by one success."""
        if self.function.kind is Kind.GATE and self.function.verdict is None:
            return True
        return covered(self.here, telling)

    def _machine_verdict(
        self, admitted: Sequence[CallRecord], telling: Sequence[CallRecord]
    ) -> tuple[bool | None, bool]:
        """The machine's verdict on the evidence, and whether it can't give one although all the
        evidence is there."""
        function = self.function
        if function.verdict is not None:
            return self._judged(telling)
        if function.kind is Kind.GATE and admitted:
            # A gate is open when the action that opens it succeeded, and not before. The newest
            # answer says so, as for the guard.
            answers = [result.value for result in admitted if result.ok]
            if not answers:
                return False, False
            try:
                opened = opens(function, answers[-1])
            except Unreadable:
                return None, False
            return opened or None, not opened
        return None, False

    def _judged(self, telling: Sequence[CallRecord]) -> tuple[bool | None, bool]:
        layout, have = self.here.layout, self.here.frame.locals
        values = {name: have[name] for name in self.function.parameters if name in have}
        lacking = set(self.function.parameters) - values.keys() - set(self.function.optional)
        if lacking or (layout.recipes and not telling):
            return None, False
        answers = frame_answers(self.here, telling) if layout.recipes else ({}, None)
        if answers is None:
            return None, False  # part of a recipe's results is a finding of its own
        moment = Moment(self.run, self.process, self.here.process.known)
        try:
            judged = moment.evidence(layout, values).verdict(RecipeAnswers(*answers, ()))
        except Unreadable:
            return None, False
        complete = not layout.recipes or covered(self.here, telling)
        return judged, judged is None and complete


def _word(holds: bool | None) -> str:
    return "undecided" if holds is None else "true" if holds else "false"


def judge_direct(event: Event, process: ProcessView) -> None:
    """A model's judgement outside of a frame; the guarded call that rests on it is judged."""
    payload = event.payload
    evidence = tuple(seq for seq in payload["evidence"] if isinstance(seq, int))
    process.judged.append(
        Judged(
            payload["function"], payload["arguments"], payload["holds"], evidence, event.seq, NEVER
        )
    )


def judge_return(run: AuditState, step: Step, process: ProcessView, here: Position) -> None:
    """A return of a rule, gate or group that the program makes there."""
    assert step.made is not None
    event, made, frame = step.event, step.made.payload, here.frame
    bound = step.after.processes[process.id].frames[-1].slots[made["slot"]]
    if not here.layout.soft:
        return
    citations = made["evidence"]
    cited = bind_evidence(here, citations)
    ReturnReview(run, event, process, here, bound.holds, citations, cited).judge()
    values = {**frame.locals, **made["learned"]}
    own = {name: values[name] for name in here.layout.parameters if name in values}
    process.judged.append(
        Judged(frame.function, own, bound.holds, bound.evidence, event.seq, frame.opened)
    )
    caller = step_of(here.program, here.process.frames[-2])
    if isinstance(caller, Check) and bound.holds != caller.wanted:
        process.unmet.append(_unmet(here, here.layout.function, caller, values, bound))


def judge_reuse(run: AuditState, step: Step, process: ProcessView, here: Position) -> None:
    """An earlier verdict or result of the process that the machine takes over."""
    run.reused += 1
    check = here.step
    if not isinstance(check, Check):
        return
    bound = step.after.processes[process.id].frames[-1].slots[check.slot]
    layout = here.program.functions[check.function]
    known_already = any(item.producer == bound.producer for item in process.unmet)
    if layout.soft and bound.holds != check.wanted and not known_already:
        known = {**here.process.known, **here.frame.locals}
        values = passed_values(check.arguments, known, known)
        process.unmet.append(_unmet(here, layout.function, check, values, bound))


def _unmet(
    here: Position, function: Function, check: Check, values: Mapping[str, JSON], bound: Bound
) -> UnmetCheck:
    constants = here.source.constants
    return UnmetCheck(
        function.judges,
        filled_sentence(function, constants, values, wanted=check.wanted) or check.says,
        actual_sentence(function, constants, values, holds=bound.holds),
        function.remedy,
        fill(function.customer_message, constants),
        bound.holds,
        bound.evidence,
        bound.producer,
    )
