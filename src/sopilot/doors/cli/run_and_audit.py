"""A run as a command makes it: wired, watched, and told to the end."""

from __future__ import annotations

import secrets
from dataclasses import replace

import click

from sopilot.adapters.model_by_name import close_model, make_model
from sopilot.desks.tasks import Conditions, Result, Task, resume_task, run_task
from sopilot.doors.cli.human_user import HumanUser
from sopilot.doors.cli.output import heading, print_json, say
from sopilot.doors.cli.person_model import PERSON, PersonModel
from sopilot.doors.cli.stores import with_store
from sopilot.doors.sources import TaskSource, open_source
from sopilot.doors.sources.checked_arm import checked_arm
from sopilot.doors.sources.run_options import RunOptions, chosen_task, world_file
from sopilot.language.diagnostics import Place, UserMistake
from sopilot.runtime.agent import Budgets, Ending, Progress, Reference, arm_named
from sopilot.runtime.audit.text_report import render_text
from sopilot.runtime.session import ProgramChanged, Store
from sopilot.runtime.session.protocols import Model

_MARKS = {
    "user": ("user", "green"),
    "assistant": ("agent", "cyan"),
    "call": ("  call", None),
    "result": ("  ", None),
    "step": ("  step", "bright_black"),
    "held": ("  held", "yellow"),
    "note": ("  note", "yellow"),
}


def default_arm(model: str, source: TaskSource) -> str:
    """Of a run that names none. What it follows from is told on stderr."""
    arm, why = checked_arm(model, source)
    if why:
        click.echo(why, err=True)
    return arm


_CHANGED = (
    "`--as-started` goes on with the program that the session began with; `--accept-changed` "
    "goes over to the present one, where what was running is started again"
)


def perform(
    options: RunOptions,
    store_spec: str | None,
    *,
    source: TaskSource | None = None,
    resume_id: str | None = None,
    new_id: str | None = None,
    take_over: bool = False,
    as_started: bool = False,
    accept_changed: bool = False,
    quiet: bool = False,
    frames: bool = False,
) -> Result:
    """Run or resume to the end. Interrupted, the session stays resumable. A handbook that has
    changed since needs ``as_started`` or ``accept_changed``."""
    session_id = resume_id or new_id or secrets.token_hex(16)
    if source is None:
        text = options.text if as_started else None
        source = open_source(options.source, text=text, out=options.out)
    task = chosen_task(options, source)
    world = task.open(world_file(options, session_id, store_spec) if source.bundled else None)
    model = _model(options, task)
    conditions = Conditions(
        arm_named(options.arm),
        model,
        model_name=options.model,
        user=HumanUser(options.request) if options.person else None,
        budgets=Budgets(**dict(options.budgets)),
        watch=Watcher(quiet=quiet, frames=frames, person=options.person),
    )

    async def run(store: Store) -> Result:
        try:
            if resume_id is None:
                kept = options.to_keep(source)
                return await run_task(
                    task, world, conditions, store=store, session_id=session_id, extra=kept
                )
            return await resume_task(
                task, world, conditions, store=store, session_id=session_id,
                as_started=as_started, accept_changed=accept_changed, take_over=take_over,
                tell=lambda text: click.echo(text, err=True),
            )  # fmt: skip
        except ProgramChanged as changed:
            place = Place(options.source)
            raise UserMistake(
                [replace(one, place=place, help=_CHANGED) for one in changed.diagnostics]
            ) from None
        finally:
            await close_model(model)
            await world.close()

    try:
        return with_store(store_spec, run)
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted; go on with: sopilot resume {session_id}", err=True)
        raise SystemExit(130) from None


def _model(options: RunOptions, task: Task) -> Model:
    if options.model == PERSON:
        return PersonModel(Reference(task.reader))
    return make_model(options.model, judge=task.reader)


class Watcher:
    """Prints a run while it happens."""

    def __init__(self, *, quiet: bool, frames: bool, person: bool) -> None:
        self._quiet = quiet
        self._frames = frames
        self._person = person
        self._slot = ""

    def __call__(self, progress: Progress) -> None:
        if self._quiet:
            return
        if progress.kind == "request":
            if self._frames and progress.slot and progress.slot != self._slot:
                click.echo(click.style(_boxed(progress.slot), dim=True))
                self._slot = progress.slot
            return
        if self._person and progress.kind not in ("assistant", "held", "note"):
            return
        mark, colour = _MARKS.get(progress.kind, ("  ", None))
        first, *rest = progress.text.splitlines() or [""]
        click.echo(f"{click.style(mark, fg=colour, bold=bool(colour))} {first}")
        for line in rest:
            click.echo(f"{' ' * len(mark)} {line}")


def _boxed(text: str) -> str:
    return "\n".join(f"    │ {line}" for line in text.splitlines())


def show(done: Result, *, as_json: bool) -> None:
    """The end of a run, for a person or for a script."""
    if as_json:
        print_json(done.as_json())
        return
    result = done.run
    say()
    heading(f"{result.ending}: {result.reason}" if result.reason else str(result.ending))
    for refusal in result.refusals:
        say(f"  not met: {refusal.sentence}")
        for line in refusal.evidence:
            say(f"    shown by {line}")
        if refusal.remedy:
            say(f"    what you could do: {refusal.remedy}")
    if done.waiting:
        say(f"  look at it: sopilot approve list {result.session_id}")
        say(f"  then go on: sopilot resume {result.session_id}")
    elif result.ending is Ending.INFRASTRUCTURE_FAILURE:
        say(f"  the provider failed, not the model; go on: sopilot resume {result.session_id}")
    usage = result.usage
    say(
        f"  {result.agent_turns} requests, {result.domain_calls} tool calls, "
        f"{result.user_turns} answers of the user, {usage.prompt_tokens} prompt tokens "
        f"({usage.cached_tokens} cached), {usage.completion_tokens} completion tokens"
    )
    if done.verdict is not None and not done.pending:
        word = "as the task expects" if done.passed else "not what the task expects"
        say(f"  {result.ending}, {word}")
        for reason in done.verdict.get("reasons", ()):
            say(f"    {reason}")
    say()
    heading("audit")
    say(render_text(done.audit))
    say()
    say(f"trace: sopilot trace export {result.session_id}")
