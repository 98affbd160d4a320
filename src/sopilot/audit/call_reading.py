"""The proof of a guarded call: which leaves on its path the trace proves, and which not.

The program is evaluated from its entry with the leaves' truths as the trace shows them
for the values of the act (``proven``); a leaf without one is on neither side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sopilot.audit.leaf_reading import (
    GATE,
    MODEL,
    NEWER,
    NOTHING,
    OTHER,
    PART,
    VALUE,
    Lack,
    LeafReading,
    Moment,
    Unreadable,
    judged_for,
    mistyped_input,
)
from sopilot.audit.state import AuditState, DoubtKey, ProcessView, filled_sentence
from sopilot.handbook.requirements import Constant, Path
from sopilot.machine.layout import FunctionLayout
from sopilot.machine.state import ProofLevel, weakest
from sopilot.machine.terms import plain_arguments
from sopilot.messages.catalogue import sentence
from sopilot.program.model import Act, Check, Do, Emit, Kind
from sopilot.program.walk import Activation, Flow, Walk, passed_values
from sopilot.trace.events import Event
from sopilot.trace.redaction import has_withheld
from sopilot.values.json import JSON, ArgumentsKey, key_of, same, spell

AGAINST = "evidence-contradicts-verdict"


@dataclass(frozen=True, slots=True)
class Doubt:
    code: str
    why: str
    predicate: str = ""
    values: Mapping[str, JSON] | None = None
    sentence: str = ""
    facts: str = ""
    """P14: the last answers to the calls of the leaf, and the last change, spelled."""

    @property
    def key(self) -> DoubtKey:
        return self.code, self.predicate, key_of(dict(self.values or {})), self.facts


@dataclass(frozen=True, slots=True)
class CallReading:
    """``doubts`` is empty for a call that the trace proves; ``checks`` are its requirements."""

    doubts: tuple[Doubt, ...]
    leaves: tuple[LeafReading, ...] = ()
    checks: tuple[LeafReading, ...] = ()

    @property
    def grade(self) -> ProofLevel:
        if self.doubts:
            return ProofLevel.CLAIMED
        return weakest(leaf.grade for leaf in self.leaves)

    @property
    def keys(self) -> frozenset[DoubtKey]:
        return frozenset(doubt.key for doubt in self.doubts)


def read_call(
    run: AuditState,
    process: ProcessView,
    action: str,
    arguments: Mapping[str, JSON],
    *,
    event: Event | None = None,
) -> CallReading | None:
    """``None`` where the cursor does not stand at it, or where it cannot be read; the latter is
    put on record as not judged at ``event``."""
    if len(process.frames) != 1 or process.lost:
        return None
    frame = process.frames[0]
    step = process.program.entry.steps[frame.cursor]
    if not isinstance(step, Act) or not step.goal or step.action != action:
        return None
    try:
        return _read(run, process, step, arguments)
    except Unreadable as why:
        if event is not None:
            run.leave_unjudged(
                event, sentence("audit.proof-rests", action=action), reason=why.reason
            )
        return None


def _read(
    run: AuditState, process: ProcessView, step: Act, arguments: Mapping[str, JSON]
) -> CallReading:
    if has_withheld(dict(arguments)):
        raise Unreadable
    for why in _argument_problems(run, step, arguments):
        return CallReading((Doubt(VALUE, why, values={"": dict(arguments)}),))
    values = values_at_the_act(process, step, arguments)
    path = _Path(Moment(run, process, values), values)
    cursor = process.frames[0].cursor
    walk = Walk(process.program.functions, path, values, cursor, exhaustive=True)
    reached = walk.enter(Activation(process.program.entry, values)) is True
    every = tuple(path.leaves.values())
    leaves = tuple(leaf for leaf in every if leaf.holds is not None)
    # An alternative that a proven call didn't need isn't a requirement.
    checks = tuple(leaf for leaf in every if leaf.holds is leaf.wanted) if reached else every
    return CallReading(() if reached else path.doubts(step.action), leaves, checks)


def _argument_problems(run: AuditState, step: Act, arguments: Mapping[str, JSON]) -> Iterator[str]:
    """P1 for the act itself: every input there, of its type, and one value for one name."""
    inputs = dict(step.arguments)
    facts = run.facts.get(step.action)
    for name in arguments:
        if name not in inputs:
            yield sentence("audit.not-an-input", name=name)
    for name in facts.required if facts is not None else ():
        if arguments.get(name) is None:
            yield sentence("missing-key", name=name)
    mistyped = mistyped_input(run.facts, step.action, arguments)
    if mistyped:
        yield sentence("audit.input-type", name=mistyped)
    seen: dict[str, JSON] = {}
    for name, term in inputs.items():
        if isinstance(term, Constant):
            if name not in arguments or not same(term.value, arguments[name]):
                yield sentence("audit.not-fixed", name=name)
        elif not isinstance(term, Path):
            value = arguments.get(name)
            if not same(seen.setdefault(term.name, value), value):
                yield sentence("two-values", name=term.name)


def values_at_the_act(
    process: ProcessView, step: Act, arguments: Mapping[str, JSON]
) -> dict[str, JSON]:
    """P1: the names of the act have the values that it gives them, or none."""
    values = process.root_values
    for _, term in step.arguments:
        if not isinstance(term, Constant | Path):
            values.pop(term.name, None)
    for name, term in step.arguments:
        if not isinstance(term, Constant | Path) and name in arguments:
            values[term.name] = arguments[name]
    return values


class _Path:
    """The oracle of a walk to the goal. It records the leaves on the way."""

    def __init__(self, moment: Moment, values: Mapping[str, JSON]) -> None:
        self.moment = moment
        self.values = values
        self.leaves: dict[tuple[str, ArgumentsKey], LeafReading] = {}
        self.unmet: dict[tuple[str, ArgumentsKey], tuple[LeafReading, bool]] = {}

    def judge(self, check: Check, callee: Flow, values: Mapping[str, JSON]) -> bool | None:
        layout = self.moment.process.program.functions[callee.function.name]
        key = (layout.name, key_of(values))
        if key not in self.leaves:
            reading = self._trusted(layout, self.moment.read(layout, values))
            self.leaves[key] = replace(reading, wanted=check.wanted)
        reading = self.leaves[key]
        if reading.holds is not check.wanted:
            self.unmet.setdefault(key, (reading, check.wanted))
        return reading.holds

    def was_done(self, within: Activation, step: Act | Do | Emit) -> bool:
        """Whether the process went past it, with the values that it has at the act."""
        terms = plain_arguments(step.arguments) if isinstance(step, Act) else ()
        wanted = key_of(passed_values(terms, within.values, self.values))
        place = (within.flow.function.name, step.label)
        return any(
            item[:2] == place and wanted <= item[2] for item in self.moment.process.state.passed
        )

    def _trusted(self, callee: FunctionLayout, reading: LeafReading) -> LeafReading:
        """A guarded action rests on a model's word only where the handbook says so."""
        by_model = callee.function.judged_by_model
        if reading.grade is not ProofLevel.ATTESTED or by_model or reading.holds is None:
            return reading
        why = sentence("model-only")
        return replace(reading, holds=None, grade=ProofLevel.CLAIMED, lack=Lack(MODEL, why))

    def doubts(self, action: str) -> tuple[Doubt, ...]:
        """The unproven leaves that the process relied on; if there are none, all unproven
        leaves."""
        process = self.moment.process
        every: list[Doubt] = []
        relied: list[Doubt] = []
        for reading, wanted in self.unmet.values():
            layout = process.program.functions[reading.function]
            evidence = self.moment.evidence(layout, reading.values)
            facts = spell([*evidence.last_answers(), evidence.last_change()])
            doubt = _doubt(process, layout, reading, wanted, facts)
            every.append(doubt)
            value = judged_for(process, layout, reading.values)
            if value is None or value.holds is wanted:
                relied.append(doubt)
        nowhere = Doubt(NOTHING, sentence("audit.not-led", action=action))
        return tuple(relied or every) or (nowhere,)


def _doubt(
    process: ProcessView, layout: FunctionLayout, reading: LeafReading, wanted: bool, facts: str
) -> Doubt:
    side, other = ("true", "false") if wanted else ("false", "true")
    evidence = " ".join(f"#{seq}" for seq in reading.evidence) or sentence("audit.what-was-done")
    by_evidence = sentence("audit.is-by", actual=other, evidence=evidence)
    why = by_evidence if reading.lack is None else reading.lack.why
    return Doubt(
        _clause(process, layout, reading),
        sentence("audit.must-be", predicate=reading.predicate, wanted=side, why=why),
        reading.predicate,
        reading.values,
        filled_sentence(
            layout.function, process.program.program.constants, reading.values, wanted=wanted
        ),
        facts,
    )


def _clause(process: ProcessView, layout: FunctionLayout, reading: LeafReading) -> str:
    """The code of the clause that fails."""
    if layout.function.kind is Kind.GATE:
        return reading.lack.code if reading.lack is not None else GATE
    value = judged_for(process, layout, reading.values)
    elsewhere = value is None and any(
        item.function == layout.function.name for item in process.judged
    )
    if reading.lack is not None:
        unmade = reading.lack.code in (NOTHING, OTHER, PART)
        return VALUE if elsewhere and unmade else reading.lack.code
    if elsewhere:
        return VALUE
    if value is not None and not set(reading.evidence) <= set(value.evidence):
        return NEWER
    return AGAINST
