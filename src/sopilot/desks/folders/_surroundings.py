"""What surrounds the tools of a workflow folder: people who vote, and runs that are cut off."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sopilot.desks.folders._workflow_folder import FolderTask, WorkflowFolder
from sopilot.language.diagnostics import visible
from sopilot.runtime.agent import RecallsOutcomes, Vote
from sopilot.runtime.session import HeldCall
from sopilot.runtime.session.protocols import JSON, ToolResult, Tools, ToolSchema


@dataclass(frozen=True, slots=True)
class RecordedVotes:
    """People who say what the task has them say, when they are asked."""

    votes: tuple[Vote, ...]

    async def decide(self, held: HeldCall) -> Sequence[Vote]:
        return [vote for vote in self.votes if vote.role in held.roles]


class InterruptedTools:
    """Tools that cut the run off, once, behind the call that the task names: what the call did
    is done, and nobody has heard of it."""

    def __init__(self, tools: Tools, after: str | None, mark: Path) -> None:
        self._tools = tools
        self._after = after
        self._mark = mark

    @classmethod
    def of(cls, tools: Tools, task: FolderTask, out: Path) -> InterruptedTools:
        mark = out / "interrupted"
        if isinstance(tools, RecallsOutcomes):
            return _Recalling(tools, task.interrupted_after, mark, tools)
        return cls(tools, task.interrupted_after, mark)

    def schemas(self) -> Sequence[ToolSchema]:
        return self._tools.schemas()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        result = await self._tools.call(name, arguments, key=key)
        if name == self._after and not self._mark.exists():
            self._mark.write_text(key, encoding="utf-8")
            raise KeyboardInterrupt
        return result


class _Recalling(InterruptedTools):
    """Only tools that can tell how a call ended are asked: that others say nothing does not mean
    that it was never made."""

    def __init__(
        self, tools: Tools, after: str | None, mark: Path, memory: RecallsOutcomes
    ) -> None:
        super().__init__(tools, after, mark)
        self._memory = memory

    async def recall(self, key: str) -> ToolResult | None:
        return await self._memory.recall(key)


def opening(says: str, task: FolderTask, folder: WorkflowFolder) -> str:
    """What the customer says first, with the values that the goal is about."""
    parameters = folder.program.functions[folder.goal].parameters
    lines = [
        f"{name}: {visible(json.dumps(task.knows[name], ensure_ascii=False))}"
        for name in parameters
        if name in task.knows
    ]
    return "\n".join([says, *lines])
