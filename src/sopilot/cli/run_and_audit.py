"""A run as a command makes it: wired, watched, and told to the end."""

from __future__ import annotations

import secrets
import sys

import click

from sopilot.cli.output import give, say, warn
from sopilot.cli.watch import Watcher
from sopilot.handbook.model import Handbook
from sopilot.runner.default_view import checked_view
from sopilot.runner.opened_stores import with_store
from sopilot.runner.options import RunOptions
from sopilot.runner.perform import prepared
from sopilot.runner.sources import TaskSource, open_source
from sopilot.tasks.task import Result, result_lines
from sopilot.values.text import counted


def default_view(model: str, source: TaskSource) -> str:
    """Of a run that names none. What it follows from is told on stderr."""
    view, why = checked_view(model, source)
    warn(why)
    return view


TRUST = click.option(
    "--trust",
    is_flag=True,
    help="Let the Python of a workflow folder run, now and until one of its files changes.",
)


def allow_code(source: TaskSource, *, trust: bool) -> None:
    """Tells that the Python of a folder runs, and asks for it once."""
    code = source.code()
    if code is None:
        return
    files = counted(len(code.files), "file")
    say(
        f"this runs the Python of {code.folder} ({files}, sha256 {code.digest[:12]}) "
        "with all you may do",
        err=True,
    )
    if code.trusted:
        return
    if trust or (sys.stdin.isatty() and click.confirm("Do you trust it?", err=True)):
        code.trust()
    code.require_trust()


def perform(
    options: RunOptions,
    store_spec: str | None,
    *,
    source: TaskSource | None = None,
    resume_id: str | None = None,
    new_id: str | None = None,
    quiet: bool = False,
    frames: bool = False,
    **how: bool,
) -> Result:
    """Run or resume to the end, ``how`` as it is prepared. Interrupted, it stays resumable."""
    session_id = resume_id or new_id or secrets.token_hex(16)
    run = prepared(
        options,
        source or open_source(options.source, out=options.out),
        session_id,
        watch=Watcher(quiet=quiet, frames=frames, person=options.person),
        tell=warn,
        store_spec=store_spec,
        resume=resume_id is not None,
        **how,
    )
    try:
        return with_store(store_spec, run)
    except KeyboardInterrupt:
        say(f"\ninterrupted; go on with: sopilot resume {session_id}", err=True)
        raise SystemExit(130) from None


def show(done: Result, *, as_json: bool, served: Handbook | None = None) -> None:
    """``served``: the person who reads it is the customer, by this handbook."""
    stored = served is not None and any(
        predicate.customer_message for predicate in served.predicates.values()
    )
    give(as_json, done.as_json, result_lines(done, customer=stored))
