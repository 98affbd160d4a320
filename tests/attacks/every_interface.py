"""Every way in which an agent reaches a guarded tool: each follows a script of moves."""

from __future__ import annotations

import inspect
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
from framework_agents import FRAMEWORKS
from mcp.client import Client
from mcp_servers import gateway_to, serving
from over_mcp import send, upstream_url
from scripted_moves import Case, RecordingTools, Script
from silent_user import SilentUser

import sopilot
from sopilot.agent.budgets import Budgets
from sopilot.agent.loop import open_run, run_session
from sopilot.integrations.decision_service import decision_app
from sopilot.integrations.mcp.options import UpstreamSpec
from sopilot.integrations.mcp.server import McpServer
from sopilot.integrations.mcp.sessions import Service, SessionPool
from sopilot.protocols import Message, ModelReply, ModelRequest, ToolCall
from sopilot.records.store import Store
from sopilot.runner import play as playing
from sopilot.runner.conversations import Conversations
from sopilot.runner.play import PlayableTask, resume_play, start_play
from sopilot.runner.tools import ToolFailed
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.task import ReplayedTools, Simulation
from sopilot.values.json import JSON
from sopilot.views.catalogue import VIEWS
from sopilot.views.guard_answers import JUDGE_TOOL, VALUE_TOOL

Follow = Callable[[Script, str], Awaitable[None]]
"""Make the moves of a script in the conversation of that name."""
Interface = Callable[..., AbstractAsyncContextManager[Follow]]
"""Of a case, its tools and a view; ``store`` keeps the sessions."""


def user_of(case: Case) -> Callable[[str], Awaitable[str | None]]:
    replies = list(case.replies)

    async def answer(question: str) -> str | None:
        if case.meanwhile is not None:
            await case.meanwhile()
        return replies.pop(0) if replies else None

    return answer


# --- the product's own loop -----------------------------------------------------------


@dataclass
class ScriptedAttacker:
    """One call a message: a view leaves out what follows a step that did not fit."""

    script: Script
    name: str = "attacker"
    calls: int = 0
    over: bool = False

    async def complete(self, request: ModelRequest) -> ModelReply:
        answers = [message for message in request.messages if message.role == "tool"]
        if self.calls and not self.over:
            self.script.answered(answers[-1].content if answers else "")
        move = self.script.next(request.messages[-1].content)
        if move is None:
            self.over = True  # a silent user hears of it once
            return ModelReply("That is all.")
        self.calls += 1
        written = json.dumps(move.arguments, ensure_ascii=False)
        return ModelReply("", (ToolCall(f"c{self.calls}", move.tool, written),))


class AnsweringUser(SilentUser):
    def __init__(self, case: Case) -> None:
        self._answer = user_of(case)

    async def reply(self, message: str) -> str | None:
        return None if message == "That is all." else await self._answer(message)


@asynccontextmanager
async def loop(case: Case, tools: RecordingTools, view: str) -> AsyncIterator[Follow]:
    own = VIEWS[view]

    async def follow(script: Script, conversation: str) -> None:
        session = await open_run(
            MemoryStore(), case.briefing(), own, tools=tools, unguarded=not own.machine
        )
        model, user = ScriptedAttacker(script), AnsweringUser(case)
        await run_session(session, case.briefing(), view=own, model=model, user=user)

    yield follow


@asynccontextmanager
async def play(case: Case, tools: RecordingTools, view: str) -> AsyncIterator[Follow]:
    """The session is resumed from its store for every move. The bundled tasks are the only ones
    that have names, so this one replaces one. Its tools outlive every process of the player."""
    simulation = Simulation(
        ReplayedTools(tools),
        user=SilentUser(),
        budgets=replace(Budgets(), wall_seconds=float("inf")),
        score=lambda messages: {"success": True},
        task=case.name,
    )
    task, bundled = PlayableTask(case.briefing(), simulation), playing.playable_task
    playing.playable_task = lambda reference, **options: task  # type: ignore[assignment]

    async def follow(script: Script, conversation: str) -> None:
        store = MemoryStore()
        started = await start_play(store, case.name, view=view)
        await started.close()
        while True:
            resumed = await resume_play(store, started.id)
            move = script.next(resumed.driver.request().frame_text)
            if move is None:
                await resumed.close()
                return
            turn = await resumed.call(move.tool, move.arguments)
            script.answered(turn.answer)
            await resumed.close()

    try:
        yield follow
    finally:
        playing.playable_task = bundled


# --- plain functions and frameworks ---------------------------------------------------


def plain_functions(case: Case, tools: RecordingTools) -> dict[str, Callable[..., Any]]:
    """A function per action, with the parameters that the handbook names."""

    def make(name: str) -> Callable[..., Any]:
        async def function(**arguments: JSON) -> JSON:
            result = tools.perform(name, {k: v for k, v in arguments.items() if v is not None})
            if not result.ok:
                raise ToolFailed(json.dumps(result.value))
            return result.value

        kind, named = inspect.Parameter.KEYWORD_ONLY, case.briefing().handbook.actions[name].inputs
        parameters = [
            inspect.Parameter(
                item.name, kind, default=inspect.Parameter.empty if item.required else None
            )
            for item in named
        ]
        function.__name__ = name
        function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return function

    return {name: make(name) for name in case.briefing().handbook.actions}


@asynccontextmanager
async def plain(
    case: Case, tools: RecordingTools, view: str, *, store: Store | None = None
) -> AsyncIterator[Follow]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "handbook.yaml"
        path.write_text(case.handbook, "utf-8")
        verify: Any = VIEWS[view].guard
        guard = sopilot.guard(path, verify=verify, refusals="text", store=store)
        functions = {name: guard(each) for name, each in plain_functions(case, tools).items()}

    async def follow(script: Script, conversation: str) -> None:
        async with sopilot.conversation(conversation, user=user_of(case)) as talk:
            while (move := script.next("")) is not None:
                own = {JUDGE_TOOL: talk.judge, VALUE_TOOL: talk.give_values}.get(move.tool)
                if own is not None:
                    own(**move.arguments)
                    script.answered("")
                    continue
                try:
                    script.answered(str(await functions[move.tool](**move.arguments)))
                except (TypeError, ToolFailed) as problem:
                    script.answered(f"Not called: {problem}")

    yield follow


@asynccontextmanager
async def framework(
    case: Case, tools: RecordingTools, view: str, *, name: str, store: Store | None = None
) -> AsyncIterator[Follow]:
    kind = FRAMEWORKS[name]
    reader = tools if VIEWS[view].has_steps else None
    hooks = Conversations(store or MemoryStore(), case.briefing(), VIEWS[view], reader=reader)

    async def follow(script: Script, conversation: str) -> None:
        own = [kind.described(schema, tools.perform) for schema in tools.schemas()]
        agent = kind(hooks, own, reply_of(script))
        async with sopilot.conversation(conversation, user=user_of(case)):
            await agent.say("Please do it.", conversation)

    yield follow
    await hooks.close()


def reply_of(script: Script, *, at_once: Collection[Any] = ()) -> Any:
    """A model that makes the moves; ``at_once`` as one message when the script is over."""
    calls, last = 0, list(at_once)

    async def reply(dialog: Collection[Message], slot: str, names: Collection[str]) -> ModelReply:
        nonlocal calls
        for message in reversed(tuple(dialog)[::-1][: len(pending)]):
            assert message.role == "tool"
            script.answered(message.content)
        pending.clear()
        move = script.next(slot)
        moves = [move] if move is not None else [last.pop() for _ in range(len(last))]
        for each in moves:
            calls += 1
            written = json.dumps(dict(each.arguments), ensure_ascii=False)
            pending.append(ToolCall(f"c{calls}", each.tool, written))
        return ModelReply("" if pending else "That is all.", tuple(pending))

    pending: list[ToolCall] = []
    return reply


# --- the decision service -------------------------------------------------------------


@asynccontextmanager
async def decisions(
    case: Case, tools: RecordingTools, view: str, *, store: Store | None = None
) -> AsyncIterator[Follow]:
    token = "a-token-of-the-test"
    hooks = Conversations(store or MemoryStore(), case.briefing(), VIEWS[view], reader=tools)
    transport = httpx2.ASGITransport(decision_app(hooks, token=token))
    headers, ids = {"authorization": f"Bearer {token}"}, count()
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://guard", headers=headers
    ) as http:

        async def post(path: str, **body: Any) -> dict[str, Any]:
            answer = await http.post(path, content=json.dumps(body))
            return {"status": answer.status_code, **answer.json()}

        async def follow(script: Script, conversation: str) -> None:
            user = user_of(case)
            while (move := script.next("")) is not None:
                bound = {"conversation": conversation, "id": str(next(ids))}
                asked = {**bound, "tool": move.tool, "arguments": move.arguments}
                decided = await post("/before", **asked)
                while (
                    "question" in decided and (said := await user(decided["question"])) is not None
                ):
                    bound["id"] = str(next(ids))
                    reply = {"question": decided["question"], "text": said}
                    decided = await post("/before", **{**asked, **bound}, reply=reply)
                if decided.get("decision") != "carry_out":
                    script.answered(decided.get("text") or decided["error"])
                    continue
                result = tools.perform(move.tool, decided["arguments"])
                bound["digest"] = decided["digest"]
                await post("/after", **bound, ok=result.ok, value=result.value)
                script.answered(json.dumps(result.value))

        yield follow
    await hooks.close()


# --- MCP ------------------------------------------------------------------------------


def asked_through(case: Case) -> Any:
    answer = user_of(case)

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        assert params.requested_schema["properties"]["answer"]["enum"] == ["yes", "no"]
        text = await answer(params.message)
        if text is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"answer": text})

    return elicit


@asynccontextmanager
async def serving_tools(
    case: Case, tools: RecordingTools, view: str, *, store: Store | None = None
) -> AsyncIterator[McpServer]:
    async def open_simulation() -> Simulation:
        return Simulation(tools)

    service = Service(case.briefing(), VIEWS[view], open_simulation)
    server = McpServer(SessionPool(store or MemoryStore(), service))
    yield server
    await server.close()


@asynccontextmanager
async def guarding_gateway(
    case: Case,
    tools: RecordingTools,
    view: str,
    *,
    pass_through: Collection[str] | None = None,
    store: Store | None = None,
) -> AsyncIterator[McpServer]:
    """Every tool of the upstream passes by default: the guard alone blocks."""
    handbook = case.briefing().handbook
    if pass_through is None:
        pass_through = {schema.name for schema in tools.schemas()} - handbook.actions.keys()
    async with (
        upstream_url(tools) as url,
        gateway_to(
            handbook,
            UpstreamSpec("other", url=url),
            view=view,
            store=store,
            pass_through=tuple(pass_through),
        ) as server,
    ):
        yield server


@asynccontextmanager
async def over_mcp(
    case: Case, tools: RecordingTools, view: str, *, server: Any, http: bool, **options: Any
) -> AsyncIterator[Follow]:
    """On standard streams a server has one client; over HTTP each connection is a conversation."""
    async with server(case, tools, view, **options) as running:
        if not http:

            async def follow(script: Script, conversation: str) -> None:
                async with client_of(case, running.protocol) as client:
                    await send(client, script, guard=bool(VIEWS[view].guard))

            yield follow
            return
        async with serving(running) as at:

            async def follow_over_http(script: Script, conversation: str) -> None:
                async with client_of(case, at.url) as client:
                    await send(client, script, guard=bool(VIEWS[view].guard))

            yield follow_over_http


def client_of(case: Case, server: Any) -> Client:
    return Client(server, elicitation_callback=asked_through(case))


INTERFACES: Mapping[str, Interface] = {
    "loop": loop,
    "play": play,
    "plain": plain,
    **{name: partial(framework, name=name) for name in FRAMEWORKS},
    "decisions": decisions,
    "mcp": partial(over_mcp, server=serving_tools, http=False),
    "mcp over http": partial(over_mcp, server=serving_tools, http=True),
    "gateway": partial(over_mcp, server=guarding_gateway, http=False),
    "gateway over http": partial(over_mcp, server=guarding_gateway, http=True),
}


async def followed(
    interface: str, case: Case, script: Script, view: str, tools: RecordingTools | None = None
) -> RecordingTools:
    tools = tools or RecordingTools(case)
    async with INTERFACES[interface](case, tools, view) as follow:
        await follow(script, "c-1")
    return tools
