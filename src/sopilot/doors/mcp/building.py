"""Services: a gateway, a desk, a task, or a handbook alone."""

from __future__ import annotations

from sopilot.desks.bundled import load_desk
from sopilot.doors.mcp.catalogue import Catalogue
from sopilot.doors.mcp.gateway import gateway_world
from sopilot.doors.mcp.hub import Service
from sopilot.doors.mcp.playing import PLAY, play_record
from sopilot.doors.mcp.tasks import desk_briefing, desk_world, open_task
from sopilot.doors.mcp.world import NoTools, World
from sopilot.language.compiler import compile_handbook
from sopilot.language.handbook import Handbook
from sopilot.runtime.agent import Arm, Briefing


def gateway_service(
    handbook: Handbook,
    arm: Arm,
    catalogue: Catalogue,
    *,
    language: str = "en",
    share_upstreams: bool = False,
) -> Service:
    """Compiled for the tools that the upstream servers really offer."""
    offered = frozenset(
        offer.tool.name for offer in catalogue.offers() if offer.tool.name in handbook.actions
    )
    compiled = compile_handbook(handbook, offered=offered, tools="gateway")
    briefing = Briefing(handbook, {goal: one.program for goal, one in compiled.items()}, language)
    shared = catalogue.spare if share_upstreams else None

    async def open_world() -> World:
        return gateway_world(catalogue, shared)

    return Service(briefing, arm, open_world, extra={"gateway": handbook.name})


def desk_service(name: str, arm: Arm, *, language: str = "en") -> Service:
    """A bundled desk on its own small world."""
    desk = load_desk(name)

    async def open_world() -> World:
        return desk_world(desk)

    extra = {"desk": name}
    return Service(desk_briefing(name, language), arm, open_world, simulated=True, extra=extra)


def task_service(
    reference: str, arm: Arm, *, tools: str = "official", language: str = "en"
) -> Service:
    """A task, with its user and its oracle, for every client anew."""
    first = open_task(reference, tools=tools, language=language)
    ready = [first]

    async def open_world() -> World:
        task = ready.pop() if ready else open_task(reference, tools=tools, language=language)
        return task.world

    return Service(
        first.briefing,
        arm,
        open_world,
        simulated=True,
        extra={PLAY: play_record(first, tools=tools, language=language)},
        played=True,
    )


def handbook_service(handbook: Handbook, arm: Arm, *, language: str = "en") -> Service:
    """Bookkeeping alone: the calls are made elsewhere and cannot be evidence."""
    compiled = compile_handbook(handbook)
    briefing = Briefing(handbook, {goal: one.program for goal, one in compiled.items()}, language)

    async def open_world() -> World:
        return World(NoTools())

    return Service(briefing, arm, open_world, extra={"handbook": handbook.name})
