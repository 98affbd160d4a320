"""`sopilot audit`: a session, a trace file or a foreign transcript, judged."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sopilot.audit.report import batch
from sopilot.audit.text import about_lines, render_batch_text, render_text
from sopilot.audit.timeline import about_session
from sopilot.cli.options import FILE, NEW_FILE
from sopilot.cli.output import give, json_option, print_json, progress, say, tell
from sopilot.cli.stores import STORE, TOKEN_FILE, session_named
from sopilot.files.processes import On
from sopilot.files.text import write_whole
from sopilot.messages.errors import UserMistake
from sopilot.runner.audit_inputs import (
    Audited,
    TraceInput,
    TranscriptFacts,
    clean_together,
    read_input,
    reports_json,
)
from sopilot.runner.audit_store import audit_store, chain_check, exit_code, on_record, record_lines
from sopilot.runner.opened_stores import with_person
from sopilot.runner.options import pairs
from sopilot.trace.signing import load_key
from sopilot.web.audit_page import render_audit


def _page_of(audited: Sequence[Audited], language: str) -> str:
    """The page of the first report with findings, else of the first that wasn't judged."""
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


@click.command()
@click.argument("what", metavar="WHAT", default="")
@click.option("--all", "every", is_flag=True, help="Every session of the store instead of WHAT.")
@click.option("--from", "begin", metavar="DATE", help="Of all, those opened since (UTC).")
@click.option("--to", "end", metavar="DATE", help="Of all, those opened up to and with it (UTC).")
@click.option("--workers", type=click.IntRange(min=1), help="For all; default: the processors.")
@click.option("--on", type=click.Choice(["local", "ray"]), default="local", help="Where, for all.")
@click.option(
    "--handbook",
    metavar="SOURCE",
    help="What a transcript, or a trace without a machine, is judged by; of a trace with one, "
    "the programs must be this handbook's.",
)
@click.option("--goal", metavar="G", help="Which of the handbook's goals a transcript is about.")
@click.option("--now", default="", metavar="TIME", help="When a transcript was, as ISO 8601.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    help="What the user of a transcript told, for a procedure's own inputs. May be given again.",
)
@click.option(
    "--language",
    type=click.Choice(["en", "zh"]),
    default="en",
    show_default=True,
    help="Language of the report; --json stays English.",
)
@click.option("--verify", is_flag=True, help="Check chain and signatures alone.")
@click.option("--html", "page", type=NEW_FILE, help="Write a self-contained page as well.")
@click.option("--keep", is_flag=True, help="Keep the result as a record; findings open deviations.")
@click.option("--key", "key_file", type=FILE, help="Sign what is kept (`sopilot trace keygen`).")
@TOKEN_FILE
@json_option
@STORE
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
    token_file: Path | None,
    as_json: bool,
    store_spec: str | None,
) -> None:
    """Judge WHAT by its SOP: the id of a session, a trace file, or a transcript of any agent
    as JSON (OpenAI or Anthropic messages, OpenAI response items, recorded trajectories of
    SOPBench or τ-bench). With --all: every session of the store, each by the programs it ran.

    Exit 0: nothing found. Exit 1: findings. Exit 2: misuse. Exit 3: nothing found, and something
    cannot be judged (no rights or no key to the contents, erased, not in the transcript).
    """
    if every == bool(what):
        raise click.UsageError("name WHAT is judged, or --all")
    alone, of_all = (handbook, goal, now, inputs, verify, page), (begin, end, workers)
    if any(alone if every else of_all):
        raise click.UsageError("--from, --to and --workers are for --all, the others for WHAT")
    if every:
        judged = audit_store(
            store_spec, token_file=token_file, begin=begin, end=end, keep=keep, key_file=key_file,
            workers=workers, on=on, progress=functools.partial(progress, same_line=True),
        )  # fmt: skip
        give(as_json, judged.as_json(), judged.lines(language))
        sys.exit(exit_code([judged.clean]))
    if not Path(what).exists():
        what = session_named(store_spec, what)
    facts = TranscriptFacts(now, pairs("--input", inputs))
    value = read_input(
        what,
        handbook=handbook,
        goal=goal,
        store_spec=store_spec,
        facts=facts,
        token_file=token_file,
    )
    if verify:
        report, lines = chain_check(value)
        give(as_json, report, lines)
        sys.exit(0 if report["verified"] else 1)
    audited = value.audit()
    if page is not None:
        if len(audited) > 1:
            say("the page shows the first report with findings")
        write_whole(page, _page_of(audited, language), private=True)
    reports = [item.report for item in audited]
    records: dict[str, Any] = {}
    if isinstance(value, TraceInput) and not Path(what).exists():
        key = load_key(key_file) if key_file is not None else None
        records = with_person(
            store_spec,
            token_file,
            lambda store, who: on_record(store, reports[0], keep=keep, key=key, who=who),
        )
    elif keep:
        raise UserMistake("only the audit of a session of the store can be kept with it")
    if as_json:
        print_json({**reports_json(audited), **records})
    elif len(reports) == 1:
        about = about_session(audited[0].events)
        facts_shown = about_lines(about, audited[0].seal, language, stored=audited[0].stored)
        say(render_text(reports[0], language, tuple(facts_shown)))
    else:
        say(render_batch_text(batch(reports), language))
    if not as_json:
        tell(record_lines(records))
    if page is not None and not as_json:
        say(f"\nwritten: {page}")
    sys.exit(exit_code(report.clean for report in reports))
