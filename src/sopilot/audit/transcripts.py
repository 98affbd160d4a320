"""Auditing an agent that never ran here: its calls against a handbook, without a machine.

Sessions without a machine: their trace has calls and results, but no process that ran.

They are judged like a transcript of anybody's agent, with more that is known: the chain of
the trace, every goal that was gone for, and what the user said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sopilot.audit.audit import judge_chain
from sopilot.audit.findings import Finding, NotJudged, Unjudgeable
from sopilot.audit.guarded_calls import without_procedure
from sopilot.audit.guarded_transcript import SHOWN, GuardedCalls
from sopilot.audit.leaf_reading import Unreadable
from sopilot.audit.refusals import Grounds
from sopilot.audit.report import ABANDONED, COMPLETED, REFUSED, Report, ScoreCard, not_judged
from sopilot.audit.requirement import (
    Proof,
    TruthAt,
    decided,
    leaf_values,
    needed_of,
    recipes_of,
    unchecked_leaves,
)
from sopilot.audit.state import RefusedGoal
from sopilot.audit.transcript_files import Transcript, TranscriptCall, read_value
from sopilot.handbook.checks import with_made
from sopilot.handbook.consent import assent
from sopilot.handbook.model import (
    BUILT_IN,
    CONFIRM,
    Approval,
    Handbook,
    Procedure,
    asked_about,
    confirmation,
    confirmed_subject,
)
from sopilot.handbook.requirements import NOTHING, Leaf, Name, Tree, leaves
from sopilot.messages.diagnostic import Severity, did_you_mean
from sopilot.messages.errors import SopilotError, UserMistake
from sopilot.trace.chain import Head, SealedEvent
from sopilot.trace.events import Event
from sopilot.trace.redaction import is_reference
from sopilot.values.json import JSON, Judge, plain

_PLAIN_NO = 4
"""Words of a no, at most: a longer message may say no to one thing and yes to another."""


_ANYTHING_ELSE = re.compile(r"\b(any|some)(thing|one)? (else|more|other|further)\b", re.IGNORECASE)


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
    guarded = (
        truth is None
        and not enforced
        and any(action.is_guarded for action in handbook.actions.values())
    )
    goals = (goal,) if goal is not None else ()
    review = Review(
        proof,
        transcript,
        goals,
        guarded=GuardedCalls(handbook, judge, transcript.now) if guarded else None,
        enforced=enforced or {},
        offered=offered,
    )
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
    ``own``: a trace of ours says how the dialog ended, and its results can be read;
    ``ended_as`` is what its agent called the ending."""

    proof: Proof
    transcript: Transcript
    goals: Sequence[str]
    guarded: GuardedCalls | None = None
    own: bool = False
    ended_as: str = ""
    enforced: Mapping[str, Tree] = field(default_factory=dict[str, Tree])
    offered: Collection[str] | None = None
    findings: list[Finding] = field(default_factory=list)
    refusals: list[RefusedGoal] = field(default_factory=list)
    checked: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    not_judged: list[NotJudged] = field(default_factory=list)
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
        numbers: list[int] = []
        for goal in self.goals:
            action = self.handbook.procedures[goal].action
            done = [item for item in self._run() if item.action == action and item.ok]
            if not done:
                return None
            # The same again, about something else, is a goal of its own.
            others = [
                item.index
                for at, item in enumerate(done)
                if not any(earlier.arguments == item.arguments for earlier in done[:at])
            ]
            numbers.append(others[-1])
        return max(numbers, default=None)

    def report(self, session_id: str | None, chain: bool | None = None) -> Report:
        findings = tuple(sorted(self.findings, key=lambda finding: finding.seq))
        unjudged = {missing.predicate for missing in self.not_judged}
        checked, missing = self.checked - unjudged, self.missing - unjudged
        return Report(
            findings,
            ScoreCard(
                session_id,
                self._outcome(),
                calls=len(self.transcript.calls),
                calls_after_goal=self.after_goal,
                checks=len(checked),
                checks_needing_evidence=len(checked | missing),
                checks_with_evidence=len(checked - missing),
                chain=chain,
            ).counting(findings),
            tuple(self.refusals),
            not_judged=tuple(self.not_judged),
        )

    def _outcome(self) -> str:
        if self.refusals:
            refused = self.refusals[-1].causes or self.ended_as == REFUSED
            return REFUSED if refused else ABANDONED
        if not self.goals:
            effects = {procedure.action for procedure in self.handbook.procedures.values()}
            done = any(item.ok and item.action in effects for item in self._run())
            return COMPLETED if done else ABANDONED
        return COMPLETED if self.done_at() is not None else ABANDONED

    # --- one call --------------------------------------------------------------------

    def judge_calls(self) -> None:
        done_at = self.done_at()
        for call in self.transcript.calls:
            self._judge_call(call, after=done_at is not None and call.index > done_at)

    def _judge_call(self, call: TranscriptCall, *, after: bool) -> None:
        if call.action in BUILT_IN:
            # The runtime puts these questions itself, and they prove what their answers say.
            self.proof.made.append(call)
            if self.guarded is not None:
                self.guarded.record(call)
            return
        problem = self._malformed(call)
        if problem:
            self._find("unlicensed-call", call.index, problem, severity=Severity.WARNING)
        if not self._runs(call):
            # No tool runs such a call, so it neither breaks a rule nor shows anything.
            if call.ok and call.arguments is None and self._is_guarded(call):
                self._leave(call, f"the arguments of `{call.action}`: they are no object")
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
        if procedure is None and self.handbook.actions[call.action].is_guarded:
            self._find("guard-violated", call.index, without_procedure(call.action))
        unchecked = self._judge_checks(call, procedure)
        if call.let_through:
            self._judge_truth(call, procedure, unchecked)
            if procedure is not None and self.handbook.actions[call.action].is_guarded:
                self._judge_proof(call, procedure)
            self._judge_approval(call)
        elif not call.answered and self.handbook.actions[call.action].is_guarded:
            self._leave(call, f"whether `{call.action}` took effect: no answer is recorded")
        if not unchecked:
            # A call without its own prerequisites proves nothing for a later one.
            self.proof.made.extend((*self._enforced_calls(call), call))
        if self.guarded is not None:
            self.guarded.record(call)

    def _is_guarded(self, call: TranscriptCall) -> bool:
        action = self.handbook.actions.get(call.action)
        return action is not None and action.is_guarded

    def _hear_confirmation(self, call: TranscriptCall) -> None:
        """An agent of others asks in its own words: what the user said last before the call is
        the answer, whatever the question was."""
        action = self.handbook.actions[call.action]
        goals = [
            procedure
            for procedure in self.handbook.procedures.values()
            if procedure.action == call.action
        ]
        heard = [item for item in self.transcript.said if item.message < call.message]
        # The first message is the request, and no answer to anything.
        if len(heard) < 2:
            return
        number, reply, _ = heard[-1]
        values = {asked_about(CONFIRM, name): item for name, item in (call.arguments or {}).items()}
        value = {"said": reply, "answer": assent(reply), "message": number}
        for goal in goals:
            if confirmation(goal, action) is None:
                continue
            arguments = {**confirmed_subject(goal, action), **values}
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
        absent = [item.name for item in action.inputs if item.required]
        absent = [name for name in absent if name not in call.arguments]
        return f"`{call.action}` was called without `{absent[0]}`" if absent else ""

    def _enforced_calls(self, call: TranscriptCall) -> list[TranscriptCall]:
        """The verifiers that the tool ran by itself, as far as they are actions."""
        transcript_calls: list[TranscriptCall] = []
        for leaf in leaves(self.enforced.get(call.action, NOTHING)):
            if leaf.predicate in self.handbook.actions:
                values = leaf_values(leaf, call.arguments or {})
                inner = TranscriptCall(
                    call.index, call.message, leaf.predicate, values, by_tool=True
                )
                transcript_calls.extend((*self._enforced_calls(inner), inner))
        return transcript_calls

    def _procedure(self, call: TranscriptCall) -> Procedure | None:
        """The procedure whose goal the call is. Of several, the one gone for, else one that
        nothing rules out, and of these the one that has most of its checks made."""
        named = [self.handbook.procedures[goal] for goal in self.goals]
        named = [item for item in named if item.action == call.action] or [
            procedure
            for procedure in self.handbook.procedures.values()
            if procedure.action == call.action
        ]

        def fit(procedure: Procedure) -> tuple[bool, int]:
            known = self.proof.known(call.index, self._values(call, procedure))
            return decided(self._requirement(call, procedure), known) is False, len(
                self._unchecked(call, procedure)
            )

        return min(named, key=fit, default=None)

    def _unchecked(self, call: TranscriptCall, procedure: Procedure | None) -> list[Leaf]:
        tree = self._checks_asked_for(call, procedure)
        values = self._values(call, procedure)
        return unchecked_leaves(self.handbook, tree, values, self.proof.made)

    def _values(self, call: TranscriptCall, procedure: Procedure | None) -> dict[str, JSON]:
        """Those of the call and, for inputs that the tool does not take, what the user told."""
        own = [item.name for item in procedure.inputs] if procedure is not None else []
        messages = {name: self.transcript.told.get(name) for name in own}
        values = {name: value for name, value in messages.items() if value is not None}
        opened = self._opened_for(procedure) if procedure is not None else {}
        return {**opened, **values, **(call.arguments or {})}

    def _opened_for(self, procedure: Procedure) -> dict[str, JSON]:
        """Inputs that a gate was opened with so far, where it was opened for one value alone."""
        values: dict[str, JSON] = {}
        for leaf in leaves(with_made(self.handbook, procedure, procedure.requires)):
            opening = self.handbook.predicates[leaf.predicate].established_by
            terms = dict(leaf.arguments)
            for name, term in opening.arguments if opening is not None else ():
                outer = terms.get(term.name) if isinstance(term, Name) else None
                if opening is None or not isinstance(outer, Name):
                    continue
                used = {
                    json.dumps((item.arguments or {}).get(name), sort_keys=True)
                    for item in self.proof.made
                    if item.action == opening.action and item.ok
                }
                if len(used) == 1:
                    values[outer.name] = json.loads(used.pop())
        return {name: value for name, value in values.items() if value is not None}

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
            if self._lacks_clock(leaf):
                self._leave(call, f"`{leaf.predicate}` depends on the time", leaf.predicate)
                continue
            self.missing.add(leaf.predicate)
            self._find(
                "unproven-verdict",
                call.index,
                f"`{call.action}` ran although no answer shows `{leaf.predicate}`",
                sentence=self.proof.sentence(leaf, values),
                predicate=leaf.predicate,
            )

    def _lacks_clock(self, leaf: Leaf) -> bool:
        verdict = self.handbook.predicates[leaf.predicate].verdict or ""
        known = self.proof.now or "now" in self.handbook.parameters
        return not known and re.search(r"\bnow\b", verdict) is not None

    def _judge_proof(self, call: TranscriptCall, procedure: Procedure) -> None:
        """A guarded call, by the reading of sessions: a false or unproven requirement is blamed;
        one that rests on something outside of the transcript is not judged."""
        if self.guarded is None:
            return
        tree, values = self._requirement(call, procedure), self._values(call, procedure)
        blamed = {finding.predicate for finding in self.findings if finding.seq == call.index}
        doubts = {
            leaf: doubt
            for doubt in self.guarded.doubts(call, procedure.name, values)
            for leaf in leaves(tree)
            if leaf.predicate == doubt.predicate
            and all((doubt.values or {}).get(k) == v for k, v in leaf_values(leaf, values).items())
        }
        refused = self._was_told_no(call)

        def truth(leaf: Leaf) -> bool | None:
            doubt = doubts.get(leaf)
            if doubt is None or leaf.predicate in blamed or self._is_confirmation(leaf):
                return leaf.wanted
            if self._asks_in_own_words(leaf):
                return False if refused else None
            return not leaf.wanted if doubt.code in SHOWN else None

        outcome = decided(tree, truth)
        if outcome is False:
            false = [leaf for leaf in dict.fromkeys(leaves(tree)) if truth(leaf) is not None]
            for leaf in needed_of(tree, [item for item in false if truth(item) is not item.wanted]):
                asks_in_own_words = self._asks_in_own_words(leaf)
                why = (
                    "the user's last words before it are a no"
                    if asks_in_own_words
                    else doubts[leaf].why
                )
                self.missing.add(leaf.predicate)
                self._find(
                    "executed-against-condition" if asks_in_own_words else doubts[leaf].code,
                    call.index,
                    f"`{call.action}` ran unproven: {why}",
                    sentence=self.proof.sentence(leaf, values),
                    predicate=leaf.predicate,
                )
        if self.own or outcome is True:
            return
        for leaf in dict.fromkeys(leaves(tree)):
            if truth(leaf) is None:
                asks = self._asks_in_own_words(leaf)
                why = "its question is put in the agent's own words" if asks else doubts[leaf].why
                self._leave(call, f"`{leaf.predicate}`: {why}", leaf.predicate)

    def _asks_in_own_words(self, leaf: Leaf) -> bool:
        return bool(self.handbook.predicates[leaf.predicate].question) and not self.own

    def _is_confirmation(self, leaf: Leaf) -> bool:
        recipes = recipes_of(self.handbook.predicates[leaf.predicate])
        return bool(recipes) and all(item.action == CONFIRM for way in recipes for item in way)

    def _was_told_no(self, call: TranscriptCall) -> bool:
        """Whether the user's last words before a call are nothing but a no, to one question. A no
        to whether there is anything else is none to the call."""
        heard = [item for item in self.transcript.said if item.message < call.message]
        if len(heard) < 2:
            return False
        reply, request = heard[-1].text, heard[-1].asked
        plain = len(reply.split()) <= _PLAIN_NO and request.count("?") + request.count("？") == 1
        return plain and not _ANYTHING_ELSE.search(request) and assent(reply) == "no"

    def _leave(self, call: TranscriptCall, why: str, predicate: str | None = None) -> None:
        missing = NotJudged(Unjudgeable.NOT_IN_TRANSCRIPT, why, call.index, call.action, predicate)
        place = (missing.seq, missing.predicate)
        if place not in {(item.seq, item.predicate) for item in self.not_judged}:
            self.not_judged.append(missing)

    def _judge_approval(self, call: TranscriptCall) -> None:
        approval = self.handbook.actions[call.action].approval
        if approval is None or not call.ok or not self._needs_approval(approval, call):
            return
        needed = f"it needs {approval.needed} by {', '.join(approval.roles)}"
        if not self.own:
            self._leave(call, f"an approval of `{call.action}` ({needed})")
            return
        self._find(
            "approval-missing",
            call.index,
            f"`{call.action}` ran and no approval is on record: {needed}",
            severity=Severity.WARNING,
        )

    def _needs_approval(self, approval: Approval, call: TranscriptCall) -> bool:
        """Unless the handbook's condition is false for these arguments."""
        if approval.when is None or self.proof.machine is None:
            return True
        now: dict[str, JSON] = {"now": self.proof.now} if self.proof.now else {}
        variables = {**now, **self.handbook.parameters, **(call.arguments or {})}
        try:
            return self.proof.machine(approval.when, variables) is not False
        except SopilotError:
            return True

    def find_claim(self, index: int) -> None:
        """The agent says that it reached a goal which no call reached."""
        goals = ", ".join(f"`{goal}`" for goal in self.goals) or "the request"
        self._find("claimed-completion", index, f"{goals} is claimed, and no call carried it out")

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
        excused = not nothing if self.proof.oracle is not None else grounds.exist()
        if self.own or self.proof.oracle is not None or causes or obstacle or not excused:
            self.refusals.append(RefusedGoal(end, "p1", goal, "", tuple(causes), obstacle))
        else:
            # It may have been refused, claimed or forgotten: only its words say so.
            why = f"`{goal}` was not carried out: whether it was refused, and with a cause"
            missing = NotJudged(Unjudgeable.NOT_IN_TRANSCRIPT, why, end, procedure.action)
            self.not_judged.append(missing)
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


def audit_untracked(
    handbook: Handbook,
    events: Sequence[Event],
    *,
    goal: str | None,
    chain: Sequence[SealedEvent],
    session_id: str | None = None,
    judge: Judge | None = None,
    head: Head | None = None,
    offered: Collection[str] | None = None,
) -> Report:
    """``goal`` is what the user came for, where that is known. ``chain`` are the events as they
    were sealed; ``offered`` the tools that the agent had, where that is known."""
    broken, whole = judge_chain(chain, session_id, head)
    try:
        transcript = transcript_of(events)
    except Unreadable as why:
        missing = NotJudged(why.reason, "a call, or an answer to one, is withheld as a whole")
        return not_judged(missing, session_id, chain=whole, findings=[broken] if broken else ())
    review = Review(
        Proof(handbook, judge),
        transcript,
        _gone_for(handbook, transcript, goal),
        guarded=_guarded(handbook, judge),
        own=True,
        ended_as=_ended_as(events),
        offered=offered,
    )
    review.judge_calls()
    if review.goals and review.ended_as == EXECUTED and review.done_at() is None:
        review.find_claim(len(events) - 1)
    # Who ran out of turns, or could not be reached, has refused nothing.
    elif goal is not None and not review.attempted(goal) and review.ended_as != CUT_SHORT:
        others = [name for name in review.goals if name != goal]
        if not others or not _changed_to(events, others):
            action = handbook.procedures[goal].action
            absent = offered is not None and action not in offered
            hindered = absent or action in _not_offered(events)
            obstacle = f"`{action}` is not on offer" if hindered else ""
            review.judge_refusal(goal, obstacle=obstacle)
    report = review.report(session_id, whole)
    return report.with_findings([broken]) if broken is not None else report


def _guarded(handbook: Handbook, judge: Judge | None) -> GuardedCalls | None:
    guarded = judge is not None and any(action.is_guarded for action in handbook.actions.values())
    return GuardedCalls(handbook, judge) if guarded else None


EXECUTED, CUT_SHORT = "executed", "cut short"


def _ended_as(events: Sequence[Event]) -> str:
    """The agent's own word for its ending; ``CUT_SHORT`` where a budget or the model's provider
    ended the run before."""
    ending = ""
    for event in events:
        details = event.payload.get("details")
        if _note(event, "end_session") and isinstance(details, Mapping):
            ending = str(details.get("outcome", ""))
        elif _note(event, "budget") or _note(event, "infrastructure_failure"):
            ending = CUT_SHORT
    return ending


def transcript_of(events: Sequence[Event]) -> Transcript:
    """A call's index is its event's number, so that a finding names the event."""
    calls: dict[str, TranscriptCall] = {}
    made: list[str] = []
    for event in events:
        payload = event.payload
        if event.kind not in ("domain_call", "domain_result"):
            continue
        name = str(payload["call_id"])
        if any(is_reference(value) for value in payload.values()):
            raise Unreadable
        if event.kind == "domain_call":
            arguments = payload["arguments"]
            assert isinstance(arguments, dict)
            calls[name] = TranscriptCall(event.seq, event.seq, str(payload["action"]), arguments)
            made.append(name)
        elif name in calls:
            request, ok = calls[name], bool(payload["ok"])
            calls[name] = TranscriptCall(
                request.index, request.message, request.action, request.arguments,
                ok, payload.get("value"), True, ok,
            )  # fmt: skip
    turns = _turns(events, "user_said")
    spoken = [*_turns(events, "assistant_said"), *turns[1:]]
    return Transcript(
        tuple(calls[name] for name in made),
        len(events),
        max(0, len(turns) - 1),
        # Words that are kept elsewhere may have been any: then nothing is known of any.
        "" if None in spoken else "\n".join(filter(None, spoken)),
        _told("\n".join(filter(None, turns))),
    )


def _gone_for(handbook: Handbook, transcript: Transcript, goal: str | None) -> list[str]:
    """The goals whose actions were called, or else the one that the user came for."""
    goals = {item.action: name for name, item in handbook.procedures.items()}
    if goal is not None:
        goals[handbook.procedures[goal].action] = goal
    called = dict.fromkeys(goals[call.action] for call in transcript.calls if call.action in goals)
    return list(called) or ([goal] if goal is not None else [])


def _turns(events: Sequence[Event], kind: str) -> list[str | None]:
    """What was said, ``None`` where it is withheld."""
    replies = [event.payload.get("text") for event in events if event.kind == kind]
    return [None if is_reference(text) else str(text) for text in replies]


_LINE = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*): (.+)$", re.MULTILINE)


def _told(text: str) -> dict[str, JSON]:
    """Values that the user gave a line each, by name; the last word counts."""
    return {name: plain(read_value(value)) for name, value in _LINE.findall(text)}


def _changed_to(events: Sequence[Event], goals: Sequence[str]) -> bool:
    """Whether the user asked for one of the goals after the first request, or may have."""
    reply = _turns(events, "user_said")[1:]
    if None in reply:
        return True
    later = " ".join(filter(None, reply)).lower().replace("_", " ")
    return any(re.search(rf"\b{re.escape(goal.replace('_', ' '))}\b", later) for goal in goals)


def _note(event: Event, name: str) -> bool:
    return event.kind == "note" and event.payload.get("name") == name


def _not_offered(events: Sequence[Event]) -> set[str]:
    texts: set[str] = set()
    for event in events:
        details = event.payload.get("details")
        if _note(event, "not_offered") and isinstance(details, Mapping):
            named = details.get("actions")
            texts.update(map(str, named) if isinstance(named, list | tuple) else ())
    return texts
