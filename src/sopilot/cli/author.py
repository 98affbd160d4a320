"""``sopilot new``, ``check``, ``format`` and ``test``: write handbooks and keep them right."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import click

from sopilot.agent.result import nobody_watches
from sopilot.cli.options import AS_JSON, NEW_FOLDER, flag, option, wants_json
from sopilot.cli.output import Exit, Output, marked, print_json, say, tell
from sopilot.cli.serve import need_mcp
from sopilot.cli.watch import Watcher
from sopilot.files.text import read_text, require_new, write_whole
from sopilot.handbook.field_tables import handbook_schema
from sopilot.handbook.formatter import format_handbook
from sopilot.messages.diagnostic import Diagnostic, Severity
from sopilot.messages.errors import UserMistake
from sopilot.models.open import make_model
from sopilot.runner.check_findings import check_text, texts_to_check
from sopilot.runner.sources import open_source
from sopilot.tasks.scenarios import read_scenarios
from sopilot.tasks.starter import starter
from sopilot.tasks.testing import Tested, coverage_lines, named_scenarios, run_scenarios
from sopilot.values.text import Lines, counted


@click.command()
@click.argument("name")
@option(
    "--in",
    "Folder to write to. Default: the current one.",
    "folder",
    type=NEW_FOLDER,
    default=Path(),
)
@flag("--force", "Overwrite existing files.")
@option(
    "--upstream SERVERS",
    "Write a handbook for the tools of these MCP servers (a file, as for `gateway`).",
    type=click.Path(path_type=Path, exists=True),
)
@option(
    "--tools FILE",
    "Write a handbook for a Python file's functions or an OpenAPI document (JSON).",
    type=click.Path(path_type=Path, exists=True),
)
@AS_JSON
def new(name: str, folder: Path, force: bool, upstream: Path | None, tools: Path | None) -> Output:
    """Write NAME.yaml, a commented handbook that compiles, and NAME.scenarios.yaml.

    NAME is the handbook's name: lower-case letters, digits and hyphens. With --upstream or
    --tools (which runs a Python file), the handbook has an action per tool, with its inputs. An
    action that isn't known to be read-only asks the user first; add its requirements.
    """
    handbook, scenarios = starter(name)
    written = folder / f"{name}.yaml"
    texts = {written: handbook, folder / f"{name}.scenarios.yaml": scenarios}
    further = f"and `sopilot run {written}`, which runs its first scenario and audits it"
    if upstream is not None or tools is not None:
        texts = {written: _first_handbook(name, upstream, tools)}
        further = "and guard the tools with it: `sopilot gateway --help`, `sopilot guard --help`"
    if not force:
        require_new(texts, "choose another name, or overwrite it with `--force`")
    for path, text in texts.items():
        write_whole(path, text, "name another folder")
    tested = "" if len(texts) == 1 else f", `sopilot test {written}`"
    lines = [
        *(f"wrote {path}" for path in texts),
        f"next: edit {written}, then `sopilot check {written}`{tested}",
        further,
    ]
    return Output({"written": [str(path) for path in texts]}, lines)


def _first_handbook(name: str, upstream: Path | None, tools: Path | None) -> str:
    from sopilot.integrations.first_handbook import first_handbook, tools_of_file, tools_of_servers

    if upstream is not None:
        need_mcp()
    known = tools_of_servers(upstream) if upstream is not None else []
    known += tools_of_file(tools) if tools is not None else []
    return first_handbook(name, known)


@click.command()
@click.argument("paths", nargs=-1)
@flag("--schema", "Print the JSON Schema of handbooks, for editors.")
@AS_JSON
def check(paths: tuple[str, ...], schema: bool) -> Output | None:
    """Validate handbooks and programs; print one finding per line with its place.

    PATHS are handbook files, program files, scenario files beside their handbook
    (NAME.scenarios.yaml), folders of them, or bundled names.
    Exit 0 if there are no errors (warnings and notes don't count), 1 with errors, 2 if a file
    can't be read.
    """
    if schema:
        print_json(handbook_schema())
        return None
    if not paths:
        raise click.UsageError("name at least one file, folder or bundled example")
    texts = texts_to_check(paths)
    findings = [finding for source, text in texts for finding in check_text(text, source)]
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    warnings = sum(finding.severity is Severity.WARNING for finding in findings)
    total = (
        f"{counted(len(texts), 'file')} checked: {counted(errors, 'error')}, "
        f"{counted(warnings, 'warning')}"
    )
    results = [finding.as_json() for finding in findings]
    return Output(
        {"checked": len(texts), "errors": errors, "findings": results},
        [*(Lines(str(finding)) for finding in findings), total],
        Exit.if_any(errors),
    )


@click.command("format")
@click.argument("files", nargs=-1, required=True)
@flag("--check", "Change nothing; exit 1 if a file would change.", "dry")
@flag("--stdout", "Print the result; change no file.", "to_stdout")
@AS_JSON
def format_files(files: tuple[str, ...], dry: bool, to_stdout: bool) -> Output | None:
    """Format handbooks and scenario files. Comments and order are preserved."""
    if dry and to_stdout:
        raise UserMistake("use either `--check` or `--stdout`")
    mistakes: list[Diagnostic] = []
    formatted: list[tuple[Path, str, str]] = []
    for name in files:
        try:
            text = read_text(Path(name))
            formatted.append((Path(name), text, format_handbook(text, name)))
        except UserMistake as mistake:
            mistakes.extend(mistake.diagnostics)
    if mistakes:
        # All or nothing: a half-formatted folder is hard to review.
        raise UserMistake(mistakes)
    if to_stdout:
        for _, _, after in formatted:
            say(after.rstrip("\n"))
        return None
    changed = [(path, after) for path, before, after in formatted if before != after]
    for path, after in () if dry else changed:
        write_whole(path, after)
    word = "would change" if dry else "formatted"
    lines = [f"{word} {path}" for path, _ in changed]
    done = "would change" if dry else "changed"
    total = f"{counted(len(formatted), 'file')}: {len(changed)} {done}"
    report = {"files": len(formatted), "changed": [str(path) for path, _ in changed]}
    return Output(report, [*lines, total], Exit.if_any(dry and changed))


@click.command()
@click.argument("handbook")
@option(
    "--scenarios",
    "Scenario file. Default: HANDBOOK's name with `.scenarios.yaml`.",
    "scenario_file",
)
@option("--only NAME", "Run only this scenario (repeatable).", multiple=True)
@option("--watch NAME", "Run only this scenario; show every frame and call.")
@option(
    "--traces",
    "Write the trace of every run into this folder, for `sopilot audit`.",
    type=NEW_FOLDER,
)
@option(
    "--model",
    "Model to test on the scenarios, as for `sopilot run`.",
    default="reference",
    show_default=True,
)
@flag("--complete", "Also fail if a step or branch wasn't reached.")
@AS_JSON
def test(
    handbook: str,
    scenario_file: str | None,
    only: tuple[str, ...],
    watch: str | None,
    traces: Path | None,
    model: str,
    complete: bool,
) -> None:
    """Run the scenarios of HANDBOOK with simulated tools.

    The reference executor follows the compiled procedures. The handbook's verdicts judge the
    predicates, or the scenario's `verdicts` if a predicate has none.
    Exit 0 if every scenario passed, 1 if one failed, 2 on misuse.
    """
    source = open_source(handbook)
    help = "name it with `--scenarios`, or see `sopilot new` for one to start from"
    path = source.existing_scenarios(scenario_file, help)
    suite, findings = read_scenarios(read_text(path), source.handbook, str(path))
    if suite is None:
        raise UserMistake(findings)
    for finding in findings:
        say(str(finding), err=True)
    wanted = (*only, watch) if watch is not None else only
    chosen = named_scenarios(suite.scenarios, wanted, str(path))
    tested = asyncio.run(
        run_scenarios(
            source.briefing(),
            chosen,
            watcher=lambda: Watcher(frames=True) if watch is not None else nobody_watches,
            player=lambda task: make_model(model, judge=task.reader, about={"task": task.key}),
            traces=traces,
        )
    )
    if wanted:
        tested = replace(tested, coverage=())
    if wants_json():
        print_json(tested.as_json())
    else:
        _print_results(tested)
    incomplete = complete and any(item.gaps for item in tested.coverage)
    raise SystemExit(Exit.if_any(incomplete or tested.failed))


def _print_results(tested: Tested) -> None:
    for scenario, result in tested.results:
        if result.passed:
            marked("passed", f" {scenario.name}")
        else:
            marked("FAILED", f" {scenario.name}", fg="red")
        for reason in (result.verdict or {}).get("reasons", ()):
            say(f"        {reason}")
    for item in tested.coverage:
        tell(coverage_lines(item))
    number = counted(len(tested.results), "scenario")
    say(f"\n{number}: {tested.passed} passed, {tested.failed} failed")
