"""Tools that answer as a scenario says."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from sopilot.desks.scenarios._scenario import ScriptedAnswer
from sopilot.language.handbook import Action
from sopilot.runtime.agent.scripted_tools import action_schema
from sopilot.runtime.session.protocols import JSON, ToolResult, ToolSchema

UNSIMULATED = ToolResult(True, None)
"""What a tool answers that the scenario does not mention: it worked, and says nothing."""


class SimulatedTools:
    """Implements ``Tools`` for one run.

    Answers for these arguments go before answers for any. Of those that fit, the first
    unused one is given; once all were used, the last of them again.
    """

    def __init__(
        self, actions: Mapping[str, Action], answers: Mapping[str, Sequence[ScriptedAnswer]]
    ) -> None:
        self._actions = {name: action for name, action in actions.items() if action.offered}
        self._answers = answers
        self._used: set[tuple[str, int]] = set()
        self._given: dict[str, ToolResult] = {}

    def schemas(self) -> Sequence[ToolSchema]:
        return tuple(action_schema(action) for action in self._actions.values())

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        if key not in self._given:
            self._given[key] = self._answer(name, arguments)
        return copy.deepcopy(self._given[key])

    def _answer(self, name: str, arguments: Mapping[str, JSON]) -> ToolResult:
        listed = self._answers.get(name, ())
        if not listed:
            return UNSIMULATED
        fitting = [index for index, answer in enumerate(listed) if answer.fits(arguments)]
        fitting = [index for index in fitting if listed[index].when] or fitting
        if not fitting:
            return ToolResult(False, {"error": "the scenario has no answer for these arguments"})
        unused = [index for index in fitting if (name, index) not in self._used]
        chosen = unused[0] if unused else fitting[-1]
        self._used.add((name, chosen))
        return listed[chosen].result
