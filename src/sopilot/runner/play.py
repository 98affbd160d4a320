"""Tasks and served sessions, driven from outside one move at a time, each from any process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from sopilot.agent.budgets import BudgetSpent
from sopilot.agent.calls import Answered, Ended, Waiting
from sopilot.agent.dialog import BUDGET
from sopilot.agent.driver import Driver
from sopilot.agent.loop import open_run, run_programs
from sopilot.agent.result import Ending, audit_session
from sopilot.agent.toolbox import END_SESSION
from sopilot.audit.findings import Finding
from sopilot.audit.report import Report
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import InternalBug, SopilotError, UserMistake, mistake
from sopilot.protocols import ModelReply, ToolCall, ToolSchema
from sopilot.records.people import Principal
from sopilot.records.store import Settings, Store
from sopilot.runner.sign_in import who_asks
from sopilot.runner.sources import lasting, named_task
from sopilot.session.lease import when_free
from sopilot.session.opening import resume_session
from sopilot.session.session import Session
from sopilot.tasks.task import Simulation
from sopilot.trace.events import Complete, Fail
from sopilot.values.json import JSON
from sopilot.values.text import Heading, Lines, counted
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import view_named
from sopilot.views.moves import Shown
from sopilot.views.quoting import signature
from sopilot.views.step_tool import TOOL_NAME, parse_step
from sopilot.views.view import View


@dataclass(frozen=True, slots=True)
class PlayableTask:
    """One task with a fresh simulation, and what the views may show of its handbook."""

    briefing: Briefing
    simulation: Simulation


def playable_task(reference: str, *, tools: str = "official", language: str = "en") -> PlayableTask:
    """Open a task for a player, without a time limit."""
    task = named_task(reference, tools=tools, language=language)
    simulation = task.open()
    budgets = replace(simulation.budgets, wall_seconds=float("inf"))
    return PlayableTask(
        task.briefing, replace(simulation, budgets=budgets, task=lasting(reference))
    )


PLAY_ENDED = "play_ended"
"""Name of the note with the ending of a play."""


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """``answer`` is for the model. ``ok`` is false if a call failed or wasn't made."""

    answer: str
    ok: bool
    frame_text: str
    ending: str | None = None
    unknown: bool = False
    """A call was sent, and its outcome is unknown."""


class Player:
    """Drives a session by given moves. ``simulation.user`` answers messages; without a user they
    are only recorded. Turns count only if there is a score."""

    def __init__(
        self, session: Session, briefing: Briefing, view: View, simulation: Simulation
    ) -> None:
        self.session = session
        self.simulation = simulation
        self._shown: Shown | None = None
        self.driver = Driver(
            session,
            briefing,
            view,
            user=simulation.user,
            budgets=simulation.budgets,
            operator=simulation.operator,
            tools=simulation.tools.schemas(),
        )

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def ending(self) -> str | None:
        """How it ended; ``None`` while it runs."""
        for event in reversed(self.session.own_events):
            if event.note == PLAY_ENDED:
                return str(event.details["ending"])
        return None

    async def call(
        self, name: str, arguments: Mapping[str, JSON] | str, *, call_id: str = "", say: str = ""
    ) -> PlayedTurn:
        """Make one tool call, with the model's text beside it."""
        if not isinstance(arguments, str):
            arguments = json.dumps(dict(arguments), ensure_ascii=False)
        return await self.reply(ModelReply(say, (ToolCall(call_id, name, arguments),)))

    async def say(self, text: str) -> PlayedTurn:
        """Send a message to the user; the answer is the user's."""
        return await self.reply(ModelReply(text))

    async def reply(self, reply: ModelReply) -> PlayedTurn:
        """Take a whole message of the model."""
        if self.simulation.score is not None and self.ending is not None:
            if reply.tool_calls and all(map(_closes, reply.tool_calls)):
                return self._turn(f"The session is over: {self.ending}.", ok=True)
            raise UserMistake(f"this play is over ({self.ending}); finish it for its score")
        self._shown = None
        try:
            answers = await self._moved(reply)
        except Ended as ended:
            return await self._end(ended.ending, ended.reason)
        except Waiting as waiting:
            return self._turn(waiting.text, ok=False, unknown=waiting.unknown)
        except BudgetSpent as spent:
            await self.session.note(BUDGET, {"budget": spent.budget, "limit": spent.limit})
            return await self._end(Ending.BUDGET, str(spent))
        return self._turn(
            "\n".join(answer.text for answer in answers),
            ok=all(answer.ok for answer in answers),
            unknown=any(answer.unknown for answer in answers),
        )

    async def _moved(self, reply: ModelReply) -> Sequence[Answered]:
        driver = self.driver
        if self.simulation.score is not None:
            driver.turn()
            return await driver.handle(reply)
        if not reply.tool_calls:
            return [Answered(await driver.say(reply.content))]
        return [await driver.call(call, reply.content) for call in reply.tool_calls]

    async def leave(self) -> str:
        """End the session for an agent that stops; its ending."""
        if self.ending is None:
            left = await self.driver.calls.user_leaves()
            await self._end(left.ending, left.reason)
        return str(self.ending)

    async def _end(self, ending: Ending, reason: str) -> PlayedTurn:
        await self.session.note(PLAY_ENDED, {"ending": str(ending), "reason": reason})
        return self._turn(f"The session is over: {ending}.", ok=True)

    def _turn(self, answer: str, *, ok: bool, unknown: bool = False) -> PlayedTurn:
        ending = self.ending if self.simulation.score is not None else None
        self._shown = self.driver.shown()
        text = self._shown.frame_text if ending is None else ""
        return PlayedTurn(answer, ok, text, ending, unknown)

    def shown(self) -> Shown:
        """The texts that the client should see now."""
        shown, self._shown = self._shown, None
        return shown or self.driver.shown()

    async def report(self, *, ended: bool) -> Report:
        """The audit of the session. Without a machine only tasks have one: their goal is known."""
        driver, goal = self.driver, self.simulation.goal
        if not driver.view.machine and not goal:
            message = f"under `{driver.view.name}` only a task has a score card"
            raise mistake("no-score-card", message, help="serve `bank/TASK`")
        return await audit_session(
            self.session,
            driver.briefing.handbook,
            driver.view,
            goal=goal,
            ended=ended,
            offered=driver.toolbox.names,
        )

    async def finish(self) -> PlayScore:
        """End the session and score it."""
        if self.simulation.score is None:
            raise InternalBug("only a task can be scored")
        ending = await self.leave()
        report = await self.report(ended=True)
        events = await self.session.whole_events()
        return PlayScore(
            self.id,
            self.simulation.task,
            self.driver.view.name,
            ending,
            self.simulation.score(1 + len(self.driver.dialog)),
            report.findings,
            [event.payload["action"] for event in events if event.kind == "domain_call"],
        )

    async def close(self) -> None:
        """Close the session after a move; it can be resumed."""
        await self.session.release()
        await self.simulation.close()


def _closes(call: ToolCall) -> bool:
    """Whether the call only ends a session, which may have ended by itself."""
    closing = call.name == TOOL_NAME and isinstance(parse_step(call.arguments), Complete | Fail)
    return call.name == END_SESSION or closing


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


@dataclass(frozen=True, slots=True)
class PlayScore:
    """``verdict`` is that of SOPBench's evaluator, or of the example's."""

    session_id: str
    task: str
    view: str
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
            "view": self.view,
            "ending": self.ending,
            "passed": self.passed,
            "verdict": dict(self.verdict),
            "findings": [finding.as_json() for finding in self.findings],
            "calls": list(self.calls),
        }


async def open_player(
    store: Store,
    briefing: Briefing,
    view: View,
    simulation: Simulation,
    *,
    model: str = "",
    extra: Mapping[str, JSON] | None = None,
    settings: Settings | None = None,
    programs: ProgramSet | None = None,
    requester: Principal | None = None,
    resume: str | None = None,
    patience_seconds: float = 0.0,
) -> Player:
    """Open a new session, or the one to ``resume``: then wait for another process that holds it,
    and let the simulator catch up with its trace. Close the simulation if that fails."""

    async def catch_up(session: Session) -> None:
        await simulation.catch_up(session.id, session.own_events)

    shared: dict[str, Any] = {
        "tools": simulation.tools,
        "programs": programs,
        "requester": requester,
    }
    try:
        if resume is None:
            session = await open_run(
                store, briefing, view, model=model, extra=extra, settings=settings, **shared
            )
        else:
            again = partial(resume_session, store, resume, before=catch_up, **shared)
            session = await when_free(again, patience_seconds=patience_seconds)
        player = Player(session, briefing, view, simulation)
        await player.driver.begin()
    except SopilotError:
        await simulation.close()
        raise
    return player


async def start_play(
    store: Store,
    reference: str,
    *,
    view: str = "pg",
    tools: str = "official",
    language: str = "en",
    model: str = "played",
    token_file: Path | None = None,
) -> Player:
    """Open a session on a fresh simulator of the task, with the user's request on record."""
    chosen, who = view_named(view), await who_asks(store, token_file)
    task = playable_task(reference, tools=tools, language=language)
    return await open_player(
        store,
        task.briefing,
        chosen,
        task.simulation,
        model=model,
        extra={PLAY: play_record(task, tools=tools, language=language)},
        programs=run_programs(task.briefing, chosen, unguarded=True),
        requester=who,
    )


def play_record(task: PlayableTask, *, tools: str, language: str) -> dict[str, JSON]:
    """Record from which the task can be opened again."""
    return {"task": task.simulation.task, "tools": tools, "language": language}


async def resume_play(store: Store, session_id: str, *, token_file: Path | None = None) -> Player:
    """Continue a play; its simulator is rebuilt from the trace."""
    record = await store.record(session_id)
    about = record.metadata.get("extra", {}).get(PLAY)
    if not isinstance(about, Mapping):
        message = f"session `{session_id}` is not a play"
        raise mistake("not-a-play", message, help="`sopilot lab play start TASK`")
    view, who = view_named(str(record.metadata["view"])), await who_asks(store, token_file)
    task = playable_task(str(about["task"]), tools=about["tools"], language=about["language"])
    return await open_player(
        store, task.briefing, view, task.simulation, resume=session_id, requester=who
    )


async def screen(player: Player) -> dict[str, object]:
    request = player.driver.request()
    return {
        "session": player.id,
        "task": player.simulation.task,
        "view": player.driver.view.name,
        "system": request.first.content,
        "messages": [asdict(message) for message in request.dialog],
        "frame": request.frame_text,
        "tools": [asdict(tool) for tool in request.tools],
        "ending": player.ending,
    }


def screen_lines(shown: dict[str, object]) -> Iterator[str]:
    yield f"session {shown['session']}"
    yield Heading("system")
    yield Lines(shown["system"])
    messages, tools = shown["messages"], shown["tools"]
    assert isinstance(messages, list)
    assert isinstance(tools, list)
    for message in messages:
        yield Heading(message["role"])
        made = ", ".join(item["name"] for item in message["tool_calls"])
        yield Lines(message["content"] or made)
    if shown["frame"]:
        yield Heading("frame message")
        yield Lines(shown["frame"])
    yield Heading("tools")
    for tool in tools:
        yield signature(tool["name"], tool["parameters"])
        if tool["description"]:
            yield f"  {tool['description']}"


def score_lines(score: PlayScore) -> Iterator[str]:
    yield f"{score.task} under {score.view}: {'passed' if score.passed else 'not passed'}"
    yield f"ended as {score.ending} after {counted(len(score.calls), 'call')}"
    for name, value in score.verdict.items():
        yield f"  {name}: {value}"
    for finding in score.findings:
        yield f"  {finding.severity} {finding.code} at event {finding.seq}"
