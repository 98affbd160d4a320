"""A folder with a program written by hand, its tools and its tasks.

``program.yaml`` is the program. ``tools.py`` has ``make_tools(task, out)``, which returns the tools
for one task; they keep their files in the folder ``out`` and go on from what is there.
``tasks.yaml`` lists the tasks. The Python of a folder runs only after a person has trusted it
(``trust``). Texts of a program are never run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from sopilot.agent.reference.judging import VerdictJudge
from sopilot.agent.result import Ending
from sopilot.files.text import load_program, load_yaml, read_text
from sopilot.handbook.model import Action, ActionCall, Handbook, Input, Predicate, Procedure
from sopilot.machine.call_ledger import HeldCall
from sopilot.messages.diagnostic import Place, did_you_mean
from sopilot.messages.errors import UserMistake, mistake
from sopilot.program.model import Act, Kind, Program
from sopilot.protocols import RecallsOutcomes, ToolResult, Tools, ToolSchema
from sopilot.records.entitlements import Vote
from sopilot.tasks.coverage import Coverage, ProgramCoverage, coverage_of
from sopilot.tasks.task import FinishedRun, Result, Simulation, Task
from sopilot.tasks.trust import FolderCode, checked_tools, folder_code, own_code
from sopilot.values.json import JSON, Fields
from sopilot.values.text import Heading, table, visible
from sopilot.views.briefing import Briefing

PROGRAM, TOOLS, TASKS = "program.yaml", "tools.py", "tasks.yaml"
_NEEDED = ("id", "goal", "says")
_KEYS = (*_NEEDED, "title", "inputs", "votes", "interrupted_after", "expected", "simulator")


@dataclass(frozen=True, slots=True)
class FolderTask:
    """``votes`` are the decisions about held calls; after a call of the tool ``interrupted_after``
    the run is cut off once. ``entry`` is the whole task, for the tools."""

    id: str
    goal: str
    says: str
    title: str = ""
    inputs: Mapping[str, JSON] = field(default_factory=dict)
    votes: tuple[Vote, ...] = ()
    interrupted_after: str | None = None
    expected: str | None = None
    entry: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkflowFolder:
    path: Path
    program: Program
    tasks: tuple[FolderTask, ...]

    @property
    def name(self) -> str:
        return self.program.source.handbook or self.path.name

    @property
    def goal(self) -> str:
        return self.program.entry

    def task(self, task_id: str | None) -> FolderTask:
        """The task named, else the first one."""
        if task_id is None:
            return self.tasks[0]
        for task in self.tasks:
            if task.id == task_id:
                return task
        known = [task.id for task in self.tasks]
        message = f"`{self.path}` has no task `{task_id}`"
        raise mistake("unknown-task", message, help=did_you_mean(task_id, known))

    def make_tools(self, task: FolderTask, out: Path) -> Tools:
        if not (self.path / TOOLS).exists():
            raise UserMistake(f"{self.path} has no {TOOLS}")
        file, hook = self.path / TOOLS, "make_tools(task, out)"
        code = self.code()
        with own_code(file, TOOLS):
            maker = getattr(code.module("tools"), "make_tools", None)
        if maker is None:
            raise UserMistake(f"{file} has no function `{hook}`")
        out.mkdir(parents=True, exist_ok=True)
        with own_code(file, hook):
            made = maker(task.entry, out)
        return checked_tools(file, hook, made)

    def code(self) -> FolderCode:
        return folder_code(self.path)

    def handbook(self, tools: Tools) -> Handbook:
        """The program as a handbook: its rules as predicates, its tools as actions."""
        return Handbook(
            self.name,
            actions={
                schema.name: Action(schema.name, _inputs(schema.parameters), schema.description)
                for schema in tools.schemas()
            },
            predicates=_predicates(self.program),
            procedures={self.goal: _procedure(self.program)},
        )


def is_workflow_folder(source: str) -> bool:
    return os.path.isfile(Path(source) / PROGRAM)


def load_folder(source: str) -> WorkflowFolder:
    path = Path(source).resolve()
    return WorkflowFolder(path, load_program(path / PROGRAM), _tasks(path / TASKS))


def _tasks(path: Path) -> tuple[FolderTask, ...]:
    try:
        document = load_yaml(read_text(path))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserMistake(f"{path} is not YAML: {error}") from error
    entries = document.get("tasks") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise _mistake(path, "there are no tasks", "list them under `tasks`")
    tasks = tuple(_task(path, index, entry) for index, entry in enumerate(entries))
    if len({task.id for task in tasks}) != len(tasks):
        raise _mistake(path, "two tasks have the same id", "give every task its own")
    return tasks


def _task(path: Path, index: int, entry: object) -> FolderTask:
    if not isinstance(entry, dict):
        raise _mistake(path, f"task {index + 1} is not a mapping", "write `id`, `goal` and `says`")
    missing = [key for key in _NEEDED if key not in entry]
    unknown = [key for key in entry if key not in _KEYS]
    if missing or unknown:
        wrong = f"lacks `{missing[0]}`" if missing else f"has an unknown key `{unknown[0]}`"
        help_ = did_you_mean(unknown[0], _KEYS) if unknown else f"add `{missing[0]}`"
        raise _mistake(path, f"task {index + 1} {wrong}", help_)
    if not all(isinstance(entry.get(key, {}), dict) for key in ("inputs", "simulator")):
        raise _mistake(
            path, f"task {index + 1}: `inputs` and `simulator` are mappings", "name: value"
        )
    return FolderTask(
        id=str(entry["id"]),
        goal=str(entry["goal"]),
        says=str(entry["says"]).strip(),
        title=str(entry.get("title", "")),
        inputs=entry.get("inputs", {}),
        votes=tuple(_vote(path, index, vote) for vote in entry.get("votes", ())),
        interrupted_after=entry.get("interrupted_after"),
        expected=entry.get("expected"),
        entry=entry,
    )


def _vote(path: Path, index: int, vote: object) -> Vote:
    if not isinstance(vote, dict) or {"role", "decision"} - set(vote):
        raise _mistake(path, f"task {index + 1}: a vote is incomplete", "write role and decision")
    role = str(vote["role"])
    by = str(vote.get("by", f"the {role}"))
    return Vote(str(vote["decision"]), by, role, reason=str(vote.get("reason", "")))


def _mistake(path: Path, message: str, help_: str) -> UserMistake:
    return mistake("bad-tasks", message, Place(str(path)), help_)


def _inputs(parameters: Fields) -> tuple[Input, ...]:
    required = parameters.get("required", ())
    return tuple(
        Input(
            name,
            str(schema.get("type", "string")),
            str(schema.get("description", "")),
            name in required,
        )
        for name, schema in parameters.get("properties", {}).items()
    )


def _predicates(program: Program) -> dict[str, Predicate]:
    results = {}
    for function in program.functions.values():
        if function.kind not in (Kind.RULE, Kind.GATE):
            continue
        calls = tuple(ActionCall(step.action) for step in function.steps if isinstance(step, Act))
        gate = function.kind is Kind.GATE and bool(calls)
        results[function.name] = Predicate(
            function.name,
            function.parameters,
            function.says,
            function.says_not,
            recipes=(calls,) if calls and not gate else (),
            established_by=calls[-1] if gate else None,
            tool_free=not calls,
            verdict=function.verdict,
            remedy=function.remedy,
        )
    return results


def _procedure(program: Program) -> Procedure:
    entry = program.functions[program.entry]
    goals = [step.action for step in entry.steps if isinstance(step, Act) and step.goal]
    return Procedure(program.entry, goals[0] if goals else program.entry, says=entry.says)


@dataclass(frozen=True, slots=True)
class RecordedVotes:
    """People who decide as the task says."""

    votes: tuple[Vote, ...]

    async def decide(self, held: HeldCall) -> Sequence[Vote]:
        return [vote for vote in self.votes if vote.role in held.roles]


class InterruptedTools:
    """Tools that interrupt the run once, after the call that the task names: the call has taken
    effect, and its result is lost."""

    def __init__(self, tools: Tools, task: FolderTask, out: Path) -> None:
        self._tools = tools
        self._after = task.interrupted_after
        self._mark = out / "interrupted"
        if isinstance(tools, RecallsOutcomes):
            self.recall = tools.recall

    def schemas(self) -> Sequence[ToolSchema]:
        return self._tools.schemas()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        result = await self._tools.call(name, arguments, key=key)
        if name == self._after and not self._mark.exists():
            self._mark.write_text(key, encoding="utf-8")
            raise KeyboardInterrupt
        return result


def folder_task(folder: WorkflowFolder, entry: FolderTask, out: Path, language: str = "en") -> Task:
    """``out`` is where its tools keep and make their files."""
    tools = InterruptedTools(folder.make_tools(entry, out), entry, out)
    handbook = folder.handbook(tools)
    expected = Ending(entry.expected) if entry.expected else None

    def score(messages: int, run: FinishedRun | None = None) -> Mapping[str, JSON]:
        ending = run.result.ending if run is not None else None
        good = expected is None or ending is expected
        reasons = [] if good else [f"expected `{expected}`, but it ended `{ending}`"]
        return {"success": good, "reasons": reasons}

    return Task(
        source=folder.name,
        name=entry.id,
        goal=folder.goal,
        briefing=Briefing(handbook, {folder.goal: folder.program}, language),
        surround=lambda keep: Simulation(tools, score=score if expected is not None else None),
        request=_opening(entry, folder),
        reader=VerdictJudge(handbook),
        inputs=entry.inputs,
        expected=expected,
        operator=RecordedVotes(entry.votes) if entry.votes else None,
        simulated=False,
        names_goal=False,
    )


def _opening(task: FolderTask, folder: WorkflowFolder) -> str:
    """The customer's first message, with the values of the goal's parameters."""
    lines = [
        f"{name}: {visible(json.dumps(task.inputs[name], ensure_ascii=False))}"
        for name in folder.program.functions[folder.goal].parameters
        if name in task.inputs
    ]
    return "\n".join([task.says, *lines])


def folder_coverage(folder: WorkflowFolder, results: Sequence[Result]) -> ProgramCoverage:
    """The steps and branches that the runs reached."""
    touched = Coverage()
    for result in results:
        touched.add(folder.program, [sealed.event for sealed in result.events])
    return coverage_of(folder.goal, folder.program, touched)


@dataclass(frozen=True, slots=True)
class TaskRun:
    task: FolderTask
    result: Result
    resumed: bool


def folder_lines(runs: Sequence[TaskRun], coverage: ProgramCoverage) -> Iterator[str]:
    rows = [
        (
            run.task.id,
            run.task.title,
            str(run.result.run.ending) + (" (resumed)" if run.resumed else ""),
            run.result.run.agent_turns,
            run.result.run.domain_calls,
            len(run.result.audit.findings),
            "yes" if run.result.good else "NO",
        )
        for run in runs
    ]
    yield table(rows, ("task", "what", "ending", "turns", "calls", "findings", "as expected"))
    yield ""
    for run in runs:
        if run.result.run.ending is Ending.REFUSED:
            yield f"task {run.task.id}: {run.result.run.reason}"
    yield ""
    yield Heading(
        f"steps reached {coverage.steps_reached}/{coverage.steps}, "
        f"branches {coverage.branches_reached}/{coverage.branches}"
    )
    for gap in coverage.gaps:
        yield f"  not reached: {gap}"
