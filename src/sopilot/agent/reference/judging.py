"""How the reference executor judges a predicate, and how far a recipe has come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from sopilot.compiler.functions import recipe_act
from sopilot.handbook.expressions import VerdictError, compute
from sopilot.handbook.expressions import judge as judge_verdict
from sopilot.handbook.model import BUILT_IN, Action, Handbook, Predicate
from sopilot.handbook.requirements import Name, Path
from sopilot.machine.recipes import Absent, Values, WantedCall, wanted_calls
from sopilot.messages.errors import SopilotError
from sopilot.program.model import Act
from sopilot.values.answers import shows_success
from sopilot.values.json import JSON, same


@dataclass(frozen=True, slots=True)
class Seen:
    """A tool result as it stands in the messages."""

    seq: int
    action: str
    arguments: Mapping[str, JSON]
    ok: bool
    value: JSON


PredicateJudge = Callable[[str, Mapping[str, JSON], Sequence[Seen]], bool]
"""``judge(predicate, arguments, evidence)``; raises ``CannotJudge`` where nothing tells."""
TextJudge = Callable[[Mapping[str, JSON], Sequence[Seen]], bool]


@runtime_checkable
class Computes(Protocol):
    """A judge that also computes arguments (nothing where there is nothing to compute), and
    knows which predicates are about what was done in the whole session."""

    def is_fact(self, predicate: str) -> bool: ...

    def computed(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> Mapping[str, JSON]: ...


class CannotJudge(SopilotError):
    """The evidence does not say."""


class VerdictJudge:
    """By the handbook's verdicts; ``by_reading`` judges the predicates that need a reader."""

    def __init__(
        self, handbook: Handbook, by_reading: Mapping[str, TextJudge] | None = None
    ) -> None:
        self._handbook = handbook
        self._actions = {**handbook.actions, **{name: Action(name) for name in BUILT_IN}}
        self._by_reading = dict(by_reading or {})

    def __call__(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> bool:
        known = self._handbook.predicates.get(predicate)
        if known is None:
            raise CannotJudge(f"`{predicate}` is not a predicate of `{self._handbook.name}`")
        succeeded = [item for item in evidence if item.ok]
        if known.done is not None:
            return self._was_done(known, arguments, succeeded)
        if known.is_gate and (known.verdict is None or not succeeded):
            return bool(succeeded) and shows_success(succeeded[-1].value)
        if known.verdict is not None:
            variables = self._variables(known, arguments, evidence)
            try:
                return judge_verdict(known.verdict, variables)
            except VerdictError as problem:
                raise CannotJudge(str(problem)) from None
        if not known.tool_free and not succeeded:
            raise CannotJudge(f"no tool result is about `{predicate}`")
        reader = self._by_reading.get(predicate)
        if reader is None:
            raise CannotJudge(f"`{predicate}` has no verdict: only a language model can judge it")
        return reader(arguments, succeeded)

    def _was_done(
        self, predicate: Predicate, arguments: Mapping[str, JSON], succeeded: Sequence[Seen]
    ) -> bool:
        call = predicate.done
        assert call is not None
        values = {
            name: arguments.get(term.name) if isinstance(term, Name) else term.value
            for name, term in call.arguments
            if not isinstance(term, Path)
        }
        return any(
            item.action == call.action
            and all(same(item.arguments.get(name), value) for name, value in values.items())
            for item in succeeded
        )

    def is_fact(self, predicate: str) -> bool:
        known = self._handbook.predicates.get(predicate)
        return known is not None and known.done is not None

    def computed(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> Mapping[str, JSON]:
        """The argument that a predicate of the machine's own computes, and its value."""
        known = self._handbook.predicates.get(predicate)
        if known is None or known.value is None or known.computes in arguments:
            return {}
        variables = self._variables(known, arguments, evidence)
        try:
            return {known.computes: compute(known.value, variables)}
        except VerdictError as problem:
            raise CannotJudge(str(problem)) from None

    def _variables(
        self, predicate: Predicate, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> dict[str, JSON]:
        """The variables of an expression, the answers under `results` and `result` included."""
        results, result = self._named(predicate, arguments, evidence)
        values = {**self._handbook.parameters, **arguments}
        return {**values, "results": results, "result": result}

    def _named(
        self, predicate: Predicate, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> tuple[dict[str, JSON], JSON]:
        """The answers by the names that the recipe gives them, and its last one."""
        if predicate.established_by is not None:
            opened = [item for item in evidence if item.ok]
            return {item.action: item.value for item in opened}, opened[-1].value
        why: list[str] = []
        for recipe in predicate.recipes:
            acts = [
                recipe_act("", call, predicate, self._actions)
                for call in recipe
                if self._actions[call.action].offered
            ]
            result = gather(acts, known_or(arguments, lambda name: None), evidence)
            if acts and result.whole:
                return result.answers, result.answers[acts[-1].answer]
            why.extend([result.absent] if result.absent else [])
        if predicate.tool_free:
            return {}, None
        join = "; ".join(dict.fromkeys(why))
        raise CannotJudge(join or f"no recipe of `{predicate.name}` is answered")


@dataclass(slots=True)
class Gathered:
    """``answers`` by name, ``evidence`` oldest first. ``missing`` is the first call that
    wasn't made, ``failed`` the first whose newest answer is a failure, ``absent`` what an answer
    lacks."""

    answers: dict[str, JSON] = field(default_factory=dict)
    evidence: list[Seen] = field(default_factory=list)
    missing: WantedCall | None = None
    failed: Seen | None = None
    absent: str = ""

    @property
    def whole(self) -> bool:
        return self.missing is None and self.failed is None and not self.absent


def gather(recipe: Sequence[Act], values: Values, seen: Sequence[Seen]) -> Gathered:
    gathered = Gathered()
    for act in recipe:
        wanted = wanted_calls(act, values, gathered.answers, open_values=True)
        if isinstance(wanted, Absent):
            gathered.absent = wanted.why
            return gathered
        answers: list[JSON] = []
        for call in wanted:
            newest = next((item for item in reversed(seen) if is_answer(call, item)), None)
            if newest is None:
                gathered.missing = call
                return gathered
            gathered.evidence.append(newest)
            if not newest.ok:
                gathered.failed = newest
                return gathered
            answers.append(newest.value)
        gathered.answers[act.answer] = answers if act.each is not None else answers[0]
    return gathered


def is_answer(call: WantedCall, item: Seen) -> bool:
    """Whether the result answers the call. The program filled in the arguments that it lacks."""
    return item.action == call.act.action and all(
        name not in item.arguments or same(value, item.arguments[name])
        for name, value in call.arguments.items()
    )


def known_or(known: Mapping[str, JSON], otherwise: Callable[[str], JSON]) -> Values:
    """The value of a name: what the frame knows, else what the dialog or evidence tells."""

    def value(name: str) -> JSON | Absent:
        result = known.get(name)
        if result is None:
            result = otherwise(name)
        return Absent(f"`{name}` has no value") if result is None else result

    return value
