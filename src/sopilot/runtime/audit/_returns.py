"""Judging a return: is there evidence, is it the right evidence, does it say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sopilot.language.diagnostics import Severity, SopilotError
from sopilot.language.program.model import Check, Kind
from sopilot.runtime.audit._audit_state import AuditState, CheckMade
from sopilot.runtime.audit._call_reading import moment_of
from sopilot.runtime.audit._evidence import (
    Cited,
    answers,
    cited_number,
    covered,
    gathered,
    is_admissible,
    named_answers,
)
from sopilot.runtime.audit._guarded_findings import disagree
from sopilot.runtime.audit._leaf_reading import grade_of
from sopilot.runtime.audit._moment import AuditGrade, Unreadable
from sopilot.runtime.audit._state import FrameView, ProcessView, SeenResult, has_withheld
from sopilot.runtime.vm.events import Event
from sopilot.runtime.vm.values import JSON

_BESIDE = ("evidence-wrong-call", "evidence-wrong-arguments")
"""What is about something else, and says nothing wrong where the right evidence is there too."""


@dataclass(slots=True)
class ReturnReview:
    """One return of a rule or gate, before the frame is closed."""

    run: AuditState
    event: Event
    process: ProcessView
    frame: FrameView
    holds: bool | None
    cited: Cited
    found: bool = False

    @property
    def predicate(self) -> str:
        return self.frame.code.function.judges

    def find(
        self, code: str, explanation: str, severity: Severity = Severity.ERROR, **details: Any
    ) -> None:
        self.found = True
        self.run.find(
            code,
            self.event,
            explanation,
            process=self.process,
            predicate=self.predicate,
            sentence=self.run.sentence_of(self.process, self.frame),
            severity=severity,
            **details,
        )

    def admits(self, result: SeenResult) -> bool:
        return is_admissible(self.process, self.frame, result)

    # --- the review ------------------------------------------------------------------

    def judge(self) -> None:
        seqs = set(self.cited.evidence)
        results = [r for r in self.process.results if r.seq in seqs]
        # What the frame gathered was at hand, whatever form the citation has.
        at_hand = seqs.union(r.seq for r in gathered(self.process, self.frame))
        admissible = [r for r in self.process.results if r.seq in at_hand and self.admits(r)]
        # A gate may stay shut on the user's word alone; asking is one of its steps.
        told = (
            self.frame.code.function.kind is Kind.GATE and not self.holds and self.frame.user_spoke
        )
        told = told or self._shut_as_wanted()
        needs = bool(self.frame.code.recipes)
        complete = covered(self.process, self.frame, admissible)
        failed = any(not r.ok for r in admissible)
        telling = [r for r in admissible if r.ok or isinstance(r.value, bool)]
        self._judge_citations(results, shown=complete or failed or told or not needs)
        if self.holds is None:
            needs = False  # undecided claims nothing, so nothing has to show it
        if needs and not admissible and not self.found and not told:
            self.find(
                "return-without-evidence",
                f"`{self.predicate}` was judged {_word(self.holds)} although no call that "
                "verifies it lies between the call and the return",
            )
        elif needs and admissible and self.holds and failed and not self._told_by(telling):
            self.find(
                "unproven-verdict",
                f"`{self.predicate}` was judged true although the calls that verify it failed",
                # Where no machine can judge, a failed look-up may be the answer.
                Severity.ERROR if self.frame.code.function.verdict else Severity.NOTE,
                evidence=[r.seq for r in admissible],
            )
        elif needs and admissible and not complete and not failed:
            self.find(
                "incomplete-evidence",
                f"`{self.predicate}` was judged {_word(self.holds)} before every call of a "
                "recipe was made",
                Severity.WARNING,
                evidence=[r.seq for r in admissible],
            )
        said, undecided = self._machine_verdict(admissible, telling)
        if undecided and self.holds:
            self.find(
                "unproven-verdict",
                f"`{self.predicate}` was judged true although its verdict cannot be told from "
                "what was answered",
                evidence=[r.seq for r in telling],
                verdict=self.frame.code.function.verdict or "",
            )
        if said is not None and self.holds is not None and said != self.holds:
            self.find(
                "evidence-contradicts-verdict",
                f"`{self.predicate}` was judged {_word(self.holds)}, its evidence says "
                f"{_word(said)}",
                evidence=[r.seq for r in admissible],
                verdict=self.frame.code.function.verdict or "",
            )
        self._note(needs=needs)

    def _note(self, *, needs: bool) -> None:
        grade = self._grade()
        self.run.checks.append(
            CheckMade(
                self.event.seq,
                self.process.id,
                self.event.frame,
                self.predicate,
                self.run.sentence_of(self.process, self.frame),
                self.holds,
                self.cited.evidence,
                needs,
                not needs or grade in (AuditGrade.PROVEN, AuditGrade.STATED, AuditGrade.ATTESTED),
                grade,
            )
        )

    def _shut_as_wanted(self) -> bool:
        """A gate that must be shut is not opened to find that out: the session shows it, as it
        shows what was done."""
        gate = self.frame.code.function.kind is Kind.GATE
        if self.frame.code.function.is_fact:
            return self._grade() == AuditGrade.PROVEN
        caller = self.process.frames[-2].step if len(self.process.frames) > 1 else None
        wanted_shut = isinstance(caller, Check) and not caller.wanted
        return gate and self.holds is False and wanted_shut and self._grade() == AuditGrade.PROVEN

    def _grade(self) -> str:
        """By the trace alone; as recorded where a value that it needs is withheld."""
        if self.holds is None:
            return ""
        recorded, found = self.event.payload.get("grade"), self.event.payload.get("arguments")
        try:
            shown = grade_of(
                moment_of(self.run, self.process, self.process.known),
                self.frame,
                self.holds,
                frozenset(self.cited.evidence),
                found if isinstance(found, Mapping) else {},
            )
        except Unreadable:
            return recorded if isinstance(recorded, str) else str(AuditGrade.CLAIMED)
        if recorded is not None and recorded != shown:
            what = f"the verdict on `{self.predicate}`"
            disagree(
                self.run, self.event, self.process, what, recorded, shown, predicate=self.predicate
            )
        return str(shown)

    def _judge_citations(self, results: Sequence[SeenResult], *, shown: bool) -> None:
        """``shown``: what verifies the rule is at hand, so that a further citation, of something
        that was only read, takes nothing away."""
        for one in self.cited.unresolved:
            number = cited_number(one)
            elsewhere = number is not None and any(
                number in (r.seq, r.call_seq) for r in self.run.results.values()
            )
            if elsewhere:
                self.find(
                    "evidence-outside-interval",
                    f"`{one}` is a result of another process",
                    cited=one,
                )
            else:
                self.find("evidence-unresolved", f"`{one}` is no result", cited=one)
        for hits in (self.cited.named or {}).values():
            named = [r for r in results if r.seq in hits]
            if named and not any(self._problem(r) is None for r in named):
                self._report(named[-1], shown=shown)
        for result in results:
            if result.seq in self.cited.exact:
                self._report(result, shown=shown)

    def _problem(self, result: SeenResult) -> tuple[str, str] | None:
        acts = self.frame.code.acts
        if not any(act.action == result.action for act in acts):
            return "evidence-wrong-call", f"of `{result.action}`, which verifies nothing here"
        if not any(answers(self.process, self.frame, act, result) for act in acts):
            return "evidence-wrong-arguments", f"of `{result.action}` about other values"
        taken_fresh = result.opened == self.frame.opened or result.seq in self.frame.borrowed
        if not taken_fresh and result.seq <= self.run.goal_seq:
            changed = f"from before a goal action changed the state (#{self.run.goal_seq})"
            return "evidence-stale", changed
        return None

    def _report(self, result: SeenResult, *, shown: bool) -> None:
        problem = self._problem(result)
        if problem is not None:
            code, why = problem
            harmless = shown and code in _BESIDE and self.run.only_reads(result.action)
            severity = Severity.NOTE if harmless else Severity.ERROR
            self.find(code, f"#{result.seq} is a result {why}", severity, evidence=[result.seq])

    def _told_by(self, telling: Sequence[SeenResult]) -> bool:
        """Whether the calls that answered suffice; a gate opens by one success."""
        if self.frame.code.function.kind is Kind.GATE and self.frame.code.function.verdict is None:
            return True  # its action's success is what the machine verdict goes by
        return covered(self.process, self.frame, telling)

    def _machine_verdict(
        self, admissible: Sequence[SeenResult], telling: Sequence[SeenResult]
    ) -> tuple[bool | None, bool]:
        """What the evidence says where a machine can tell, and whether it ought to and cannot."""
        function = self.frame.code.function
        if function.verdict is not None:
            return self._judged(function.verdict, telling)
        if function.kind is Kind.GATE and admissible:
            # A gate is open when the action that opens it succeeded, and not before.
            return any(result.ok for result in admissible), False
        return None, False

    def _judged(self, verdict: str, telling: Sequence[SeenResult]) -> tuple[bool | None, bool]:
        if self.run.judge is None or (self.frame.code.recipes and not telling):
            return None, False
        variables: dict[str, JSON] = {"now": self.run.clock} if self.run.clock else {}
        variables |= self.process.program.program.constants
        for name in self.frame.code.function.parameters:
            if name in self.frame.code.function.optional and name not in self.frame.values:
                variables[name] = None
                continue
            if name not in self.frame.values or has_withheld(self.frame.values[name]):
                return None, False
            variables[name] = self.frame.values[name]
        if any(has_withheld(result.value) for result in telling):
            return None, False
        variables["results"], variables["result"] = {}, None
        if self.frame.code.recipes:
            named = named_answers(self.process, self.frame, telling)
            if named is None:
                return None, False  # part of a recipe's results is a finding of its own
            variables["results"], variables["result"] = named
        try:
            said = self.run.judge(verdict, variables)
        except SopilotError:
            said = None
        # Part of a recipe's results is a finding of its own.
        complete = not self.frame.code.recipes or covered(self.process, self.frame, telling)
        return said, said is None and complete


def _word(holds: bool | None) -> str:
    return "undecided" if holds is None else "true" if holds else "false"
