"""Playing a task across processes: the session's record says which task it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sopilot.doors.mcp._tasks import PlayableTask, playable_task
from sopilot.doors.mcp.hub import whole_trace
from sopilot.doors.mcp.player import Player
from sopilot.language.diagnostics import InternalBug, SopilotError, mistake
from sopilot.runtime.agent import arm_named, audit_session, open_run, resume_run
from sopilot.runtime.audit import Finding, Report
from sopilot.runtime.session import Store
from sopilot.runtime.session.protocols import JSON, ToolSchema

PLAY = "play"
SAY_TOOL = ToolSchema(
    "say_to_user",
    "Say something to the user you serve; the result is the user's answer.",
    {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
)
FINISH_TOOL = ToolSchema(
    "finish_task",
    "The task is over: end the session and get its score.",
    {"type": "object", "properties": {}, "additionalProperties": False},
)

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class PlayScore:
    """``verdict`` is the oracle's: SOPBench's own evaluator, or the desk's."""

    session_id: str
    task: str
    arm: str
    ending: str
    verdict: Mapping[str, JSON]
    findings: Sequence[Finding]
    calls: Sequence[str]

    @property
    def passed(self) -> bool:
        return bool(self.verdict["success"])

    def as_json(self) -> dict[str, JSON]:
        return {
            "session": self.session_id,
            "task": self.task,
            "arm": self.arm,
            "ending": self.ending,
            "passed": self.passed,
            "verdict": dict(self.verdict),
            "findings": [finding.as_json() for finding in self.findings],
            "calls": list(self.calls),
        }


@dataclass(frozen=True, slots=True)
class Play:
    """A task under way. Close it after every move; the session goes on."""

    player: Player

    @property
    def id(self) -> str:
        return self.player.session.id

    async def finish(self) -> PlayScore:
        return await score_play(self.player)

    async def close(self) -> None:
        await self.player.session.release()
        await self.player.world.close()


async def score_play(player: Player) -> PlayScore:
    """Ends the session where it stands and scores it."""
    world = player.world
    if world.score is None:
        raise InternalBug("only a task can be scored")
    ending = await player.leave()
    report = await session_report(player, ended=True)
    events = await player.session.whole_events()
    return PlayScore(
        player.session.id,
        world.task,
        player.driver.arm.name,
        ending,
        world.score(1 + len(player.driver.dialog)),
        report.findings,
        [event.payload["action"] for event in events if event.kind == "domain_call"],
    )


async def session_report(player: Player, *, ended: bool) -> Report:
    """The audit's; without a machine there is one of tasks only, whose goal is known."""
    driver, goal = player.driver, player.world.goal
    if not driver.arm.machine and not goal:
        message = f"under `{driver.arm.name}` only a task has a score card"
        raise mistake("no-score-card", message, help="serve `bank-desk/TASK`")
    return await audit_session(
        player.session,
        driver.briefing.handbook,
        driver.arm,
        goal=goal,
        ended=ended,
        offered=driver.toolbox.names,
    )


async def start_play(
    store: Store,
    reference: str,
    *,
    arm: str = "pg",
    tools: str = "official",
    language: str = "en",
    model: str = "played",
) -> Play:
    """A new session on a fresh world of the task, with the user's request on record."""
    chosen = arm_named(arm)
    task = playable_task(reference, tools=tools, language=language)
    extra = {PLAY: play_record(task, tools=tools, language=language)}
    try:
        session = await open_run(
            store,
            task.briefing,
            chosen,
            tools=task.world.tools,
            model=model,
            extra=extra,
            unguarded=True,
        )
        player = Player(session, task.briefing, chosen, task.world)
        await player.driver.begin()
    except SopilotError:
        await task.world.close()
        raise
    return Play(player)


def play_record(task: PlayableTask, *, tools: str, language: str) -> dict[str, JSON]:
    """What a session keeps, so that the task can be opened again."""
    return {"task": task.world.task, "tools": tools, "language": language}


async def resume_play(store: Store, session_id: str) -> Play:
    """The play as it stands, its world rebuilt from the trace."""
    record = await store.record(session_id)
    about = record.metadata.get("extra", {}).get(PLAY)
    if not isinstance(about, Mapping):
        message = f"session `{session_id}` is not a play"
        raise mistake("not-a-play", message, help="`sopilot play start TASK`")
    arm = arm_named(str(record.metadata["arm"]))
    task = playable_task(str(about["task"]), tools=about["tools"], language=about["language"])
    try:
        await task.world.catch_up(session_id, await whole_trace(store, session_id))
        session = await resume_run(store, session_id, tools=task.world.tools)
        player = Player(session, task.briefing, arm, task.world)
        await player.driver.begin()
    except SopilotError:
        await task.world.close()
        raise
    return Play(player)


async def on_play(
    store: Store,
    name: str,
    use: Callable[[Play], Awaitable[Answer]],
    begin: Mapping[str, str] | None = None,
) -> Answer:
    """Uses the session of that id, or one that is begun with the task of that name."""
    if begin is None:
        play = await resume_play(store, name)
    else:
        play = await start_play(store, name, **begin)
    try:
        return await use(play)
    finally:
        await play.close()
