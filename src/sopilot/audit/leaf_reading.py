"""What a trace proves of one rule or gate, for given values, at one moment.

The clauses P1–P14 of ``design/proof.md``, read from the list of calls: ``recipe_answers`` has P1
to P5, ``machine_verdict`` P6 and P7, ``read_gate`` the gates. The guard has a proof of its own,
which this module must not import: the two are there to contradict each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sopilot.audit.findings import Unjudgeable
from sopilot.audit.state import Judged, ProcessView, SessionCall, calls_of, newest_answer
from sopilot.handbook.requirements import Path
from sopilot.machine.layout import FunctionLayout, Position
from sopilot.machine.recipes import MOST_ELEMENTS
from sopilot.messages.catalogue import sentence
from sopilot.messages.errors import SopilotError
from sopilot.program.model import Act, ActionFacts, Kind, Literal, Local, Unknown
from sopilot.trace.redaction import has_withheld, is_reference
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


class AuditGrade(StrEnum):
    CLAIMED = "claimed"
    ATTESTED = "attested"
    STATED = "stated"
    PROVEN = "proven"


class Unreadable(Exception):
    """A value that the proof needs is withheld, or nothing evaluates verdicts here."""

    def __init__(self, reason: Unjudgeable = Unjudgeable.SECRET) -> None:
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Moment:
    """What the trace shows by then. ``known`` are the process's values."""

    calls: Sequence[SessionCall]
    facts: Mapping[str, ActionFacts]
    goal_actions: frozenset[str]
    judge: Judge | None
    process: ProcessView
    known: Mapping[str, JSON]
    clock: str = ""
    """What the clock showed when it was noted last."""
    principals: tuple[FunctionLayout, ...] = ()
    """The gates that are open for one customer at a time."""
    connected: Mapping[str, int] = field(default_factory=dict)
    """Action → since when it is called on its present connection."""

    def is_elsewhere(self, action: str, seq: int) -> bool:
        """P8: whether an action was on an earlier connection then, and its state isn't shared."""
        facts = self.facts.get(action)
        shared = facts is not None and facts.shared
        return not shared and seq < self.connected.get(action, -1)


@dataclass(frozen=True, slots=True)
class Lack:
    """Which finding it is that a clause fails, and why."""

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
    grade: AuditGrade = AuditGrade.CLAIMED
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


def spelled_call(action: str, arguments: Mapping[str, JSON]) -> str:
    values = ", ".join(f"{name}={shown(value)}" for name, value in arguments.items())
    return f"`{action}({values})`"


def machine_verdict(
    moment: Moment,
    layout: FunctionLayout,
    verdict: str,
    values: Mapping[str, JSON],
    answers: RecipeAnswers,
) -> bool | None:
    """P6: on exactly these answers. An error is no verdict."""
    if moment.judge is None:
        raise Unreadable(Unjudgeable.NO_JUDGE)
    requests = {name: moment.known[name] for name in layout.learnable if name in moment.known}
    variables: dict[str, JSON] = {"now": moment.clock} if moment.clock else {}
    variables |= {**moment.process.program.program.constants, **requests}
    variables |= {**dict.fromkeys(layout.function.optional), **values}
    variables["results"], variables["result"] = dict(answers.named), answers.last
    if has_withheld(variables):
        return _without_secrets(moment.judge, verdict, variables)
    try:
        return moment.judge(verdict, variables)
    except SopilotError:
        return None


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


_WORD = re.compile(r"\w+")


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


def read_gate(moment: Moment, layout: FunctionLayout, blank: LeafReading) -> LeafReading:
    """Shut by one of its calls that is shut, open where all are open and its verdict says so."""
    openings = {act: _opening(moment, layout, act, blank) for act in layout.recipes[0]}
    readings = [opening for opening in openings.values() if isinstance(opening, LeafReading)]
    for reading in sorted(readings, key=lambda item: item.holds is None):
        return reading
    calls = {act: item for act, item in openings.items() if isinstance(item, SessionCall)}
    return _opened(moment, layout, blank, calls)


def _opening(
    moment: Moment, layout: FunctionLayout, act: Act, blank: LeafReading
) -> SessionCall | LeafReading:
    """The success of one call that opens it, until one that closes it; otherwise shut. Neither is
    shown where the two overlap, or where a call may have been about this gate and may not."""
    closing = layout.function.closed_by
    opening = _gate_calls(moment, act, blank.values)
    closings = _gate_calls(moment, closing, blank.values) if closing is not None else []
    others: list[SessionCall] = []
    if layout.function.principal:
        closings = closings + _other_customers(moment, layout, act, blank.values)
        others = _named_others(moment, layout, act, blank.values)
    # What was done may have had inputs besides; nobody made the call for the check.
    facts = moment.facts.get(act.action) if layout.function.is_fact else None
    besides = frozenset(facts.inputs) if facts is not None else frozenset[str]()
    for success in _successes(act, blank.values, opening, besides):
        if all(other.done_by() < success.seq for other in closings):
            if moment.is_elsewhere(act.action, success.seq):
                return _elsewhere(blank, act)
            return success
    ended = _successes(closing, blank.values, closings) if closing is not None else []
    ended += others
    ended.sort(key=lambda item: -item.seq)
    shut = [item for item in ended if all(other.done_by() < item.seq for other in opening)]
    if opening and shut and moment.is_elsewhere(act.action, shut[0].seq):
        return _elsewhere(blank, act)
    if not opening or shut:
        evidence = tuple(
            item.answered for item in shut[:1] if opening and item.answered is not None
        )
        return replace(blank, holds=False, grade=AuditGrade.PROVEN, evidence=evidence)
    why = sentence("audit.order-unknown", action=act.action)
    return replace(blank, lack=Lack(GATE, why))


def _elsewhere(blank: LeafReading, act: Act) -> LeafReading:
    return replace(blank, lack=Lack(GATE, sentence("audit.gate-elsewhere", action=act.action)))


Way = tuple[FunctionLayout, Act]
"""A gate that identifies the customer, and a call that opens it."""


def _ways(moment: Moment, layout: FunctionLayout, act: Act) -> list[Way]:
    return [
        (layout, act),
        *(
            (gate, opening)
            for gate in moment.principals
            if gate.recipes[0] != layout.recipes[0]
            for opening in gate.recipes[0]
        ),
    ]


def _other_customers(
    moment: Moment, layout: FunctionLayout, act: Act, values: Mapping[str, JSON]
) -> list[SessionCall]:
    """P11: the calls that may have identified somebody else than the customer with ``values``."""
    ways = _ways(moment, layout, act)
    return [
        call
        for call in moment.calls
        if call.may_have_run
        and any(call.action == opening.action for _, opening in ways)
        and not any(_is_customer(moment, layout, way, values, call) for way in ways)
    ]


def _is_customer(
    moment: Moment, layout: FunctionLayout, way: Way, values: Mapping[str, JSON], call: SessionCall
) -> bool:
    """Whether ``call`` is shown to have identified this customer: it opens a gate with the same
    parameters and names them all, or its newest answer meets that gate's verdict."""
    gate, opening = way
    names = set(gate.function.parameters)
    if names != set(layout.function.parameters) or not opens_gate(opening, values, call):
        return False
    if names <= {term.name for _, term in opening.arguments if isinstance(term, Local | Unknown)}:
        return bool(names) or gate is layout
    verdict = gate.function.verdict
    if verdict is None or gate is layout:
        return verdict is not None  # of the gate itself the latest answer is judged
    newest = newest_answer(moment.calls, call.action, call.arguments)
    if newest is None or not newest.ok:
        return False
    answers = RecipeAnswers({opening.answer: newest.value}, newest.value, ())
    return machine_verdict(moment, gate, verdict, values, answers) is True


def _named_others(
    moment: Moment, layout: FunctionLayout, act: Act, values: Mapping[str, JSON]
) -> list[SessionCall]:
    """The successes that name another customer, by the same parameters."""
    return [
        item
        for gate, opening in _ways(moment, layout, act)
        if set(gate.function.parameters) == set(layout.function.parameters)
        for item in _last_answered(
            call
            for call in moment.calls
            if call.action == opening.action
            and call.ok
            and call.arguments.keys() == {name for name, _ in opening.arguments}
            and call not in _gate_calls(moment, opening, values)
        )
    ]


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
    session_calls: list[SessionCall] = []
    for success in sorted(successes, key=SessionCall.done_by, reverse=True):
        if not any(same(dict(success.arguments), dict(other.arguments)) for other in session_calls):
            session_calls.append(success)
    return session_calls


def _opened(
    moment: Moment, layout: FunctionLayout, blank: LeafReading, calls: Mapping[Act, SessionCall]
) -> LeafReading:
    seqs = {item.answered for item in calls.values() if item.answered is not None}
    evidence = tuple(sorted(seqs))
    opened = replace(blank, holds=True, grade=AuditGrade.PROVEN, evidence=evidence)
    if layout.function.verdict is None:
        return opened
    named: dict[str, JSON] = {}
    for act, call in calls.items():
        others = [
            gate_call
            for gate_call in _gate_calls(moment, act, blank.values)
            if gate_call.awaited or not same(dict(gate_call.arguments), dict(call.arguments))
        ]
        if any(other.done_by() > call.seq for other in others):
            why = sentence("audit.overlap", action=call.action)
            return replace(blank, lack=Lack(GATE, why))
        newest = newest_answer(moment.calls, call.action, call.arguments)
        if newest is None or not newest.ok:
            why = sentence("audit.gate-failed", action=call.action)
            return replace(blank, lack=Lack(GATE, why))
        named[act.answer] = newest.value
    answers = RecipeAnswers(named, named[layout.recipes[0][-1].answer], evidence)
    holds = machine_verdict(moment, layout, layout.function.verdict, blank.values, answers)
    if holds is None:
        return replace(blank, lack=Lack(VERDICT, sentence("audit.undecided-by-answers")))
    return replace(opened, holds=holds)


def _gate_calls(moment: Moment, act: Act, values: Mapping[str, JSON]) -> list[SessionCall]:
    """The calls that may have been carried out and may have been about this gate: all but those
    that name another value of the same type, which does not look the same."""
    fixed = _gate_inputs(act, values)
    return [
        call
        for call in moment.calls
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
        name: term.value if isinstance(term, Literal) else values[term.name]
        for name, term in act.arguments
        if isinstance(term, Literal) or (not isinstance(term, Path) and term.name in values)
    }


def opens_gate(act: Act, values: Mapping[str, JSON], call: SessionCall) -> bool:
    return call.action == act.action and _is_about(act, values, call)


def _kind(value: JSON) -> type:
    """There is one kind of number."""
    return float if type(value) is int else type(value)


def at_place(path: Path, answers: Mapping[str, JSON]) -> JSON | Missing:
    """What the answers have there, or ``MISSING``."""
    value: JSON | Missing = answers.get(path.root, MISSING)
    for step in path.steps:
        if isinstance(step, str):
            value = value.get(step, MISSING) if isinstance(value, Mapping) else MISSING
        else:
            inside = value if isinstance(value, list) else []
            value = inside[step] if step < len(inside) else MISSING
    return value


def recipe_answers(
    moment: Moment, layout: FunctionLayout, recipe: Sequence[Act], values: Mapping[str, JSON]
) -> RecipeAnswers | Lack:
    """P2, P3: the answers to exactly the calls of one recipe, every one of them."""
    named: dict[str, JSON] = {}
    evidence: set[int] = set()
    for act in recipe:
        request = asked_calls(moment, layout, act, values, named)
        if isinstance(request, Lack):
            return request
        session_calls: list[SessionCall] = []
        for arguments in request:
            item = answer_to(moment, act, arguments)
            if item is None:
                begun = bool(evidence or session_calls) or _begun(
                    moment, layout, recipe, act, values, named
                )
                ours = _asked_by(moment, layout, recipe, act.action, values, named)
                return _unmade(moment, layout, act, ours, arguments, begun=begun)
            if isinstance(item, Lack):
                return item
            session_calls.append(item)
        evidence |= {entry.answered for entry in session_calls if entry.answered is not None}
        values_found = [entry.value for entry in session_calls]
        named[act.answer] = values_found if act.each is not None else values_found[0]
    return RecipeAnswers(named, named[recipe[-1].answer], tuple(sorted(evidence)))


def last_answers(moment: Moment, layout: FunctionLayout, values: Mapping[str, JSON]) -> list[JSON]:
    """P14: what the calls of a rule were answered last, as far as its recipes can be followed.
    An approval without the proof is for these answers. Gates have none: what opens and closes
    one stands in its clause."""
    result: list[JSON] = []
    for recipe in layout.recipes if layout.function.kind is Kind.RULE else ():
        named: dict[str, JSON] = {}
        for act in recipe:
            request = asked_calls(moment, layout, act, values, named)
            if isinstance(request, Lack):
                break
            last = [_last_answer(moment, act, arguments) for arguments in request]
            there = [item for item in last if item is not None]
            result += [[act.action, dict(item.arguments), item.ok, item.value] for item in there]
            if len(there) < len(last) or not all(item.ok for item in there):
                break
            told_here = [item.value for item in there]
            named[act.answer] = told_here if act.each is not None else told_here[0]
    return result


def last_change(moment: Moment, layout: FunctionLayout) -> int:
    """P14: the last event that may have changed what a rule reads, or whom the session takes for
    its customer; a new connection is such an event."""
    actions = {act.action for recipe in layout.recipes for act in recipe}
    owners = moment.principals if layout.function.principal else ()
    identifying = {act.action for gate in owners for recipe in gate.recipes for act in recipe}
    is_rule = layout.function.kind is Kind.RULE
    changes = [
        call.seq if call.answered is None else call.answered
        for call in moment.calls
        if call.may_have_run
        and (
            any(_touches(moment, call.action, verifier) for verifier in actions)
            if is_rule
            else call.action in identifying
        )
    ]
    connected = [moment.connected[action] for action in actions if moment.is_elsewhere(action, -1)]
    return max([*changes, *connected], default=-1)


def _last_answer(moment: Moment, act: Act, arguments: Mapping[str, JSON]) -> SessionCall | None:
    answered = (item for item in calls_of(moment.calls, act.action, arguments) if not item.awaited)
    return max(answered, key=SessionCall.done_by, default=None)


def asked_calls(
    moment: Moment,
    layout: FunctionLayout,
    act: Act,
    values: Mapping[str, JSON],
    named: Mapping[str, JSON],
) -> list[dict[str, JSON]] | Lack:
    """The arguments of each call that ``act`` stands for, its terms evaluated (P1, P2)."""
    supplied = {name: values[name] for name in layout.function.parameters if name in values}
    named = {**supplied, **named}
    scopes: list[Mapping[str, JSON]] = [named]
    if act.each is not None:
        listed = at_place(act.each, named)
        if not isinstance(listed, list):
            return Lack(PART, sentence("audit.not-a-list", path=act.each))
        if len(listed) > MOST_ELEMENTS:
            return Lack(PART, sentence("audit.list-too-long", path=act.each, most=MOST_ELEMENTS))
        scopes = [{**named, act.element: item} for item in listed]
    calls: list[dict[str, JSON]] = []
    for scope in scopes:
        arguments: dict[str, JSON] = {}
        for parameter, term in act.arguments:
            if isinstance(term, Literal):
                arguments[parameter] = term.value
                continue
            if isinstance(term, Path):
                value = at_place(term, scope)
                if value is MISSING or value is None:
                    return Lack(PART, sentence("audit.nothing-at", path=term))
            else:
                own = term.name in layout.function.parameters
                value = (values if own else moment.known).get(term.name)
                if value is None and term.name in layout.function.optional:
                    continue
                if value is None:
                    return Lack(VALUE, sentence("audit.no-value", name=term.name))
            arguments[parameter] = value
        if has_withheld(arguments):
            raise Unreadable
        calls.append(arguments)
    return calls


def answer_to(moment: Moment, act: Act, arguments: Mapping[str, JSON]) -> SessionCall | Lack | None:
    """The newest and fresh answer to one call; ``None`` where it was never made."""
    shown = spelled_call(act.action, arguments)
    mistyped = mistyped_input(moment.facts, act.action, arguments)
    if mistyped:
        return Lack(VALUE, sentence("audit.not-askable", call=shown, name=mistyped))
    newest = newest_answer(moment.calls, act.action, arguments)
    if newest is None:
        return None
    if newest.awaited:
        return Lack(NEWER, sentence("audit.awaited", call=shown, seq=newest.seq))
    if is_reference(newest.value):
        raise Unreadable
    # Where nothing is guarded a tool may say no by failing with `false`.
    if not newest.ok and (moment.facts or not isinstance(newest.value, bool)):
        return Lack(NEWER, sentence("audit.newest-failed", call=shown, seq=newest.answered))
    known = moment.facts[act.action].inputs if act.action in moment.facts else {}
    for later in moment.calls:
        more = later.arguments.keys() - arguments.keys()
        shared = {name: item for name, item in later.arguments.items() if name in arguments}
        if (
            later.action == act.action
            and later.answered_at() > newest.answered_at()
            and more
            and not any(name in known for name in more)
            and same(shared, dict(arguments))
        ):
            return Lack(NEWER, sentence("audit.called-with-more", call=shown, seq=later.seq))
    if moment.is_elsewhere(act.action, newest.seq):
        return Lack(STALE, sentence("audit.earlier-connection", call=shown, seq=newest.answered))
    change = disturbed_by(moment, newest)
    if change is None:
        return newest
    code = "served-already" if newest.answered in change.uses else "changed-since"
    by = {"seq": newest.answered, "action": change.action, "change": change.seq}
    return Lack(STALE, sentence(f"audit.{code}", call=shown, **by))


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


def disturbed_by(moment: Moment, answer: SessionCall) -> SessionCall | None:
    """P5: a call that may have changed what ``answer`` reads since it was asked for: the one
    that it answers, where a verifier changes what it reads. P9: a call that has used it up."""
    if _touches(moment, answer.action, answer.action):
        return answer
    for call in moment.calls:
        if not call.may_have_run or call.done_by() < answer.seq:
            continue
        if _touches(moment, call.action, answer.action) or answer.answered in call.uses:
            return call
    return None


def changed_topics(
    facts: Mapping[str, ActionFacts], goal_actions: frozenset[str], action: str
) -> tuple[str, ...] | None:
    """What an action may change, ``None`` for everything. Programs that guard nothing carry no
    facts: there only what a program is for changes anything."""
    if not facts:
        return None if action in goal_actions else ()
    return facts[action].changes if action in facts else None


def _touches(moment: Moment, action: str, verifier: str) -> bool:
    return touches(moment.facts, moment.goal_actions, action, verifier)


def touches(
    facts: Mapping[str, ActionFacts], goal_actions: frozenset[str], action: str, verifier: str
) -> bool:
    """Whether an action may change what a verifier reads."""
    changed = changed_topics(facts, goal_actions, action)
    read = facts[verifier].reads if verifier in facts else None
    if changed is None or read is None:
        return changed != ()
    return any(topic in read for topic in changed)


def _begun(
    moment: Moment,
    layout: FunctionLayout,
    recipe: Sequence[Act],
    missing: Act,
    values: Mapping[str, JSON],
    named: Mapping[str, JSON],
) -> bool:
    """Whether another call of the recipe was made: then half of it is there."""
    others = [act for act in recipe if act is not missing]
    ways = [(act, asked_calls(moment, layout, act, values, named)) for act in others]
    return any(
        newest_answer(moment.calls, act.action, item) is not None
        for act, request in ways
        if not isinstance(request, Lack)
        for item in request
    )


def _asked_by(
    moment: Moment,
    layout: FunctionLayout,
    recipe: Sequence[Act],
    action: str,
    values: Mapping[str, JSON],
    named: Mapping[str, JSON],
) -> list[dict[str, JSON]]:
    """Every call of one action that the recipe asks for, as far as that can be told."""
    ways = [
        asked_calls(moment, layout, item, values, named) for item in recipe if item.action == action
    ]
    return [each for way in ways if not isinstance(way, Lack) for each in way]


def _unmade(
    moment: Moment,
    layout: FunctionLayout,
    act: Act,
    request: Sequence[Mapping[str, JSON]],
    missing: Mapping[str, JSON],
    *,
    begun: bool,
) -> Lack:
    call = spelled_call(act.action, missing)
    frames = {
        item.opened for item in moment.process.judged if item.function == layout.function.name
    }
    others = [
        call
        for call in moment.calls
        if call.action == act.action
        and not any(same(dict(call.arguments), dict(each)) for each in request)
    ]
    if any(item.opened in frames for item in others) or (others and not begun):
        other = others[-1]
        shown = spelled_call(other.action, other.arguments)
        why = sentence("audit.other-called", call=call, other=shown, seq=other.seq)
        return Lack(OTHER, why)
    return Lack(PART if begun else NOTHING, sentence("audit.not-called", call=call))


def read_leaf(moment: Moment, layout: FunctionLayout, values: Mapping[str, JSON]) -> LeafReading:
    function = layout.function
    blank = LeafReading(function.name, function.judges, dict(values), holds=None)
    if has_withheld(dict(values)):
        raise Unreadable
    for name in function.parameters:
        if values.get(name) is None and name not in function.optional:
            return replace(blank, lack=Lack(VALUE, sentence("audit.no-value", name=name)))
    if function.kind is Kind.GATE:
        return read_gate(moment, layout, blank)
    ways = [recipe_answers(moment, layout, recipe, values) for recipe in layout.recipes]
    whole = [way for way in ways if isinstance(way, RecipeAnswers)]
    if not layout.recipes:
        whole = [RecipeAnswers({}, None, ())]
    if not whole:
        lacks = [way for way in ways if isinstance(way, Lack)]
        return replace(blank, lack=max(lacks, key=lambda item: FURTHEST.index(item.code)))
    if function.verdict is None:
        return _by_model(moment, layout, blank, whole)
    return _by_machine(moment, layout, blank, function.verdict, whole)


def _by_machine(
    moment: Moment,
    layout: FunctionLayout,
    blank: LeafReading,
    verdict: str,
    whole: Sequence[RecipeAnswers],
) -> LeafReading:
    replies = [
        (machine_verdict(moment, layout, verdict, blank.values, item), item) for item in whole
    ]
    sides = {holds for holds, _ in replies if holds is not None}
    if len(sides) != 1:
        code = "contradicting-ways" if sides else "undecided-by-answers"
        return replace(blank, lack=Lack(VERDICT, sentence(f"audit.{code}")))
    holds, on = next(item for item in replies if item[0] is not None)
    grade = AuditGrade.STATED if layout.function.question else AuditGrade.PROVEN
    return replace(blank, holds=holds, grade=grade, evidence=on.evidence)


def _by_model(
    moment: Moment, layout: FunctionLayout, blank: LeafReading, whole: Sequence[RecipeAnswers]
) -> LeafReading:
    """The executor's latest verdict in this process, for these values, on these answers."""
    value = judged_for(moment.process, layout, blank.values)
    if value is None:
        return replace(blank, lack=Lack(NOTHING, sentence("audit.not-judged-for")))
    for item in whole:
        if all(_was_judged(moment, seq, value) for seq in item.evidence):
            undecided = Lack(VERDICT, sentence("audit.judged-undecided"))
            lack = None if value.holds is not None else undecided
            return replace(
                blank,
                holds=value.holds,
                grade=AuditGrade.ATTESTED,
                evidence=item.evidence,
                lack=lack,
            )
    return replace(blank, lack=Lack(NEWER, sentence("audit.judged-on-older", seq=value.seq)))


def _was_judged(moment: Moment, seq: int, judged: Judged) -> bool:
    """Whether the verdict was given on this answer, or on one to the same call that said the
    same: reading once more and finding nothing new takes no verdict away."""
    if seq in judged.evidence:
        return True
    (newest,) = (call for call in moment.calls if call.answered == seq)
    if has_withheld(newest.value):
        raise Unreadable
    return not holds_stand_in(newest.value) and any(
        item.answered in judged.evidence and item.ok and same(item.value, newest.value)
        for item in calls_of(moment.calls, newest.action, newest.arguments)
    )


def judged_for(
    process: ProcessView, layout: FunctionLayout, values: Mapping[str, JSON]
) -> Judged | None:
    for item in reversed(process.judged):
        if item.function == layout.function.name and same(dict(item.values), dict(values)):
            return item
    return None


def grade_of(
    moment: Moment,
    here: Position,
    holds: bool,
    cited: frozenset[int],
    result: Mapping[str, JSON],
) -> AuditGrade:
    """How good a verdict is that is given in ``frame`` on the cited results; ``found`` are the
    values that come with it."""
    function = here.layout.function
    have = {**result, **here.frame.locals}
    values = {name: have[name] for name in function.parameters if name in have}
    if function.kind is Kind.RULE and function.verdict is None:
        return (
            AuditGrade.ATTESTED
            if _covers(moment, here.layout, values, cited)
            else AuditGrade.CLAIMED
        )
    reading = read_leaf(moment, here.layout, values)
    return reading.grade if reading.holds is holds else AuditGrade.CLAIMED


def _covers(
    moment: Moment, layout: FunctionLayout, values: Mapping[str, JSON], cited: frozenset[int]
) -> bool:
    """Whether the cited results are the newest answers to all calls of some recipe."""
    if any(values.get(name) is None for name in layout.function.parameters):
        return False
    ways = (recipe_answers(moment, layout, recipe, values) for recipe in layout.recipes)
    return not layout.recipes or any(
        isinstance(way, RecipeAnswers) and cited.issuperset(way.evidence) for way in ways
    )
