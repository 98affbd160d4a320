"""A compiled program: functions of labelled steps.

A cursor is a step's label. A step falls through to the next one unless it names a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sopilot.handbook.expressions import free_names
from sopilot.handbook.grammar import NOW
from sopilot.handbook.requirements import Constant, Path
from sopilot.values.answers import shows_success

FORMAT = 1
"""Version of the program artifact."""


@dataclass(frozen=True, slots=True)
class Local:
    """A parameter of the function, or a value it learned under that name."""

    name: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that earlier evidence or the user supplies."""

    name: str


Argument = Local | Constant | Unknown
Arguments = tuple[tuple[str, Argument], ...]

CallArgument = Argument | Path
"""An argument of an action. A ``Path`` leads into an earlier answer of the same recipe."""

CallArguments = tuple[tuple[str, CallArgument], ...]


@dataclass(frozen=True, slots=True)
class Holds:
    """The result bound to ``slot`` has ``holds == wanted``."""

    slot: str
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class Every:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Always:
    value: bool


Condition = Holds | Every | Some | Always


@dataclass(frozen=True, slots=True)
class Check:
    """Call ``function``, bind its ``{holds, evidence}`` to ``slot``, go on by the result.

    ``wanted`` is the truth that the handbook requires. ``met`` and ``unmet`` are labels; ``None``
    is the next step. A slot that is bound in the frame is reused.
    """

    label: str
    function: str
    arguments: Arguments
    slot: str
    wanted: bool = True
    met: str | None = None
    unmet: str | None = None
    says: str = ""


@dataclass(frozen=True, slots=True)
class Branch:
    """A condition over bound results, which the machine can evaluate."""

    label: str
    when: Condition
    then: str
    otherwise: str


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    target: str
    says: str = ""


@dataclass(frozen=True, slots=True)
class Choose:
    """A branch that only the executor can judge."""

    label: str
    says: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Act:
    """Call a domain action. ``goal`` marks the one the process exists for.

    In a recipe the answer is called ``name``, by default like the action. With ``each`` the call
    is made for every ``element`` of that list.
    """

    label: str
    action: str
    arguments: CallArguments = ()
    goal: bool = False
    says: str = ""
    next: str | None = None
    name: str = ""
    each: Path | None = None
    element: str = ""

    @property
    def answer(self) -> str:
        return self.name or self.action


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the user for values that are not known yet."""

    label: str
    wants: tuple[str, ...]
    says: str = ""
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Do:
    """Work of the executor; ``uses`` are the actions that it may call."""

    label: str
    says: str
    uses: tuple[str, ...] = ()
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Emit:
    """Hand over a named artifact; ``schema`` is the JSON Schema it must satisfy."""

    label: str
    artifact: str
    says: str = ""
    schema: Mapping[str, object] | None = None
    next: str | None = None


@dataclass(frozen=True, slots=True)
class ReturnStep:
    """Leave the function with the value of ``holds``; if it is ``None``, the executor judges the
    evidence."""

    label: str
    holds: Condition | None = None
    says: str = ""


@dataclass(frozen=True, slots=True)
class CompleteStep:
    label: str
    says: str = ""


@dataclass(frozen=True, slots=True)
class FailStep:
    """``starts`` is the goal that follows the refusal, if any."""

    label: str
    says: str = ""
    starts: str = ""


Step = Check | Branch | Choose | Act | Ask | Do | Emit | ReturnStep | CompleteStep | FailStep


def step_kind(step: Step) -> str:
    """The name of a step's kind in messages."""
    return type(step).__name__.lower().removesuffix("step")


class Kind(StrEnum):
    PROCESS = "process"
    """One user goal; ends in ``complete`` or ``fail``."""
    GROUP = "group"
    """A factored part of a requirement; returns ``{holds, evidence}``."""
    GATE = "gate"
    """Makes a predicate true, over several turns if need be."""
    RULE = "rule"
    """Verifies one predicate, whether it must be true or false."""


class Cache(dict[Any, Any]):
    """Values derived from a part. A copy of the part starts with an empty cache."""

    def __reduce__(self) -> tuple[type[Cache], tuple[()]]:
        return Cache, ()


@dataclass(frozen=True, slots=True)
class Function:
    """A rule or gate judges ``predicate``; ``says`` and ``says_not`` are its wording.

    ``fallbacks`` are equivalent recipes, best first, after the one in ``steps``. The expression
    ``verdict`` judges the answers; with ``judged_by_model`` a guarded action may rest on a model's
    judgement. ``closed_by`` shuts a gate, and a ``principal`` gate is open for one customer at a
    time. ``value`` computes the parameter ``computes``. ``optional`` parameters may have no value.
    A ``reusable`` answer to ``question`` serves several guarded calls. ``customer_message`` is the
    only text that a customer sees of a refusal.
    """

    name: str
    kind: Kind
    parameters: tuple[str, ...]
    steps: tuple[Step, ...]
    says: str = ""
    says_not: str = ""
    predicate: str | None = None
    fallbacks: tuple[tuple[Act, ...], ...] = ()
    verdict: str | None = None
    remedy: str = ""
    notes: tuple[str, ...] = ()
    judged_by_model: bool = False
    closed_by: Act | None = None
    principal: bool = False
    computes: str = ""
    value: str | None = None
    optional: tuple[str, ...] = ()
    question: str = ""
    reusable: bool = False
    customer_message: str = ""
    checks: tuple[Check, ...] = field(init=False, repr=False, compare=False)
    cache: Cache = field(init=False, repr=False, compare=False, default_factory=Cache)

    def __post_init__(self) -> None:
        checks = tuple([step for step in self.steps if isinstance(step, Check)])
        object.__setattr__(self, "checks", checks)

    @property
    def judges(self) -> str:
        """The name of its predicate, else its own name."""
        return self.predicate or self.name

    @property
    def reads_clock(self) -> bool:
        """Whether one of its expressions reads the time."""
        expressions = [item for item in (self.verdict, self.value) if item and NOW in item]
        return NOW not in self.parameters and any(
            NOW in free_names(expression) for expression in expressions
        )

    @property
    def branches(self) -> bool:
        """Whether its result depends on more than its calls and a verdict on them."""
        return any(
            isinstance(step, Check | Branch | Choose)
            or (isinstance(step, ReturnStep) and step.holds is not None)
            for step in self.steps
        )

    @property
    def recipes(self) -> tuple[tuple[Act, ...], ...]:
        """The ways to verify it, the one in its steps first."""
        main = tuple([step for step in self.steps if isinstance(step, Act)])
        return (main, *self.fallbacks) if main else self.fallbacks

    def opened_by(self, answer: object) -> bool:
        """Whether the success of its call with this answer opens the gate, before its verdict."""
        return self.verdict is not None or self.is_fact or shows_success(answer)

    @property
    def is_fact(self) -> bool:
        """Whether it is a fact: a gate that says what was done in this session."""
        return self.kind is Kind.GATE and not any(isinstance(step, Act) for step in self.steps)


@dataclass(frozen=True, slots=True)
class Guarded:
    """An action that is held until it is proven, and approved if ``needed``. With ``when`` it needs
    approval only if that expression over the arguments is true or undecided. ``not_done`` is one
    over the ``result`` that its tool reports as an error: if true, the call wasn't carried out."""

    action: str
    roles: tuple[str, ...] = ()
    needed: int = 0
    expires_seconds: int | None = None
    recheck: bool = False
    when: str | None = None
    not_done: str | None = None


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """A predicate that must come out as ``wanted`` before a call; ``Local`` arguments are inputs of
    the call."""

    predicate: str
    arguments: Arguments = ()
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class ActionFacts:
    """Facts of an action for proofs. ``inputs`` are JSON Schemas by name; ``None`` as topics means
    everything. A verifier, or the action that opens a gate, ``requires`` one prerequisite of each
    group."""

    inputs: Mapping[str, Mapping[str, object]]
    required: tuple[str, ...] = ()
    changes: tuple[str, ...] | None = None
    reads: tuple[str, ...] | None = None
    shared: bool = False
    """Whether its answers and gates count on every connection to its server (P8)."""
    requires: tuple[tuple[Prerequisite, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    handbook: str
    procedure: str
    sha256: str
    tools: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """``constants`` are the handbook's parameters, which verdicts and wording may use.

    ``types`` are the JSON Schemas of the entry's parameters. ``actions`` are the facts for proofs;
    a handbook that guards nothing has none, and lists its harmless actions in ``read_only``.
    Values under the names in ``secrets`` are stored outside of the trace. ``not_found`` maps an
    action to the condition under which its failure is an answer.
    """

    entry: str
    functions: Mapping[str, Function]
    source: Source
    compiler: str
    constants: Mapping[str, Any] = field(default_factory=dict)
    guarded: tuple[Guarded, ...] = ()
    types: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    actions: Mapping[str, ActionFacts] = field(default_factory=dict)
    read_only: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    not_found: Mapping[str, str] = field(default_factory=dict)
    format: int = FORMAT
    cache: Cache = field(init=False, repr=False, compare=False, default_factory=Cache)


MISSING_RECIPE = "missing recipe"
"""The note of a rule that no offered action can verify."""


def known_facts(programs: Iterable[Program]) -> dict[str, ActionFacts]:
    """Action → facts; empty if nothing is guarded. If programs disagree, an action changes and
    reads the topics of all."""
    every = tuple(programs)
    known: dict[str, ActionFacts] = {}
    for program in every:
        for name, facts in program.actions.items():
            known[name] = _both(known[name], facts) if name in known else facts
    for program in every:
        if program.guarded:
            known = {**_unsaid(program), **known}
    return known


def _unsaid(program: Program) -> dict[str, ActionFacts]:
    """Facts that a program written by hand may omit: a verifier changes nothing, another action
    everything."""
    if "unsaid" not in program.cache:
        looks, does = set[str](), {item.action for item in program.guarded}
        for function in program.functions.values():
            acts = [act for recipe in function.recipes for act in recipe]
            does |= {act.action for act in acts if act.goal}
            looks |= {act.action for act in acts if function.kind is Kind.RULE}
        quiet, unknown = ActionFacts({}, changes=()), ActionFacts({})
        program.cache["unsaid"] = {
            **dict.fromkeys(sorted(looks), quiet),
            **dict.fromkeys(sorted(does), unknown),
        }
    facts: dict[str, ActionFacts] = program.cache["unsaid"]
    return facts


def _both(facts: ActionFacts, other: ActionFacts) -> ActionFacts:
    if facts is other or facts == other:
        return facts
    return ActionFacts(
        {**facts.inputs, **other.inputs},
        tuple(dict.fromkeys((*facts.required, *other.required))),
        _either(facts.changes, other.changes),
        _either(facts.reads, other.reads),
        facts.shared and other.shared,
        tuple(dict.fromkeys((*facts.requires, *other.requires))),
    )


def _either(texts: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if texts is None or other is None:
        return None
    return tuple(dict.fromkeys((*texts, *other)))
