"""τ-bench's airline: tasks, simulator, evaluator. See ``docs/research/benchmarks.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sopilot.tasks.benchmarks import BenchmarkTask
from sopilot.values.json import JSON

from .checkout import GoldTask, find_checkout, load_data, load_tasks, load_tools
from .simulator import AirlineTools

ENDS = "transfer_to_human_agents"
"""The action that ends the dialog; the evaluator doesn't repeat it."""


class AirlineSimulation:
    """The oracle is the benchmark's: the data must be as the gold actions leave it, and what
    the user had to be told must have been said."""

    def __init__(self, tools: Mapping[str, Any], data: str, gold: GoldTask) -> None:
        self.tools = AirlineTools(tools, data)
        self._untouched = (tools, data)
        self._gold = gold

    def verdict(self, messages: int, said: Sequence[str] | None) -> Mapping[str, JSON]:
        expected = AirlineTools(*self._untouched)
        for name, arguments in self._gold.actions:
            if name != ENDS:
                expected.perform(name, arguments)
        reasons = [
            f"{kind} are not as they should be"
            for kind in ("users", "reservations", "flights")
            if self.tools.data[kind] != expected.data[kind]
        ]
        told = None if said is None else [text.lower().replace(",", "") for text in said]
        for output in self._gold.outputs:
            if told is None:
                reasons.append(f"nobody kept whether `{output}` was said")
            elif not any(output.lower() in text for text in told):
                reasons.append(f"`{output}` was not said")
        return {"success": not reasons, "reasons": reasons}

    def close(self) -> None:
        return


class AirlineBenchmark:
    """Reads the files once; every simulator has its own data."""

    def __init__(self, tools: Mapping[str, Any], data: str, gold: Sequence[GoldTask]) -> None:
        self._tools = tools
        self._data = data
        self._gold = {one.name: one for one in gold}

    def tasks(self) -> list[BenchmarkTask]:
        return [
            BenchmarkTask(one.name, one.instruction, inputs={"user_id": one.user_id})
            for one in self._gold.values()
        ]

    def open(self, task: BenchmarkTask) -> AirlineSimulation:
        return AirlineSimulation(self._tools, self._data, self._gold[task.name])


def open_benchmark() -> AirlineBenchmark:
    home = find_checkout()
    return AirlineBenchmark(load_tools(home), load_data(home), load_tasks(home))
