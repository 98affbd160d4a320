"""SOURCE on the command line: a handbook file, a bundled name, SOPBench tasks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sopilot.language.compiler import Compiled, Compiler, Explanation
from sopilot.language.diagnostics import Diagnostic, Place, UserMistake, did_you_mean
from sopilot.language.handbook import Handbook, Procedure, load_handbook
from sopilot.language.program import Program, program_from_yaml

SOURCE_HELP = (
    "SOURCE is a handbook file, a bundled name (bank-desk, clinic-desk, it-desk), or SOPBench "
    "tasks: sopbench:all, sopbench:bank, sopbench:bank/get_loan, sopbench:bank/get_loan#3."
)
TOOL_LISTS = ("official", "full-state")
SCENARIOS = ".scenarios.yaml"
"""How the name of a scenario file ends."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One procedure of a source, compiled. ``group`` is its domain or handbook."""

    label: str
    group: str
    handbook: Handbook
    procedure: Procedure
    compiled: Compiled

    @property
    def program(self) -> Program:
        return self.compiled.program

    @property
    def explanation(self) -> Explanation:
        return self.compiled.explanation


def compile_source(
    source: str, *, tools: str | None = None, goal: str | None = None, text: str | None = None
) -> list[Unit]:
    """Every procedure that SOURCE names, compiled and verified. ``text`` is read instead of
    its file, where the file may have changed."""
    if source.startswith("sopbench:"):
        units = list(_sopbench(source, tools or "official"))
    elif text is not None:
        units = list(_handbook(load_handbook(text, source), source, tools))
    else:
        units = list(_handbook(load_source(source), source, tools))
    if goal is not None:
        chosen = [unit for unit in units if unit.procedure.name == goal]
        if not chosen:
            known = {unit.procedure.name for unit in units}
            raise UserMistake(
                [
                    Diagnostic(
                        "unknown-goal",
                        f"`{goal}` is not a goal of `{source}`",
                        Place(source),
                        did_you_mean(goal, known),
                    )
                ]
            )
        units = chosen
    return units


def load_source(source: str) -> Handbook:
    """The handbook behind a file or a bundled name."""
    from sopilot.desks.bundled import bundled_names, load_desk

    if source in bundled_names():
        return load_desk(source).handbook
    path = Path(source)
    if not os.path.exists(path):  # unlike Path.exists, false for a name that is too long
        here = [str(file) for file in sorted(path.parent.glob("*.y*ml"))[:200]]
        beside = [name for name in here if Path(name).stem == path.stem]
        known = beside or [*bundled_names(), *here]
        raise UserMistake(
            [
                Diagnostic(
                    "no-such-source",
                    f"`{source}` is neither a file nor a bundled handbook",
                    Place(source),
                    f"did you mean `{beside[0]}`?" if beside else did_you_mean(source, known),
                )
            ]
        )
    text = read_text(path)
    _is_handbook(text, source)
    return load_handbook(text, source)


def _is_handbook(text: str, source: str) -> None:
    """A program or a scenario file is told apart before its keys are held against it."""
    if is_program_text(text):
        made_from = load_program(Path(source)).source.handbook
        raise UserMistake(
            [
                Diagnostic(
                    "program-not-handbook",
                    "this is a compiled program; here the handbook is needed"
                    + (f" that it was compiled from, `{made_from}`" if made_from else ""),
                    Place(source),
                    "name the handbook's file; `sopilot show` and `sopilot check` read programs",
                )
            ]
        )
    if source.endswith(SCENARIOS):
        raise UserMistake(
            [
                Diagnostic(
                    "scenarios-not-handbook",
                    "this is a scenario file; here its handbook is needed",
                    Place(source),
                    f"name `{source.removesuffix(SCENARIOS)}.yaml`",
                )
            ]
        )


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        message, cure = "there is no such file", "check the name and the folder"
    except IsADirectoryError:
        message, cure = "this is a folder", "name a file in it"
    except UnicodeDecodeError:
        message, cure = "the file is not UTF-8 text", "save it as UTF-8"
    except OSError as error:
        message, cure = f"the file cannot be read: {error.strerror}", "check its permissions"
    raise UserMistake([Diagnostic("unreadable-file", message, Place(str(path)), cure)])


def is_program_text(text: str) -> bool:
    """Program artifacts name their format first; handbooks do not."""
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            return stripped.startswith("sopilot_program:")
    return False


def is_program_file(source: str) -> bool:
    path = Path(source)
    return os.path.isfile(path) and is_program_text(read_text(path))


def load_program(path: Path) -> Program:
    return program_from_yaml(read_text(path), str(path))


def _handbook(handbook: Handbook, source: str, tools: str | None) -> Iterator[Unit]:
    offered = None
    if tools == "official":
        offered = frozenset(
            name
            for name, action in handbook.actions.items()
            if action.offered and not action.full_state
        )
    compiler = Compiler(
        handbook.actions, handbook.predicates, offered=offered, tools=tools or "as-written"
    )
    for name, procedure in handbook.procedures.items():
        compiled = compiler.compile(handbook, procedure)
        yield Unit(f"{source}/{name}", handbook.name, handbook, procedure, compiled)


def _sopbench(source: str, tools: str) -> Iterator[Unit]:
    from sopilot.lab.bench.source import (
        load_tasks,
        offered_actions,
        sopbench_handbook,
        task_hash,
    )

    compilers: dict[str, Compiler] = {}
    for task in load_tasks(source):
        if task.domain not in compilers:
            shared = sopbench_handbook(task.domain)
            compilers[task.domain] = Compiler(
                shared.actions,
                shared.predicates,
                offered=offered_actions(
                    shared, "full-state" if tools == "full-state" else "official"
                ),
                tools=tools,
            )
        procedure = task.handbook.procedures[task.goal]
        compiled = compilers[task.domain].compile(
            task.handbook, procedure, source_hash=task_hash(task)
        )
        yield Unit(str(task.reference), task.domain, task.handbook, procedure, compiled)
