"""SOPBench's tasks as tasks of the runtime, and tasks of other handbooks among them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sopilot.agent.reference.judging import CannotJudge, Seen
from sopilot.agent.result import Ending
from sopilot.handbook.model import Action
from sopilot.messages.errors import UserMistake
from sopilot.program.model import Program
from sopilot.protocols import ToolCall, ToolResult, ToolSchema
from sopilot.tasks.benchmarks import BenchmarkTask, benchmark_task
from sopilot.tasks.task import Task
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot_lab.sopbench import process as sopbench_process
from sopilot_lab.sopbench.process import Simulator, ToolList, Upstream
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.reference import domain_budgets
from sopilot_lab.sopbench.source import SopbenchTask, load_tasks, task_actions, tool_list
from sopilot_lab.sopbench.wording import own_text

NO_CALL = frozenset({"n/a", "na", "none", "null"})
"""Names by which models say that they call nothing; upstream takes them so."""


class SopbenchTools:
    """Offers exactly the tool list; implements ``KeepsUnmadeCalls``. A call blocks the event
    loop for the fraction of a millisecond that the simulator needs, which is cheaper than a
    thread."""

    def __init__(self, task: SopbenchTask, simulator: Simulator, tools: ToolList) -> None:
        offered = task_actions(task, tools)
        self._schemas = tuple(
            _schema(action) for name, action in task.handbook.actions.items() if name in offered
        )
        self._simulator = simulator

    def schemas(self) -> Sequence[ToolSchema]:
        return self._schemas

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        outcome = self._simulator.call(name, arguments)
        return ToolResult(outcome.ok, outcome.value)

    async def unmade(self, call: ToolCall, problem: str) -> bool:
        """Into the log that the oracle reads, as upstream's runner would write it."""
        if call.name.lower() in NO_CALL:
            return False
        self._simulator.unmade(call.name, _object(call.arguments), problem)
        return True


def _object(written: str) -> dict[str, JSON]:
    """Read the arguments; empty if they are no JSON object."""
    try:
        arguments = json.loads(written)
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _schema(action: Action) -> ToolSchema:
    properties = {
        each.name: dict(each.schema)
        if each.schema is not None
        else {"type": each.type, "description": each.says}
        for each in action.inputs
    }
    required = [each.name for each in action.inputs if each.required]
    parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    return ToolSchema(action.name, action.says, parameters)


def sopbench_task(reference: str, *, tools: str = "official", language: str = "en") -> Task:
    """The one task that ``sopbench:bank/get_loan#3`` names, with this tool list."""
    upstream = sopbench_process.shared_upstream()
    tasks = load_tasks(reference, upstream=upstream)
    if len(tasks) != 1:
        raise UserMistake(f"`{reference}` names {len(tasks)} tasks; add `#0`, `#1`, … for one")
    offered = tool_list(tools)
    program = ProgramShelf(offered, upstream).program(tasks[0]).program
    return as_task(tasks[0], program, offered, upstream, language)


def as_task(
    own: SopbenchTask, program: Program, offered: ToolList, upstream: Upstream, language: str
) -> Task:
    source, _, name = str(own.reference).partition("/")
    handbook = own.handbook.offering(task_actions(own, offered))
    text = own_text(own, offered, upstream, language)
    return benchmark_task(
        source,
        BenchmarkTask(name, own.user_prompt, own.goal, own.user_known),
        Briefing(handbook, {own.goal: program}, language, text),
        lambda: SopbenchSimulation(own, program, offered, upstream),
        budgets=domain_budgets(own.domain),
    )


class SopbenchSimulation:
    """Upstream's simulator, with its evaluator and its predicates as the oracle. Implements
    ``BenchmarkSimulation`` and ``KnowsTruth``."""

    def __init__(
        self, own: SopbenchTask, program: Program, offered: ToolList, upstream: Upstream
    ) -> None:
        self._simulator = upstream.open(own.domain, own.goal, own.index, tools=offered)
        self.tools = SopbenchTools(own, self._simulator, offered)
        self._handbook = own.handbook
        self._predicates = {
            name: function.predicate
            for name, function in program.functions.items()
            if function.predicate is not None
        }
        raw = upstream.tasks(own.domain)[own.goal][own.index]["constraint_parameters"]
        # A handbook's constants are scalars: a list stands in it as its text.
        self._lists = {str(value): value for value in raw.values() if isinstance(value, list)}

    def verdict(self, messages: int, texts: Sequence[str] | None) -> Mapping[str, JSON]:
        return self._simulator.evaluate(messages=messages)

    def holds(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> bool:
        """Judge by the simulator's state at this moment, and change nothing. ``predicate`` is a
        function's name, as a frame shows it."""
        known = self._handbook.predicates.get(self._predicates.get(predicate, predicate))
        if known is None:
            raise CannotJudge(f"`{predicate}` is not a predicate of `{self._handbook.name}`")
        values: dict[str, Any] = {
            name: self._value(arguments[name]) for name in known.parameters if name in arguments
        }
        return self._simulator.judge(known.name, values) is True

    def _value(self, value: JSON) -> JSON:
        return self._lists.get(value, value) if isinstance(value, str) else value

    def close(self) -> None:
        self._simulator.close()


@dataclass(frozen=True, slots=True, order=True)
class OwnReference:
    """``my-desk/refund#the second parcel``: the handbook, the goal, the task's own name."""

    domain: str
    goal: str
    name: str

    def __str__(self) -> str:
        return f"{self.domain}/{self.goal}#{self.name}"


def own_references(tasks: Sequence[Task]) -> dict[OwnReference, Task]:
    """The tasks that end in an execution or a refusal; only these can be scored."""
    results = {
        OwnReference(task.source, task.goal, task.name): task
        for task in tasks
        if task.expected in (Ending.EXECUTED, Ending.REFUSED)
    }
    if not results:
        raise UserMistake("no task is expected to end in an execution or a refusal")
    return results


def as_official(verdict: Mapping[str, Any], task: Task, *, goal_reached: bool) -> dict[str, Any]:
    success = bool(verdict["success"])
    return {
        "user_goal": task.goal,
        "action_should_succeed": task.expected is Ending.EXECUTED,
        "no_tool_call_error": success,
        "constraint_not_violated": success,
        "database_match": success,
        "action_successfully_called": goal_reached,
        "dirgraph_satisfied": success,
        "action_called_correctly": success,
        "success": success,
        "reasons": list(verdict.get("reasons", ())),
    }
