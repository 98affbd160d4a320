"""The programs of tasks, compiled once per tool list."""

from __future__ import annotations

from dataclasses import dataclass

from sopilot.lab.bench.sopbench_process import ToolList, Upstream
from sopilot.lab.bench.source import (
    SopbenchTask,
    offered_actions,
    sopbench_handbook,
    task_hash,
)
from sopilot.language.compiler import Compiled, Compiler
from sopilot.language.program import Program
from sopilot.language.program.codec import program_hash


@dataclass(frozen=True, slots=True)
class Shelved:
    program: Program
    program_sha256: str
    handbook_sha256: str


class ProgramShelf:
    def __init__(self, tools: ToolList, upstream: Upstream) -> None:
        self._tools = tools
        self._upstream = upstream
        self._compilers: dict[str, Compiler] = {}
        self._shelf: dict[str, Shelved] = {}

    def program(self, task: SopbenchTask) -> Shelved:
        key = str(task.reference)
        if key not in self._shelf:
            program = self.compiled(task).program
            found = Shelved(
                program, program_hash(program), task_hash(task, upstream=self._upstream)
            )
            self._shelf[key] = found
        return self._shelf[key]

    def compiled(self, task: SopbenchTask) -> Compiled:
        return self._compiler(task.domain).compile(
            task.handbook,
            task.handbook.procedures[task.goal],
            source_hash=task_hash(task, upstream=self._upstream),
        )

    def _compiler(self, domain: str) -> Compiler:
        if domain not in self._compilers:
            shared = sopbench_handbook(domain, upstream=self._upstream)
            self._compilers[domain] = Compiler(
                shared.actions,
                shared.predicates,
                offered=offered_actions(shared, self._tools),
                tools=self._tools,
                wide_first=self._tools == "full-state",
            )
        return self._compilers[domain]
