"""`sopilot audit`: a session, a trace file or a foreign transcript, judged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sopilot.adapters.sign_in import who_asks
from sopilot.adapters.text_files import write_whole
from sopilot.doors.cli.output import json_option, print_json, say
from sopilot.doors.cli.people import TOKEN_FILE
from sopilot.doors.cli.seal import FILE
from sopilot.doors.cli.stores import STORE, with_store
from sopilot.doors.sources.audit_inputs import (
    Audited,
    ForeignInput,
    Told,
    TraceInput,
    file_input,
    session_input,
)
from sopilot.doors.sources.audit_records import on_record
from sopilot.doors.sources.given_values import pairs
from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.audit import Report, batch
from sopilot.runtime.audit.text_report import render_batch_text, render_text
from sopilot.runtime.pages import render_audit
from sopilot.runtime.session import Store, SystemClock
from sopilot.runtime.session.privacy import note_reading
from sopilot.runtime.session.protocols import JSON
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
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a self-contained page as well.",
)
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
        _verify(given, as_json)
        return
    audited = given.audit()
    if page is not None:
        _write_page(page, audited)
    reports = [one.report for one in audited]
    records: dict[str, Any] = {}
    if isinstance(given, TraceInput) and not Path(what).exists():
        key = load_key(key_file) if key_file is not None else None

        async def use(store: Store) -> dict[str, Any]:
            who = await who_asks(store, token_file)
            return await on_record(store, reports[0], keep=keep, key=key, who=who)

        records = with_store(store_spec, use)
    elif keep:
        raise UserMistake("only the audit of a session of the store can be kept with it")
    if as_json:
        print_json({**_as_json(reports), **records})
    elif len(reports) == 1:
        say(render_text(reports[0]))
    else:
        say(render_batch_text(batch(reports)))
    if not as_json:
        _tell(records)
    if page is not None and not as_json:
        say(f"\nwritten: {page}")
    sys.exit(0 if all(report.clean for report in reports) else 1)


def read_input(
    what: str,
    *,
    handbook: str | None,
    goal: str | None,
    store_spec: str | None,
    told: Told | None = None,
    token_file: Path | None = None,
) -> TraceInput | ForeignInput:
    """A file if there is one of that name, else a session."""
    if Path(what).exists():
        return file_input(what, handbook=handbook, goal=goal, told=told)

    async def use(store: Store) -> TraceInput:
        who = await who_asks(store, token_file)
        allowed = await note_reading(store, "audit", [what], who=who, clock=SystemClock())
        return await session_input(store, what, handbook=handbook, goal=goal, masked=not allowed)

    return with_store(store_spec, use)


def _tell(records: dict[str, Any]) -> None:
    for one in records.get("earlier_audits", ()):
        for difference in one["differences"]:
            earlier = f"audit {one['audit']} of release {one['release']}"
            say(f"judged otherwise than {earlier}: {difference}")
        if one["signature_holds"] is False:
            say(f"the signature of audit {one['audit']} does not hold")
    if "kept" in records:
        say(f"kept as audit {records['kept']}")


def _as_json(reports: list[Report]) -> dict[str, JSON]:
    if len(reports) == 1:
        return reports[0].as_json()
    return {
        "clean": all(report.clean for report in reports),
        "batch": batch(reports).as_json(),
        "reports": [report.as_json() for report in reports],
    }


def _verify(given: TraceInput | ForeignInput, as_json: bool) -> None:
    if isinstance(given, ForeignInput):
        raise UserMistake("a transcript has no chain to verify: only traces and sessions do")
    problems = given.verify()
    if as_json:
        listed = [{"code": p.code, "message": p.message, "event": p.index} for p in problems]
        print_json({"verified": not problems, "problems": listed})
    else:
        events = len(given.trace.events)
        for problem in problems:
            say(str(problem))
        if not problems:
            signed = len(given.trace.signatures)
            say(f"{events} events, chain whole, {signed} signed heads agree")
    sys.exit(1 if problems else 0)


def _write_page(page: Path, audited: list[Audited]) -> None:
    worst = next((one for one in audited if not one.report.clean), audited[0])
    if len(audited) > 1:
        say("the page shows the first report with findings")
    write_whole(page, render_audit(worst.report, worst.rows, title=worst.title), private=True)
