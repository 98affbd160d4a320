"""The proof that a trace holds of one rule or gate, for given values, at one moment.

The clauses P1–P14 of ``design/proof.md``, read from the list of calls. The guard has a proof of
its own, which this module must not import: the two are there to contradict each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sopilot.audit.findings import Unjudgeable
from sopilot.audit.state import (
    AuditState,
    Judged,
    ProcessView,
    SessionCall,
    calls_of,
    newest_answer,
)
from sopilot.handbook.requirements import Constant, Path
from sopilot.machine.layout import FunctionLayout, Position
from sopilot.machine.recipes import MOST_ELEMENTS
from sopilot.machine.state import ProofLevel
from sopilot.messages.catalogue import sentence
from sopilot.messages.errors import SopilotError
from sopilot.program.model import Act, ActionFacts, Function, Kind, Local, Unknown
from sopilot.trace.redaction import has_withheld, is_reference
from sopilot.values.answers import is_decisive
from sopilot.values.json import (
    JSON,
    MISSING,
    Judge,
    Missing,
    holds_stand_in,
    look_the_same,
    same,
    shown,
    spell,
)
from sopilot.values.schema import violation


class Unreadable(Exception):
    """A value that the proof needs is withheld, or no evaluator for verdicts is available."""

    def __init__(self, reason: Unjudgeable = Unjudgeable.SECRET) -> None:
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Moment:
    """The trace up to an event. ``known`` are the process's values."""

    run: AuditState
    process: ProcessView
    known: Mapping[str, JSON]

    def is_elsewhere(self, action: str, seq: int) -> bool:
        """P8: whether an action was on an earlier connection then, and its state isn't shared."""
        facts = self.run.facts.get(action)
        shared = facts is not None and facts.shared
        return not shared and seq < self.run.connected.get(action, -1)

    def touches(self, action: str, verifier: str) -> bool:
        return touches(self.run.facts, self.run.goal_actions, action, verifier)

    def newest(self, action: str, arguments: Mapping[str, JSON]) -> SessionCall | None:
        return newest_answer(self.run.session_calls, action, arguments)

    def evidence(self, layout: FunctionLayout, values: Mapping[str, JSON]) -> LeafEvidence:
        """The evidence for a rule or gate by then."""
        kind = GateEvidence if layout.function.kind is Kind.GATE else LeafEvidence
        return kind(self, layout, values)

    def read(self, layout: FunctionLayout, values: Mapping[str, JSON]) -> LeafReading:
        """The verdict that the trace proves for these values."""
        return self.evidence(layout, values).read()


def touches(
    facts: Mapping[str, ActionFacts], goal_actions: frozenset[str], action: str, verifier: str
) -> bool:
    """P5: whether an action may change what a verifier reads. Programs that guard nothing carry
    no facts: there only what a program is for changes anything."""
    if not facts:
        return action in goal_actions
    changed = facts[action].changes if action in facts else None
    read = facts[verifier].reads if verifier in facts else None
    if changed is None or read is None:
        return changed != ()
    return any(topic in read for topic in changed)


@dataclass(frozen=True, slots=True)
class Lack:
    """The finding for the clause that fails, and why it does."""

    code: str
    why: str


@dataclass(frozen=True, slots=True)
class RecipeAnswers:
    """The answers to one whole recipe, by the names that it gives them (P7)."""

    named: Mapping[str, JSON]
    last: JSON
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LeafReading:
    """``holds`` is ``None`` where it is undecided; ``lack`` then says what is missing."""

    function: str
    predicate: str
    values: Mapping[str, JSON]
    holds: bool | None
    grade: ProofLevel = ProofLevel.CLAIMED
    evidence: tuple[int, ...] = ()
    lack: Lack | None = None
    wanted: bool = True


VALUE, NOTHING, OTHER, PART = (
    "unproven-value",
    "unproven-evidence",
    "evidence-wrong-arguments",
    "incomplete-evidence",
)
NEWER, STALE, VERDICT = "evidence-superseded", "evidence-stale", "unproven-verdict"
MODEL, GATE = "model-verdict", "gate-shut"
FURTHEST = (NOTHING, OTHER, VALUE, PART, NEWER, STALE, VERDICT)
"""Of several recipes the one that got furthest says what is missing."""


class LeafEvidence:
    """The evidence for a rule, for given values, at a moment: ``answers`` has P1 to P5, ``verdict``
    P6 and P7."""

    def __init__(self, moment: Moment, layout: FunctionLayout, values: Mapping[str, JSON]) -> None:
        self.moment = moment
        self.layout = layout
        self.values = values

    def read(self) -> LeafReading:
        function = self.layout.function
        if has_withheld(dict(self.values)):
            raise Unreadable
        for name in function.parameters:
            if self.values.get(name) is None and name not in function.optional:
                return self._lacking(VALUE, sentence("no-value", name=name))
        return self._read()

    def _read(self) -> LeafReading:
        ways = [self.answers(recipe) for recipe in self.layout.recipes]
        whole = [way for way in ways if isinstance(way, RecipeAnswers)]
        if not self.layout.recipes:
            whole = [RecipeAnswers({}, None, ())]
        if not whole:
            lacks = [way for way in ways if isinstance(way, Lack)]
            return self._reading(lack=max(lacks, key=lambda item: FURTHEST.index(item.code)))
        return self._by_model(whole) if self.layout.function.verdict is None else self._by(whole)

    def _by(self, whole: Sequence[RecipeAnswers]) -> LeafReading:
        """By the machine's verdict over the answers."""
        replies = [(self.verdict(answers), answers) for answers in whole]
        sides = {holds for holds, _ in replies if holds is not None}
        if len(sides) != 1:
            code = "contradicting-ways" if sides else "answers-cannot-tell"
            return self._lacking(VERDICT, sentence(code))
        holds, on = next(item for item in replies if item[0] is not None)
        grade = ProofLevel.STATED if self.layout.function.question else ProofLevel.PROVEN
        return self._reading(holds, grade, on.evidence)

    def _by_model(self, whole: Sequence[RecipeAnswers]) -> LeafReading:
        """The executor's latest verdict in this process, for these values, on these answers."""
        judged = judged_for(self.moment.process, self.layout, self.values)
        if judged is None:
            return self._lacking(NOTHING, sentence("not-judged"))
        for answers in whole:
            if all(self._was_judged(seq, judged) for seq in answers.evidence):
                undecided = Lack(VERDICT, sentence("judged-undecided"))
                lack = None if judged.holds is not None else undecided
                return self._reading(judged.holds, ProofLevel.ATTESTED, answers.evidence, lack)
        return self._lacking(NEWER, sentence("judged-on-older", seq=judged.seq))

    def _was_judged(self, seq: int, judged: Judged) -> bool:
        """Whether the verdict was given on this answer, or on one to the same call that said the
        same: reading once more and finding nothing new takes no verdict away."""
        if seq in judged.evidence:
            return True
        calls = self.moment.run.session_calls
        (newest,) = (call for call in calls if call.answered == seq)
        if has_withheld(newest.value):
            raise Unreadable
        return not holds_stand_in(newest.value) and any(
            item.answered in judged.evidence and item.ok and same(item.value, newest.value)
            for item in calls_of(calls, newest.action, newest.arguments)
        )

    def covers(self, cited: frozenset[int]) -> bool:
        """Whether the cited results are the newest answers to all calls of some recipe."""
        if any(self.values.get(name) is None for name in self.layout.function.parameters):
            return False
        ways = (self.answers(recipe) for recipe in self.layout.recipes)
        return not self.layout.recipes or any(
            isinstance(way, RecipeAnswers) and cited.issuperset(way.evidence) for way in ways
        )

    def _reading(
        self,
        holds: bool | None = None,
        grade: ProofLevel = ProofLevel.CLAIMED,
        evidence: tuple[int, ...] = (),
        lack: Lack | None = None,
    ) -> LeafReading:
        function = self.layout.function
        values = dict(self.values)
        return LeafReading(function.name, function.judges, values, holds, grade, evidence, lack)

    def _lacking(self, code: str, why: str) -> LeafReading:
        return self._reading(lack=Lack(code, why))

    # --- the verdict over answers -------------------------------------------------------

    def verdict(self, answers: RecipeAnswers) -> bool | None:
        """P6: on exactly these answers. An error is no verdict."""
        moment, function = self.moment, self.layout.function
        assert function.verdict is not None
        if moment.run.judge is None:
            raise Unreadable(Unjudgeable.NO_JUDGE)
        learned = {
            name: moment.known[name] for name in self.layout.learnable if name in moment.known
        }
        variables: dict[str, JSON] = {"now": moment.run.clock} if moment.run.clock else {}
        variables |= {**moment.process.program.program.constants, **learned}
        variables |= {**dict.fromkeys(function.optional), **self.values}
        variables["results"], variables["result"] = dict(answers.named), answers.last
        if has_withheld(variables):
            return _without_secrets(moment.run.judge, function.verdict, variables)
        try:
            return moment.run.judge(function.verdict, variables)
        except SopilotError:
            return None

    # --- the answers to a recipe --------------------------------------------------------

    def answers(self, recipe: Sequence[Act]) -> RecipeAnswers | Lack:
        """P2, P3: the answers to exactly the calls of one recipe, every one of them."""
        named: dict[str, JSON] = {}
        evidence: set[int] = set()
        for act in recipe:
            wanted = self._asked_calls(act, named)
            if isinstance(wanted, Lack):
                return wanted
            answered: list[SessionCall] = []
            for arguments in wanted:
                item = self._answer_to(act, arguments)
                if item is None:
                    begun = bool(evidence or answered)
                    return self._unmade(recipe, act, arguments, named, begun=begun)
                if isinstance(item, Lack):
                    return item
                answered.append(item)
            evidence |= {call.answered for call in answered if call.answered is not None}
            values = [call.value for call in answered]
            named[act.answer] = values if act.each is not None else values[0]
        return RecipeAnswers(named, named[recipe[-1].answer], tuple(sorted(evidence)))

    def _asked_calls(self, act: Act, named: Mapping[str, JSON]) -> list[dict[str, JSON]] | Lack:
        """The arguments of each call that ``act`` stands for, its terms evaluated (P1, P2);
        ``named`` are the answers so far."""
        parameters = self.layout.function.parameters
        named = {**{name: self.values[name] for name in parameters if name in self.values}, **named}
        scopes: list[Mapping[str, JSON]] = [named]
        if act.each is not None:
            listed = at_place(act.each, named)
            if not isinstance(listed, list):
                return Lack(PART, sentence("audit.not-a-list", path=act.each))
            if len(listed) > MOST_ELEMENTS:
                why = sentence("audit.list-too-long", path=act.each, most=MOST_ELEMENTS)
                return Lack(PART, why)
            scopes = [{**named, act.element: item} for item in listed]
        calls: list[dict[str, JSON]] = []
        for scope in scopes:
            arguments = self._arguments(act, scope)
            if isinstance(arguments, Lack):
                return arguments
            if has_withheld(arguments):
                raise Unreadable
            calls.append(arguments)
        return calls

    def _arguments(self, act: Act, scope: Mapping[str, JSON]) -> dict[str, JSON] | Lack:
        function = self.layout.function
        arguments: dict[str, JSON] = {}
        for parameter, term in act.arguments:
            if isinstance(term, Constant):
                arguments[parameter] = term.value
                continue
            if isinstance(term, Path):
                value = at_place(term, scope)
                if value is MISSING or value is None:
                    return Lack(PART, sentence("audit.nothing-at", path=term))
            else:
                own = term.name in function.parameters
                value = (self.values if own else self.moment.known).get(term.name)
                if value is None and term.name in function.optional:
                    continue
                if value is None:
                    return Lack(VALUE, sentence("no-value", name=term.name))
            arguments[parameter] = value
        return arguments

    def _answer_to(self, act: Act, arguments: Mapping[str, JSON]) -> SessionCall | Lack | None:
        """The newest and fresh answer to one call; ``None`` where it was never made."""
        moment, shown = self.moment, spelled_call(act.action, arguments)
        mistyped = mistyped_input(moment.run.facts, act.action, arguments)
        if mistyped:
            return Lack(VALUE, sentence("audit.not-askable", call=shown, name=mistyped))
        newest = moment.newest(act.action, arguments)
        if newest is None:
            return None
        if newest.awaited:
            return Lack(NEWER, sentence("audit.awaited", call=shown, seq=newest.seq))
        if is_reference(newest.value):
            raise Unreadable
        # Where nothing is guarded a tool may say no by failing with `false`.
        if not newest.ok and (moment.run.facts or not isinstance(newest.value, bool)):
            return Lack(NEWER, sentence("failed-last-at", call=shown, seq=newest.answered))
        for later in moment.run.session_calls:
            if self._is_with_more(later, newest, arguments):
                return Lack(NEWER, sentence("called-with-more", call=shown, seq=later.seq))
        if moment.is_elsewhere(act.action, newest.seq):
            why = sentence("audit.earlier-connection", call=shown, seq=newest.answered)
            return Lack(STALE, why)
        change = self._disturbed_by(newest)
        if change is None:
            return newest
        code = "served-already" if newest.answered in change.uses else "changed-since"
        by = {"seq": newest.answered, "action": change.action, "change": change.seq}
        return Lack(STALE, sentence(f"audit.{code}", call=shown, **by))

    def _is_with_more(
        self, later: SessionCall, newest: SessionCall, arguments: Mapping[str, JSON]
    ) -> bool:
        """P4: whether the same was asked since, with arguments that the action does not know."""
        if later.action != newest.action or later.answered_at() <= newest.answered_at():
            return False
        facts = self.moment.run.facts.get(newest.action)
        known = facts.inputs if facts is not None else {}
        more = later.arguments.keys() - arguments.keys()
        shared = {name: item for name, item in later.arguments.items() if name in arguments}
        return bool(more) and more.isdisjoint(known) and same(shared, dict(arguments))

    def _disturbed_by(self, answer: SessionCall) -> SessionCall | None:
        """P5: a call that may have changed what ``answer`` reads since it was asked for: the one
        that it answers, where a verifier changes what it reads. P9: a call that used it up."""
        if self.moment.touches(answer.action, answer.action):
            return answer
        for call in self.moment.run.session_calls:
            if not call.may_have_run or call.done_by() < answer.seq:
                continue
            if self.moment.touches(call.action, answer.action) or answer.answered in call.uses:
                return call
        return None

    def _unmade(
        self,
        recipe: Sequence[Act],
        act: Act,
        missing: Mapping[str, JSON],
        named: Mapping[str, JSON],
        *,
        begun: bool,
    ) -> Lack:
        """Why an answer to a call of the recipe is missing: only part of the recipe was called,
        another call was made, or none."""
        others = [other for other in recipe if other is not act]
        begun = begun or any(
            self.moment.newest(other.action, arguments) is not None
            for other, arguments in self._calls_for(others, named)
        )
        same_action = [other for other in recipe if other.action == act.action]
        ours = [arguments for _, arguments in self._calls_for(same_action, named)]
        foreign = [
            call
            for call in self.moment.run.session_calls
            if call.action == act.action
            and not any(same(dict(call.arguments), arguments) for arguments in ours)
        ]
        judged_in = {
            judged.opened
            for judged in self.moment.process.judged
            if judged.function == self.layout.function.name
        }
        call = spelled_call(act.action, missing)
        if any(item.opened in judged_in for item in foreign) or (foreign and not begun):
            last = foreign[-1]
            other = spelled_call(last.action, last.arguments)
            return Lack(OTHER, sentence("audit.other-called", call=call, other=other, seq=last.seq))
        return Lack(PART if begun else NOTHING, sentence("not-called", call=call))

    def _calls_for(
        self, acts: Iterable[Act], named: Mapping[str, JSON]
    ) -> Iterator[tuple[Act, dict[str, JSON]]]:
        """Every call that the acts stand for, as far as that can be told."""
        for act in acts:
            wanted = self._asked_calls(act, named)
            if not isinstance(wanted, Lack):
                yield from ((act, arguments) for arguments in wanted)

    def rests_on(self, call: SessionCall) -> bool:
        """Whether some recipe asks for exactly this call, as far as it can be followed."""
        return any(self._asks_for(recipe, call) for recipe in self.layout.recipes)

    def _asks_for(self, recipe: Sequence[Act], call: SessionCall) -> bool:
        named: dict[str, JSON] = {}
        for act in recipe:
            try:
                wanted = self._asked_calls(act, named)
            except Unreadable:
                return False
            if isinstance(wanted, Lack):
                continue
            if act.action == call.action and any(
                same(arguments, dict(call.arguments)) for arguments in wanted
            ):
                return True
            newest = [self.moment.newest(act.action, arguments) for arguments in wanted]
            values = [answer.value for answer in newest if answer is not None and answer.ok]
            if len(values) == len(wanted):
                named[act.answer] = values if act.each is not None else values[0]
        return False

    # --- what an approval without the proof is for (P14) ----------------------------------

    def last_answers(self) -> list[JSON]:
        """The last answers to the calls, as far as the recipes can be followed."""
        result: list[JSON] = []
        for recipe in self.layout.recipes:
            named: dict[str, JSON] = {}
            for act in recipe:
                wanted = self._asked_calls(act, named)
                if isinstance(wanted, Lack):
                    break
                last = [self._last_answer(act, arguments) for arguments in wanted]
                made = [call for call in last if call is not None]
                result += [[act.action, dict(call.arguments), call.ok, call.value] for call in made]
                if len(made) < len(last) or not all(call.ok for call in made):
                    break
                values = [call.value for call in made]
                named[act.answer] = values if act.each is not None else values[0]
        return result

    def _last_answer(self, act: Act, arguments: Mapping[str, JSON]) -> SessionCall | None:
        calls = calls_of(self.moment.run.session_calls, act.action, arguments)
        answered = (item for item in calls if not item.awaited)
        return max(answered, key=SessionCall.done_by, default=None)

    def last_change(self) -> int:
        """The last event that may have changed what is read; a new connection is such an event."""
        moment = self.moment
        actions = {act.action for recipe in self.layout.recipes for act in recipe}
        changes = [
            call.seq if call.answered is None else call.answered
            for call in moment.run.session_calls
            if call.may_have_run and self._may_change(call.action, actions)
        ]
        connected = [
            moment.run.connected[action] for action in actions if moment.is_elsewhere(action, -1)
        ]
        return max([*changes, *connected], default=-1)

    def _may_change(self, action: str, verifiers: set[str]) -> bool:
        return any(self.moment.touches(action, verifier) for verifier in verifiers)


_WORD = re.compile(r"\w+")


def _without_secrets(judge: Judge, verdict: str, variables: Mapping[str, JSON]) -> bool | None:
    """The verdict where a secret field of an answer is withheld and the verdict doesn't name that
    field: with a stand-in for it and without it the verdict must come out the same."""
    if not set(_WORD.findall(verdict)).isdisjoint(_withheld_names("", variables)):
        raise Unreadable
    try:
        with_stand_ins = judge(verdict, _shown(variables, stand_in=True))
        without = judge(verdict, _shown(variables, stand_in=False))
    except SopilotError:
        raise Unreadable from None
    if with_stand_ins is not without:
        raise Unreadable
    return without


def _withheld_names(name: str, value: JSON) -> Iterator[str]:
    """The names right above what is withheld."""
    if is_reference(value):
        yield name
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _withheld_names(key, item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _withheld_names(name, item)


def _shown(value: Mapping[str, JSON], *, stand_in: bool) -> dict[str, JSON]:
    """Equal secrets have equal stand-ins."""

    def show(item: JSON) -> JSON:
        if is_reference(item):
            return spell(item)
        if isinstance(item, Mapping):
            return _shown(item, stand_in=stand_in)
        return [show(entry) for entry in item] if isinstance(item, list | tuple) else item

    return {key: show(item) for key, item in value.items() if stand_in or not is_reference(item)}


# --- gates ----------------------------------------------------------------------------------


_SAYING_NO = {len(spelled) for spelled in ("false", "null", "true")}
"""The sizes of a withheld field that may be `false`, `null` or `true`; any other is data."""


def opens(gate: Function, answer: JSON) -> bool:
    """Whether an answer opens the gate, before its verdict; ``Unreadable`` if what decides it is
    withheld."""
    if gate.verdict is None and not gate.is_fact:
        fields = answer.items() if isinstance(answer, Mapping) else ()
        hidden = [(name, item["bytes"]) for name, item in fields if is_reference(item)]
        if is_reference(answer) or any(
            is_decisive(name) or size in _SAYING_NO for name, size in hidden
        ):
            raise Unreadable
    return gate.opened_by(answer)


class GateEvidence(LeafEvidence):
    """The evidence for a gate: shut by one of its calls that is shut, open where all are open and
    its verdict says so."""

    def _read(self) -> LeafReading:
        openings = {act: self._opening(act) for act in self.layout.recipes[0]}
        readings = [opening for opening in openings.values() if isinstance(opening, LeafReading)]
        for reading in sorted(readings, key=lambda item: item.holds is None):
            return reading
        calls = {act: item for act, item in openings.items() if isinstance(item, SessionCall)}
        return self._opened(calls)

    def _opening(self, act: Act) -> SessionCall | LeafReading:
        """The success of one call that opens it, until one that closes it; otherwise shut. Neither
        is shown where the two overlap, or where a call may have been about this gate and may
        not."""
        moment, function = self.moment, self.layout.function
        closing = function.closed_by
        opening = self._calls(act)
        closings = self._calls(closing) if closing is not None else []
        others: list[SessionCall] = []
        if function.principal:
            closings = closings + self._other_customers(act)
            others = self._named_others(act)
        # No check made the call of a fact, so it may have had further inputs.
        facts = moment.run.facts.get(act.action) if function.is_fact else None
        besides = frozenset(facts.inputs) if facts is not None else frozenset[str]()
        for success in _successes(act, self.values, opening, besides):
            if all(other.done_by() < success.seq for other in closings):
                elsewhere = moment.is_elsewhere(act.action, success.seq)
                return self._elsewhere(act) if elsewhere else success
        ended = _successes(closing, self.values, closings) if closing is not None else []
        ended = sorted([*ended, *others], key=lambda item: -item.seq)
        shut = [item for item in ended if all(other.done_by() < item.seq for other in opening)]
        if opening and shut and moment.is_elsewhere(act.action, shut[0].seq):
            return self._elsewhere(act)
        if not opening or shut:
            last = shut[0].answered if opening else None
            evidence = (last,) if last is not None else ()
            return self._reading(holds=False, grade=ProofLevel.PROVEN, evidence=evidence)
        return self._lacking(GATE, sentence("order-unknown", action=act.action))

    def _elsewhere(self, act: Act) -> LeafReading:
        return self._lacking(GATE, sentence("audit.gate-elsewhere", action=act.action))

    def _opened(self, calls: Mapping[Act, SessionCall]) -> LeafReading:
        seqs = {item.answered for item in calls.values() if item.answered is not None}
        evidence = tuple(sorted(seqs))
        function = self.layout.function
        if function.verdict is None:
            for call in calls.values():
                if not opens(function, call.value):
                    seq = call.answered
                    why = sentence("answer-opens-nothing", action=call.action, seq=seq)
                    return self._lacking(VERDICT, why)
            return self._reading(holds=True, grade=ProofLevel.PROVEN, evidence=evidence)
        named: dict[str, JSON] = {}
        for act, call in calls.items():
            others = [
                other
                for other in self._calls(act)
                if other.awaited or not same(dict(other.arguments), dict(call.arguments))
            ]
            if any(other.done_by() > call.seq for other in others):
                return self._lacking(GATE, sentence("calls-overlap", action=call.action))
            newest = self.moment.newest(call.action, call.arguments)
            if newest is None or not newest.ok:
                return self._lacking(GATE, sentence("failed-last", call=call.action))
            named[act.answer] = newest.value
        last = named[self.layout.recipes[0][-1].answer]
        holds = self.verdict(RecipeAnswers(named, last, evidence))
        if holds is None:
            return self._lacking(VERDICT, sentence("answers-cannot-tell"))
        return self._reading(holds, ProofLevel.PROVEN, evidence)

    def _calls(self, act: Act) -> list[SessionCall]:
        """The calls that may have been carried out and may have been about this gate: all but
        those that name another value of the same type, which does not look the same."""
        fixed = _gate_inputs(act, self.values)
        return [
            call
            for call in self.moment.run.session_calls
            if call.action == act.action
            and call.may_have_run
            and not any(
                name in call.arguments
                and _kind(call.arguments[name]) is _kind(value)
                and not same(call.arguments[name], value)
                and not look_the_same(call.arguments[name], value)
                for name, value in fixed.items()
            )
        ]

    def rests_on(self, call: SessionCall) -> bool:
        return any(opens_gate(act, self.values, call) for act in self.layout.recipes[0])

    def last_answers(self) -> list[JSON]:
        """A gate has none: what opens and closes it stands in its clause."""
        return []

    def _may_change(self, action: str, verifiers: set[str]) -> bool:
        """Whether it may change whom the session takes for its customer."""
        owners = self.moment.run.principals if self.layout.function.principal else ()
        return any(act.action == action for gate in owners for act in gate.recipe_acts)

    # --- one customer at a time (P11) ---------------------------------------------------

    @cached_property
    def _ways(self) -> list[tuple[FunctionLayout, Act]]:
        """The other gates that identify the customer, with the calls that open them."""
        return [
            (gate, opening)
            for gate in self.moment.run.principals
            if gate.recipes[0] != self.layout.recipes[0]
            for opening in gate.recipes[0]
        ]

    def _other_customers(self, act: Act) -> list[SessionCall]:
        """The calls that may have identified somebody else than this customer."""
        ways = [(self.layout, act), *self._ways]
        return [
            call
            for call in self.moment.run.session_calls
            if call.may_have_run
            and any(call.action == opening.action for _, opening in ways)
            and not any(self._is_customer(gate, opening, call) for gate, opening in ways)
        ]

    def _is_customer(self, gate: FunctionLayout, opening: Act, call: SessionCall) -> bool:
        """Whether ``call`` is shown to have identified this customer: it opens a gate with the
        same parameters and names them all, or its newest answer meets that gate's verdict."""
        names = set(gate.function.parameters)
        own = set(self.layout.function.parameters)
        if names != own or not opens_gate(opening, self.values, call):
            return False
        terms = [term for _, term in opening.arguments]
        if names <= {term.name for term in terms if isinstance(term, Local | Unknown)}:
            return bool(names) or gate is self.layout
        if gate.function.verdict is None or gate is self.layout:
            # Of the gate itself the latest answer is judged.
            return gate.function.verdict is not None
        newest = self.moment.newest(call.action, call.arguments)
        if call.awaited or call.unknown or newest is None or not newest.ok:
            return False
        answers = RecipeAnswers({opening.answer: newest.value}, newest.value, ())
        return self.moment.evidence(gate, self.values).verdict(answers) is True

    def _named_others(self, act: Act) -> list[SessionCall]:
        """The successes that name another customer, by the same parameters."""
        own = set(self.layout.function.parameters)
        return [
            item
            for gate, opening in [(self.layout, act), *self._ways]
            if set(gate.function.parameters) == own
            for item in _last_answered(
                call
                for call in self.moment.run.session_calls
                if call.action == opening.action
                and call.ok
                and call.arguments.keys() == {name for name, _ in opening.arguments}
                and call not in self._calls(opening)
            )
        ]


def opens_gate(act: Act, values: Mapping[str, JSON], call: SessionCall) -> bool:
    return call.action == act.action and _is_about(act, values, call)


def _is_about(
    act: Act,
    values: Mapping[str, JSON],
    call: SessionCall,
    besides: frozenset[str] = frozenset(),
) -> bool:
    """Names the gate's values, and has no input but those of the gate and any ``besides``."""
    inputs = {name for name, _ in act.arguments}
    return inputs <= call.arguments.keys() <= inputs | besides and all(
        same(value, call.arguments[name]) for name, value in _gate_inputs(act, values).items()
    )


def _gate_inputs(act: Act, values: Mapping[str, JSON]) -> dict[str, JSON]:
    """The inputs that the gate is about; the others are the user's to give."""
    return {
        name: term.value if isinstance(term, Constant) else values[term.name]
        for name, term in act.arguments
        if isinstance(term, Constant) or (not isinstance(term, Path) and term.name in values)
    }


def _successes(
    act: Act,
    values: Mapping[str, JSON],
    calls: list[SessionCall],
    besides: frozenset[str] = frozenset(),
) -> list[SessionCall]:
    """With exactly the gate's inputs, and any ``besides``, latest first."""
    good = (call for call in calls if call.ok and _is_about(act, values, call, besides))
    return sorted(_last_answered(good), key=lambda item: -item.seq)


def _last_answered(successes: Iterable[SessionCall]) -> list[SessionCall]:
    """Of the successes of one call the one that was answered last counts, from when it was asked
    for."""
    latest: list[SessionCall] = []
    for success in sorted(successes, key=SessionCall.done_by, reverse=True):
        if not any(same(dict(success.arguments), dict(other.arguments)) for other in latest):
            latest.append(success)
    return latest


def _kind(value: JSON) -> type:
    """There is one kind of number."""
    return float if type(value) is int else type(value)


# --- values, calls and judgements -------------------------------------------------------------


def at_place(path: Path, answers: Mapping[str, JSON]) -> JSON | Missing:
    """The value at a path into the answers, or ``MISSING``."""
    value: JSON | Missing = answers.get(path.root, MISSING)
    for step in path.steps:
        if isinstance(step, str):
            value = value.get(step, MISSING) if isinstance(value, Mapping) else MISSING
        else:
            inside = value if isinstance(value, list) else []
            value = inside[step] if step < len(inside) else MISSING
    return value


def spelled_call(action: str, arguments: Mapping[str, JSON]) -> str:
    values = ", ".join(f"{name}={shown(value)}" for name, value in arguments.items())
    return f"{action}({values})"


def mistyped_input(
    facts: Mapping[str, ActionFacts], action: str, arguments: Mapping[str, JSON]
) -> str:
    """P1: the first argument that is not of its input's declared type."""
    if action not in facts:
        return ""
    for name, value in arguments.items():
        schema = facts[action].inputs.get(name, {})
        if not has_withheld(value) and violation(value, schema) is not None:
            return name
    return ""


def judged_for(
    process: ProcessView, layout: FunctionLayout, values: Mapping[str, JSON]
) -> Judged | None:
    """The executor's latest verdict for these values."""
    for item in reversed(process.judged):
        if item.function == layout.function.name and same(dict(item.values), dict(values)):
            return item
    return None


def grade_of(
    moment: Moment,
    here: Position,
    holds: bool,
    cited: frozenset[int],
    learned: Mapping[str, JSON],
) -> ProofLevel:
    """The proof level of a verdict at ``here`` on the cited results; ``learned`` are the values
    that come with it."""
    function = here.layout.function
    have = {**learned, **here.frame.locals}
    values = {name: have[name] for name in function.parameters if name in have}
    evidence = moment.evidence(here.layout, values)
    if function.kind is Kind.RULE and function.verdict is None:
        return ProofLevel.ATTESTED if evidence.covers(cited) else ProofLevel.CLAIMED
    reading = evidence.read()
    return reading.grade if reading.holds is holds else ProofLevel.CLAIMED
