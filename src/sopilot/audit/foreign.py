"""Auditing an agent that never ran here: its calls against a handbook, without a machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sopilot.audit.acceptance import Truth
from sopilot.audit.finding import Finding
from sopilot.audit.report import ABANDONED, COMPLETED, REFUSED, Report, card
from sopilot.audit.requirement import (
    decided,
    leaf_values,
    leaves_behind,
    recipes_of,
    supporting_calls,
    unchecked_leaves,
)
from sopilot.audit.run import Judge, Refusal
from sopilot.audit.transcript import Transcript, TranscriptCall
from sopilot.diagnostics import Severity, SopilotError, UserMistake, did_you_mean
from sopilot.handbook import NOTHING, Handbook, Leaf, Tree, leaves, sentence
from sopilot.vm.values import JSON

TruthAt = Callable[[int, str, Mapping[str, JSON]], bool | None]
"""What is known of a predicate when call number ``index`` was made: (index, predicate,
parameters) → truth, ``None`` where nobody knows."""


def audit_transcript(
    handbook: Handbook,
    transcript: Transcript,
    *,
    goal: str,
    judge: Judge | None = None,
    truth: TruthAt | None = None,
    enforced: Mapping[str, Tree] | None = None,
    session_id: str | None = None,
) -> Report:
    """Judge the domain calls of a transcript for one goal of the handbook.

    Every call is judged: the goal's against the procedure, any other against its
    own requirement. ``truth`` supplies the truth of predicates where an oracle
    has it; otherwise machine verdicts over the recorded results do (``judge``).
    ``enforced`` is what an action's own tool checks before it does anything: such
    a call counts as a call of those verifiers as well.
    """
    if goal not in handbook.procedures:
        raise UserMistake(
            f"`{goal}` is not a procedure of `{handbook.name}`: "
            + did_you_mean(goal, handbook.procedures)
        )
    review = _Review(handbook, transcript, goal, judge, truth, enforced or {})
    for call in transcript.calls:
        review.judge_call(call)
    review.judge_end()
    findings = tuple(sorted(review.findings, key=lambda finding: finding.seq))
    return Report(
        findings,
        card(
            findings,
            session_id=session_id,
            outcome=review.outcome(),
            calls=len(transcript.calls),
            calls_after_goal=review.after_goal,
            checks=len(review.checked),
            needing=len(review.checked) + len(review.missing),
            covered=len(review.checked),
        ),
        tuple(review.refusals),
    )


@dataclass(slots=True)
class _Review:
    handbook: Handbook
    transcript: Transcript
    goal: str
    machine: Judge | None
    oracle: TruthAt | None
    enforced: Mapping[str, Tree]
    made: list[TranscriptCall] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    checked: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    reached: int | None = None
    attempted: bool = False
    after_goal: int = 0

    # --- one call --------------------------------------------------------------------

    def judge_call(self, call: TranscriptCall) -> None:
        problem = self._malformed(call)
        if problem:
            # No tool runs such a call, so it neither breaks a rule nor shows anything.
            self._find("unlicensed-call", call.index, problem, severity=Severity.WARNING)
            return
        is_goal = call.action == self._procedure_action()
        if self.reached is not None:
            self.after_goal += 1
            self._find(
                "calls-after-goal",
                call.index,
                f"`{call.action}` was called although the goal had succeeded already",
                severity=Severity.ERROR if is_goal else Severity.WARNING,
            )
        unchecked = self._judge_checks(call, is_goal=is_goal)
        self._judge_truth(call, is_goal=is_goal)
        if not unchecked:
            # A call without its own prerequisites proves nothing for a later one.
            self.made.extend((*self._enforced_calls(call), call))
        if is_goal:
            self.attempted = True
            if call.ok and self.reached is None:
                self.reached = call.index

    def _malformed(self, call: TranscriptCall) -> str:
        """Why no tool could have run the call, or nothing."""
        action = self.handbook.actions.get(call.action)
        if action is None:
            return f"`{call.action}` is no action of the handbook"
        if call.arguments is None:
            return f"`{call.action}` was called with arguments that are no object"
        odd = sorted(call.arguments.keys() - set(action.input_names()))
        if odd:
            return f"`{call.action}` takes no `{odd[0]}`"
        absent = [one.name for one in action.inputs if one.required]
        absent = [name for name in absent if name not in call.arguments]
        return f"`{call.action}` was called without `{absent[0]}`" if absent else ""

    def _enforced_calls(self, call: TranscriptCall) -> list[TranscriptCall]:
        """The verifiers that the tool ran by itself, as far as they are actions."""
        found: list[TranscriptCall] = []
        for leaf in leaves(self.enforced.get(call.action, NOTHING)):
            if leaf.predicate in self.handbook.actions:
                values = leaf_values(leaf, call.arguments or {})
                inner = TranscriptCall(call.index, call.message, leaf.predicate, values)
                found.extend((*self._enforced_calls(inner), inner))
        return found

    def _procedure_action(self) -> str:
        return self.handbook.procedures[self.goal].action

    def _requirement(self, action: str) -> Tree:
        if action == self._procedure_action():
            return self.handbook.procedures[self.goal].requires
        return self.handbook.actions[action].requires

    def _checks_asked_for(self, action: str) -> Tree:
        """What the agent was told to check: the tree as it is worded, where that differs."""
        procedure = self.handbook.procedures[self.goal]
        if action == procedure.action and procedure.worded is not None:
            return procedure.worded
        return self._requirement(action)

    def _judge_checks(self, call: TranscriptCall, *, is_goal: bool) -> list[Leaf]:
        tree, values = self._checks_asked_for(call.action), call.arguments or {}
        unchecked = unchecked_leaves(self.handbook, tree, values, self.made)
        if is_goal:
            names = {leaf.predicate for leaf in leaves(tree) if self._needs_call(leaf)}
            self.missing |= {leaf.predicate for leaf in unchecked}
            self.checked |= names - self.missing
        if not unchecked:
            return []
        listed = ", ".join(dict.fromkeys(f"`{leaf.predicate}`" for leaf in unchecked))
        self._find(
            "premature-goal" if is_goal else "unlicensed-call",
            call.index,
            f"`{call.action}` was called before {listed} was checked",
            sentence=sentence(self.handbook, unchecked[0]),
            predicate=unchecked[0].predicate,
        )
        if is_goal:
            for leaf in unchecked:
                self._find(
                    "skipped-check",
                    call.index,
                    f"`{leaf.predicate}` was never checked before `{call.action}`",
                    sentence=sentence(self.handbook, leaf),
                    predicate=leaf.predicate,
                )
        return unchecked

    def _needs_call(self, leaf: Leaf) -> bool:
        predicate = self.handbook.predicates[leaf.predicate]
        return bool(recipes_of(predicate))

    def _judge_truth(self, call: TranscriptCall, *, is_goal: bool) -> None:
        """A call that the tool let through although its requirement was known to be false."""
        if not call.let_through:
            return
        tree = self._requirement(call.action)
        values = call.arguments or {}
        known = self._known_truth(call.index, values)
        if decided(tree, known) is not False:
            return
        false = [leaf for leaf in leaves(tree) if known(leaf) is (not leaf.wanted)]
        self._find(
            "executed-against-condition",
            call.index,
            f"`{call.action}` ran although "
            + ", ".join(dict.fromkeys(f"`{leaf.predicate}`" for leaf in false))
            + " did not come out as the SOP wants",
            sentence=sentence(self.handbook, false[0]) if false else "",
            predicate=false[0].predicate if false else None,
        )

    # --- truth -----------------------------------------------------------------------

    def _known_truth(self, index: int, values: Mapping[str, JSON]) -> Callable[[Leaf], Truth]:
        cache: dict[Leaf, Truth] = {}

        def known(leaf: Leaf) -> Truth:
            bare = Leaf(leaf.predicate, leaf.arguments)
            if bare not in cache:
                cache[bare] = self._truth(index, bare, values)
            return cache[bare]

        return known

    def _truth(self, index: int, leaf: Leaf, values: Mapping[str, JSON]) -> Truth:
        subject = leaf_values(leaf, values)
        if self.oracle is not None:
            return self.oracle(index, leaf.predicate, subject)
        calls = supporting_calls(self.handbook, leaf, values, self.made)
        predicate = self.handbook.predicates[leaf.predicate]
        if calls is None or (calls and not all(call.answered for call in calls)):
            return None
        if predicate.is_gate:
            return any(call.ok for call in calls)
        if predicate.verdict is None or self.machine is None:
            return None
        if any(name not in subject for name in predicate.parameters):
            return None
        variables: dict[str, JSON] = {**self.handbook.parameters, **subject}
        variables["results"] = {call.action: call.value for call in calls}
        variables["result"] = calls[-1].value if calls else None
        try:
            return self.machine(predicate.verdict, variables)
        except SopilotError:
            return None

    # --- the end ---------------------------------------------------------------------

    def outcome(self) -> str:
        if self.reached is not None:
            return COMPLETED
        return REFUSED if self.refusals and self.refusals[-1].causes else ABANDONED

    def judge_end(self) -> None:
        """A transcript that ends without the goal: is there a reason in it?"""
        if self.reached is not None or self.attempted:
            return
        tree = self.handbook.procedures[self.goal].requires
        end = self.transcript.calls[-1].index + 1 if self.transcript.calls else 0
        values = self._gathered()
        known = self._known_truth(end, values) if self.oracle is None else None
        causes: list[Mapping[str, JSON]] = []
        if known is not None:
            for leaf in leaves_behind(self.handbook, tree):
                if known(leaf) is (not leaf.wanted):
                    used = supporting_calls(self.handbook, leaf, values, self.made) or []
                    causes.append(
                        {
                            "predicate": leaf.predicate,
                            "sentence": sentence(self.handbook, leaf),
                            "holds": not leaf.wanted,
                            "evidence": [call.index for call in used],
                            "return": None,
                            "remedy": self.handbook.predicates[leaf.predicate].remedy,
                        }
                    )
        self.refusals.append(Refusal(end, "p1", self.goal, "", tuple(causes)))
        if self._shown_nothing(tree) and not causes:
            self._find(
                "refusal-without-cause",
                end,
                f"`{self.goal}` was not carried out, and nothing it requires was checked",
                sentence=self.handbook.procedures[self.goal].says,
            )

    def _shown_nothing(self, tree: Tree) -> bool:
        """No check of the requirement was made although every one needs a call.

        Where the user was asked, a gate may have stayed shut for want of an answer.
        """
        own = list(leaves(tree))
        if not own or not all(self._needs_call(leaf) for leaf in own):
            return False
        wanted = leaves_behind(self.handbook, tree)
        gates = any(self.handbook.predicates[leaf.predicate].is_gate for leaf in wanted)
        if gates and self.transcript.replies:
            return False
        values = self._gathered()
        return all(
            supporting_calls(self.handbook, leaf, values, self.made) is None for leaf in wanted
        )

    def _gathered(self) -> dict[str, JSON]:
        """Values by name as the calls used them; one that was used twice is not known."""
        values: dict[str, JSON] = {}
        twice: set[str] = set()
        for call in self.transcript.calls:
            for name, value in (call.arguments or {}).items():
                if name in values and values[name] != value:
                    twice.add(name)
                values[name] = value
        return {name: value for name, value in values.items() if name not in twice}

    def _find(
        self,
        code: str,
        index: int,
        explanation: str,
        *,
        sentence: str = "",
        predicate: str | None = None,
        severity: Severity = Severity.ERROR,
    ) -> None:
        frame = self.goal if predicate is None else f"{self.goal}/{predicate}"
        self.findings.append(
            Finding(code, index, explanation, "p1", frame, predicate, sentence, severity)
        )
