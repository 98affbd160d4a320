"""How a scenario's executor judges: by the handbook's verdicts, else by the scenario's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sopilot.desks.scenarios._scenario import ScriptedRuling
from sopilot.language.handbook import Handbook
from sopilot.runtime.agent import CannotJudge, Seen, VerdictJudge
from sopilot.runtime.session.protocols import JSON


class ScenarioJudge:
    """``problems`` lists what could not be judged, in words for the author of the scenario."""

    def __init__(
        self,
        handbook: Handbook,
        rulings: Mapping[str, Sequence[ScriptedRuling]],
        simulated: frozenset[str],
    ) -> None:
        self._handbook = handbook
        self._by_verdict = VerdictJudge(handbook)
        self._rulings = rulings
        self._simulated = simulated
        self.problems: list[str] = []

    def __call__(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> bool:
        known = self._handbook.predicates.get(predicate)
        if known is None or known.is_gate or known.verdict is not None:
            return self._verdict(predicate, arguments, evidence)
        for ruling in self._rulings.get(predicate, ()):
            if ruling.fits(arguments):
                return ruling.holds
        why = "for these arguments " if predicate in self._rulings else ""
        self.problems.append(
            f"`{predicate}` has no verdict in the handbook, and the scenario's `verdicts` "
            f"say nothing about it {why}".rstrip()
        )
        raise CannotJudge(self.problems[-1])

    def _verdict(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> bool:
        try:
            return self._by_verdict(predicate, arguments, evidence)
        except CannotJudge as error:
            self.problems.append(self._why(predicate, evidence, error))
            raise CannotJudge(self.problems[-1]) from error

    def _why(self, predicate: str, evidence: Sequence[Seen], error: CannotJudge) -> str:
        failed = ", ".join(sorted({f"`{one.action}`" for one in evidence if not one.ok}))
        if failed:
            return f"{error}: {failed} failed"
        why = f"the verdict of `{predicate}` cannot be judged: {error}"
        silent = sorted({one.action for one in evidence} - self._simulated)
        if silent:
            named = ", ".join(f"`{action}`" for action in silent)
            why += f"; give {named} a result under `tools`"
        return why
