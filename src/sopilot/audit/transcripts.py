"""Judge an agent that no runtime followed: its calls against a handbook.

A transcript of any agent, or a session of ours under a view without a machine, whose trace adds
the chain, the words of both sides and the ending.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from math import inf

from sopilot.audit.audit import judge_chain
from sopilot.audit.call_reading import AGAINST, Doubt
from sopilot.audit.dialog_words import (
    answer_in_words,
    doubt_of_yes,
    may_be_withdrawn,
    reads_as_refusal,
)
from sopilot.audit.findings import Finding, NotJudged, Unjudgeable
from sopilot.audit.guarded_calls import needs_approval
from sopilot.audit.leaf_reading import GATE, NEWER, STALE, Unreadable
from sopilot.audit.refusals import Grounds
from sopilot.audit.report import ABANDONED, COMPLETED, REFUSED, Report, ScoreCard, not_judged
from sopilot.audit.state import RefusedGoal, SessionCall
from sopilot.audit.transcript_files import AgentWords, Transcript, UserWords, read_value
from sopilot.audit.transcript_reading import Reading, decided, needed_of, recipes_of
from sopilot.handbook.consistency import with_made
from sopilot.handbook.model import (
    BUILT_IN,
    CONFIRM,
    Handbook,
    Procedure,
    asked_about,
    confirmation,
    confirmed_subject,
)
from sopilot.handbook.requirements import Leaf, Name, Tree, leaves, values_of
from sopilot.handbook.yes_or_no import assent
from sopilot.messages.catalogue import sentence
from sopilot.messages.diagnostic import Severity, did_you_mean
from sopilot.messages.errors import UserMistake
from sopilot.trace.chain import Head, SealedEvent
from sopilot.trace.events import CLOCK, Actor, Event
from sopilot.trace.redaction import is_reference
from sopilot.values.answers import denies_effect, shows_success
from sopilot.values.json import JSON, Judge, plain, same

SHOWN = frozenset({AGAINST, GATE, NEWER, STALE})
"""Doubts that the calls alone show; for all others a transcript may merely lack something."""


def audit_transcript(
    handbook: Handbook,
    transcript: Transcript,
    *,
    goal: str | None,
    judge: Judge,
    session_id: str | None = None,
) -> Report:
    """Judge the domain calls of a transcript for one goal of the handbook; without a goal, the
    calls alone, and nothing that was left undone."""
    if goal is not None and goal not in handbook.procedures:
        raise UserMistake(
            f"`{goal}` is not a procedure of `{handbook.name}`: "
            + did_you_mean(goal, handbook.procedures)
        )
    for call in transcript.calls:
        action = handbook.actions.get(call.action)
        if action is not None and not action.is_guarded and call.ok and not call.is_readable:
            why = sentence("audit.arguments-unreadable", action=call.action)
            return not_judged(NotJudged(Unjudgeable.NOT_IN_TRANSCRIPT, why, None), session_id)
    review = Review(Reading(handbook, judge), transcript, (goal,) if goal is not None else ())
    review.judge_calls()
    if goal is not None and not review.attempted(goal):
        review.judge_refusal(goal, frozenset())
    if goal is not None:
        review.judge_last_words(goal)
    return review.report(session_id)


@dataclass(slots=True)
class Review:
    """``goals`` are those that were pursued, in order; calls after all of them count as R2.
    ``own``: it is a trace of ours, which says how the dialog ended (``ended_as``) and whose
    results can be read. ``offered`` are the tools that the agent had, if known: a missing one is
    a ground to refuse."""

    reading: Reading
    transcript: Transcript
    goals: Sequence[str]
    own: bool = False
    ended_as: str = ""
    offered: Collection[str] | None = None
    findings: list[Finding] = field(default_factory=list)
    refusals: list[RefusedGoal] = field(default_factory=list)
    checked: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    not_judged: list[NotJudged] = field(default_factory=list)
    after_goal: int = 0

    @property
    def handbook(self) -> Handbook:
        return self.reading.handbook

    def attempted(self, goal: str) -> bool:
        action = self.handbook.procedures[goal].action
        return any(call.action == action for call in self.transcript.calls)

    def _successes(self, actions: Collection[str]) -> list[SessionCall]:
        calls = (call for call in self.transcript.calls if call.action in actions and call.ok)
        return [call for call in calls if self._runs(call) and not call.unclear]

    def done_at(self) -> int | None:
        """The call with which the last of the goals had succeeded, once all have."""
        numbers: list[int] = []
        for goal in self.goals:
            done = self._successes({self.handbook.procedures[goal].action})
            if not done:
                return None
            # The same again, about something else, is a goal of its own.
            new = [
                item
                for at, item in enumerate(done)
                if not any(earlier.arguments == item.arguments for earlier in done[:at])
            ]
            numbers.append(new[-1].seq)
        return max(numbers, default=None)

    def report(self, session_id: str | None, chain: bool | None = None) -> Report:
        findings = tuple(sorted(self.findings, key=lambda finding: finding.seq))
        unjudged = {missing.predicate for missing in self.not_judged}
        checked, missing = self.checked - unjudged, self.missing - unjudged
        card = ScoreCard(
            session_id,
            self._outcome(),
            calls=len(self.transcript.calls),
            calls_after_goal=self.after_goal,
            checks=len(checked),
            checks_needing_evidence=len(checked | missing),
            checks_with_evidence=len(checked - missing),
            chain=chain,
        )
        return Report(
            findings,
            card.counting(findings),
            tuple(self.refusals),
            not_judged=tuple(self.not_judged),
        )

    def _outcome(self) -> str:
        if self.refusals:
            refused = self.refusals[-1].causes or self.ended_as == REFUSED
            return REFUSED if refused else ABANDONED
        if self.goals:
            return COMPLETED if self.done_at() is not None else ABANDONED
        effects = {procedure.action for procedure in self.handbook.procedures.values()}
        return COMPLETED if self._successes(effects) else ABANDONED

    # --- one call --------------------------------------------------------------------

    def judge_calls(self) -> None:
        done_at = self.done_at()
        for call in self.transcript.calls:
            self.reading.set_time(self.transcript.time_at(call.seq))
            with self.reading.before(call) if self._is_guarded(call) else nullcontext():
                self.judge_call(call, after=done_at is not None and self._is_after(done_at, call))
        self.reading.set_time(self.transcript.time_at(inf))

    def _is_after(self, done_at: int, call: SessionCall) -> bool:
        """Whether a call comes after the goals without another word of the user."""
        if call.seq <= done_at or self.own:
            return call.seq > done_at
        done = next(item for item in self.transcript.calls if item.seq == done_at)
        heard = self.transcript.user_messages
        return not any(done.message < said.message < call.message for said in heard)

    def judge_call(self, call: SessionCall, *, after: bool) -> None:
        if call.action in BUILT_IN:
            # The runtime puts these questions itself, and they prove what their answers say.
            self.reading.calls.append(call)
            return
        problem = self._malformed(call)
        if problem and (call.is_readable or not call.ok):
            self._find("unlicensed-call", call.seq, problem, severity=Severity.WARNING)
        if not self._runs(call):
            # No tool runs such a call, so it neither breaks a rule nor shows anything.
            if call.ok and self._is_guarded(call):
                self._leave(call, sentence("audit.arguments-unreadable", action=call.action))
            return
        if after:
            self.after_goal += 1
            own = {self.handbook.procedures[goal].action for goal in self.goals}
            self._find(
                "calls-after-goal",
                call.seq,
                sentence("audit.after-goal", action=call.action),
                severity=Severity.ERROR if call.action in own else Severity.WARNING,
            )
        self._hear_confirmation(call)
        procedure, guarded = self._procedure(call), self._is_guarded(call)
        if procedure is None and guarded:
            why = sentence("audit.no-procedure", action=call.action)
            self._find("guard-violated", call.seq, why)
        unchecked = self._judge_checks(call, procedure)
        if call.ran:
            self._judge_truth(call, procedure, unchecked)
            if procedure is not None and guarded:
                self._judge_proof(call, procedure)
            self._judge_approval(call)
        if (call.awaited or call.unclear) and guarded:
            self._leave(call, sentence("audit.effect-unanswered", action=call.action))
        # A call without its own prerequisites proves nothing for a later one.
        call.asked_for = not unchecked
        self.reading.calls.append(call)

    def _is_guarded(self, call: SessionCall) -> bool:
        action = self.handbook.actions.get(call.action)
        return action is not None and action.is_guarded

    def _heard_before(self, call: SessionCall) -> list[UserWords]:
        """The user's messages before a call. The first is the request, and answers nothing but in a
        transcript that begins with the agent's question."""
        heard = [item for item in self.transcript.user_messages if item.message < call.message]
        return heard if heard and heard[0].question and assent(heard[0].text) else heard[1:]

    def _hear_confirmation(self, call: SessionCall) -> None:
        """A foreign agent asks in its own words: the user's last message before the call is the
        answer, whatever the question was."""
        action, heard = self.handbook.actions[call.action], self._heard_before(call)
        if not heard:
            return
        number, reply = heard[-1].message, heard[-1].text
        # What is neither a yes nor a no is left open by `_doubt_of_yes`.
        answer = answer_in_words(heard[-1]) or "yes"
        values = {asked_about(CONFIRM, name): item for name, item in call.arguments.items()}
        value: JSON = {"said": reply, "answer": answer, "message": number}
        for goal in self.handbook.procedures.values():
            if goal.action == call.action and confirmation(goal, action) is not None:
                arguments = {**confirmed_subject(goal, action), **values}
                self.reading.calls.append(
                    SessionCall(
                        call.seq, CONFIRM, arguments, answered=call.seq, ok=True, value=value,
                        message=number, heard=True,
                    )
                )  # fmt: skip

    def _runs(self, call: SessionCall) -> bool:
        """A tool that answers a call with arguments of its own choosing has run it."""
        known = call.action in self.handbook.actions and call.is_readable
        return known and (call.ok or not self._malformed(call))

    def _malformed(self, call: SessionCall) -> str:
        """Why no tool should have run the call, or nothing."""
        action = self.handbook.actions.get(call.action)
        if action is None:
            return sentence("audit.no-action", action=call.action)
        if not call.is_readable:
            return sentence("audit.no-object", action=call.action)
        for name in sorted(call.arguments.keys() - set(action.input_names())):
            return sentence("audit.no-input", action=call.action, name=name)
        for item in action.inputs:
            if item.required and call.arguments.get(item.name) is None:
                return sentence("audit.input-missing", action=call.action, name=item.name)
        return ""

    def _procedure(self, call: SessionCall) -> Procedure | None:
        """The procedure whose goal the call is. Of several, the one pursued, else one that
        nothing rules out, and of these the one that has most of its checks made."""
        every = self.handbook.procedures
        named = [every[goal] for goal in self.goals if every[goal].action == call.action]
        named = named or [item for item in every.values() if item.action == call.action]

        def fit(procedure: Procedure) -> tuple[bool, int]:
            values = self._values(call, procedure)
            known = self.reading.known(values)
            ruled_out = decided(self._requirement(call, procedure), known) is False
            return ruled_out, len(self._unchecked(call, procedure))

        return min(named, key=fit, default=None)

    def _unchecked(self, call: SessionCall, procedure: Procedure | None) -> Sequence[Leaf]:
        tree = self._checks_asked_for(call, procedure)
        return self.reading.unchecked(tree, self._values(call, procedure))

    def _values(self, call: SessionCall, procedure: Procedure | None) -> dict[str, JSON]:
        """Those of the call and, for inputs that the tool doesn't take, those of the user."""
        if procedure is None:
            return dict(call.arguments)
        known = self.transcript.values
        inputs = (item.name for item in procedure.inputs)
        values = {name: known[name] for name in inputs if known.get(name) is not None}
        return {**self._opened_for(procedure), **values, **call.arguments}

    def _opened_for(self, procedure: Procedure) -> dict[str, JSON]:
        """Inputs that a gate was opened with so far, where it was opened for one value alone."""
        values: dict[str, JSON] = {}
        for leaf in leaves(with_made(self.handbook, procedure, procedure.requires)):
            opening = self.handbook.predicates[leaf.predicate].established_by
            if opening is None:
                continue
            terms = dict(leaf.arguments)
            opened = [
                item.arguments
                for item in self.reading.calls
                if item.action == opening.action and item.ok and item.asked_for
            ]
            for name, term in opening.arguments:
                outer = terms.get(term.name) if isinstance(term, Name) else None
                used = [arguments.get(name) for arguments in opened]
                if isinstance(outer, Name) and used and all(same(used[0], it) for it in used):
                    values[outer.name] = used[0]
        return {name: value for name, value in values.items() if value is not None}

    def _requirement(self, call: SessionCall, procedure: Procedure | None) -> Tree:
        if procedure is not None:
            return with_made(self.handbook, procedure, procedure.requires)
        return self.handbook.actions[call.action].requires

    def _checks_asked_for(self, call: SessionCall, procedure: Procedure | None) -> Tree:
        """The tree as the agent was shown it, where that differs."""
        if procedure is not None and procedure.worded is not None:
            return procedure.worded
        return self._requirement(call, procedure)

    def _judge_checks(self, call: SessionCall, procedure: Procedure | None) -> Sequence[Leaf]:
        unchecked, values = self._unchecked(call, procedure), self._values(call, procedure)
        if procedure is not None:
            tree = self._checks_asked_for(call, procedure)
            made = [leaf for leaf in leaves(tree) if self._support(leaf, values)]
            names = {leaf.predicate for leaf in made if self._needs_call(leaf)}
            self.missing |= {leaf.predicate for leaf in unchecked}
            self.checked |= names - self.missing
        if not unchecked:
            return []
        listed = ", ".join(dict.fromkeys(f"`{leaf.predicate}`" for leaf in unchecked))
        code = "premature-goal" if procedure is not None else "unlicensed-call"
        why = sentence("audit.called-before", action=call.action, predicates=listed)
        self._find_leaf(code, call, unchecked[0], values, why)
        for leaf in unchecked if procedure is not None else ():
            skipped = sentence("audit.never-checked", predicate=leaf.predicate, action=call.action)
            self._find_leaf("skipped-check", call, leaf, values, skipped)
        return unchecked

    def _needs_call(self, leaf: Leaf) -> bool:
        return bool(recipes_of(self.handbook.predicates[leaf.predicate]))

    def _judge_truth(
        self, call: SessionCall, procedure: Procedure | None, unchecked: Collection[Leaf]
    ) -> None:
        """Blame a call that the tool let through although its requirement was known to be false,
        or although no answer shows that it was true. ``unchecked`` leaves were blamed before."""
        tree, values = self._requirement(call, procedure), self._values(call, procedure)
        known = self.reading.known(values)
        if decided(tree, known) is False:
            false = [leaf for leaf in leaves(tree) if known(leaf) is (not leaf.wanted)]
            listed = ", ".join(dict.fromkeys(f"`{leaf.predicate}`" for leaf in false))
            why = sentence("audit.ran-although-false", action=call.action, predicates=listed)
            self._find_leaf("executed-against-condition", call, false[0], values, why)
            return

        def shown(leaf: Leaf) -> bool | None:
            truth = known(leaf)
            if truth is not None or leaf in unchecked:
                return leaf.wanted if truth is None else truth
            return None if self.reading.is_unproven(leaf, values) else leaf.wanted

        if decided(tree, shown) is True:
            return
        opened = [leaf for leaf in dict.fromkeys(leaves(tree)) if shown(leaf) is None]
        for leaf in needed_of(tree, opened):
            if self._lacks_clock(leaf):
                why = sentence("audit.depends-on-time", predicate=leaf.predicate)
                self._leave(call, why, leaf.predicate)
                continue
            predicate = self.handbook.predicates[leaf.predicate]
            unclear = [
                item
                for item in self._support(leaf, values)
                if item.unclear or (predicate.is_gate and not shows_success(item.value))
            ]
            if unclear and predicate.verdict is None:
                why = sentence("audit.effect-unanswered", action=unclear[0].action)
                explained = sentence("audit.of-predicate", predicate=leaf.predicate, why=why)
                self._leave(call, explained, leaf.predicate)
                continue
            self.missing.add(leaf.predicate)
            why = sentence("audit.no-answer-shows", action=call.action, predicate=leaf.predicate)
            self._find_leaf("unproven-verdict", call, leaf, values, why)

    def _support(self, leaf: Leaf, values: Mapping[str, JSON]) -> Sequence[SessionCall]:
        return self.reading.supporting(leaf, values) or ()

    def _lacks_clock(self, leaf: Leaf) -> bool:
        verdict = self.handbook.predicates[leaf.predicate].verdict or ""
        known = self.reading.now or "now" in self.handbook.parameters
        return not known and re.search(r"\bnow\b", verdict) is not None

    def _judge_proof(self, call: SessionCall, procedure: Procedure) -> None:
        """Hold a guarded call against the proof, as in sessions: a false or unproven requirement
        is blamed; one that rests on something outside of the transcript is not judged."""
        tree, values = self._requirement(call, procedure), self._values(call, procedure)
        blamed = {finding.predicate for finding in self.findings if finding.seq == call.seq}
        doubts = self._doubts(call, procedure)
        for item, why in self._perhaps_done(call):
            if item.action == call.action and item.arguments == call.arguments:
                self._leave(call, why)
            for leaf in self._doubts(call, procedure, (item,)).keys() - doubts.keys() - blamed:
                explained = sentence("audit.of-predicate", predicate=leaf.predicate, why=why)
                self._leave(call, explained, leaf.predicate)
        unasked = confirmation(procedure, self.handbook.actions[call.action]) is None
        if not self.own and unasked and self._was_made_before(call):
            self._leave(call, sentence("audit.done-before", action=call.action))
        heard = self._heard_before(call)
        refused = bool(heard) and answer_in_words(heard[-1]) == "no"

        def truth(leaf: Leaf) -> bool | None:
            doubt = doubts.get(leaf)
            if doubt is None or leaf.predicate in blamed or self._is_confirmation(leaf):
                return leaf.wanted
            if self._asks_in_own_words(leaf):
                return False if refused else None
            return not leaf.wanted if doubt.code in SHOWN else None

        outcome = decided(tree, truth)
        every = list(dict.fromkeys(leaves(tree)))
        for leaf in every:
            if self._is_confirmation(leaf):
                doubt = self._doubt_of_yes(call, procedure)
            else:
                doubt = self._asked_at_once(call, self._support(leaf, values))
            if doubt and leaf.predicate not in blamed:
                explained = sentence("audit.of-predicate", predicate=leaf.predicate, why=doubt)
                self._leave(call, explained, leaf.predicate)
        if outcome is False:
            false = [leaf for leaf in every if truth(leaf) not in (None, leaf.wanted)]
            for leaf in needed_of(tree, false):
                self.missing.add(leaf.predicate)
                code, why = doubts[leaf].code, doubts[leaf].why
                if self._asks_in_own_words(leaf):
                    code, why = "executed-against-condition", sentence("audit.last-words-no")
                explained = sentence("audit.ran-unproven", action=call.action, why=why)
                self._find_leaf(code, call, leaf, values, explained)
        if outcome is True:
            return
        for leaf in every:
            if truth(leaf) is None:
                in_own_words = self._asks_in_own_words(leaf)
                why = sentence("audit.own-words") if in_own_words else doubts[leaf].why
                explained = sentence("audit.of-predicate", predicate=leaf.predicate, why=why)
                self._leave(call, explained, leaf.predicate)

    def _doubts(
        self, call: SessionCall, procedure: Procedure, perhaps: Sequence[SessionCall] = ()
    ) -> dict[Leaf, Doubt]:
        tree, values = self._requirement(call, procedure), self._values(call, procedure)
        return {
            leaf: doubt
            for doubt in self.reading.doubts(call, procedure.name, values, perhaps)
            for leaf in leaves(tree)
            if leaf.predicate == doubt.predicate
            and all(
                (doubt.values or {}).get(k) == v
                for k, v in values_of(leaf.arguments, values).items()
            )
        }

    def _perhaps_done(self, call: SessionCall) -> Iterator[tuple[SessionCall, str]]:
        """The calls that may have been carried out before ``call``, each with the reason: later
        calls of the same message, because the calls of one message run at once, and guarded calls
        that failed without saying that nothing was done (P10)."""
        for item in () if self.own else self.transcript.calls:
            if item.message == call.message and item.seq > call.seq and item.may_have_run:
                why = sentence("audit.asked-at-once", action=call.action, check=item.action)
                yield replace(item, answered=None, ok=False, unknown=False, value=None), why
            failed = self._is_guarded(item) and self._runs(item) and not item.may_have_run
            if failed and item.seq < call.seq and not denies_effect(item.value):
                why = sentence("audit.effect-unanswered", action=item.action)
                yield replace(item, ok=True), why

    def _asks_in_own_words(self, leaf: Leaf) -> bool:
        return bool(self.handbook.predicates[leaf.predicate].question) and not self.own

    def _is_confirmation(self, leaf: Leaf) -> bool:
        recipes = recipes_of(self.handbook.predicates[leaf.predicate])
        return bool(recipes) and all(item.action == CONFIRM for way in recipes for item in way)

    def _was_made_before(self, call: SessionCall) -> bool:
        return any(
            item.ok and item.action == call.action and item.arguments == call.arguments
            for item in self.reading.calls
        )

    def _asked_at_once(self, call: SessionCall, support: Sequence[SessionCall]) -> str:
        """Why the agent may have made a call without having read the answers behind it."""
        for item in support:
            if item.answer_number >= call.answers_before and not self.own:
                return sentence("audit.asked-at-once", action=call.action, check=item.action)
        return ""

    def _doubt_of_yes(self, call: SessionCall, procedure: Procedure) -> str:
        """Why the user's yes before a call may be one to something else."""
        heard = [] if self.own else self._heard_before(call)
        answer = answer_in_words(heard[-1]) if heard else "no"
        if answer is None:
            return sentence("audit.neither-yes-nor-no")
        if answer == "no":
            return ""
        if heard[-1].speaker != self.transcript.user_messages[0].speaker:
            return sentence("audit.yes-of-another")
        said, yes = self.transcript.agent_messages, heard[-1].message
        before = [item.message for item in self.transcript.user_messages if item.message < yes]
        spoken = [item.message for item in said if max(before, default=-1) < item.message < yes]
        question_at = min(spoken, default=yes)
        if any(question_at < at < call.message for at in self.transcript.instructions):
            return sentence("audit.yes-before-instruction")
        action = self.handbook.actions[call.action]
        return doubt_of_yes(
            heard[-1],
            call,
            self.reading.run,
            self.reading.calls,
            confirm=confirmation(procedure, action) or "",
            says=action.says,
            since_said="\n".join(item.text for item in said if yes < item.message <= call.message),
        )

    def _judge_approval(self, call: SessionCall) -> None:
        approval = self.handbook.actions[call.action].approval
        done = call.ok or (self.own and call.unknown)
        if approval is None or not done:
            return
        known = {**self.handbook.parameters, **call.arguments}
        judge, now = self.reading.judge, self.reading.now
        is_needed = needs_approval(approval.when, judge, now, known, otherwise=None)
        if is_needed is False:
            return
        needed = sentence("audit.needs", n=approval.needed, roles=", ".join(approval.roles))
        if self.own and is_needed:
            why = sentence("audit.no-approval", action=call.action, needed=needed)
            self._find("approval-missing", call.seq, why, severity=Severity.WARNING)
        else:
            self._leave(call, sentence("audit.approval-of", action=call.action, needed=needed))

    def find_claim(self, index: int) -> None:
        """Blame an agent that claims a goal which no call reached."""
        goals = ", ".join(f"`{goal}`" for goal in self.goals) or "the request"
        self._find("claimed-completion", index, sentence("audit.claimed-only", goals=goals))

    # --- the end ---------------------------------------------------------------------

    def judge_refusal(self, goal: str, absent: Collection[str]) -> None:
        """Look for the reason why a goal was not pursued; ``absent`` are tools that the trace
        says were not offered."""
        procedure = self.handbook.procedures[goal]
        missing = self.offered is not None and procedure.action not in self.offered
        hindered = missing or procedure.action in absent
        obstacle = sentence("audit.not-offered", action=procedure.action) if hindered else ""
        end = self.transcript.calls[-1].seq + 1 if self.transcript.calls else 0
        required = with_made(self.handbook, procedure, procedure.requires)
        grounds = Grounds(self.reading, self.transcript, required, self.offered)
        nothing, causes = grounds.nothing_shown(), grounds.causes()
        excused = grounds.exist() or self._may_be_excused(procedure, grounds)
        if self.own:  # without a machine, nothing tells the agent the time
            excused |= replace(grounds, reading=self.reading.without_time()).exist()
        if self.own or causes or obstacle or not excused:
            self.refusals.append(RefusedGoal(end, "p1", goal, "", tuple(causes), obstacle))
        else:
            # It may have been refused, claimed or forgotten: only its words say so.
            why = sentence("audit.refused-or-not", goal=goal)
            self.not_judged.append(
                NotJudged(Unjudgeable.NOT_IN_TRANSCRIPT, why, end, procedure.action)
            )
        if obstacle or excused:
            return
        sure = self.own and not replace(grounds, guessing=True).exist()
        self._find(
            "refusal-without-cause",
            end,
            sentence("audit.nothing-rules-out", goal=goal),
            sentence=procedure.says,
            severity=Severity.ERROR if sure or nothing else Severity.WARNING,
        )

    def _may_be_excused(self, procedure: Procedure, grounds: Grounds) -> bool:
        """Whether people or the user may have decided against a goal, outside of the calls."""
        if self.own:
            return False
        approval = self.handbook.actions[procedure.action].approval
        known = {**self.handbook.parameters, **grounds.values()}
        if approval is not None and needs_approval(
            approval.when, self.reading.judge, self.reading.now, known
        ):
            return True
        return may_be_withdrawn(self._last_words(), self._last_replies())

    def _last_call(self) -> int:
        return max((call.message for call in self.transcript.calls), default=-1)

    def _last_words(self) -> list[AgentWords]:
        said = self.transcript.agent_messages
        return [item for item in said if item.message > self._last_call()]

    def _last_replies(self) -> list[UserWords]:
        replies = self.transcript.user_messages[1:]
        return [item for item in replies if item.message > self._last_call()]

    def judge_last_words(self, goal: str) -> None:
        """An agent that didn't reach a goal may say that it did: only its words show that."""
        action, said = self.handbook.procedures[goal].action, self._last_words()
        silent = not any(item.text.strip() for item in said)
        if silent or self.not_judged or self._successes({action}):
            return
        if not reads_as_refusal("\n".join(item.text for item in said)):
            why = sentence("audit.refused-or-not", goal=goal)
            end = self.transcript.calls[-1].seq + 1 if self.transcript.calls else 0
            self.not_judged.append(NotJudged(Unjudgeable.NOT_IN_TRANSCRIPT, why, end, action))

    def _leave(self, call: SessionCall, why: str, predicate: str | None = None) -> None:
        missing = NotJudged(Unjudgeable.NOT_IN_TRANSCRIPT, why, call.seq, call.action, predicate)
        if (call.seq, predicate) not in {(item.seq, item.predicate) for item in self.not_judged}:
            self.not_judged.append(missing)

    def _find_leaf(
        self, code: str, call: SessionCall, leaf: Leaf, values: Mapping[str, JSON], why: str
    ) -> None:
        words = self.reading.sentence(leaf, values)
        self._find(code, call.seq, why, sentence=words, predicate=leaf.predicate)

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
    judge: Judge,
    session_id: str | None = None,
    head: Head | None = None,
    offered: Collection[str] | None = None,
) -> Report:
    """Judge a session without a machine. ``goal`` is the one that the user came for, ``chain``
    the events as they were sealed, ``offered`` the tools that the agent had, where known."""
    broken, whole = judge_chain(chain, session_id, head)
    try:
        transcript = transcript_of(events)
    except Unreadable as why:
        missing = NotJudged(why.reason, sentence("audit.call-withheld"))
        return not_judged(missing, session_id, chain=whole, findings=[broken] if broken else ())
    review = Review(
        Reading(handbook, judge),
        transcript,
        _pursued(handbook, transcript, goal),
        own=True,
        ended_as=_ended_as(events),
        offered=offered,
    )
    review.judge_calls()
    if review.goals and review.ended_as == EXECUTED and review.done_at() is None:
        review.find_claim(len(events) - 1)
    # An agent that ran out of turns, or could not be reached, has refused nothing.
    elif goal is not None and not review.attempted(goal) and review.ended_as != CUT_SHORT:
        others = [name for name in review.goals if name != goal]
        if not others or not _changed_to(events, others):
            review.judge_refusal(goal, _not_offered(events))
    report = review.report(session_id, whole)
    return report.with_findings([broken]) if broken is not None else report


EXECUTED, CUT_SHORT = "executed", "cut short"


def _ended_as(events: Sequence[Event]) -> str:
    """The agent's own word for its ending; ``CUT_SHORT`` where a budget or the model's provider
    ended the run before."""
    ending = ""
    for event in events:
        if event.note in ("budget", "infrastructure_failure"):
            ending = CUT_SHORT
        elif event.note == "end_session":
            ending = str(event.details.get("outcome", ""))
    return ending


def _not_offered(events: Sequence[Event]) -> set[str]:
    lists = (event.details.get("actions") for event in events if event.note == "not_offered")
    return {str(name) for names in lists if isinstance(names, list | tuple) for name in names}


def transcript_of(events: Sequence[Event]) -> Transcript:
    """The calls of a trace, under the numbers of their events."""
    calls: dict[str, SessionCall] = {}
    for event in events:
        payload = event.payload
        if event.kind not in ("domain_call", "domain_result"):
            continue
        name = str(payload["call_id"])
        if any(is_reference(value) for value in payload.values()):
            raise Unreadable
        if event.kind == "domain_call":
            calls[name] = SessionCall(
                event.seq, str(payload["action"]), payload["arguments"], message=event.seq
            )
        elif name in calls:
            call = calls[name]
            call.answered, call.ok, call.value = call.seq, payload["ok"], payload.get("value")
            call.unknown = payload.get("unknown") is True
    by_runtime = [event for event in events if event.actor == Actor.RUNTIME]
    read = [event for event in by_runtime if event.note == CLOCK]
    turns = _turns(events, "user_said")
    spoken = [*_turns(events, "assistant_said"), *turns[1:]]
    return Transcript(
        tuple(calls.values()),
        max(0, len(turns) - 1),
        # Words that are withheld may have been any: then nothing is known of any.
        "" if None in spoken else "\n".join(filter(None, spoken)),
        _named_values("\n".join(filter(None, turns))),
        times=tuple((event.seq, str(event.details.get("now", ""))) for event in read),
    )


def _pursued(handbook: Handbook, transcript: Transcript, goal: str | None) -> list[str]:
    """The goals whose actions were called, or else the one that the user came for."""
    goals = {item.action: name for name, item in handbook.procedures.items()}
    if goal is not None:
        goals[handbook.procedures[goal].action] = goal
    called = dict.fromkeys(goals[call.action] for call in transcript.calls if call.action in goals)
    return list(called) or ([goal] if goal is not None else [])


def _turns(events: Sequence[Event], kind: str) -> list[str | None]:
    """The messages of one side, ``None`` where withheld."""
    replies = [event.payload.get("text") for event in events if event.kind == kind]
    return [None if is_reference(text) else str(text) for text in replies]


_LINE = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*): (.+)$", re.MULTILINE)


def _named_values(text: str) -> dict[str, JSON]:
    """Values that the user gave by name, one per line; the last counts."""
    return {name: plain(read_value(value)) for name, value in _LINE.findall(text)}


def _changed_to(events: Sequence[Event], goals: Sequence[str]) -> bool:
    """Whether the user asked for one of the goals after the first request, or may have."""
    reply = _turns(events, "user_said")[1:]
    if None in reply:
        return True
    later = " ".join(filter(None, reply)).lower().replace("_", " ")
    return any(re.search(rf"\b{re.escape(goal.replace('_', ' '))}\b", later) for goal in goals)
