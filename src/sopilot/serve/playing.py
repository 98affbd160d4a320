"""Playing a task across processes: the session's record says which task it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sopilot.agent import Arm, arm_named, open_run
from sopilot.audit import Finding, audit_trace
from sopilot.audit.foreign import audit_transcript
from sopilot.audit.transcript import Transcript, TranscriptCall
from sopilot.diagnostics import Diagnostic, SopilotError, UserMistake
from sopilot.handbook.verdict import judge
from sopilot.serve.hub import whole_trace
from sopilot.serve.player import Player
from sopilot.serve.tasks import OpenTask, open_task
from sopilot.session import Store, resume_session
from sopilot.session.protocols import JSON
from sopilot.vm import Event

PLAY = "play"


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

    task: OpenTask
    arm: Arm
    player: Player
    store: Store

    @property
    def id(self) -> str:
        return self.player.session.id

    async def close(self) -> None:
        await self.player.session.release()
        await self.task.world.close()

    async def finish(self) -> PlayScore:
        """Ends the session where it stands and scores it."""
        ending = await self.player.leave()
        events = await whole_trace(self.store, self.id)
        assert self.task.world.score is not None
        return PlayScore(
            self.id,
            self.task.reference,
            self.arm.name,
            ending,
            self.task.world.score(),
            self._findings(events),
            [event.payload["action"] for event in events if event.kind == "domain_call"],
        )

    def _findings(self, events: Sequence[Event]) -> Sequence[Finding]:
        session = self.player.session
        if self.arm.machine:
            return audit_trace(
                session.programs.programs, session.events, session_id=session.id, judge=judge
            ).findings
        handbook = self.task.briefing.handbook
        return audit_transcript(handbook, transcript_of(events), goal=self.task.goal).findings


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
    task = open_task(reference, tools=tools, language=language)
    record = {"task": task.reference, "tools": tools, "language": language}
    try:
        session = await open_run(
            store,
            task.briefing,
            chosen,
            tools=task.world.tools,
            model=model,
            extra={PLAY: record},
            unguarded=True,
        )
        player = Player(session, task.briefing, chosen, task.world)
        await player.begin()
    except SopilotError:
        await task.world.close()
        raise
    return Play(task, chosen, player, store)


async def resume_play(store: Store, session_id: str) -> Play:
    """The play as it stands, its world rebuilt from the trace."""
    record = await store.record(session_id)
    about = record.metadata.get("extra", {}).get(PLAY)
    if not isinstance(about, Mapping):
        message = f"session `{session_id}` is not a play"
        raise UserMistake([Diagnostic("not-a-play", message, help="`sopilot play start TASK`")])
    arm = arm_named(str(record.metadata["arm"]))
    task = open_task(str(about["task"]), tools=about["tools"], language=about["language"])
    try:
        await task.world.catch_up(session_id, await whole_trace(store, session_id))
        session = await resume_session(store, session_id, tools=task.world.tools)
        player = Player(session, task.briefing, arm, task.world)
        await player.begin()
    except SopilotError:
        await task.world.close()
        raise
    return Play(task, arm, player, store)


def transcript_of(events: Sequence[Event]) -> Transcript:
    """The domain calls of a run without a machine, for the audit of transcripts."""
    begun: dict[str, tuple[str, Mapping[str, JSON]]] = {}
    calls: list[TranscriptCall] = []
    for event in events:
        payload = event.payload
        if event.kind == "domain_call":
            begun[payload["call_id"]] = payload["action"], payload["arguments"]
        elif event.kind == "domain_result":
            action, arguments = begun[payload["call_id"]]
            index, ok = len(calls), bool(payload["ok"])
            value = payload["value"]
            calls.append(TranscriptCall(index, index, action, arguments, ok, value, True, ok))
    return Transcript(tuple(calls), len(calls))
