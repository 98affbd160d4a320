"""``sopilot resume``: go on with an interrupted session."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sopilot.cli.output import give, json_option
from sopilot.cli.run_and_audit import TRUST, allow_code, perform, show
from sopilot.cli.stores import STORE, TOKEN_FILE, require_readable, session_named
from sopilot.messages.errors import UserMistake
from sopilot.records.store import Store
from sopilot.runner.opened_stores import with_store
from sopilot.runner.options import chosen_budgets, kept_options
from sopilot.runner.sources import open_source
from sopilot.session.orphans import Waiting, resolve_orphan, unknown_lines, waiting_in


def _tidy(session_id: str, store_spec: str | None, *, take_over: bool, as_json: bool) -> None:
    """A session of a server or of somebody's own agent: what its owner left open goes on record;
    its client goes on with it."""

    async def use(store: Store) -> Waiting:
        await resolve_orphan(store, session_id, take_over=take_over)
        return await waiting_in(store, session_id)

    result = with_store(store_spec, use)
    state = "somebody runs it" if result.running else "it is free"
    message = (
        f"{session_id} is served, or an agent's own: its client goes on with it (MCP: the "
        f"header `sopilot-session`; a hook: `for_conversation`). Now {state}."
    )
    report = {"session": session_id, "door": "other", **result.as_json()}
    give(as_json, report, [message, *unknown_lines(result.unknown)], indent=None)
    raise SystemExit(1 if result.unknown else 0)


@click.command(
    help="Resume session ID where its trace ends. Irreversible calls are never repeated.\n\n"
    "ID is a session id, a unique prefix of one, or `last`."
)
@click.argument("session_id", metavar="ID")
@click.option(
    "--take-over", is_flag=True, help="Do not wait for the lease of a process that is gone."
)
@click.option(
    "--as-started",
    is_flag=True,
    help="The handbook has changed: go on with the program that the session began with.",
)
@click.option(
    "--accept-changed",
    is_flag=True,
    help="The handbook has changed: go over to it. What ran in a changed program ends, on "
    "record, and is started again.",
)
@click.option("--deep", is_flag=True, help="The larger budgets: 1,800 s and 5 user turns.")
@click.option(
    "--budget", multiple=True, metavar="NAME=N", help="Another budget, counted from the start."
)
@click.option("--frames", is_flag=True, help="Show what the model is shown.")
@TRUST
@TOKEN_FILE
@STORE
@json_option
def command(
    session_id: str,
    deep: bool,
    budget: tuple[str, ...],
    frames: bool,
    trust: bool,
    token_file: Path | None,
    store_spec: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    if how["as_started"] and how["accept_changed"]:
        raise UserMistake("--as-started or --accept-changed, not both")
    budgets = chosen_budgets(budget, deep=deep)
    session_id = session_named(store_spec, session_id)
    options = with_store(store_spec, lambda store: kept_options(store, session_id), reading=True)
    if options is None:
        _tidy(session_id, store_spec, take_over=how["take_over"], as_json=as_json)
        return
    require_readable(store_spec, token_file, "resume", [session_id])
    options = replace(options, budgets={**options.budgets, **budgets})
    text = options.text if how["as_started"] else None
    source = open_source(options.source, text=text, out=options.out)
    allow_code(source, trust=trust)
    done = perform(
        options,
        store_spec,
        source=source,
        resume_id=session_id,
        quiet=as_json,
        frames=frames,
        **how,
    )
    served = source.handbook if options.person else None
    show(done, as_json=as_json, served=served)
    raise SystemExit(0 if done.good else 1)
