"""``sopilot check``: verify handbooks and programs, a line a finding."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sopilot.doors.cli.compiled_warnings import compiled_warnings
from sopilot.doors.cli.output import counted, json_option, print_json, say
from sopilot.doors.cli.sources import SCENARIOS, is_program_text, read_text
from sopilot.doors.cli.workflow_folder import PROGRAM, is_workflow_folder
from sopilot.language.compiler import compile_handbook
from sopilot.language.diagnostics import Diagnostic, Severity, UserMistake
from sopilot.language.handbook import read_handbook
from sopilot.language.program import program_from_yaml


@click.command()
@click.argument("paths", nargs=-1, required=True)
@json_option
def command(paths: tuple[str, ...], as_json: bool) -> None:
    """Verify handbooks and programs; print every finding with its place.

    PATHS are handbook files, program files, scenario files beside their handbook
    (NAME.scenarios.yaml), folders of them, or bundled names.
    Exit 0 when nothing is wrong (warnings do not count), 1 with findings, 2 when a
    file cannot be read.
    """
    findings: list[Diagnostic] = []
    checked = 0
    for source, text in _texts(paths):
        checked += 1
        findings.extend(check_text(text, source))
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if as_json:
        print_json(
            {
                "checked": checked,
                "errors": len(errors),
                "findings": [finding.as_json() for finding in findings],
            }
        )
    else:
        for finding in findings:
            say(str(finding))
        warnings = len(findings) - len(errors)
        say(
            f"{counted(checked, 'file')} checked: {counted(len(errors), 'error')}, "
            f"{counted(warnings, 'warning')}"
        )
    if errors:
        raise SystemExit(1)


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
            for name, compiled in compile_handbook(handbook).items():
                found = compiled_warnings(name, compiled, text=text, source=source)
                findings = [*findings, *found]
        return findings
    except UserMistake as mistake:
        return list(mistake.diagnostics)


def _check_scenarios(text: str, source: str) -> list[Diagnostic]:
    """Against the handbook beside it; that one's own mistakes are told under its own name."""
    from sopilot.desks.scenarios import read_scenarios

    path = Path(source.removesuffix(SCENARIOS) + ".yaml")
    handbook, _ = read_handbook(read_text(path), str(path))
    return read_scenarios(text, handbook, source)[1] if handbook is not None else []


def _texts(paths: tuple[str, ...]) -> list[tuple[str, str]]:
    from sopilot.desks.bundled import bundled_names, load_desk

    found: list[tuple[str, str]] = []
    for name in paths:
        path = Path(name)
        if not os.path.exists(path) and name in bundled_names():
            found.append((name, load_desk(name).handbook_text))
        elif is_workflow_folder(name):
            # The other YAML of such a folder is its tools' own business.
            found.append((str(path / PROGRAM), read_text(path / PROGRAM)))
        elif os.path.isdir(path):
            files = sorted([*path.rglob("*.yaml"), *path.rglob("*.yml")])
            if not files:
                raise UserMistake(f"{name}: no .yaml file in this folder")
            found.extend((str(file), read_text(file)) for file in files)
        else:
            found.append((name, read_text(path)))
    return found
