"""``sopilot check``: verify handbooks and programs, a line a finding."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sopilot.adapters.text_files import read_text
from sopilot.desks.bundled import bundled_names, handbook_text
from sopilot.desks.folders import PROGRAM, is_workflow_folder
from sopilot.doors.cli.output import counted, json_option, print_json, say
from sopilot.doors.sources.checking import check_text
from sopilot.language.diagnostics import Diagnostic, Severity, UserMistake


@click.command()
@click.argument("paths", nargs=-1, required=True)
@json_option
def command(paths: tuple[str, ...], as_json: bool) -> None:
    """Verify handbooks and programs; print every finding with its place.

    PATHS are handbook files, program files, scenario files beside their handbook
    (NAME.scenarios.yaml), folders of them, or bundled names.
    Exit 0 when nothing is wrong (warnings and notes do not count), 1 with findings, 2 when a
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
        warnings = sum(finding.severity is Severity.WARNING for finding in findings)
        say(
            f"{counted(checked, 'file')} checked: {counted(len(errors), 'error')}, "
            f"{counted(warnings, 'warning')}"
        )
    if errors:
        raise SystemExit(1)


def _texts(paths: tuple[str, ...]) -> list[tuple[str, str]]:
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
            found.extend((str(file), read_text(file)) for file in files)
        else:
            found.append((name, read_text(path)))
    return found
