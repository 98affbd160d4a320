"""``sopilot run``, ``chat`` and ``resume``: one session from the request to its audit."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

import click

from sopilot.agent.result import Ending
from sopilot.cli.options import (
    GOAL,
    IN_STORE,
    LANGUAGE,
    MODEL,
    SESSION,
    STORE,
    VIEW,
    all_of,
    flag,
    option,
    wants_json,
)
from sopilot.cli.output import Exit, Output, say, warn
from sopilot.cli.watch import Watcher, result_lines
from sopilot.messages.errors import UserMistake
from sopilot.messages.results import result_words
from sopilot.models.open import MODEL_HELP
from sopilot.records.store import Store
from sopilot.runner.options import (
    RunOptions,
    chosen_budgets,
    read_results,
    run_folder,
    stored_options,
    typed_inputs,
    who_answers,
)
from sopilot.runner.perform import perform
from sopilot.runner.qualifications import VIEW_HELP, checked_view
from sopilot.runner.sources import FolderSource, TaskSource, open_source
from sopilot.runner.store_access import StoreAccess
from sopilot.session.orphans import Waiting, resolve_orphan, unknown_lines, waiting_in
from sopilot.tasks.folders import TaskRun, folder_coverage, folder_lines
from sopilot.tasks.run import Resuming
from sopilot.tasks.task import Result
from sopilot.values.text import counted
from sopilot.views.catalogue import VIEWS

ALL_TASKS = "all"

_PATIENCE = {"wall_seconds": 86_400.0, "user_turns": 100}
"""Budgets of a chat: people take their time."""

TRUST = flag("--trust", "Trust a workflow folder's Python code until one of its files changes.")
FRAMES = flag("--frames", "Show what the model sees.")
BUDGETS = option(
    "--budget NAME=N",
    "Set a budget (repeatable).",
    "budgets",
    multiple=True,
    callback=lambda ctx, param, written: chosen_budgets(written),
)
_session_options = all_of(
    click.argument("source"),
    GOAL,
    option(
        "--task NAME",
        "Task of an example or folder, or scenario of a handbook. Default: the first.",
    ),
    MODEL,
    VIEW,
    LANGUAGE,
    option(
        "--results FILE",
        "YAML file with the result of each tool.",
        callback=lambda ctx, param, path: read_results(path) if path else None,
    ),
    option(
        "--approve ROLE",
        "Approve requests to this role immediately (repeatable).",
        "approvers",
        multiple=True,
    ),
    FRAMES,
    TRUST,
)


@click.command(
    help="Run one session of SOURCE: a bundled example (bank, clinic, it), a handbook file with "
    "scenarios beside it or with --results, or a workflow folder (program.yaml, tools.py, "
    f"tasks.yaml), whose Python code runs.\n\nMODEL is {MODEL_HELP} `person`: you make the "
    "moves.\n\n"
    f"VIEW is one of: {', '.join(VIEWS)}. {VIEW_HELP}"
)
@_session_options
@option("--out", "Folder for the files that a workflow's tools write.", type=click.Path())
@option("--request", "First message. Default: the task's.")
@option(
    "--input NAME=VALUE",
    "Value that the user can tell the agent (repeatable).",
    "inputs",
    multiple=True,
)
@BUDGETS
@IN_STORE
def command(
    source: str,
    task: str | None,
    out: str | None,
    inputs: tuple[str, ...],
    frames: bool,
    trust: bool,
    store: StoreAccess,
    **value: Any,
) -> Output:
    quiet = wants_json()
    opened = open_source(source, out=run_folder(source, task, out))
    allow_code(opened, trust=trust)
    typed = inputs and not isinstance(opened, FolderSource)
    known = typed_inputs(inputs, opened.briefing(value["goal"]).programs if typed else {})
    options = _options(opened, task=task, inputs=known, **value)
    if isinstance(opened, FolderSource) and task == ALL_TASKS:
        return _all_output(opened, run_all(options, opened, store))
    if not quiet:
        warn(who_answers(options, opened))
    done = perform_here(options, store, source=opened, quiet=quiet, frames=frames)
    return _output(done, options)


@click.command(
    help="Talk to an agent that follows SOURCE. An empty line ends the dialog.\n\n"
    f"MODEL is {MODEL_HELP}\n\nVIEW is one of: {', '.join(VIEWS)}. {VIEW_HELP}"
)
@_session_options
@STORE
def chat(
    source: str, task: str | None, frames: bool, trust: bool, store: StoreAccess, **value: Any
) -> Output:
    opened = open_source(source, out=run_folder(source, task, None))
    if value["model"] == "reference":
        say("The reference executor asks for values by name. Answer with the value alone, or with")
        say('`name: "value"`, one per line or message.')
        if value["goal"] is None and len(opened.handbook.procedures) > 1:
            say(f"First it asks for the `goal`, one of: {', '.join(opened.handbook.procedures)}.")
    allow_code(opened, trust=trust)
    options = _options(opened, task=task, person=True, budgets=_PATIENCE, **value)
    warn(who_answers(options, opened))
    done = perform_here(options, store, source=opened, frames=frames)
    return _output(done, options, opened)


@click.command()
@SESSION
@flag("--take-over", "Don't wait for the lease of a dead process.")
@flag("--as-started", "If the handbook has changed, use the program that the session began with.")
@flag(
    "--accept-changed",
    "If the handbook has changed, switch to it. sopilot ends running procedures on record and "
    "starts them again.",
)
@BUDGETS
@FRAMES
@TRUST
@IN_STORE
def resume(
    session_id: str,
    budgets: Mapping[str, Any],
    frames: bool,
    trust: bool,
    store: StoreAccess,
    **how: Unpack[Resuming],
) -> Output:
    """Resume session ID where its trace ends. Irreversible calls are never repeated.

    ID is a session id, a unique prefix of one, or `last`.
    """
    if how["as_started"] and how["accept_changed"]:
        raise UserMistake("use either --as-started or --accept-changed")
    options = store.read(lambda opened: stored_options(opened, session_id))
    if options is None:
        return _resolve_orphan(session_id, store, take_over=how["take_over"])
    store.require_readable("resume", [session_id])
    options = replace(options, budgets={**options.budgets, **budgets})
    text = options.text if how["as_started"] else None
    source = open_source(options.source, text=text, out=options.out)
    allow_code(source, trust=trust)
    done = perform_here(
        options, store, source=source, session_id=session_id, resume=how,
        quiet=wants_json(), frames=frames,
    )  # fmt: skip
    return _output(done, options, source)


def _options(opened: TaskSource, *, view: str | None, model: str, **value: Any) -> RunOptions:
    if view is None:
        view, why = checked_view(model, opened)
        warn(why)
    out = str(opened.out) if isinstance(opened, FolderSource) else None
    return RunOptions(source=opened.name, view=view, model=model, out=out, **value)


def allow_code(source: TaskSource, *, trust: bool) -> None:
    """Report that the Python of a folder will run, and ask for permission once."""
    code = source.code()
    if code is None:
        return
    files = f"{counted(len(code.files), 'file')}, sha256 {code.digest[:12]}"
    warn(f"this runs the Python of {code.folder} ({files}) with your permissions")
    if code.trusted:
        return
    if trust or (sys.stdin.isatty() and click.confirm("Do you trust it?", err=True)):
        code.trust()
    code.require_trust()


def perform_here(
    options: RunOptions,
    store: StoreAccess,
    *,
    source: TaskSource | None = None,
    session_id: str | None = None,
    resume: Resuming | None = None,
    quiet: bool = False,
    frames: bool = False,
) -> Result:
    """Run or resume to the end, watched. An interrupted session stays resumable."""
    session = session_id or secrets.token_hex(16)
    opened = source or open_source(options.source, out=options.out)
    watch = Watcher(quiet=quiet, frames=frames, person=options.person)
    try:
        return store.write(
            lambda used: perform(
                used, store, options, opened, session, watch=watch, tell=warn, resume=resume
            )
        )
    except KeyboardInterrupt:
        say(f"\ninterrupted; resume with: sopilot resume {session}", err=True)
        raise SystemExit(Exit.INTERRUPTED) from None


def _output(done: Result, options: RunOptions, source: TaskSource | None = None) -> Output:
    """A customer who is served reads no more than they may."""
    confidential = (
        options.person
        and source is not None
        and any(item.customer_message for item in source.handbook.predicates.values())
    )
    lines = [*result_lines(done, options.language, customer=confidential)]
    if options.out is not None:
        lines.append(result_words("files", options.language, path=options.out))
    codes = {Ending.REFUSED: Exit.REFUSED, Ending.WAITING: Exit.WAITING}
    code = codes.get(done.ending, Exit.DONE) if done.good else Exit.FINDINGS
    return Output(done.as_json(), lines, code)


def _resolve_orphan(session_id: str, store: StoreAccess, *, take_over: bool) -> Output:
    """Record what the owner of a served session, or of an agent's own, left open."""

    async def use(opened: Store) -> Waiting:
        await resolve_orphan(opened, session_id, take_over=take_over)
        return await waiting_in(opened, session_id)

    result = store.write(use)
    state = "A process is running it" if result.running else "No process is running it"
    message = (
        f"{session_id} belongs to a server or to your own agent: its next call resumes it (MCP: "
        "with the header `sopilot-session`; Python: in the same `sopilot.conversation`). "
        f"{state}."
    )
    report = {"session": session_id, "door": "other", **result.as_json()}
    lines = [message, *unknown_lines(result.unknown)]
    return Output(report, lines, Exit.if_any(result.unknown), indent=None)


def run_all(options: RunOptions, source: FolderSource, store: StoreAccess) -> list[TaskRun]:
    """Run every task of a workflow folder; resume those that the task itself interrupts."""
    runs = []
    for task in source.folder.tasks:
        item = replace(options, task=task.id, out=str(source.out / f"task-{task.id}"))
        session_id = secrets.token_hex(16)
        resumed = False
        try:
            result = perform_here(item, store, session_id=session_id, quiet=True)
        except SystemExit:
            if task.interrupted_after is None:
                raise
            resumed = True
            result = perform_here(item, store, session_id=session_id, resume={}, quiet=True)
        runs.append(TaskRun(task, result, resumed))
    return runs


def _all_output(source: FolderSource, runs: list[TaskRun]) -> Output:
    coverage = folder_coverage(source.folder, [run.result for run in runs])
    passed = sum(run.result.good for run in runs)
    report = {
        "folder": source.folder.name,
        "n": len(runs),
        "passed": passed,
        "coverage": coverage.as_json(),
        "tasks": [{"id": run.task.id, **run.result.as_json()} for run in runs],
    }
    return Output(report, folder_lines(runs, coverage), Exit.if_any(passed < len(runs)))
