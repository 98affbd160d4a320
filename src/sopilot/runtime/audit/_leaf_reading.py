"""What a trace proves of one rule or gate, for given values, at one moment.

The clauses P1–P7 of ``design/proof.md``, read from the list of calls; ``recipe_answers`` has
P1 to P5, ``machine_verdict`` P6 and P7, ``gate_reading`` the gates. The guard has a proof of
its own, which this room must not import: the two are there to contradict each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sopilot.language.program.model import Kind
from sopilot.runtime.audit._gate_reading import read_gate
from sopilot.runtime.audit._machine_verdict import machine_verdict
from sopilot.runtime.audit._moment import (
    FURTHEST,
    NEWER,
    NOTHING,
    VALUE,
    VERDICT,
    AuditGrade,
    Lack,
    LeafReading,
    Moment,
    RecipeAnswers,
    Unreadable,
)
from sopilot.runtime.audit._recipe_answers import recipe_answers
from sopilot.runtime.audit._resolved_function import ResolvedFunction
from sopilot.runtime.audit._session_calls import calls_of
from sopilot.runtime.audit._state import FrameView, Judged, ProcessView, has_withheld
from sopilot.runtime.vm.values import JSON, holds_stand_in, same


def read_leaf(moment: Moment, code: ResolvedFunction, values: Mapping[str, JSON]) -> LeafReading:
    function = code.function
    blank = LeafReading(function.name, function.judges, dict(values), holds=None)
    if has_withheld(dict(values)):
        raise Unreadable
    for name in function.parameters:
        if values.get(name) is None and name not in function.optional:
            return replace(blank, lack=Lack(VALUE, f"`{name}` has no value"))
    if function.kind is Kind.GATE:
        return read_gate(moment, code, blank)
    ways = [recipe_answers(moment, code, recipe, values) for recipe in code.recipes]
    whole = [one for one in ways if isinstance(one, RecipeAnswers)]
    if not code.recipes:
        whole = [RecipeAnswers({}, None, ())]
    if not whole:
        lacks = [one for one in ways if isinstance(one, Lack)]
        return replace(blank, lack=max(lacks, key=lambda one: FURTHEST.index(one.code)))
    if function.verdict is None:
        return _by_model(moment, code, blank, whole)
    return _by_machine(moment, code, blank, function.verdict, whole)


def _by_machine(
    moment: Moment,
    code: ResolvedFunction,
    blank: LeafReading,
    verdict: str,
    whole: Sequence[RecipeAnswers],
) -> LeafReading:
    said = [(machine_verdict(moment, code, verdict, blank.values, one), one) for one in whole]
    sides = {holds for holds, _ in said if holds is not None}
    if len(sides) != 1:
        why = "the ways to verify it contradict each other" if sides else "its verdict cannot be"
        tail = "" if sides else " told from what was answered"
        return replace(blank, lack=Lack(VERDICT, why + tail))
    holds, on = next(one for one in said if one[0] is not None)
    grade = AuditGrade.STATED if code.function.question else AuditGrade.PROVEN
    return replace(blank, holds=holds, grade=grade, evidence=on.evidence)


def _by_model(
    moment: Moment, code: ResolvedFunction, blank: LeafReading, whole: Sequence[RecipeAnswers]
) -> LeafReading:
    """The executor's latest verdict in this process, for these values, on these answers."""
    given = judged_for(moment.process, code, blank.values)
    if given is None:
        return replace(blank, lack=Lack(NOTHING, "nobody has judged it for these values"))
    for one in whole:
        if all(_was_judged(moment, seq, given) for seq in one.evidence):
            lack = None if given.holds is not None else Lack(VERDICT, "it was judged undecided")
            return replace(
                blank,
                holds=given.holds,
                grade=AuditGrade.ATTESTED,
                evidence=one.evidence,
                lack=lack,
            )
    why = f"it was judged (#{given.seq}) on other answers than the newest"
    return replace(blank, lack=Lack(NEWER, why))


def _was_judged(moment: Moment, seq: int, given: Judged) -> bool:
    """Whether the verdict was given on this answer, or on one to the same call that said the
    same: reading once more and finding nothing new takes no verdict away."""
    if seq in given.evidence:
        return True
    (newest,) = (one for one in moment.calls if one.answered == seq)
    if has_withheld(newest.value):
        raise Unreadable
    return not holds_stand_in(newest.value) and any(
        one.answered in given.evidence and one.ok and same(one.value, newest.value)
        for one in calls_of(moment.calls, newest.action, newest.arguments)
    )


def judged_for(
    process: ProcessView, code: ResolvedFunction, values: Mapping[str, JSON]
) -> Judged | None:
    for one in reversed(process.judged):
        if one.function == code.function.name and same(dict(one.values), dict(values)):
            return one
    return None


def grade_of(
    moment: Moment,
    frame: FrameView,
    holds: bool,
    cited: frozenset[int],
    found: Mapping[str, JSON],
) -> AuditGrade:
    """How good a verdict is that is given in ``frame`` on the cited results; ``found`` are the
    values that come with it."""
    function = frame.code.function
    have = {**found, **frame.values}
    values = {name: have[name] for name in function.parameters if name in have}
    if function.kind is Kind.RULE and function.verdict is None:
        return (
            AuditGrade.ATTESTED
            if _covers(moment, frame.code, values, cited)
            else AuditGrade.CLAIMED
        )
    reading = read_leaf(moment, frame.code, values)
    return reading.grade if reading.holds is holds else AuditGrade.CLAIMED


def _covers(
    moment: Moment, code: ResolvedFunction, values: Mapping[str, JSON], cited: frozenset[int]
) -> bool:
    """Whether the cited results are the newest answers to all calls of some recipe."""
    if any(values.get(name) is None for name in code.function.parameters):
        return False
    ways = (recipe_answers(moment, code, recipe, values) for recipe in code.recipes)
    return not code.recipes or any(
        isinstance(one, RecipeAnswers) and cited.issuperset(one.evidence) for one in ways
    )
