"""How the reference executor knows whether a predicate holds: from the evidence it was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sopilot.language.compiler.rules import recipe_act
from sopilot.language.diagnostics import SopilotError
from sopilot.language.handbook import Handbook, Predicate
from sopilot.language.handbook.cel import VerdictError
from sopilot.language.handbook.cel import judge as judge_verdict
from sopilot.runtime.session.protocols import JSON


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


class CannotJudge(SopilotError):
    """The evidence does not say."""


class VerdictJudge:
    """By the handbook's verdicts; ``by_reading`` judges the predicates that need a reader."""

    def __init__(
        self, handbook: Handbook, by_reading: Mapping[str, TextJudge] | None = None
    ) -> None:
        self._handbook = handbook
        self._by_reading = dict(by_reading or {})

    def __call__(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> bool:
        known = self._handbook.predicates.get(predicate)
        if known is None:
            raise CannotJudge(f"`{predicate}` is not a predicate of `{self._handbook.name}`")
        succeeded = [one for one in evidence if one.ok]
        if known.is_gate and known.verdict is None:
            return bool(succeeded)
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
                recipe_act("", call, predicate, self._handbook.actions)
                for call in recipe
                if self._handbook.actions[call.action].offered
            ]
            found = gather(acts, known_or(arguments, lambda name: None), evidence)
            if acts and found.whole:
                return found.answers, found.answers[acts[-1].answer]
            why.extend([found.absent] if found.absent else [])
        if predicate.tool_free:
            return {}, None
        said = "; ".join(dict.fromkeys(why))
        raise CannotJudge(said or f"no recipe of `{predicate.name}` is answered")
