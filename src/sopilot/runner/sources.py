"""Sources by name: a handbook file, a bundled example, a folder, SOPBench; and one task of any."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from sopilot.compiler.pipeline import Compiled, Compiler, Explanation
from sopilot.files.text import is_program_text, read_text
from sopilot.handbook.model import Handbook, Procedure
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.writer import handbook_hash
from sopilot.messages.diagnostic import Diagnostic, Place, did_you_mean
from sopilot.messages.errors import UserMistake, mistake
from sopilot.program.codec import program_from_yaml
from sopilot.program.model import Program
from sopilot.tasks.benchmarks import HANDBOOK, benchmark_task, is_benchmark_folder, load_benchmark
from sopilot.tasks.example_tasks import example_tasks
from sopilot.tasks.examples.example import bundled_names, load_example
from sopilot.tasks.folders import folder_task, is_workflow_folder, load_folder
from sopilot.tasks.scenario_tasks import results_task, scenario_task
from sopilot.tasks.scenarios import Scenario, load_scenarios
from sopilot.tasks.task import Task
from sopilot.tasks.trust import FolderCode, folder_code
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing, OwnText, no_own_text

SOURCE_HELP = (
    "SOURCE is a handbook file, a bundled name (bank, clinic, it), a benchmark "
    "folder (handbook.yaml, benchmark.py), or SOPBench "
    "tasks: sopbench:all, sopbench:bank, sopbench:bank/get_loan, sopbench:bank/get_loan#3."
)

TOOL_LISTS = ("official", "full-state")
SCENARIOS = ".scenarios.yaml"
"""Ending of a scenario file's name."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One compiled procedure of a source. ``group`` is its domain or handbook."""

    label: str
    group: str
    handbook: Handbook
    procedure: Procedure
    compiled: Compiled
    own_text: Callable[[str], OwnText] = lambda language: no_own_text
    """Renderings that the source has itself, by language."""

    @property
    def program(self) -> Program:
        return self.compiled.program

    @property
    def explanation(self) -> Explanation:
        return self.compiled.explanation


class TaskSource:
    """A handbook file. ``text`` is the file as it was read."""

    bundled = False
    own_simulator = False
    """Whether it has a simulator for its tools."""

    def __init__(self, name: str, handbook: Handbook, text: str | None = None) -> None:
        self.name = name
        self.handbook = handbook
        self.text = text
        self._units: dict[tuple[str | None, str | None], list[Unit]] = {}
        self._scenarios: dict[Path, Sequence[Scenario]] = {}
        self._briefings: dict[tuple[str | None, str], Briefing] = {}

    def code(self) -> FolderCode | None:
        """The Python that its tasks run, if it is a folder."""
        return None

    def units(self, *, goal: str | None = None, tools: str | None = None) -> list[Unit]:
        """Compile every procedure, or the named one."""
        if (goal, tools) not in self._units:
            self._units[goal, tools] = list(self._compiled(goal, tools))
        return self._units[goal, tools]

    def briefing(self, goal: str | None = None, language: str = "en") -> Briefing:
        if (goal, language) not in self._briefings:
            programs = {unit.procedure.name: unit.program for unit in self.units(goal=goal)}
            self._briefings[goal, language] = Briefing(self.handbook, programs, language)
        return self._briefings[goal, language]

    def tasks(self, *, goal: str | None = None, language: str = "en") -> list[Task]:
        """Tasks of the goal, or all."""
        all_tasks = self._all_tasks(self.briefing(goal, language))
        return [task for task in all_tasks if goal in (None, task.goal)]

    def task(
        self, name: str | None = None, *, goal: str | None = None, language: str = "en"
    ) -> Task:
        """The named task, else the first one for the goal."""
        tasks = self._all_tasks(self.briefing(goal, language))
        # A simulator of its own serves for any goal.
        fitting = [task for task in tasks if goal in (None, task.goal)] or (
            tasks if self.own_simulator else []
        )
        if name is not None:
            fitting = [task for task in tasks if task.name == name]
        if fitting:
            return fitting[0]
        cure = "write one" if name is None else did_you_mean(name, [task.name for task in tasks])
        if self.own_simulator:
            message = f"`{self.name}` has no task `{name}`"
            raise mistake("unknown-task", message, Place(self.name), cure)
        what = f"`{name}`" if name else f"for `{goal or next(iter(self.handbook.procedures), '')}`"
        message = f"there is no scenario {what}"
        raise mistake("unknown-scenario", message, Place(str(self.scenario_file)), cure)

    def _all_tasks(self, briefing: Briefing) -> list[Task]:
        return [scenario_task(scenario, briefing) for scenario in self.scenarios()]

    def scenarios(self, path: Path | None = None) -> Sequence[Scenario]:
        path = path or self.scenario_file
        if path in self._scenarios:
            return self._scenarios[path]
        if not path.exists():
            raise mistake(
                "no-tools",
                f"`{self.name}` has no tools, and there is no `{path.name}` with their answers",
                Place(self.name),
                "write the answers in a YAML file (action: result) and name it with --results, "
                "or write scenarios, which `sopilot test` also runs (`sopilot new` shows some)",
            )
        suite = load_scenarios(read_text(path), self.handbook, str(path))
        self._scenarios[path] = suite.scenarios
        return suite.scenarios

    @property
    def scenario_file(self) -> Path:
        path = Path(self.name)
        return path.with_suffix(SCENARIOS) if path.name else path / SCENARIOS

    def existing_scenarios(self, named: str | None, cure: str) -> Path:
        path = Path(named) if named else self.scenario_file
        if not path.exists():
            message = "there is no such scenario file"
            raise mistake("no-scenarios", message, Place(str(path)), cure)
        return path

    def with_results(
        self, results: Mapping[str, JSON], *, goal: str | None, person: bool, language: str = "en"
    ) -> Task:
        """A task whose tools return ``results``; a ``person`` need not name the goal."""
        check_results(results, self.handbook)
        briefing = self.briefing(goal, language)
        goals = list(briefing.programs)
        if len(goals) != 1 and not person:
            raise UserMistake(f"name the goal with --goal: {', '.join(goals)}")
        return results_task(briefing, results, goals[0] if len(goals) == 1 else "")

    def _compiled(self, goal: str | None, tools: str | None) -> Iterator[Unit]:
        handbook = self.handbook
        if goal is not None and goal not in handbook.procedures:
            raise unknown_goal(self.name, goal, list(handbook.procedures))
        offered = None
        if tools == "official":
            actions = handbook.actions.items()
            offered = frozenset(
                name for name, action in actions if action.offered and not action.full_state
            )
        compiler = Compiler(
            handbook.actions, handbook.predicates, offered=offered,
            tools=tools or "as-written", wide_first=tools == "full-state",
        )  # fmt: skip
        digest = handbook_hash(handbook)
        for name, procedure in handbook.procedures.items():
            if goal in (None, name):
                compiled = compiler.compile(handbook, procedure, source_hash=digest)
                yield Unit(f"{self.name}/{name}", handbook.name, handbook, procedure, compiled)


class ExampleSource(TaskSource):
    """A bundled example, with its own simulator."""

    bundled = True
    own_simulator = True

    def __init__(self, name: str) -> None:
        self.example = load_example(name)
        super().__init__(name, self.example.handbook)

    def _all_tasks(self, briefing: Briefing) -> list[Task]:
        return example_tasks(self.example, briefing)


class BenchmarkSource(TaskSource):
    """A benchmark folder: a handbook, and a benchmark's tasks, simulator and evaluator, which load
    when a task is needed."""

    own_simulator = True

    def __init__(self, name: str, text: str | None = None) -> None:
        if text is None:
            text = read_text(Path(name) / HANDBOOK)
        super().__init__(name, load_handbook(text, str(Path(name) / HANDBOOK)), text)

    def code(self) -> FolderCode:
        return folder_code(Path(self.name).resolve())

    def _all_tasks(self, briefing: Briefing) -> list[Task]:
        benchmark = load_benchmark(self.name)
        return [
            benchmark_task(self.name, task, briefing, functools.partial(benchmark.open, task))
            for task in benchmark.tasks()
        ]


class FolderSource(TaskSource):
    """A workflow folder, with a hand-written program and real tools."""

    def __init__(self, name: str, out: Path) -> None:
        self.folder = load_folder(name)
        self.out = out
        super().__init__(name, Handbook(self.folder.name))

    def code(self) -> FolderCode:
        return self.folder.code()

    def task(
        self, name: str | None = None, *, goal: str | None = None, language: str = "en"
    ) -> Task:
        return folder_task(self.folder, self.folder.task(name), self.out, language)

    def units(self, *, goal: str | None = None, tools: str | None = None) -> list[Unit]:
        raise mistake(
            "folder-not-handbook",
            "this is a workflow folder, but a handbook is needed",
            Place(self.name),
            "`sopilot run` runs its tasks, `sopilot show` shows its program.yaml",
        )


def open_source(name: str, *, text: str | None = None, out: str | None = None) -> TaskSource:
    """Open a source by name. ``text`` replaces the file's; ``out`` is the folder in which the tools
    of a workflow folder work."""
    if name.startswith("sopbench:"):
        raise UserMistake("SOPBench tasks need their own simulator: use `sopilot lab run`")
    if name in bundled_names():
        return _example(name)
    if is_benchmark_folder(name):
        return BenchmarkSource(name, text)
    if is_workflow_folder(name):
        return FolderSource(name, Path(out or ".").resolve())
    if text is None:
        text = _text_of(name)
    return TaskSource(name, load_handbook(text, name), text)


_example = functools.cache(ExampleSource)


def compile_source(source: str, *, tools: str | None = None, goal: str | None = None) -> list[Unit]:
    """Compile every procedure that SOURCE names, SOPBench's too."""
    if not source.startswith("sopbench:"):
        return open_source(source).units(goal=goal, tools=tools)
    units = list(sopbench().units(source, tools or "official"))
    chosen = [unit for unit in units if goal in (None, unit.procedure.name)]
    if not chosen:
        raise unknown_goal(source, str(goal), [unit.procedure.name for unit in units])
    return chosen


def unknown_goal(source: str, goal: str, known: Sequence[str]) -> UserMistake:
    message = f"`{goal}` is not a goal of `{source}`"
    cure = did_you_mean(goal, set(known))
    return mistake("unknown-goal", message, Place(source), cure)


def check_results(results: Mapping[str, JSON], handbook: Handbook) -> None:
    place = Place("--results")
    if "scenarios" in results and "scenarios" not in handbook.actions:
        raise mistake(
            "scenarios-as-results",
            "this is a scenario file, not a file of results (action: result)",
            place,
            "leave --results out: `--task NAME` plays one of the scenarios beside the "
            "handbook, `sopilot test` runs them all",
        )
    unknown = [
        Diagnostic(
            "unknown-action",
            f"there is no action `{name}`",
            place,
            did_you_mean(str(name), handbook.actions),
        )
        for name in results
        if name not in handbook.actions
    ]
    if unknown:
        raise UserMistake(unknown)


def _text_of(source: str) -> str:
    path = Path(source)
    if not os.path.exists(path):  # unlike Path.exists, false for a name that is too long
        here = [str(file) for file in sorted(path.parent.glob("*.y*ml"))[:200]]
        beside = [name for name in here if Path(name).stem == path.stem]
        known = beside or [*bundled_names(), *here]
        raise mistake(
            "no-such-source",
            f"`{source}` is neither a file nor a bundled handbook",
            Place(source),
            f"did you mean `{beside[0]}`?" if beside else did_you_mean(source, known),
        )
    text = read_text(path)
    _is_handbook(text, source)
    return text


def _is_handbook(text: str, source: str) -> None:
    """Reject a program or a scenario file before its keys are checked."""
    if is_program_text(text):
        made_from = program_from_yaml(text, source).source.handbook
        raise mistake(
            "program-not-handbook",
            "this is a compiled program, but the handbook is needed"
            + (f" that it was compiled from, `{made_from}`" if made_from else ""),
            Place(source),
            "name the handbook's file; `sopilot show` and `sopilot check` read programs",
        )
    if source.endswith(SCENARIOS):
        raise mistake(
            "scenarios-not-handbook",
            "this is a scenario file, but its handbook is needed",
            Place(source),
            f"name `{source.removesuffix(SCENARIOS)}.yaml`",
        )


_SOPBENCH = "sopilot_lab.sopbench.provider"


class SopbenchProvider(Protocol):
    """Reads `sopbench:` references. The lab implements it and is loaded by name."""

    def units(self, source: str, tools: str) -> Iterator[Unit]:
        """Compile every task that ``source`` names."""
        ...

    def task(self, reference: str, *, tools: str, language: str) -> Task: ...

    def recorded_task(self, domain: str, task: Mapping[str, Any]) -> tuple[Handbook, str] | None:
        """Handbook and goal of the task that a recorded trajectory carries."""
        ...


@functools.cache
def sopbench() -> SopbenchProvider:
    provider: SopbenchProvider = import_module(_SOPBENCH).SopbenchProvider()
    return provider


def is_sopbench(reference: str) -> bool:
    return reference.startswith("sopbench:")


def _named(reference: str) -> tuple[str, str] | None:
    """Source and task of ``bank/TASK`` or ``my-example.yaml#SCENARIO``."""
    source, mark, name = reference.rpartition("#")
    if not mark:
        source, mark, name = reference.partition("/")
        mark = mark if source in bundled_names() else ""
    return (source, name) if mark else None


def is_task(reference: str) -> bool:
    """Whether it names one task instead of a whole source."""
    return is_sopbench(reference) or _named(reference) is not None


def lasting(reference: str) -> str:
    """The reference with an absolute path, to be found from any folder."""
    source, name = _named(reference) or ("", "")
    if not name or is_sopbench(reference) or source in bundled_names():
        return reference
    return f"{Path(source).resolve()}#{name}"


def named_task(reference: str, *, tools: str = "official", language: str = "en") -> Task:
    """The task of any source. ``tools`` is for SOPBench."""
    if is_sopbench(reference):
        return sopbench().task(reference, tools=tools, language=language)
    source, name = _named(reference) or ("", "")
    if not name:
        known = did_you_mean(reference.partition("/")[0], bundled_names())
        raise mistake(
            "unknown-task",
            f"`{reference}` isn't the name of a task",
            help="write `bank/TASK`, `my-example.yaml#SCENARIO` or "
            f"`sopbench:bank/get_loan#3`; {known}",
        )
    opened = open_source(source)
    if isinstance(opened, FolderSource):
        raise UserMistake("the tools of a workflow folder are real: its tasks are run, not played")
    return opened.task(name, language=language)
