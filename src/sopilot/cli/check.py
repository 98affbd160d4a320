"""``sopilot check``: verify handbooks and programs, a line a finding."""

from __future__ import annotations

import click

from sopilot.cli.output import give, json_option
from sopilot.messages.diagnostic import Diagnostic, Severity
from sopilot.runner.checks import check_text, texts_to_check
from sopilot.values.text import Lines, counted


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
    for source, text in texts_to_check(paths):
        checked += 1
        findings.extend(check_text(text, source))
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    warnings = sum(finding.severity is Severity.WARNING for finding in findings)
    counts = (counted(checked, "file"), counted(len(errors), "error"), counted(warnings, "warning"))
    found = [finding.as_json() for finding in findings]
    give(
        as_json,
        {"checked": checked, "errors": len(errors), "findings": found},
        [*(Lines(str(one)) for one in findings), "{} checked: {}, {}".format(*counts)],
    )
    if errors:
        raise SystemExit(1)
