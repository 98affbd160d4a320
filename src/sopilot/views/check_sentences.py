"""The sentence of a check, on the side that is wanted, and what a function decides.

A rule has two sides. A demand quotes the wanted one; a check that only finds something out says
which result its sentence describes. The condition of a group is worked out from its steps:
jumping code and evidence-complete code with the same meaning give the same condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from sopilot.handbook.grammar import in_language
from sopilot.handbook.requirements import Constant
from sopilot.handbook.wording import Named, fill, named, negative, placeholders
from sopilot.messages.scaffold import words
from sopilot.program.model import (
    Always,
    Branch,
    Check,
    Condition,
    Every,
    Function,
    Holds,
    Kind,
    Program,
    ReturnStep,
    Some,
    Step,
)

_Joined = Every | Some
_SIMPLE = (Holds, Always)


def group_condition(function: Function) -> Condition | None:
    """Nothing where the steps do more than check, or turn in a circle."""
    return _Decided(function.steps).at(function.steps[0]) if function.steps else None


class _Decided:
    """The condition that is returned from each step on, computed on demand."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self._below = {item.label: after for item, after in pairwise(steps)}
        self._by_label = {step.label: step for step in steps}
        self._conditions: dict[str, Condition | None] = {}

    def at(self, step: Step) -> Condition | None:
        if step.label not in self._conditions:
            self._conditions[step.label] = None
            self._conditions[step.label] = self._reached(step)
        return self._conditions[step.label]

    def _after(self, label: str | None, step: Step) -> Condition | None:
        target = self._below.get(step.label) if label is None else self._by_label.get(label)
        return None if target is None else self.at(target)

    def _reached(self, step: Step) -> Condition | None:
        if isinstance(step, ReturnStep):
            return step.holds
        if isinstance(step, Check):
            if step.met == step.unmet:
                return self._after(step.met, step)
            decided: Condition = Holds(step.slot, step.wanted)
            met, unmet = self._after(step.met, step), self._after(step.unmet, step)
        elif isinstance(step, Branch):
            decided = step.when
            met, unmet = self._after(step.then, step), self._after(step.otherwise, step)
        else:
            return None
        return None if met is None or unmet is None else _either(decided, met, unmet)


def checks_everything(function: Function) -> bool:
    """Whether no result spares another check: the steps are checks and one return."""
    *checks, last = function.steps
    return isinstance(last, ReturnStep) and all(
        isinstance(step, Check) and step.met is None and step.unmet is None for step in checks
    )


def negated(condition: Condition) -> Condition:
    if isinstance(condition, Holds):
        return Holds(condition.slot, not condition.wanted)
    if isinstance(condition, Always):
        return Always(not condition.value)
    other: type[_Joined] = Some if isinstance(condition, Every) else Every
    return other(tuple(map(negated, condition.conditions)))


def _either(decided: Condition, met: Condition, unmet: Condition) -> Condition:
    """``met`` if decided, else ``unmet``, in as few words as there are."""
    if met == unmet:
        return met
    # decided and (rest or unmet), or else unmet: as the author wrote it, (decided and rest) or
    # unmet. And the other way round for what comes after an alternative that is met.
    rest = _without(met, unmet, Some)
    if rest is not None:
        return _join(Some, _join(Every, decided, rest), unmet)
    rest = _without(unmet, met, Every)
    if rest is not None:
        return _join(Every, _join(Some, decided, rest), met)
    return _join(Some, _join(Every, decided, met), _join(Every, negated(decided), unmet))


def _without(whole: Condition, part: Condition, kind: type[_Joined]) -> Condition | None:
    """The condition that makes ``whole`` when it is joined with ``part`` by ``kind``."""
    parts, left = _parts(part, kind), _parts(whole, kind)
    if not all(item in left for item in parts):
        return None
    return _join(kind, *[item for item in left if item not in parts])


def _parts(condition: Condition, kind: type[_Joined]) -> tuple[Condition, ...]:
    if isinstance(condition, kind):
        return condition.conditions
    return () if _is_always(condition, kind is Every) else (condition,)


def _is_always(condition: Condition, value: bool) -> bool:
    return isinstance(condition, Always) and condition.value is value


def _join(kind: type[_Joined], *conditions: Condition) -> Condition:
    """Flat, and without what changes nothing."""
    neutral = kind is Every
    flat: dict[Condition, None] = {}
    for condition in conditions:
        for item in condition.conditions if isinstance(condition, kind) else (condition,):
            if not isinstance(item, Always):
                flat[item] = None
            elif item.value is not neutral:
                return item
    if not flat:
        return Always(neutral)
    return next(iter(flat)) if len(flat) == 1 else kind(tuple(flat))


def condition_text(condition: Condition, table: Mapping[str, str], prefix: str = "") -> str:
    """``prefix`` chooses the table's words for a slot that must be true or false."""
    if isinstance(condition, Holds):
        key = "holds" if condition.wanted else "holds_not"
        return table[f"{prefix}{key}"].format(slot=condition.slot)
    if isinstance(condition, Always):
        return "true" if condition.value else "false"
    is_every = isinstance(condition, Every)
    if not condition.conditions:
        return "true" if is_every else "false"
    texts = [condition_text(part, table, prefix) for part in condition.conditions]
    if len(texts) == 1:
        return texts[0]
    return table["and" if is_every else "or"].join(
        text if isinstance(part, _SIMPLE) else f"({text})"
        for part, text in zip(condition.conditions, texts, strict=True)
    )


TRUE_MEANS, FALSE_MEANS = "true_means", "false_means"


class Saying(NamedTuple):
    """A line below a check: ``label`` is the key of the words before it, or empty. ``quoted``
    tells the SOP's own sentence from the words of the scaffold."""

    label: str
    text: str
    quoted: bool = True


def is_demand(step: Check) -> bool:
    """Whether going on means that the check is met; otherwise it only finds something out."""
    return step.met is None and step.unmet is not None


def check_saying(step: Check, program: Program, language: str) -> Saying | None:
    """The sentence of a check."""
    function = program.functions.get(step.function)
    demanded = is_demand(step)
    side = TRUE_MEANS if step.wanted else FALSE_MEANS
    if step.says:
        return Saying("" if demanded else side, in_language(step.says, language))
    if function is None:
        return None
    if function.predicate is None:
        condition = condition_of(function, language)
        return Saying(TRUE_MEANS, condition, quoted=False) if condition else None
    if not function.says:
        return None
    says = function.says
    if demanded and not step.wanted:
        says = negative(function.says, function.says_not)
    # A check without a value for an optional parameter says so.
    values = {**program.constants, **dict.fromkeys(function.optional), **_argument_values(step)}
    return Saying("" if demanded else TRUE_MEANS, in_language(fill(says, values), language))


def _argument_values(step: Check) -> dict[str, object]:
    return {
        parameter: term.value if isinstance(term, Constant) else Named(term.name)
        for parameter, term in step.arguments
    }


def condition_of(function: Function, language: str) -> str:
    """A group's condition in words; its author's where one wrote some."""
    if function.says:
        return in_language(function.says, language)
    if "condition" not in function.cache:
        function.cache["condition"] = group_condition(function)
    condition: Condition | None = function.cache["condition"]
    return condition_text(condition, words(language)) if condition is not None else ""


def purpose(function: Function, program: Program, language: str) -> list[str]:
    """The purpose of a function, one sentence per line: the goal's description, a group's
    condition, or the sentence of a rule."""
    table = words(language)
    if function.predicate is not None:
        return _judged(function, program, table, language)
    if function.says:
        return [table["purpose"].format(says=in_language(function.says, language))]
    condition = condition_of(function, language) if function.kind is Kind.GROUP else ""
    if not condition:
        return []
    how = table["all_first"] if checks_everything(function) else ""
    return [table["true_if"].format(condition=condition) + how]


def telling(functions: Iterable[str], program: Program, language: str) -> tuple[str, ...]:
    """The only reasons that the customer may hear if these functions refuse the request; empty if
    they may hear every reason."""
    customer_messages = [
        program.functions[name].customer_message for name in functions if name in program.functions
    ]
    message = (
        in_language(fill(item, program.constants), language) for item in customer_messages if item
    )
    return tuple(dict.fromkeys(message))


def _judged(
    function: Function, program: Program, table: Mapping[str, str], language: str
) -> list[str]:
    if not function.says:
        return []
    values = {**program.constants, **named({name: name for name in function.parameters})}
    says = in_language(fill(function.says, values), language)
    opens = function.kind is Kind.GATE and not function.is_fact
    key = "establishes" if opens else TRUE_MEANS
    message = telling([function.name], program, language)
    return [table[key].format(says=says), *(table["told"].format(says=item) for item in message)]


def named_constants(function: Function) -> tuple[str, ...]:
    """The constants that a function's sentences may name; what it is always given is none."""
    stored = function.cache
    names: tuple[str, ...] | None = stored.get("constants")
    if names is None:
        value = set(function.parameters) - set(function.optional)
        sides = [*placeholders(function.says), *placeholders(function.says_not)]
        message = placeholders(function.customer_message)
        names = tuple(dict.fromkeys([*(name for name in sides if name not in value), *message]))
        stored["constants"] = names
    return names


def constant_texts(names: Iterable[str], program: Program) -> list[str | None]:
    """The constants as texts show them: 500 and 500.0 are equal numbers and different words."""
    constants = program.constants
    return [str(constants[name]) if name in constants else None for name in names]
