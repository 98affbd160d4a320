"""Everything that is wrong with one file, as findings with their places."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import yaml

from sopilot.adapters.text_files import is_program_text, read_text
from sopilot.desks.bundled import bundled_names, handbook_text
from sopilot.desks.folders import PROGRAM, is_workflow_folder
from sopilot.desks.scenarios import read_scenarios
from sopilot.doors.sources._compiled_warnings import compiled_warnings
from sopilot.doors.sources._policy_warnings import (
    never_proven,
    policy_warnings,
    recorded_only,
    unread_keywords,
)
from sopilot.doors.sources._source import SCENARIOS
from sopilot.language.compiler import compile_handbook
from sopilot.language.diagnostics import Diagnostic, Severity, UserMistake
from sopilot.language.handbook import read_handbook
from sopilot.language.program import program_from_yaml

_NAMING = frozenset({"handbook", "actions", "predicates", "procedures", "sopilot_program"})
"""A handbook or a program has one of these."""


def check_text(text: str, source: str) -> list[Diagnostic]:
    """Every finding in one handbook, program or scenario file."""
    try:
        if source.endswith(SCENARIOS):
            return _check_scenarios(text, source)
        if is_program_text(text):
            program_from_yaml(text, source)
            return []
        handbook, findings = read_handbook(text, source)
        if handbook is not None and not any(f.severity is Severity.ERROR for f in findings):
            findings = [*findings, *policy_warnings(handbook, text=text, source=source)]
            findings = [*findings, *unread_keywords(handbook, text=text, source=source)]
            findings = [*findings, *never_proven(handbook, text=text, source=source)]
            for name, compiled in compile_handbook(handbook).items():
                found = compiled_warnings(
                    name, compiled, handbook.actions, text=text, source=source
                )
                findings = [*findings, *found]
            findings = [*findings, *recorded_only(handbook, source)]
        return findings
    except UserMistake as mistake:
        return list(mistake.diagnostics)


def _check_scenarios(text: str, source: str) -> list[Diagnostic]:
    """Against the handbook beside it; that one's own mistakes are told under its own name."""
    path = Path(source.removesuffix(SCENARIOS) + ".yaml")
    handbook, _ = read_handbook(read_text(path), str(path))
    return read_scenarios(text, handbook, source)[1] if handbook is not None else []


def _is_meant(source: str, text: str) -> bool:
    """Of a folder's YAML: not what a tool returns, and not what another program is set up with.
    A file that is no YAML at all is told of."""
    if source.endswith(SCENARIOS):
        return True
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return True
    return isinstance(value, dict) and not _NAMING.isdisjoint(map(str, value))


def texts_to_check(paths: Sequence[str]) -> list[tuple[str, str]]:
    """Name and text of every file that these files, folders and bundled names come to."""
    found: list[tuple[str, str]] = []
    for name in paths:
        path = Path(name)
        if name in bundled_names():
            found.append((name, handbook_text(name)))
        elif is_workflow_folder(name):
            # The other YAML of such a folder is its tools' own business.
            found.append((str(path / PROGRAM), read_text(path / PROGRAM)))
        elif os.path.isdir(path):
            files = sorted([*path.rglob("*.yaml"), *path.rglob("*.yml")])
            if not files:
                raise UserMistake(f"{name}: no .yaml file in this folder")
            texts = [(str(file), read_text(file)) for file in files]
            meant = [one for one in texts if _is_meant(*one)]
            if not meant:
                raise UserMistake(f"{name}: no handbook, program or scenario in this folder")
            found.extend(meant)
        else:
            found.append((name, read_text(path)))
    return found
