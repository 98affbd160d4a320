"""`sopilot privacy`: contents of sessions, who reads them, how long they stay, erasing them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sopilot.adapters.sign_in import who_asks
from sopilot.adapters.text_files import write_whole
from sopilot.doors.cli.output import counted, json_option, print_json, say
from sopilot.doors.cli.people import TOKEN_FILE
from sopilot.doors.cli.stores import STORE, with_store
from sopilot.doors.sources.disclosing import disclosed
from sopilot.language.diagnostics import UserMistake, mistake
from sopilot.runtime.audit.place_words import moment
from sopilot.runtime.session import SessionRecord, Store, SystemClock
from sopilot.runtime.session.journal import entries
from sopilot.runtime.session.privacy import (
    READING,
    Shredded,
    change_policy,
    due_sessions,
    note_reading,
    sessions_with,
)
from sopilot.runtime.session.privacy import shred as shred_sessions

SUBJECTS = click.option(
    "--subject", "subjects", multiple=True, metavar="TEXT", help="A name, number or address."
)


@click.group()
def command() -> None:
    """Contents of sessions. Where the store demands it (`sopilot people demand privacy`), what
    people, models and tools say stands beside the trace: it can be erased, and chain, heads and
    register still verify."""


def _change(store_spec: str | None, token_file: Path | None, name: str, **details: Any) -> None:
    async def use(store: Store) -> None:
        who = await who_asks(store, token_file)
        await change_policy(store, name, details, who=who, clock=SystemClock())

    with_store(store_spec, use)
    say("recorded")


@command.command()
@click.argument("columns", nargs=-1)
@TOKEN_FILE
@STORE
def columns(columns: tuple[str, ...], **given: Any) -> None:
    """Arguments that stay in register and trace of new sessions: nothing of a person."""
    _change(**given, name="columns_named", columns=list(columns))


@command.command()
@click.argument("roles", nargs=-1)
@TOKEN_FILE
@STORE
def readers(roles: tuple[str, ...], **given: Any) -> None:
    """Roles that are shown contents; everybody else sees that there were some."""
    _change(**given, name="readers_named", roles=list(roles))


@command.command()
@click.argument("handbook")
@click.argument("days", type=click.FloatRange(min=0))
@TOKEN_FILE
@STORE
def retain(handbook: str, days: float, **given: Any) -> None:
    """Contents of HANDBOOK's sessions (`*`: of all others) are erased after so many days."""
    _change(**given, name="period_set", handbook=handbook, seconds=days * 86_400)


@command.command()
@click.argument("what", metavar="ID|TEXT")
@click.option("--why", required=True)
@TOKEN_FILE
@STORE
def hold(what: str, why: str, **given: Any) -> None:
    """Legal hold: a session, or every session with TEXT in it, is not erased."""
    _change(**given, name="hold_set", what=what, why=why)


@command.command()
@click.argument("what", metavar="ID|TEXT")
@TOKEN_FILE
@STORE
def lift(what: str, **given: Any) -> None:
    """Lift a legal hold."""
    _change(**given, name="hold_lifted", what=what)


@command.command()
@SUBJECTS
@click.option("--session", "session_ids", multiple=True, metavar="ID")
@click.option("--due", is_flag=True, help="Everything that is kept longer than its period.")
@click.option("--why", required=True)
@TOKEN_FILE
@json_option
@STORE
def shred(
    subjects: Sequence[str],
    session_ids: Sequence[str],
    due: bool,
    why: str,
    token_file: Path | None,
    as_json: bool,
    store_spec: str | None,
) -> None:
    """Erase the contents of sessions. Exit 1 when some were not erased."""
    if not (subjects or session_ids or due):
        raise UserMistake("name what to erase: --subject, --session or --due")
    clock = SystemClock()

    async def use(store: Store) -> Shredded:
        records: dict[str, SessionRecord] = {}
        for one in [
            *(await sessions_with(store, subjects) if subjects else ()),
            *[await store.record(session_id) for session_id in session_ids],
            *(await due_sessions(store, clock.now()) if due else ()),
        ]:
            records[one.id] = one
        who = await who_asks(store, token_file)
        return await shred_sessions(store, list(records.values()), why, who=who, clock=clock)

    done = with_store(store_spec, use)
    if as_json:
        print_json(
            {
                "erased": list(done.erased),
                "held": dict(done.held),
                "inside_the_chain": list(done.bare),
                "running": list(done.running),
            }
        )
    else:
        say(f"the contents of {counted(len(done.erased), 'session')} were erased")
        for session_id, reason in done.held.items():
            say(f"{session_id} is on hold: {reason}")
        for session_id in done.bare:
            say(f"{session_id} was opened without privacy: its contents are part of its chain")
        for session_id in done.running:
            say(f"{session_id} is running: try again when it has ended")
    if done.held or done.bare or done.running:
        raise SystemExit(1)


@command.command()
@SUBJECTS
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True)
@TOKEN_FILE
@STORE
def disclose(
    subjects: Sequence[str], output: Path, token_file: Path | None, store_spec: str | None
) -> None:
    """Write what is kept about a person, session by session, as JSON."""
    if not subjects:
        raise UserMistake("name the person: --subject, as often as they have names")

    async def use(store: Store) -> tuple[str, int]:
        who = await who_asks(store, token_file)
        records = await sessions_with(store, subjects)
        ids = [one.id for one in records]
        if not await note_reading(store, "disclose", ids, who=who, clock=SystemClock()):
            raise mistake("not-entitled", "contents are shown to other roles alone")
        return await disclosed(store, subjects, records), len(ids)

    text, count = with_store(store_spec, use)
    write_whole(output, text, private=True)
    say(f"{output}: {counted(count, 'session')}")


@command.command()
@json_option
@STORE
def log(as_json: bool, store_spec: str | None) -> None:
    """Who read or exported contents, and when."""
    found = with_store(store_spec, lambda store: entries(store, READING))
    if as_json:
        print_json({"readings": [{"at": one.at, **one.details} for one in found]})
        return
    for one in found:
        it: dict[str, Any] = dict(one.details)
        seen = "contents" if it["contents"] else "masked"
        who = f"{it['by'] or 'somebody'}, {it['identity']}"
        say(f"{moment(one.at)} {it['what']} {', '.join(it['sessions'])} ({seen}) by {who}")
    say(f"{len(found)} on record")
