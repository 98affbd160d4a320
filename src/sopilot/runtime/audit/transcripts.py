"""Auditing an agent that never ran here: its calls against a handbook, without a machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sopilot.language.diagnostics import Severity, UserMistake, did_you_mean
from sopilot.language.handbook import (
    CONFIRM,
    NOTHING,
    Handbook,
    Leaf,
    Procedure,
    Tree,
    asked_about,
    confirmation,
    confirmed_subject,
    leaves,
)
from sopilot.language.handbook.assent import assent
from sopilot.language.handbook.obligations import with_made
from sopilot.runtime.audit._audit_state import RefusedGoal
from sopilot.runtime.audit._finding import Finding
from sopilot.runtime.audit._refusing import Grounds
from sopilot.runtime.audit._report import ABANDONED, COMPLETED, REFUSED, Report, card
from sopilot.runtime.audit._requirement import (
    decided,
    leaf_values,
    needed_of,
    recipes_of,
    unchecked_leaves,
)
from sopilot.runtime.audit._transcript_leaf import Proof, TruthAt
from sopilot.runtime.audit.transcript import Transcript, TranscriptCall
from sopilot.runtime.vm.values import JSON, Judge


def audit_transcript(
    handbook: Handbook,
    transcript: Transcript,
    *,
    goal: str | None,
    judge: Judge | None = None,
    truth: TruthAt | None = None,
    enforced: Mapping[str, Tree] | None = None,
    offered: Collection[str] | None = None,
    session_id: str | None = None,
) -> Report:
    """Judge the domain calls of a transcript for one goal of the handbook. Without a goal the
    calls alone are judged, and nothing is said of what was not done.

    Every call is judged: a goal action against its procedure, any other against its
    own requirement. ``truth`` supplies the truth of predicates where an oracle
    has it; otherwise machine verdicts over the recorded results do (``judge``).
    ``enforced`` is what an action's own tool checks before it does anything: such
    a call counts as a call of those verifiers as well. ``offered`` are the tools that
    there were: what could not be called is a ground to refuse.
    """
    if goal is not None and goal not in handbook.procedures:
        raise UserMistake(
            f"`{goal}` is not a procedure of `{handbook.name}`: "
            + did_you_mean(goal, handbook.procedures)
        )
    proof = Proof(handbook, judge, truth, transcript.now)
    goals = (goal,) if goal is not None else ()
    review = Review(proof, transcript, goals, enforced=enforced or {}, offered=offered)
    review.judge_calls()
    if goal is not None and not review.attempted(goal):
        action = handbook.procedures[goal].action
        missing = offered is not None and action not in offered
        obstacle = f"the tool `{action}` is not on offer" if missing else ""
        review.judge_refusal(goal, obstacle=obstacle)
    return review.report(session_id)


@dataclass(slots=True)
class Review:
    """``goals`` are what was gone for, in their order; work behind all of them is R2's.
    ``own``: a trace of ours says how the dialog ended, and its results can be read."""

    proof: Proof
    transcript: Transcript
    goals: Sequence[str]
    own: bool = False
    enforced: Mapping[str, Tree] = field(default_factory=dict[str, Tree])
    offered: Collection[str] | None = None
    findings: list[Finding] = field(default_factory=list)
    refusals: list[RefusedGoal] = field(default_factory=list)
    checked: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    after_goal: int = 0

    @property
    def handbook(self) -> Handbook:
        return self.proof.handbook

    def attempted(self, goal: str) -> bool:
        action = self.handbook.procedures[goal].action
        return any(call.action == action for call in self.transcript.calls)

    def _run(self) -> list[TranscriptCall]:
        return [call for call in self.transcript.calls if self._runs(call)]

    def done_at(self) -> int | None:
        """The call with which the last of the goals had succeeded, once all have."""
        found: list[int] = []
        for goal in self.goals:
            action = self.handbook.procedures[goal].action
            done = [one.index for one in self._run() if one.action == action and one.ok]
            if not done:
                return None
            found.append(done[0])
        return max(found, default=None)

    def report(self, session_id: str | None, chain: bool | None = None) -> Report:
        findings = tuple(sorted(self.findings, key=lambda finding: finding.seq))
        return Report(
            findings,
            card(
                findings,
                session_id=session_id,
                outcome=self._outcome(),
                calls=len(self.transcript.calls),
                calls_after_goal=self.after_goal,
                checks=len(self.checked),
                needing=len(self.checked | self.missing),
                covered=len(self.checked - self.missing),
                chain=chain,
            ),
            tuple(self.refusals),
        )

    def _outcome(self) -> str:
        if self.refusals:
            return REFUSED if self.refusals[-1].causes else ABANDONED
        if not self.goals:
            effects = {one.action for one in self.handbook.procedures.values()}
            done = any(one.ok and one.action in effects for one in self._run())
            return COMPLETED if done else ABANDONED
        return COMPLETED if self.done_at() is not None else ABANDONED

    # --- one call --------------------------------------------------------------------

    def judge_calls(self) -> None:
        done_at = self.done_at()
        for call in self.transcript.calls:
            self._judge_call(call, after=done_at is not None and call.index > done_at)

    def _judge_call(self, call: TranscriptCall, *, after: bool) -> None:
        problem = self._malformed(call)
        if problem:
            self._find("unlicensed-call", call.index, problem, severity=Severity.WARNING)
        if not self._runs(call):
            # No tool runs such a call, so it neither breaks a rule nor shows anything.
            return
        if after:
            self.after_goal += 1
            own = {self.handbook.procedures[goal].action for goal in self.goals}
            self._find(
                "calls-after-goal",
                call.index,
                f"`{call.action}` was called although the goal had succeeded already",
                severity=Severity.ERROR if call.action in own else Severity.WARNING,
            )
        self._hear_confirmation(call)
        procedure = self._procedure(call)
        unchecked = self._judge_checks(call, procedure)
        if call.let_through:
            self._judge_truth(call, procedure, unchecked)
            self._judge_approval(call)
        if not unchecked:
            # A call without its own prerequisites proves nothing for a later one.
            self.proof.made.extend((*self._enforced_calls(call), call))

    def _hear_confirmation(self, call: TranscriptCall) -> None:
        """An agent of others asks in its own words: what the user said last before the call is
        the answer, whatever the question was."""
        action = self.handbook.actions[call.action]
        goals = [one for one in self.handbook.procedures.values() if one.action == call.action]
        heard = [one for one in self.transcript.said if one.message < call.message]
        # The first message is the request, and no answer to anything.
        if len(heard) < 2:
            return
        number, said, asked = heard[-1]
        given = {asked_about(CONFIRM, name): one for name, one in (call.arguments or {}).items()}
        value = {"said": said, "answer": assent(said, asked), "message": number}
        for goal in goals:
            if confirmation(goal, action) is None:
                continue
            arguments = {**confirmed_subject(goal, action), **given}
            self.proof.made.append(
                TranscriptCall(
                    call.index, number, CONFIRM, arguments, True, value,
                    answered=True, let_through=True,
                )
            )  # fmt: skip

    def _runs(self, call: TranscriptCall) -> bool:
        """A tool that answers a call with arguments of its own choosing has run it."""
        known = call.action in self.handbook.actions and call.arguments is not None
        return known and (call.ok or not self._malformed(call))

    def _malformed(self, call: TranscriptCall) -> str:
        """Why no tool should have run the call, or nothing."""
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
                inner = TranscriptCall(
                    call.index, call.message, leaf.predicate, values, by_tool=True
                )
                found.extend((*self._enforced_calls(inner), inner))
        return found

    def _procedure(self, call: TranscriptCall) -> Procedure | None:
        """The procedure whose goal the call is. Of several, the one gone for, else one that
        nothing rules out, and of these the one that has most of its checks made."""
        named = [self.handbook.procedures[goal] for goal in self.goals]
        named = [one for one in named if one.action == call.action] or [
            one for one in self.handbook.procedures.values() if one.action == call.action
        ]

        def fit(one: Procedure) -> tuple[bool, int]:
            known = self.proof.known(call.index, self._values(call, one))
            return decided(self._requirement(call, one), known) is False, len(
                self._unchecked(call, one)
            )

        return min(named, key=fit, default=None)

    def _unchecked(self, call: TranscriptCall, procedure: Procedure | None) -> list[Leaf]:
        tree = self._checks_asked_for(call, procedure)
        values = self._values(call, procedure)
        return unchecked_leaves(self.handbook, tree, values, self.proof.made)

    def _values(self, call: TranscriptCall, procedure: Procedure | None) -> dict[str, JSON]:
        """Those of the call and, for inputs that the tool does not take, what the user told."""
        own = [one.name for one in procedure.inputs] if procedure is not None else []
        told = {name: self.transcript.told.get(name) for name in own}
        given = {name: value for name, value in told.items() if value is not None}
        return {**given, **(call.arguments or {})}

    def _requirement(self, call: TranscriptCall, procedure: Procedure | None) -> Tree:
        if procedure is not None:
            return with_made(self.handbook, procedure, procedure.requires)
        return self.handbook.actions[call.action].requires

    def _checks_asked_for(self, call: TranscriptCall, procedure: Procedure | None) -> Tree:
        """What the agent was told to check: the tree as it is worded, where that differs."""
        if procedure is not None and procedure.worded is not None:
            return procedure.worded
        return self._requirement(call, procedure)

    def _judge_checks(self, call: TranscriptCall, procedure: Procedure | None) -> list[Leaf]:
        unchecked, values = self._unchecked(call, procedure), self._values(call, procedure)
        if procedure is not None:
            tree = self._checks_asked_for(call, procedure)
            names = {leaf.predicate for leaf in leaves(tree) if self._needs_call(leaf)}
            self.missing |= {leaf.predicate for leaf in unchecked}
            self.checked |= names - self.missing
        if not unchecked:
            return []
        listed = ", ".join(dict.fromkeys(f"`{leaf.predicate}`" for leaf in unchecked))
        self._find(
            "premature-goal" if procedure is not None else "unlicensed-call",
            call.index,
            f"`{call.action}` was called before {listed} was checked",
            sentence=self.proof.sentence(unchecked[0], values),
            predicate=unchecked[0].predicate,
        )
        if procedure is not None:
            for leaf in unchecked:
                self._find(
                    "skipped-check",
                    call.index,
                    f"`{leaf.predicate}` was never checked before `{call.action}`",
                    sentence=self.proof.sentence(leaf, values),
                    predicate=leaf.predicate,
                )
        return unchecked

    def _needs_call(self, leaf: Leaf) -> bool:
        return bool(recipes_of(self.handbook.predicates[leaf.predicate]))

    def _judge_truth(
        self, call: TranscriptCall, procedure: Procedure | None, unchecked: Collection[Leaf]
    ) -> None:
        """A call that the tool let through although its requirement was known to be false, or
        although nothing that was answered shows that it was true. That the checks of
        ``unchecked`` were not made has been said."""
        tree, values = self._requirement(call, procedure), self._values(call, procedure)
        known = self.proof.known(call.index, values)
        if decided(tree, known) is False:
            false = [leaf for leaf in leaves(tree) if known(leaf) is (not leaf.wanted)]
            self._find(
                "executed-against-condition",
                call.index,
                f"`{call.action}` ran although "
                + ", ".join(dict.fromkeys(f"`{leaf.predicate}`" for leaf in false))
                + " did not come out as the SOP wants",
                sentence=self.proof.sentence(false[0], values) if false else "",
                predicate=false[0].predicate if false else None,
            )
            return

        def shown(leaf: Leaf) -> bool | None:
            truth = known(leaf)
            if truth is not None or leaf in unchecked:
                return leaf.wanted if truth is None else truth
            open_ = self.proof.is_unproven(leaf, values) if leaf.wanted else False
            return None if open_ or self.proof.is_unmade(leaf, values) else leaf.wanted

        if decided(tree, shown) is True:
            return
        opened = [leaf for leaf in dict.fromkeys(leaves(tree)) if shown(leaf) is None]
        for leaf in needed_of(tree, opened):
            self.missing.add(leaf.predicate)
            self._find(
                "unproven-verdict",
                call.index,
                f"`{call.action}` ran although no answer shows `{leaf.predicate}`",
                sentence=self.proof.sentence(leaf, values),
                predicate=leaf.predicate,
            )

    def _judge_approval(self, call: TranscriptCall) -> None:
        approval = self.handbook.actions[call.action].approval
        if approval is not None and call.ok:
            self._find(
                "approval-missing",
                call.index,
                f"`{call.action}` ran and no approval is on record: it needs {approval.needed} by "
                + ", ".join(approval.roles),
                severity=Severity.WARNING,
            )

    # --- the end ---------------------------------------------------------------------

    def judge_refusal(self, goal: str, *, obstacle: str = "") -> None:
        """A goal that was never gone for: is there a reason for that? ``obstacle`` is one that
        lies outside of the calls."""
        procedure = self.handbook.procedures[goal]
        end = self.transcript.calls[-1].index + 1 if self.transcript.calls else 0
        grounds = Grounds(self.proof, self.transcript, procedure.requires, end, self.offered)
        nothing = grounds.nothing_shown()
        # An oracle knows the truth when a call was made; at the end none is made.
        causes = grounds.causes() if self.proof.oracle is None else []
        self.refusals.append(RefusedGoal(end, "p1", goal, "", tuple(causes), obstacle))
        excused = not nothing if self.proof.oracle is not None else grounds.exist()
        if obstacle or excused:
            return
        sure = self.own and not replace(grounds, guessing=True).exist()
        self._find(
            "refusal-without-cause",
            end,
            f"`{goal}` was not carried out, and nothing that was checked rules it out",
            sentence=procedure.says,
            severity=Severity.ERROR if sure or nothing else Severity.WARNING,
        )

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
        goal = self.goals[0] if self.goals else ""
        frame = goal if predicate is None else f"{goal}/{predicate}"
        self.findings.append(
            Finding(code, index, explanation, "p1", frame, predicate, sentence, severity)
        )
