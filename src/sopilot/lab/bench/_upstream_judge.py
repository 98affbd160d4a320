"""Verdicts of the reference executor on SOPBench: upstream's own predicate functions.

This is the evidence-faithful assumption of the study: whoever has called a
predicate's verifier reads its result rightly. Everything else the executor
must learn from frames, results and the user. A predicate that upstream cannot
evaluate (an account that does not exist) does not hold: nothing shows that it
does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sopilot.lab.bench.sopbench_process import Simulator, Upstream
from sopilot.lab.bench.source import SopbenchTask
from sopilot.language.program import Program
from sopilot.runtime.agent import CannotJudge, Seen
from sopilot.runtime.session.protocols import JSON


class UpstreamJudge:
    """Judges by the state of one task's simulator at this moment; changes nothing."""

    def __init__(
        self, task: SopbenchTask, program: Program, simulator: Simulator, upstream: Upstream
    ) -> None:
        self._handbook = task.handbook
        self._simulator = simulator
        self._predicates = {
            name: function.predicate
            for name, function in program.functions.items()
            if function.predicate is not None
        }
        raw = upstream.tasks(task.domain)[task.goal][task.index]["constraint_parameters"]
        # A handbook's constants are scalars: a list stands in it as its text.
        self._lists = {str(value): value for value in raw.values() if isinstance(value, list)}

    def __call__(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> bool:
        """``predicate`` is a function's name, as a frame shows it."""
        known = self._handbook.predicates.get(self._predicates.get(predicate, predicate))
        if known is None:
            raise CannotJudge(f"`{predicate}` is not a predicate of `{self._handbook.name}`")
        given: dict[str, Any] = {
            name: self._value(arguments[name]) for name in known.parameters if name in arguments
        }
        return self._simulator.judge(known.name, given).holds is True

    def _value(self, value: JSON) -> JSON:
        return self._lists.get(value, value) if isinstance(value, str) else value
