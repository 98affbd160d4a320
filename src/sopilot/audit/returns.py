"""Judging a return: is there evidence, is it the right evidence, does it say so.

Call, return, reuse, branch and emit, made again from the events.

Where values learned on the way go: the frame, the callers that passed the name, the process.

Whether a verdict of a process may be taken over at a later check, by the trace alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sopilot.audit.acceptance import condition_truth
from sopilot.audit.call_reading import moment_of, passed_along
from sopilot.audit.calls import (
    Cited,
    answers,
    cite,
    cited_number,
    covered,
    gathered,
    is_admissible,
    named_answers,
)
from sopilot.audit.guarded_calls import disagree
from sopilot.audit.leaf_reading import (
    AuditGrade,
    Moment,
    Unreadable,
    disturbed_by,
    grade_of,
    judged_for,
)
from sopilot.audit.state import (
    AuditState,
    BoundSlot,
    CheckMade,
    Contradiction,
    FrameView,
    Judged,
    ProcessView,
    ResolvedFunction,
    SeenResult,
    UnmetCheck,
    boolean,
    expect,
    found_sentence,
    has_withheld,
    mapping,
    newest_answer,
)
from sopilot.handbook.requirements import Path
from sopilot.handbook.wording import fill
from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import SopilotError
from sopilot.program.model import (
    Act,
    Ask,
    Branch,
    Check,
    Choose,
    Condition,
    Do,
    Emit,
    Kind,
    Literal,
    ReturnStep,
    Unknown,
)
from sopilot.trace.events import Event
from sopilot.values.json import JSON, MISSING, key_of


def learn(process: ProcessView, name: str, value: JSON, learned: dict[str, JSON]) -> None:
    """Under ``name`` in the top frame, and upwards under the callers' names for it."""
    learned[name] = value
    for depth in range(len(process.frames) - 1, -1, -1):
        frame = process.frames[depth]
        frame.values = {**frame.values, name: value}
        if depth == 0 or name not in frame.code.function.parameters:
            process.known[name] = value
            return
        caller = process.frames[depth - 1]
        step = caller.step
        passed = dict(step.arguments).get(name) if isinstance(step, Check) else None
        if passed is None or isinstance(passed, Literal):
            return
        name = passed.name


def learn_beside(
    process: ProcessView,
    frame: FrameView,
    supplied: Mapping[str, JSON],
    learned: dict[str, JSON],
) -> None:
    """Values under names that the function knows of, beside the ones that a step needs."""
    for name, given in supplied.items():
        if given is None:
            continue
        if name in frame.code.learnable:
            learn(process, name, given, learned)
        elif name in frame.code.function.parameters:
            have = frame.values.get(name, MISSING)
            if have is MISSING:
                learn(process, name, given, learned)
            elif not process.say_the_same(have, given):
                raise Contradiction(f"`{name}` is known to be another value here")
        else:
            raise Contradiction(f"nothing here is called `{name}`")


def learn_from_call(
    process: ProcessView,
    frame: FrameView,
    act: Act,
    arguments: Mapping[str, JSON],
    learned: dict[str, JSON],
) -> None:
    """What a successful call tells about names that had no value."""
    for parameter, term in act.arguments:
        if isinstance(term, Literal | Path) or parameter not in arguments:
            continue
        have = process.value_of(term, frame)
        used = arguments[parameter]
        if have is MISSING or (isinstance(term, Unknown) and not process.say_the_same(have, used)):
            learn(process, term.name, used, learned)


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
        if self.holds is not None and not grade:
            needs = False  # not judged, so neither covered nor uncovered
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
        """By the trace alone; none where a value that it needs is withheld."""
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
        except Unreadable as why:
            explanation = f"the verdict on `{self.predicate}` rests on it"
            self.run.leave_unjudged(
                self.event, explanation, reason=why.reason, predicate=self.predicate
            )
            return ""
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


def standing_verdict(
    run: AuditState, process: ProcessView, step: Check, values: Mapping[str, JSON]
) -> BoundSlot | None:
    """The latest verdict for the same values, if its evidence is whole, newest and fresh."""
    code = process.program.functions[step.function]
    given = judged_for(process, code, values)
    if not code.judges or given is None or given.holds is None:
        return None
    if code.recipes:
        results = [one for one in process.results if one.seq in given.evidence]
        moment = moment_of(run, process, process.known)
        if not all(_is_current(moment, one) for one in results):
            return None
        frame = FrameView(code, code.first(), dict(values), step.slot, -1, "")
        frame.borrowed = list(given.evidence)
        answered = [one for one in results if one.ok]
        failed = not _asks(code) and any(
            not one.ok and is_admissible(process, frame, one) for one in results
        )
        if not failed and not covered(process, frame, answered):
            return None
    elif _asks(code):
        return None
    return BoundSlot(given.holds, given.evidence, given.seq, given.function)


def _is_current(moment: Moment, result: SeenResult) -> bool:
    newest = newest_answer(moment.calls, result.action, result.arguments)
    return (
        newest is not None
        and newest.answered == result.seq
        and not moment.is_elsewhere(newest.action, newest.seq)
        and disturbed_by(moment, newest) is None
    )


def _asks(code: ResolvedFunction) -> bool:
    """What only the user said may be another by now."""
    return any(isinstance(step, Ask) for step in code.function.steps) or any(
        isinstance(term, Unknown) for act in code.acts for _, term in act.arguments
    )


def call(run: AuditState, event: Event) -> None:
    process, frame = run.here()
    step = frame.step
    if not isinstance(step, Check):
        raise Contradiction("a call where the program checks nothing")
    process.set_aside = False
    named = event.payload.get("function")
    if named is not None and named != step.function:
        raise Contradiction(f"the step calls `{step.function}`, not `{named}`")
    learned: dict[str, JSON] = {}
    values = _resolved(process, frame, step, mapping(event.payload, "arguments"), learned)
    expect(event.payload, "resolved", values)
    expect(event.payload, "slot", step.slot)
    expect(event.payload, "learned", learned)
    callee = process.program.functions[step.function]
    process.frames.append(
        FrameView(
            callee,
            callee.first(),
            values,
            step.slot,
            event.seq,
            f"{frame.path}/{step.function}",
        )
    )


def _resolved(
    process: ProcessView,
    frame: FrameView,
    step: Check,
    supplied: dict[str, JSON],
    learned: dict[str, JSON],
) -> dict[str, JSON]:
    values: dict[str, JSON] = {}
    parameters = {parameter for parameter, _ in step.arguments}
    for parameter, term in step.arguments:
        have = process.value_of(term, frame)
        given = supplied.pop(parameter, None)
        if given is None and not isinstance(term, Literal) and term.name not in parameters:
            given = supplied.pop(term.name, None)
        if given is None:
            if have is not MISSING:
                values[parameter] = have
        elif have is not MISSING and not isinstance(term, Unknown):
            if not process.say_the_same(have, given):
                raise Contradiction(f"`{parameter}` is known to be another value here")
            values[parameter] = have
        else:
            values[parameter] = given
            if not isinstance(term, Literal) and (
                have is MISSING or not process.say_the_same(have, given)
            ):
                learn(process, term.name, given, learned)
    learn_beside(process, frame, supplied, learned)
    return values


def give_back(run: AuditState, event: Event) -> None:
    process, frame = run.here()
    payload = event.payload
    kind = frame.code.function.kind
    if len(process.frames) < 2:
        raise Contradiction("a return where nothing was called")
    holds = _verdict(run, event, frame)
    citations = payload.get("evidence", [])
    if not isinstance(citations, list) or not all(isinstance(one, str) for one in citations):
        raise Contradiction("`evidence` is not a list of strings")
    learned: dict[str, JSON] = {}
    cited = cite(process, frame, citations)
    if frame.code.judges:
        ReturnReview(run, event, process, frame, holds, cited).judge()
    supplied = mapping(payload, "arguments")
    if supplied:
        learn_beside(process, frame, supplied, learned)
    caller = process.frames[-2]
    step = caller.step
    if not isinstance(step, Check):
        raise Contradiction("the caller waits for no result")
    blamed = frozenset[int]() if frame.code.judges else frame.to_blame()
    binding = BoundSlot(holds, cited.evidence, event.seq, frame.code.function.name, blamed)
    expect(payload, "opened", frame.opened)
    expect(payload, "function", binding.function)
    expect(payload, "function_kind", str(kind))
    expect(payload, "slot", step.slot)
    expect(payload, "bound", cited.as_payload(holds))
    expect(payload, "learned", learned)
    process.frames.pop()
    run.producers[event.seq] = frame.opened
    own = {
        name: frame.values[name] for name in frame.code.function.parameters if name in frame.values
    }
    if frame.code.judges:
        process.judged.append(
            Judged(binding.function, own, holds, cited.evidence, event.seq, frame.opened)
        )
    if frame.code.judges and holds != step.wanted:
        process.unmet.append(_unmet(run, process, frame, step, binding))
    _bind(process, caller, step, binding)
    if kind is Kind.GATE and holds:
        process.gates[(binding.function, key_of(own))] = binding


def _verdict(run: AuditState, event: Event, frame: FrameView) -> bool | None:
    step = frame.step
    if not frame.code.judges and not isinstance(step, ReturnStep):
        raise Contradiction("a group returns before its end")
    condition = step.holds if isinstance(step, ReturnStep) else None
    if condition is None:
        if event.payload.get("undecided") is True:
            return None
        return boolean(event.payload, "holds")
    computed = _truth(condition, frame.slots)
    claimed = event.payload.get("holds")
    if claimed is not None and claimed is not computed:
        run.find(
            "wrong-branch",
            event,
            f"`{frame.code.function.name}` returned {_word_of(bool(claimed))}, its bound results "
            f"make it {_word_of(computed)}",
            sentence=run.sentence_of(run.here()[0], frame),
        )
        run.here()[0].lost = True
    return computed


def _unmet(
    run: AuditState, process: ProcessView, frame: FrameView, step: Check, binding: BoundSlot
) -> UnmetCheck:
    function = frame.code.function
    return UnmetCheck(
        function.judges,
        function.name,
        run.sentence_of(process, frame, wanted=step.wanted) or step.says,
        found_sentence(
            function, process.program.program.constants, frame.values, holds=binding.holds
        ),
        function.remedy,
        fill(function.customer_message, process.program.program.constants),
        binding.holds,
        binding.evidence,
        binding.producer,
    )


def _bind(process: ProcessView, frame: FrameView, step: Check, binding: BoundSlot) -> None:
    frame.slots = {**frame.slots, step.slot: binding}
    frame.cursor = frame.code.target(step, binding.holds)


def reuse(run: AuditState, event: Event) -> None:
    process, frame = run.here()
    step = frame.step
    expect(event.payload, "label", step.label)
    if "result" in event.payload:
        _take_over(run, event, process, frame)
        return
    if not isinstance(step, Check):
        raise Contradiction("a result is reused where nothing is checked")
    binding = frame.slots.get(step.slot)
    if binding is None:
        values = {}
        for parameter, term in step.arguments:
            value = process.value_of(term, frame)
            if value is MISSING:
                raise Contradiction("a verdict is reused although its values are not known")
            values[parameter] = value
        binding = process.gates.get((step.function, key_of(values)))
        binding = binding or standing_verdict(run, process, step, values)
    if binding is None:
        raise Contradiction("a result is reused that nothing produced, or that no longer stands")
    expect(event.payload, "slot", step.slot)
    expect(event.payload, "function", step.function)
    expect(event.payload, "producer", binding.producer)
    expect(event.payload, "evidence", list(binding.evidence))
    expect(event.payload, "holds", binding.holds)
    if binding.producer not in run.producers:
        raise Contradiction(f"#{binding.producer} is no return")
    run.reused += 1
    judged = process.program.functions[step.function]
    told = any(one.producer == binding.producer for one in process.unmet)
    if judged.judges and binding.holds != step.wanted and not told:
        values = passed_along((step.arguments,), {**process.known, **frame.values})
        seen = FrameView(judged, judged.first(), values, step.slot, -1, "")
        process.unmet.append(_unmet(run, process, seen, step, binding))
    _bind(process, frame, step, binding)


def _take_over(run: AuditState, event: Event, process: ProcessView, frame: FrameView) -> None:
    """An earlier, fresh success of the same call passes an act of a rule."""
    step = frame.step
    wanted = event.payload["result"]
    result = next((one for one in process.results if one.seq == wanted), None)
    if not isinstance(step, Act) or not frame.code.judges or result is None:
        raise Contradiction("evidence is taken over that is not there")
    if not result.ok or result.seq <= run.goal_seq or not answers(process, frame, step, result):
        raise Contradiction(f"#{result.seq} does not answer the step")
    expect(event.payload, "evidence", [result.seq])
    frame.borrowed.append(result.seq)
    frame.cursor = frame.code.following(step)
    run.reused += 1


def select_branch(run: AuditState, event: Event) -> None:
    process, frame = run.here()
    step = frame.step
    option = event.payload.get("option")
    if isinstance(step, Branch):
        right = step.then if _truth(step.when, frame.slots) else step.otherwise
        taken = event.payload.get("target")
        contradicted = isinstance(option, str) and _means(step, option) not in (None, right)
        if taken != right or contradicted:
            run.find(
                "wrong-branch",
                event,
                f"the branch at `{step.label}` went against the bound results, which lead to "
                f"`{right}`",
                process=process,
                sentence=run.sentence_of(process, frame),
            )
            process.lost = True
            return
        target = right
    elif isinstance(step, Choose):
        named = [one.target for one in step.options if one.name == option]
        if not named:
            raise Contradiction(f"`{option}` is no option here")
        target = named[0]
    elif isinstance(step, Ask | Do) and option in (None, "next"):
        target = frame.code.following(step)
        if isinstance(step, Do):
            process.done.append((frame.code.function.name, step.label, {}))
    else:
        raise Contradiction("a branch is taken where there is none")
    expect(event.payload, "label", step.label)
    expect(event.payload, "target", target)
    frame.cursor = target


def _means(step: Branch, option: str) -> str | None:
    """The label that an option asks for."""
    word = option.lower()
    if option in (step.then, step.otherwise):
        return option
    if word in ("then", "true", "yes", "met"):
        return step.then
    if word in ("otherwise", "else", "false", "no", "unmet"):
        return step.otherwise
    return None


def emit(run: AuditState, event: Event) -> None:
    process, frame = run.here()
    step = frame.step
    if not isinstance(step, Emit) or event.payload.get("name") != step.artifact:
        raise Contradiction("an artifact is handed over where none is due")
    expect(event.payload, "label", step.label)
    process.done.append((frame.code.function.name, step.label, {}))
    frame.cursor = frame.code.following(step)


def _truth(condition: Condition, slots: Mapping[str, BoundSlot]) -> bool:
    """As the machine decides: an unbound slot satisfies nothing."""
    return condition_truth(condition, {name: bound.side for name, bound in slots.items()}) is True


def _word_of(holds: bool) -> str:
    return "true" if holds else "false"
