"""`sopilot audit`: a session, a trace file or a foreign transcript, judged."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import FILE, GOAL, IN_STORE, LANGUAGE, NEW_FILE, flag, option, period
from sopilot.cli.output import Exit, Output, progress, say
from sopilot.files.text import write_whole
from sopilot.messages.errors import UserMistake
from sopilot.runner.audit_inputs import (
    Audited,
    TraceInput,
    TranscriptFacts,
    clean_together,
    read_input,
    reports_json,
    reports_text,
)
from sopilot.runner.audit_store import audit_store, chain_check, on_record, record_lines
from sopilot.runner.options import pairs
from sopilot.runner.processes import On
from sopilot.runner.store_access import StoreAccess
from sopilot.trace.signing import load_key
from sopilot.web.audit_page import render_audit

_EXIT = {True: Exit.DONE, False: Exit.FINDINGS, None: Exit.NOT_JUDGED}


@click.command()
@click.argument("what", metavar="WHAT", default="")
@flag("--all", "Judge every session of the store.", "every")
@period("With --all: first day or time", "With --all: last day, inclusive")
@option("--workers", "Processes for --all. Default: one per core.", type=click.IntRange(min=1))
@option("--on", "Backend for --all.", type=click.Choice(["local", "ray"]), default="local")
@option("--handbook SOURCE", "Handbook to judge by. Its programs must be those that the trace ran.")
@GOAL
@option("--now TIME", "Time at which to judge a transcript, as ISO 8601.", default="")
@option(
    "--input NAME=VALUE",
    "Value that the user of a transcript gave (repeatable).",
    "inputs",
    multiple=True,
)
@LANGUAGE
@flag("--verify", "Check only the hash chain and the signatures.")
@option("--html", "Also write a self-contained HTML page.", "page", type=NEW_FILE)
@flag("--keep", "Record the result; findings open deviations.")
@option("--key", "Sign the record (`sopilot trace keygen`).", "key_file", type=FILE)
@IN_STORE
def command(
    what: str,
    every: bool,
    begin: str | None,
    end: str | None,
    workers: int | None,
    on: On,
    handbook: str | None,
    goal: str | None,
    now: str,
    inputs: tuple[str, ...],
    language: str,
    verify: bool,
    page: Path | None,
    keep: bool,
    key_file: Path | None,
    store: StoreAccess,
) -> Output:
    """Judge WHAT by its handbook. WHAT is a session id, a trace file, or a transcript of any agent
    as JSON (OpenAI or Anthropic messages, OpenAI response items, recorded trajectories of SOPBench
    or τ-bench). With --all, judge every session of the store by the programs it ran.

    Exit codes: 0 no findings, 1 findings, 2 misuse, 5 no findings but something can't be judged
    (no rights or no key to the contents, contents erased or not in the transcript).
    """
    if every == bool(what):
        raise click.UsageError("name WHAT to judge, or use --all")
    alone, of_all = (handbook, goal, now, inputs, verify, page), (begin, end, workers)
    if any(alone if every else of_all):
        raise click.UsageError("--from, --to and --workers need --all; the others need WHAT")
    if every:
        judged = audit_store(
            store, begin=begin, end=end, keep=keep, key_file=key_file, workers=workers, on=on,
            progress=functools.partial(progress, same_line=True),
        )  # fmt: skip
        return Output(judged.as_json(), judged.lines(language), _EXIT[judged.clean])
    is_file = Path(what).exists()
    value = read_input(
        what if is_file else store.session_id(what),
        store,
        handbook=handbook,
        goal=goal,
        facts=TranscriptFacts(now, pairs("--input", inputs)),
    )
    if verify:
        report, lines = chain_check(value)
        return Output(report, lines, Exit.if_any(not report["verified"]))
    audited = value.audit()
    if page is not None:
        if len(audited) > 1:
            say("the page shows the first report with findings", err=True)
        write_whole(page, _page_of(audited, language), private=True)
    records: dict[str, Any] = {}
    if isinstance(value, TraceInput) and not is_file:
        key = load_key(key_file) if key_file is not None else None
        records = store.as_person(
            lambda opened, who: on_record(opened, audited[0].report, keep=keep, key=key, who=who)
        )
    elif keep:
        raise UserMistake("--keep needs a session of the store: name its id instead of a file")
    written = [] if page is None else [f"\nwritten: {page}"]
    lines = [reports_text(audited, language), *record_lines(records), *written]
    clean = clean_together(item.report.clean for item in audited)
    return Output({**reports_json(audited), **records}, lines, _EXIT[clean])


def _page_of(audited: Sequence[Audited], language: str) -> str:
    """The first report with findings, else the first that couldn't be judged."""
    together = clean_together(item.report.clean for item in audited)
    worst = next(item for item in audited if item.report.clean is together)
    return render_audit(
        worst.report,
        worst.events,
        transcript=worst.transcript,
        seal=worst.seal,
        stored=worst.stored,
        name=worst.name,
        language=language,
    )
