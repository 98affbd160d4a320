"""Playing a scene: the run itself, what a person sees of it, and its audit."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import click

from sopilot.adapters.model_by_name import make_model
from sopilot.desks.bundled import Judgement
from sopilot.desks.scenarios.judging import ScenarioJudge
from sopilot.doors.cli.changed_programs import as_it_started, changed_since
from sopilot.doors.cli.output import heading, print_json, say
from sopilot.doors.cli.person_model import PERSON, PersonModel
from sopilot.doors.cli.scene import Description, Scene, set_scene
from sopilot.doors.cli.stores import with_store
from sopilot.language.handbook.cel import judge as judge_verdict
from sopilot.runtime.agent import (
    Ending,
    Progress,
    Reference,
    Retries,
    SessionResult,
    arm_named,
    open_run,
    resume_run,
    run_programs,
    run_session,
)
from sopilot.runtime.audit import Report, audit_trace
from sopilot.runtime.audit.text_report import render_text
from sopilot.runtime.audit.without_machine import audit_untracked
from sopilot.runtime.session import ProgramChanged, Session, Store
from sopilot.runtime.session.protocols import JSON, Model
from sopilot.runtime.trace import SealedEvent

_MARKS = {
    "user": ("user", "green"),
    "assistant": ("agent", "cyan"),
    "call": ("  call", None),
    "result": ("  ", None),
    "step": ("  step", "bright_black"),
    "held": ("  held", "yellow"),
    "note": ("  note", "yellow"),
}


@dataclass(frozen=True, slots=True)
class Performance:
    """``judgement`` is the desk's own opinion, for tasks; ``report`` the audit's; ``expected``
    the ending that a workflow folder's task names."""

    result: SessionResult
    report: Report
    judgement: Judgement | None
    expected: str | None = None
    events: Sequence[SealedEvent] = ()
    unjudged: Sequence[str] = ()
    """Why a predicate could not be judged, in words for the author of a scenario."""

    @property
    def as_expected(self) -> bool:
        return self.expected is None or self.result.ending == self.expected

    @property
    def exit_code(self) -> int:
        good = self.result.ending in (Ending.EXECUTED, Ending.REFUSED, Ending.WAITING)
        return 0 if good and self.report.clean and self.as_expected else 1

    def as_json(self) -> dict[str, JSON]:
        document = self.result.as_json()
        document["audit"] = self.report.as_json()
        if self.expected is not None:
            document["task"] = {"passed": self.as_expected, "expected": self.expected}
        if self.judgement is not None:
            document["task"] = {
                "passed": self.judgement.passed,
                "reasons": list(self.judgement.reasons),
            }
        return document


def perform(
    description: Description,
    store_spec: str | None,
    *,
    resume_id: str | None = None,
    new_id: str | None = None,
    take_over: bool = False,
    as_started: bool = False,
    accept_changed: bool = False,
    quiet: bool = False,
    frames: bool = False,
) -> Performance:
    """Run or resume to the end. Interrupted, the session stays resumable. A handbook that has
    changed since needs ``as_started`` or ``accept_changed``."""
    session_id = resume_id or new_id or secrets.token_hex(16)
    scene = set_scene(description, session_id, store_spec, as_started=as_started)
    model = _model(description, scene)
    watcher = Watcher(quiet=quiet, frames=frames, person=description.person)

    async def run(store: Store) -> Performance:
        nonlocal scene
        arm = arm_named(description.arm)
        if resume_id is None:
            session = await open_run(
                store,
                scene.briefing,
                arm,
                tools=scene.tools,
                model=description.model,
                extra=description.to_keep(),
                unguarded=scene.simulated,
                session_id=session_id,
            )
        else:
            present = run_programs(scene.briefing, arm, unguarded=scene.simulated)
            try:
                session = await resume_run(
                    store,
                    session_id,
                    tools=scene.tools,
                    programs=None if as_started else present,
                    accept_changed=accept_changed,
                    take_over=take_over,
                )
            except ProgramChanged as changed:
                raise changed_since(description, changed) from None
        async with session:
            if as_started:
                scene = as_it_started(scene, session, arm)
            result = await run_session(
                session,
                scene.briefing,
                arm=arm,
                model=model,
                user=scene.user,
                budgets=scene.budgets,
                retries=Retries(),
                operator=scene.operator,
                watch=watcher,
            )
            await _close(model)
            return _judged(session, description, scene, result, machine=arm.machine)

    try:
        return with_store(store_spec, run)
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted; go on with: sopilot resume {session_id}", err=True)
        raise SystemExit(130) from None


def _model(description: Description, scene: Scene) -> Model:
    if description.model == PERSON:
        return PersonModel(Reference(scene.judge))
    return make_model(description.model, judge=scene.judge)


async def _close(model: Model) -> None:
    from sopilot.adapters.model_http import HttpModel

    if isinstance(model, HttpModel):
        await model.close()


def _judged(
    session: Session,
    description: Description,
    scene: Scene,
    result: SessionResult,
    *,
    machine: bool,
) -> Performance:
    if not machine:
        report = audit_untracked(
            scene.briefing.handbook,
            [sealed.event for sealed in session.events],
            goal=description.goal or (scene.task.goal if scene.task is not None else None),
            chain=session.events,
            session_id=session.id,
            judge=judge_verdict,
            head=session.head,
        )
    else:
        report = audit_trace(
            session.first_programs.programs,
            session.events,
            session_id=session.id,
            judge=judge_verdict,
            head=session.head,
            changes=session.program_changes,
            ended=result.ending is not Ending.WAITING,
        )
    judgement = None
    if scene.desk is not None and scene.task is not None and result.ending is not Ending.WAITING:
        world = getattr(scene.tools, "simulator", None)
        if world is not None:
            judgement = scene.desk.judge(scene.task, world.calls, world.state)
    unjudged = scene.judge.problems if isinstance(scene.judge, ScenarioJudge) else ()
    return Performance(
        result, report, judgement, scene.expected, session.events, tuple(dict.fromkeys(unjudged))
    )


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


def show(performance: Performance, *, as_json: bool, store_spec: str | None = None) -> None:
    """The end of a run, for a person or for a script."""
    if as_json:
        print_json(performance.as_json())
        return
    result = performance.result
    say()
    heading(f"{result.ending}: {result.reason}" if result.reason else str(result.ending))
    for refusal in result.refusals:
        say(f"  not met: {refusal.sentence}")
        for line in refusal.evidence:
            say(f"    shown by {line}")
        if refusal.remedy:
            say(f"    what you could do: {refusal.remedy}")
    for reason in performance.unjudged:
        say(f"  {reason}")
    if result.ending is Ending.WAITING:
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
    if performance.judgement is not None:
        passed = performance.judgement.passed
        say(f"  the desk says: {'passed' if passed else 'failed'}")
        for reason in performance.judgement.reasons:
            say(f"    {reason}")
    if performance.expected is not None:
        word = "as the task expects" if performance.as_expected else "not what the task expects"
        say(f"  {result.ending}, {word}")
    say()
    heading("audit")
    say(render_text(performance.report))
    say()
    say(f"trace: sopilot trace export {result.session_id}")
