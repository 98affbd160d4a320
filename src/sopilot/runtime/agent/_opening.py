"""Opening the session of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from sopilot.language.diagnostics import mistake
from sopilot.language.handbook.cel import judge as judge_verdict
from sopilot.language.program import Program
from sopilot.runtime.agent.arms import Arm
from sopilot.runtime.agent.briefing import Briefing
from sopilot.runtime.session import (
    ProgramSet,
    Session,
    Settings,
    Store,
    open_session,
    resume_session,
)
from sopilot.runtime.session.protocols import JSON, Clock, Tools
from sopilot.runtime.vm import Judge


async def open_run(
    store: Store,
    briefing: Briefing,
    arm: Arm,
    *,
    tools: Tools | None,
    clock: Clock | None = None,
    model: str = "",
    settings: Settings | None = None,
    judge: Judge | None = None,
    extra: Mapping[str, JSON] | None = None,
    unguarded: bool = False,
    programs: ProgramSet | None = None,
    session_id: str | None = None,
) -> Session:
    """A session for this arm. Without a machine nothing can accept an irreversible action:
    such programs are refused unless ``unguarded`` says that the world is a simulated one.

    ``judge`` evaluates verdict expressions where the arm leaves them to the machine; the
    handbook's own by default. ``programs`` is for many runs of the same briefing and arm:
    ``run_programs`` made once.
    """
    return await open_session(
        store,
        programs if programs is not None else run_programs(briefing, arm, unguarded=unguarded),
        tools=tools,
        clock=clock,
        handbook=briefing.handbook.name,
        arm=arm.name,
        model=model,
        settings=replace(settings or Settings(), automation=arm.automation),
        judge=judge if judge is not None else judge_verdict,
        extra=extra,
        session_id=session_id,
    )


async def resume_run(
    store: Store,
    session_id: str,
    *,
    tools: Tools | None = None,
    programs: ProgramSet | None = None,
    accept_changed: bool = False,
    take_over: bool = False,
    before: Callable[[Session], Awaitable[None]] | None = None,
) -> Session:
    """The session of an interrupted run, with the judge that ``open_run`` gives by default.
    ``tools`` may come later: a hook brings its own. With ``programs``, others than the stored
    ones are refused or accepted, as it is said. What the machine does by itself is in
    the session's own settings."""
    return await resume_session(
        store,
        session_id,
        tools=tools,
        judge=judge_verdict,
        programs=programs,
        accept_changed=accept_changed,
        take_over=take_over,
        before=before,
    )


def run_programs(briefing: Briefing, arm: Arm, *, unguarded: bool = False) -> ProgramSet:
    chosen: Mapping[str, Program] = briefing.programs
    if not arm.machine:
        if not unguarded:
            _refuse_guarded(briefing, arm)
        chosen = briefing.unguarded()
    return ProgramSet.of(chosen)


def _refuse_guarded(briefing: Briefing, arm: Arm) -> None:
    goals = briefing.goal_actions()
    guarded = sorted(
        {
            one.action
            for program in briefing.programs.values()
            for one in program.guarded
            if one.action in goals
        }
    )
    if guarded:
        named = ", ".join(f"`{action}`" for action in guarded)
        raise mistake(
            "unguarded-arm",
            f"the arm `{arm.name}` has no machine that could guard {named}",
            help="choose an arm with a machine, such as `pg`",
        )
