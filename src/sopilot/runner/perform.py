"""The one way to run a task: for `run`, `chat` and `resume`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sopilot.agent.budgets import Budgets
from sopilot.agent.reference.executor import Reference
from sopilot.agent.result import Watch
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import ProgramChanged, UserMistake
from sopilot.models.open import close_model, make_model
from sopilot.models.person import PERSON, HumanUser, PersonModel
from sopilot.protocols import Model
from sopilot.records.store import Store
from sopilot.runner.options import RunOptions, chosen_task, simulator_file, typed_value
from sopilot.runner.sign_in import who_asks
from sopilot.runner.sources import BenchmarkSource, TaskSource
from sopilot.runner.store_access import StoreAccess
from sopilot.tasks.run import Conditions, Resuming, open_task
from sopilot.tasks.task import Result, Task
from sopilot.views.catalogue import view_named

_CHANGED = (
    "`--as-started` uses the program that the session began with; `--accept-changed` switches to "
    "the current program and starts running procedures again"
)


async def perform(
    store: Store,
    access: StoreAccess,
    options: RunOptions,
    source: TaskSource,
    session_id: str,
    *,
    watch: Watch,
    tell: Callable[[str], None],
    resume: Resuming | None = None,
) -> Result:
    """Run a new session in the ``store`` of ``access``, or ``resume`` one."""
    who = await who_asks(store, access.token_file)
    task = chosen_task(options, source)
    simulation = task.open(simulator_file(session_id, access.spec) if source.bundled else None)
    model = _model(options, task, session_id)
    budgets = task.budgets if isinstance(source, BenchmarkSource) else Budgets()
    conditions = Conditions(
        view_named(options.view),
        model,
        model_name=options.model,
        user=_person(options.request, task) if options.person else None,
        budgets=replace(budgets, **dict(options.budgets)),
        watch=watch,
    )
    try:
        async with open_task(
            task, simulation, conditions, store=store, session_id=session_id, requester=who,
            extra=options.as_record(source), resume=resume, tell=tell,
        ) as session:  # fmt: skip
            return await session.run()
    except ProgramChanged as changed:
        place = Place(options.source)
        raise UserMistake(
            [replace(item, place=place, help=_CHANGED) for item in changed.diagnostics]
        ) from None
    finally:
        await close_model(model)
        await simulation.close()


def _person(request: str | None, task: Task) -> HumanUser:
    return HumanUser(request, lambda name, text: typed_value(name, text, task.briefing.programs))


def _model(options: RunOptions, task: Task, session_id: str) -> Model:
    if options.model == PERSON:
        return PersonModel(Reference(task.reader))
    about = {"session": session_id, "task": task.key, "view": options.view}
    return make_model(options.model, judge=task.reader, about=about)
