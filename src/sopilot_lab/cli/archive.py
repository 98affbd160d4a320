"""``sopilot lab archive`` and ``sopilot lab verify``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from sopilot.cli.options import AS_JSON, EITHER, FILE, FOLDER, NEW_FILE, option
from sopilot.cli.output import Exit, Output, progress
from sopilot.cli.run import TRUST, allow_code
from sopilot.files.text import read_text
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake
from sopilot.runner.sources import open_source
from sopilot_lab.cli.options import screen_option
from sopilot_lab.experiments.archive import build_archive, example_case
from sopilot_lab.experiments.archive_reading import (
    is_archive,
    opened_archive,
    verification_lines,
    verify_archive,
)
from sopilot_lab.experiments.report.files import archive_analysis, whole_document
from sopilot_lab.experiments.report.runs import load_runs, run_folders
from sopilot_lab.experiments.study.plan import load_study
from sopilot_lab.experiments.study.results import study_document
from sopilot_lab.sopbench.process import shared_upstream


@click.command()
@click.argument("folders", nargs=-1, required=True, type=FOLDER)
@option("-o,--output", "ZIP file to write.", type=NEW_FILE, required=True)
@option("--study", "Study file of these runs: its hypotheses are tested first.", type=FILE)
@screen_option(
    "Which `execute` tasks to leave out of tables, as for `lab report`.", default="paper"
)
@option("--vary FIELD", "Field that may differ, as for `lab report`.", multiple=True)
@option(
    "--case",
    "Workflow folder to include; sopilot runs its code. Default: the project's example, if "
    "present.",
    type=FOLDER,
)
@TRUST
@option(
    "--forbid", "Word that must not occur in the archive, such as a name (repeatable).",
    multiple=True,
)  # fmt: skip
@AS_JSON
def archive(
    folders: tuple[Path, ...], output: Path, study: Path | None, screen: str,
    vary: tuple[str, ...], case: Path | None, trust: bool, forbid: tuple[str, ...],
) -> Output:  # fmt: skip
    """Pack runs, programs, tables, code, environment and pins with a SHA-256 manifest.

    The command refuses credentials, addresses, absolute paths, names of people, hidden files and
    text of SOPBench. It needs the checkout to recognise SOPBench's text.
    """
    if case is not None:
        allow_code(open_source(str(case)), trust=trust)
    upstream = shared_upstream()
    if study is not None:
        document = study_document(load_study(study), folders, progress)
    else:
        document = whole_document(load_runs(folders, vary=vary), progress, screen=screen)
    names = build_archive(
        run_folders(folders),
        output,
        analysis=archive_analysis(document, {"screen": screen, "vary": list(vary)}),
        upstream=upstream,
        forbidden=forbid,
        study=read_text(study) if study else None,
        case=case or example_case(),
        source=True,
    )
    answer = {"archive": output.name, "files": names}
    return Output(answer, [f"{len(names)} files in {output}"])


@click.command()
@click.argument("path", metavar="ARCHIVE", type=EITHER)
@AS_JSON
def verify(path: Path) -> Output:
    """Check an ARCHIVE, packed or unpacked: manifest, fingerprints, scores, programs, and every
    table, recomputed from the runs in it. It needs no SOPBench, and exits with 0 if everything
    agrees, else with 1.
    """
    if not is_archive(path):
        cure = "name a file of `lab archive`, or the folder it was unpacked into"
        raise mistake("archive", "this isn't an archive", Place(str(path)), cure)
    with opened_archive(path) as base:
        result = verify_archive(base)
    answer = {"agrees": not result.problems, **asdict(result)}
    return Output(answer, verification_lines(result), Exit.if_any(result.problems))
