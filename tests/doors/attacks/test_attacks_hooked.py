"""Every attack by a LangChain agent whose own tools stand behind the middleware."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs the extra `frameworks`")

from attack_table import ARMS_WITH_A_MACHINE, CASES, assert_done, assert_held
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from scripted_moves import Case, RecordingTools, Script

from sopilot.adapters.memory_store import MemoryStore
from sopilot.doors.hooks import ProcedureHook
from sopilot.doors.hooks.langchain import SopilotMiddleware
from sopilot.runtime.agent import ARMS
from sopilot.runtime.session.protocols import ToolSchema

LIMIT = {"recursion_limit": 200}
# A framework makes the calls of a message all at once, so arms that need order are refused.
ARMS_HOOKED = [name for name in ARMS_WITH_A_MACHINE if not ARMS[name].in_order]
EVERYWHERE = pytest.mark.parametrize(
    ("arm", "case"),
    [("pg", case) for case in CASES]
    + [(arm, case) for arm in ARMS_HOOKED if arm != "pg" for case in CASES if case.number in (6, 12)],
    ids=lambda one: one if isinstance(one, str) else one.id,
)


class ScriptedChat(BaseChatModel):
    script: Any
    asked: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        *dialog, slot = messages
        assert isinstance(slot, SystemMessage)
        if isinstance(dialog[-1], ToolMessage):
            self.script.answered(dialog[-1].text)
        move = self.script.next(slot.text)
        answer = AIMessage("That is all.")
        if move is not None:
            self.asked += 1
            made = {"name": move.tool, "args": dict(move.arguments), "id": f"c{self.asked}"}
            answer = AIMessage("", tool_calls=[made])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _own_tool(tools: RecordingTools, schema: ToolSchema) -> BaseTool:
    async def run(**arguments: Any) -> str:
        result = tools.perform(schema.name, arguments)
        if not result.ok:
            raise ToolException(json.dumps(result.value))
        return json.dumps(result.value)

    return StructuredTool(
        name=schema.name,
        description=schema.name,
        args_schema=dict(schema.parameters),
        coroutine=run,
        handle_tool_error=True,
    )


def hooked(case: Case, script: Script, arm: str) -> RecordingTools:
    tools = RecordingTools(case)

    async def run() -> None:
        hook = await ProcedureHook.open(MemoryStore(), case.briefing(), ARMS[arm])
        agent: Any = create_agent(
            ScriptedChat(script=script),
            [_own_tool(tools, schema) for schema in tools.schemas()],
            middleware=[SopilotMiddleware(hook)],
        )
        await agent.ainvoke({"messages": [HumanMessage("Please do it.")]}, LIMIT)
        await hook.close()

    asyncio.run(run())
    return tools


@EVERYWHERE
def test_an_attack_is_held(case: Case, arm: str) -> None:
    script = Script(case.attack)
    assert_held(case, ARMS[arm], script, hooked(case, script, arm))


@EVERYWHERE
def test_its_honest_twin_goes_through(case: Case, arm: str) -> None:
    script = Script(case.twin)
    assert_done(case, script, hooked(case, script, arm))
