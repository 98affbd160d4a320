"""``sopilot check``: validate handbooks and programs."""

from __future__ import annotations

import click

from sopilot.cli.output import give, json_option, say
from sopilot.handbook.field_tables import published_schema
from sopilot.messages.diagnostic import Diagnostic, Severity
from sopilot.runner.checks import check_text, texts_to_check
from sopilot.values.text import Lines, counted


@click.command()
@click.argument("paths", nargs=-1)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of handbooks, for editors.")
@json_option
def command(paths: tuple[str, ...], schema: bool, as_json: bool) -> None:
    """Validate handbooks and programs; print one finding per line with its place.

    PATHS are handbook files, program files, scenario files beside their handbook
    (NAME.scenarios.yaml), folders of them, or bundled names.
    Exit 0 when nothing is wrong (warnings and notes do not count), 1 with findings, 2 when a
    file cannot be read.
    """
    if schema:
        say(published_schema().rstrip("\n"))
        return
    if not paths:
        raise click.UsageError("name at least one file, folder or bundled example")
    findings: list[Diagnostic] = []
    checked = 0
    for source, text in texts_to_check(paths):
        checked += 1
        findings.extend(check_text(text, source))
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    warnings = sum(finding.severity is Severity.WARNING for finding in findings)
    counts = (counted(checked, "file"), counted(len(errors), "error"), counted(warnings, "warning"))
    results = [finding.as_json() for finding in findings]
    give(
        as_json,
        {"checked": checked, "errors": len(errors), "findings": results},
        [*(Lines(str(finding)) for finding in findings), "{} checked: {}, {}".format(*counts)],
    )
    if errors:
        raise SystemExit(1)
