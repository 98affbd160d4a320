"""`sopilot audit`: a session, a trace file or a foreign transcript, judged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sopilot.adapters.text_files import write_whole
from sopilot.doors.sources.audit_inputs import (
    ForeignInput,
    Told,
    TraceInput,
    file_input,
    page_of,
    reports_json,
    session_input,
)
from sopilot.doors.sources.audit_records import chain_check, on_record, record_lines
from sopilot.doors.sources.given_values import pairs
from sopilot.doors.terminal.option_types import FILE, NEW_FILE
from sopilot.doors.terminal.output import give, json_option, print_json, say, tell
from sopilot.doors.terminal.stores import STORE, TOKEN_FILE, may_see, with_person, with_store
from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.audit import batch
from sopilot.runtime.audit.text_report import render_batch_text, render_text
from sopilot.runtime.trace import load_key


@click.command()
@click.argument("what", metavar="WHAT")
@click.option(
    "--handbook",
    metavar="SOURCE",
    help="What a transcript, or a trace without a machine, is judged by; of a trace with one, "
    "the programs must be this handbook's.",
)
@click.option("--goal", metavar="G", help="Which of the handbook's goals a transcript is about.")
@click.option("--now", default="", metavar="TIME", help="When a transcript was, as ISO 8601.")
@click.option(
    "--knows",
    multiple=True,
    metavar="NAME=VALUE",
    help="What the user of a transcript told, for a procedure's own inputs. May be given again.",
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
    handbook: str | None,
    goal: str | None,
    now: str,
    knows: tuple[str, ...],
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
    SOPBench or τ-bench).

    Exit 0: nothing found. Exit 1: findings. Exit 2: misuse.
    """
    told = Told(now, pairs("--knows", knows))
    given = read_input(
        what, handbook=handbook, goal=goal, store_spec=store_spec, told=told, token_file=token_file
    )
    if verify:
        report, lines = chain_check(given)
        give(as_json, report, lines)
        sys.exit(0 if report["verified"] else 1)
    audited = given.audit()
    if page is not None:
        if len(audited) > 1:
            say("the page shows the first report with findings")
        write_whole(page, page_of(audited), private=True)
    reports = [one.report for one in audited]
    records: dict[str, Any] = {}
    if isinstance(given, TraceInput) and not Path(what).exists():
        key = load_key(key_file) if key_file is not None else None
        records = with_person(
            store_spec,
            token_file,
            lambda store, who: on_record(store, reports[0], keep=keep, key=key, who=who),
        )
    elif keep:
        raise UserMistake("only the audit of a session of the store can be kept with it")
    if as_json:
        print_json({**reports_json(reports), **records})
    elif len(reports) == 1:
        say(render_text(reports[0]))
    else:
        say(render_batch_text(batch(reports)))
    if not as_json:
        tell(record_lines(records))
    if page is not None and not as_json:
        say(f"\nwritten: {page}")
    sys.exit(0 if all(report.clean for report in reports) else 1)


def read_input(
    what: str, *, handbook: str | None, goal: str | None, store_spec: str | None,
    told: Told | None = None, token_file: Path | None = None, secrets: bool = False,
) -> TraceInput | ForeignInput:  # fmt: skip
    """A file if there is one of that name, else a session."""
    if Path(what).exists():
        return file_input(what, handbook=handbook, goal=goal, told=told)
    masked = not may_see(store_spec, token_file, "audit", [what])
    return with_store(
        store_spec,
        lambda store: session_input(
            store, what, handbook=handbook, goal=goal, masked=masked, secrets=secrets
        ),
        reading=True,
    )
