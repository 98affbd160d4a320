"""Start, suspend, resume, complete, fail: processes as wholes."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.machine.layout import Moved, Position, ProgramLayout, Programs, Refused, refused
from sopilot.machine.moves import blamed
from sopilot.machine.state import Configuration, Frame, Process, Status
from sopilot.messages.diagnostic import did_you_mean
from sopilot.program.model import Act, Check, CompleteStep, FailStep
from sopilot.trace.events import Amend, Complete, Fail, Start
from sopilot.values.json import JSON, Fields, shown


def start(
    programs: Programs,
    configuration: Configuration,
    operation: Start,
    fields: Fields,
    *,
    typed: bool = True,
) -> Moved | Refused:
    goal = fields["goal"]
    layout = programs.layouts.get(goal)
    if layout is None:
        return refused("unknown-goal", goal=shown(goal), hint=did_you_mean(goal, programs.layouts))
    values = _values(layout, goal, fields["arguments"], layout.entry.parameters, typed=typed)
    if isinstance(values, Refused):
        return values
    cursor = layout.entry.first
    if operation.act:
        step = layout.entry.steps.get(operation.act)
        if not isinstance(step, Act) or not step.goal:
            return Refused("unknown-act", f"`{goal}` has no goal action {shown(operation.act)}")
        cursor = step.label
    active = configuration.process
    if active is not None and _same(layout, active, goal, values):
        return refused("already-active", goal=goal)
    for id_ in reversed(configuration.suspended):
        if _same(layout, configuration.processes[id_], goal, values):
            process = configuration.processes[id_].with_status(Status.RUNNING)
            return _activate(configuration, process, reactivated=True)
    if len(configuration.processes) >= programs.limits.processes:
        return refused("processes-exceeded", limit=programs.limits.processes)
    if len(configuration.suspended) >= programs.limits.depth:
        return refused("depth-exceeded", "suspended-exceeded", limit=programs.limits.depth)
    seq = configuration.next_seq
    frame = Frame(layout.entry.name, cursor, values, {}, seq, layout.entry.name)
    process = Process(
        f"p{len(configuration.processes) + 1}",
        goal,
        programs.hashes[goal],
        values,
        (frame,),
        known=values,
        steps=1,
    )
    return _activate(configuration, process, reactivated=False)


def _values(
    layout: ProgramLayout,
    goal: str,
    arguments: Mapping[str, JSON],
    names: frozenset[str],
    *,
    typed: bool = True,
) -> dict[str, JSON] | Refused:
    """The arguments that have a value, if all are among ``names`` and have their types."""
    values = {name: arguments[name] for name in arguments if arguments[name] is not None}
    for name, value in values.items():
        if name not in names:
            hint = did_you_mean(name, names)
            return refused(
                "unknown-argument", "unknown-parameter", goal=goal, name=shown(name), hint=hint
            )
        if typed and name in layout.entry.parameters:
            problem = layout.type_problem(name, value)
            if problem is not None:
                return Refused("wrong-type", problem)
    return values


def amend(here: Position, operation: Amend, fields: Fields) -> Moved | Refused:
    """Change values of the running process. It begins again, and only results that don't depend on
    the changed names stay bound."""
    process, root, entry = here.process, here.process.frames[0], here.program.entry
    values = _values(here.program, process.goal, fields["arguments"], here.program.names)
    if isinstance(values, Refused):
        return values
    have = {**process.known, **root.locals}
    changed = frozenset(
        name
        for name, value in values.items()
        if name not in have or not here.program.agree(have[name], value)
    )
    if not changed:
        return refused("nothing-amended", goal=process.goal)
    if any(result.ok and result.action in here.program.goal_actions for result in process.results):
        return refused("already-carried-out", goal=process.goal)
    for call_id, pending in here.configuration.pending.items():
        if pending.process == process.id:
            return refused("call-pending", call=shown(call_id))
    known = {**process.known, **values}
    stored = {
        step.slot: root.slots[step.slot]
        for step in entry.steps.values()
        if isinstance(step, Check)
        and step.slot in root.slots
        and not here.program.depends_on(step, changed)
    }
    own = {name: value for name, value in values.items() if name in entry.parameters}
    frame = root._replace(cursor=entry.first, locals={**root.locals, **own}, slots=stored)
    amended = process.begun_again(frame, known)
    added = {
        "changed": sorted(changed),
        "kept": sorted(stored),
        "unwound": [item.path for item in reversed(process.frames[1:])],
    }
    return Moved(here.configuration.updated(amended), added)


def _same(layout: ProgramLayout, process: Process, goal: str, values: Mapping[str, JSON]) -> bool:
    """Whether a start means this process: the same goal, and no contradicting value."""
    inputs = process.frames[0].locals if process.frames else process.arguments
    return process.goal == goal and all(
        name not in inputs or layout.agree(inputs[name], value) for name, value in values.items()
    )


def _activate(configuration: Configuration, process: Process, *, reactivated: bool) -> Moved:
    processes = {**configuration.processes, process.id: process}
    suspended = tuple(id_ for id_ in configuration.suspended if id_ != process.id)
    if configuration.active is not None:
        left = configuration.processes[configuration.active]
        processes[left.id] = left.with_status(Status.SUSPENDED)
        suspended = (*suspended, left.id)
    after = configuration.updated(process)._replace(
        processes=processes, active=process.id, suspended=suspended
    )
    added = {
        "program": process.program,
        "opened": process.frames[0].opened,
        "reactivated": reactivated,
        "suspended": configuration.active,
    }
    return Moved(after, added, process.id, process.frames[-1].place)


def resume(configuration: Configuration) -> Moved | None:
    """Resume the process that was suspended last once no other runs."""
    if configuration.active is not None or not configuration.suspended:
        return None
    process = configuration.processes[configuration.suspended[-1]].with_status(Status.RUNNING)
    after = configuration.updated(process)._replace(
        active=process.id, suspended=configuration.suspended[:-1]
    )
    return Moved(after, {"goal": process.goal}, process.id, process.frames[-1].place)


def complete(here: Position, operation: Complete, fields: Fields) -> Moved | Refused:
    if not isinstance(here.step, CompleteStep):
        return refused("not-accepting", place=here.frame.place)
    return _end(here, Status.COMPLETED, True)


def fail(here: Position, operation: Fail, fields: Fields) -> Moved | Refused:
    return _end(here, Status.FAILED, isinstance(here.step, FailStep))


def _end(here: Position, status: Status, accepting: bool) -> Moved:
    configuration, process = here.configuration, here.process
    ended = process.with_status(status, here.frame.place)
    if accepting and status is Status.FAILED:
        ended = ended._replace(unmet=blamed(here.layout.function, here.frame.slots))
    after = configuration.updated(ended)._replace(active=None)
    unwound = [frame.path for frame in reversed(process.frames)]
    return Moved(after, {"label": here.step.label, "accepting": accepting, "unwound": unwound})
