"""How the reference executor knows whether a predicate holds: from the evidence it was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from sopilot.language.compiler.rules import recipe_act
from sopilot.language.diagnostics import SopilotError
from sopilot.language.handbook import BUILT_IN, Action, Handbook, Name, Path, Predicate
from sopilot.language.handbook.cel import VerdictError, compute
from sopilot.language.handbook.cel import judge as judge_verdict
from sopilot.runtime.session.protocols import JSON
from sopilot.runtime.vm.values import same


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
        succeeded = [one for one in evidence if one.ok]
        if known.done is not None:
            return self._was_done(known, arguments, succeeded)
        if known.is_gate and (known.verdict is None or not succeeded):
            return bool(succeeded)  # nothing has opened it
        if not known.tool_free and not succeeded:
            raise CannotJudge(f"no tool said anything about `{predicate}`")
        if known.verdict is not None:
            results, result = self._named(known, arguments, evidence)
            variables: dict[str, JSON] = {
                **self._handbook.parameters,
                **arguments,
                "results": results,
                "result": result,
            }
            try:
                return judge_verdict(known.verdict, variables)
            except VerdictError as problem:
                raise CannotJudge(str(problem)) from None
        reader = self._by_reading.get(predicate)
        if reader is None:
            raise CannotJudge(f"`{predicate}` has no verdict: it needs a model that reads")
        return reader(arguments, succeeded)

    def _was_done(
        self, predicate: Predicate, arguments: Mapping[str, JSON], succeeded: Sequence[Seen]
    ) -> bool:
        call = predicate.done
        assert call is not None
        given = {
            name: arguments.get(term.name) if isinstance(term, Name) else term.value
            for name, term in call.arguments
            if not isinstance(term, Path)
        }
        return any(
            one.action == call.action
            and all(same(one.arguments.get(name), value) for name, value in given.items())
            for one in succeeded
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
        results, result = self._named(known, arguments, evidence)
        variables = {**self._handbook.parameters, **arguments}
        variables |= {"results": results, "result": result}
        try:
            return {known.computes: compute(known.value, variables)}
        except VerdictError as problem:
            raise CannotJudge(str(problem)) from None

    def _named(
        self, predicate: Predicate, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> tuple[dict[str, JSON], JSON]:
        """The answers by the names that the recipe gives them, and its last one."""
        from sopilot.runtime.agent.reference._recipes import gather, known_or

        if predicate.established_by is not None:
            opened = [one for one in evidence if one.ok]
            return {one.action: one.value for one in opened}, opened[-1].value if opened else None
        why: list[str] = []
        for recipe in predicate.recipes:
            acts = [
                recipe_act("", call, predicate, self._actions)
                for call in recipe
                if self._actions[call.action].offered
            ]
            found = gather(acts, known_or(arguments, lambda name: None), evidence)
            if acts and found.whole:
                return found.answers, found.answers[acts[-1].answer]
            why.extend([found.absent] if found.absent else [])
        if predicate.tool_free:
            return {}, None
        said = "; ".join(dict.fromkeys(why))
        raise CannotJudge(said or f"no recipe of `{predicate.name}` is answered")
