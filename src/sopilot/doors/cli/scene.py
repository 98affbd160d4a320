"""What `run`, `resume` and `chat` play: handbook, world, user, judge and budgets.

A scene is described by plain values that are kept with the session, so that
`resume` can set the same scene again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from sopilot.desks.bundled import Desk, Task, bundled_names, load_desk
from sopilot.desks.bundled.judge import desk_judge
from sopilot.doors.cli.desk_world import DeskWorld
from sopilot.doors.cli.folder_world import InterruptedTools, RecordedVotes, opening
from sopilot.doors.cli.human_user import HumanUser
from sopilot.doors.cli.sources import compile_source, read_text
from sopilot.doors.cli.stores import data_folder
from sopilot.doors.cli.workflow_folder import is_workflow_folder, load_folder
from sopilot.doors.cli.written_world import written_world
from sopilot.language.diagnostics import Diagnostic, Place, UserMistake, did_you_mean
from sopilot.language.program import Program
from sopilot.runtime.agent import (
    Briefing,
    Budgets,
    Judge,
    Operator,
    RoleApprovers,
    ScriptedUser,
    VerdictJudge,
)
from sopilot.runtime.session.protocols import JSON, Tools, User


@dataclass(frozen=True, slots=True)
class Description:
    """Everything that sets a scene. ``person`` means that somebody at the terminal is served;
    ``out`` is where the tools of a workflow folder keep and make their files; ``text`` the
    handbook file as it stood when the session began."""

    source: str
    goal: str | None = None
    task: str | None = None
    model: str = "reference"
    arm: str = "pg"
    language: str = "en"
    person: bool = False
    request: str | None = None
    knows: Mapping[str, JSON] = field(default_factory=dict)
    results: Mapping[str, JSON] | None = None
    approvers: tuple[str, ...] = ()
    budgets: Mapping[str, JSON] = field(default_factory=dict)
    out: str | None = None
    text: str | None = None

    def as_json(self) -> dict[str, JSON]:
        return asdict(self)

    def to_keep(self) -> dict[str, JSON]:
        """What a session keeps of it: resumed from another folder, the source is still found."""
        if self.source in bundled_names() or self.source.startswith("sopbench:"):
            return self.as_json()
        path = Path(self.source).resolve()
        text = None if path.is_dir() else read_text(path)
        return replace(self, source=str(path), text=text).as_json()


def description_from_json(value: Mapping[str, JSON]) -> Description:
    known = {item.name: value[item.name] for item in fields(Description) if item.name in value}
    if "source" not in known:
        raise UserMistake("this session was not made by `run` or `chat`, and cannot be resumed so")
    return Description(**{**known, "approvers": tuple(known.get("approvers", ()))})


@dataclass(frozen=True, slots=True)
class Scene:
    briefing: Briefing
    tools: Tools
    user: User
    judge: Judge
    budgets: Budgets
    operator: Operator | None
    simulated: bool
    desk: Desk | None = None
    task: Task | None = None
    expected: str | None = None


def set_scene(
    description: Description,
    session_id: str,
    store_spec: str | None,
    *,
    as_started: bool = False,
) -> Scene:
    """With ``as_started`` the handbook is the one that was kept, if one was."""
    _check_results_serve(description)
    if is_workflow_folder(description.source):
        return _in_folder(description)
    text = description.text if as_started else None
    units = compile_source(description.source, goal=description.goal, text=text)
    if description.source.startswith("sopbench:"):
        raise UserMistake("SOPBench tasks need their own simulator: use `sopilot bench run`")
    handbook = units[0].handbook
    programs = {unit.procedure.name: unit.program for unit in units}
    _known_roles(description, programs.values())
    briefing = Briefing(handbook, programs, description.language)
    budgets = Budgets(**dict(description.budgets))
    if description.source not in bundled_names():
        return _written_down(description, briefing, budgets)
    desk = load_desk(description.source)
    task = _task(desk, description)
    world = DeskWorld(desk.make_tools(task), world_file(session_id, store_spec))
    approvers = description.approvers or (() if description.person else task.approvers)
    return Scene(
        briefing=briefing,
        tools=world,
        user=_user(description, task),
        judge=desk_judge(desk),
        budgets=budgets,
        operator=RoleApprovers(approvers) if approvers else None,
        simulated=True,
        desk=desk,
        task=None if description.person or description.request else task,
    )


def world_file(session_id: str, store_spec: str | None) -> Path:
    """Beside the store, if that is a file."""
    folder = data_folder()
    if store_spec and store_spec.startswith("sqlite:"):
        folder = Path(store_spec.removeprefix("sqlite:")).expanduser().parent
    return folder / "worlds" / f"{session_id}.json"


def _task(desk: Desk, description: Description) -> Task:
    """The task named, else the desk's first for the goal: its state is the world."""
    if description.task is not None:
        return desk.task(description.task)
    for task in desk.tasks:
        if description.goal in (None, task.goal):
            return task
    return desk.tasks[0]


def _user(description: Description, task: Task) -> User:
    if description.person:
        return HumanUser(description.request)
    if description.request is not None:
        return ScriptedUser(description.request, description.knows, goal=description.goal)
    return ScriptedUser(
        task.request,
        {**task.knows, **description.knows},
        goal=task.goal,
        late=task.late,
        follow_ups=task.follow_ups,
    )


def _in_folder(description: Description) -> Scene:
    """A program written by hand, with tools and tasks of its own: nothing here is simulated."""
    folder = load_folder(description.source)
    _known_roles(description, [folder.program])
    task = folder.task(description.task)
    out = Path(description.out or ".").resolve()
    tools = folder.make_tools(task, out)
    handbook = folder.handbook(tools)
    user: User = HumanUser(description.request)
    if not description.person:
        says = description.request or task.says
        user = ScriptedUser(opening(says, task, folder), {**task.knows, **description.knows})
    voters = task.votes if not description.person else ()
    operator: Operator | None = RoleApprovers(description.approvers)
    if not description.approvers:
        operator = RecordedVotes(voters) if voters else None
    return Scene(
        briefing=Briefing(handbook, {folder.goal: folder.program}, description.language),
        tools=InterruptedTools.of(tools, task, out),
        user=user,
        judge=VerdictJudge(handbook),
        budgets=Budgets(**dict(description.budgets)),
        operator=operator,
        simulated=False,
        expected=None if description.person or description.request else task.expected,
    )


def _written_down(description: Description, briefing: Briefing, budgets: Budgets) -> Scene:
    """A handbook of one's own: what its tools answer and what the user knows is written down."""
    world = written_world(description, briefing.handbook, list(briefing.programs))
    return Scene(
        briefing=briefing,
        tools=world.tools,
        user=world.user,
        judge=world.judge,
        budgets=budgets,
        operator=RoleApprovers(world.approvers) if world.approvers else None,
        simulated=True,
        expected=world.expected,
    )


def _check_results_serve(description: Description) -> None:
    if description.results is None:
        return
    cure = "leave --results out; --task NAME chooses another task, and with it another state"
    if description.source in bundled_names():
        message = f"the tools of `{description.source}` are simulated, no file answers for them"
    elif is_workflow_folder(description.source):
        message = f"`{description.source}` has tools of its own, no file answers for them"
    else:
        return
    raise UserMistake([Diagnostic("results-unused", message, Place("--results"), cure)])


def _known_roles(description: Description, programs: Iterable[Program]) -> None:
    """A role that no action asks for would approve nothing, and the run would wait."""
    roles = {role for program in programs for guarded in program.guarded for role in guarded.roles}
    for role in description.approvers:
        if role not in roles:
            cure = did_you_mean(role, roles) if roles else "no action asks for an approval"
            message = f"no approval is asked of `{role}`"
            raise UserMistake([Diagnostic("unknown-role", message, Place("--approve"), cure)])
