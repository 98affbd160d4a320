"""The programs of tasks, compiled once per tool list."""

from __future__ import annotations

from dataclasses import dataclass

from sopilot.compiler.pipeline import Compiled, Compiler
from sopilot.program.codec import program_hash
from sopilot.program.model import Program
from sopilot_lab.sopbench.process import ToolList, Upstream
from sopilot_lab.sopbench.source import SopbenchTask, offered_actions, sopbench_handbook, task_hash


@dataclass(frozen=True, slots=True)
class Shelved:
    program: Program
    program_sha256: str
    handbook_sha256: str


class ProgramShelf:
    """Programs with the paper's schedule: every option of an ``any`` is checked (Lemma 2)."""

    def __init__(self, tools: ToolList, upstream: Upstream) -> None:
        self._tools = tools
        self._upstream = upstream
        self._compilers: dict[tuple[str, frozenset[str]], Compiler] = {}
        self._shelf: dict[str, Shelved] = {}

    def program(self, task: SopbenchTask) -> Shelved:
        key = str(task.reference)
        if key not in self._shelf:
            program = self.compiled(task).program
            handbook = task_hash(task, self._upstream)
            self._shelf[key] = Shelved(program, program_hash(program), handbook)
        return self._shelf[key]

    def compiled(self, task: SopbenchTask) -> Compiled:
        return self._compiler(task).compile(
            task.handbook,
            task.handbook.procedures[task.goal],
            source_hash=task_hash(task, self._upstream),
        )

    def _compiler(self, task: SopbenchTask) -> Compiler:
        shared = sopbench_handbook(task.domain, self._upstream)
        offered = offered_actions(shared, self._tools)
        if self._tools == "oracle":
            offered = offered.intersection(task.oracle)
        key = (task.domain, offered)
        if key not in self._compilers:
            self._compilers[key] = Compiler(
                shared.actions,
                shared.predicates,
                offered=offered,
                tools=self._tools,
                wide_first=self._tools == "full-state",
                evidence_complete=True,
            )
        return self._compilers[key]
