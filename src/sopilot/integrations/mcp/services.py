"""The services of a server: a gateway, a bundled example, a task, or a handbook alone."""

from __future__ import annotations

from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.model import Handbook
from sopilot.integrations.mcp.gateway import GatewayTools
from sopilot.integrations.mcp.pins import Catalogue
from sopilot.integrations.mcp.schemas import require_same_inputs
from sopilot.integrations.mcp.sessions import Service
from sopilot.machine.program_set import guarded_actions
from sopilot.runner.hook import require_guardable
from sopilot.runner.play import PLAY, play_record, playable_task
from sopilot.runner.sources import ExampleSource, TaskSource
from sopilot.tasks.example_tasks import idle_simulation
from sopilot.tasks.task import NoTools, Simulation
from sopilot.views.briefing import Briefing
from sopilot.views.view import View


def gateway_service(
    handbook: Handbook,
    view: View,
    catalogue: Catalogue,
    *,
    language: str = "en",
    share_upstreams: bool = False,
) -> Service:
    """Compiled for the tools that the upstream servers really offer. Raise if they don't take the
    handbook's inputs."""
    missing = [
        name
        for name, action in handbook.actions.items()
        if action.offered and catalogue.offer(name) is None
    ]
    if missing:
        catalogue.tell(f"no upstream offers {', '.join(missing)}")
    require_same_inputs(handbook, catalogue)
    offered = frozenset(
        offer.name for offer in catalogue.offers() if offer.name in handbook.actions
    )
    compiled = compile_handbook(handbook, offered=offered, tools="gateway")
    briefing = Briefing(handbook, {goal: item.program for goal, item in compiled.items()}, language)
    if view.guard:
        require_guardable(briefing)
    shared = catalogue.spare if share_upstreams else None
    guarded = guarded_actions(briefing.programs)

    async def open_simulation() -> Simulation:
        tools = GatewayTools(catalogue, shared, guarded=guarded)
        return Simulation(tools, close=tools.close)

    return Service(briefing, view, open_simulation, extra={"gateway": handbook.name})


def source_service(source: TaskSource, view: View, *, language: str = "en") -> Service:
    """A bundled example with its simulator. Of any other handbook the step tool alone: its
    calls are made elsewhere and cannot be evidence."""

    async def open_simulation() -> Simulation:
        return (
            idle_simulation(source.example)
            if isinstance(source, ExampleSource)
            else Simulation(NoTools())
        )

    extra = {"example" if source.bundled else "handbook": source.handbook.name}
    briefing = source.briefing(language=language)
    return Service(briefing, view, open_simulation, simulated=source.bundled, extra=extra)


def task_service(
    reference: str, view: View, *, tools: str = "official", language: str = "en"
) -> Service:
    """A task, with its user and its oracle, for every client anew."""
    first = playable_task(reference, tools=tools, language=language)
    ready = [first]

    async def open_simulation() -> Simulation:
        task = ready.pop() if ready else playable_task(reference, tools=tools, language=language)
        return task.simulation

    return Service(
        first.briefing,
        view,
        open_simulation,
        simulated=True,
        extra={PLAY: play_record(first, tools=tools, language=language)},
        played=True,
    )
