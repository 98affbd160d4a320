"""A run as it was asked for: its task and simulator opened, its model made, all of it closed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from sopilot.agent.budgets import Budgets
from sopilot.agent.reference.executor import Reference
from sopilot.agent.result import Watch
from sopilot.files.sign_in import who_asks
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import ProgramChanged, UserMistake
from sopilot.models.open import close_model, make_model
from sopilot.models.person import PERSON, HumanUser, PersonModel
from sopilot.protocols import Model
from sopilot.records.store import Store
from sopilot.runner.options import RunOptions, chosen_task, simulator_file
from sopilot.runner.sources import BenchmarkSource, TaskSource
from sopilot.tasks.run import Conditions, resume_task, run_task
from sopilot.tasks.task import Result, Task
from sopilot.views.catalogue import view_named

_CHANGED = (
    "`--as-started` goes on with the program that the session began with; `--accept-changed` "
    "goes over to the present one, where what was running is started again"
)


def prepared(
    options: RunOptions,
    source: TaskSource,
    session_id: str,
    *,
    watch: Watch,
    tell: Callable[[str], None],
    store_spec: str | None = None,
    resume: bool = False,
    **how: bool,
) -> Callable[[Store], Awaitable[Result]]:
    """``how`` to resume: ``take_over``; and, for a handbook that has changed since,
    ``as_started`` or ``accept_changed``."""
    task = chosen_task(options, source)
    simulation = task.open(simulator_file(session_id, store_spec) if source.bundled else None)
    model = _model(options, task, session_id)
    conditions = Conditions(
        view_named(options.view),
        model,
        model_name=options.model,
        user=HumanUser(options.request) if options.person else None,
        budgets=replace(_budgets(source, task), **dict(options.budgets)),
        watch=watch,
    )

    async def run(store: Store) -> Result:
        try:
            who = await who_asks(store, None)
            if resume:
                return await resume_task(
                    task,
                    simulation,
                    conditions,
                    store=store,
                    session_id=session_id,
                    tell=tell,
                    requester=who,
                    **how,
                )
            to_keep = options.to_keep(source)
            return await run_task(
                task,
                simulation,
                conditions,
                store=store,
                session_id=session_id,
                extra=to_keep,
                requester=who,
            )
        except ProgramChanged as changed:
            place = Place(options.source)
            raise UserMistake(
                [
                    replace(diagnostic, place=place, help=_CHANGED)
                    for diagnostic in changed.diagnostics
                ]
            ) from None
        finally:
            await close_model(model)
            await simulation.close()

    return run


def _budgets(source: TaskSource, task: Task) -> Budgets:
    """A benchmark's dialogs are as long as its own tasks need them."""
    return task.budgets if isinstance(source, BenchmarkSource) else Budgets()


def _model(options: RunOptions, task: Task, session_id: str) -> Model:
    if options.model == PERSON:
        return PersonModel(Reference(task.reader))
    about = {"session": session_id, "task": task.key, "view": options.view}
    return make_model(options.model, judge=task.reader, about=about)
