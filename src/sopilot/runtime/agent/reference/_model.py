"""The reference executor: a conforming executor behind the same interface as any model."""

from __future__ import annotations

from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.agent.reference._flat_executor import FlatExecutor, read_programs
from sopilot.runtime.agent.reference._judging import PredicateJudge
from sopilot.runtime.agent.reference._machine_executor import MachineExecutor
from sopilot.runtime.agent.reference._misbehaviour import Misbehaviour, Temptation
from sopilot.runtime.agent.reference._moves import read_move
from sopilot.runtime.agent.reference._reading import shows_whole_program
from sopilot.runtime.agent.reference.facts import read_facts
from sopilot.runtime.agent.toolbox import END_SESSION
from sopilot.runtime.session.protocols import ModelReply, ModelRequest
from sopilot.runtime.vm import TOOL_NAME


class Reference:
    """A function of the messages: it keeps nothing from one request to the next.

    Reads frames, states and whole programs. Prose and official wording are for
    readers of natural language: there it raises ``UserMistake``.
    """

    def __init__(
        self,
        judge: PredicateJudge,
        misbehaviour: Misbehaviour | None = None,
        *,
        name: str = "reference",
    ) -> None:
        self._judge = judge
        self._misbehaviour = misbehaviour or Misbehaviour()
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, request: ModelRequest) -> ModelReply:
        facts = read_facts(request)
        tools = {tool.name: tool for tool in request.tools}
        domain = {name: t for name, t in tools.items() if name not in (TOOL_NAME, END_SESSION)}
        move = read_move(facts.slot) if TOOL_NAME in tools else None
        temptation = Temptation(
            self._misbehaviour,
            situation=f"{len(request.messages)}:{facts.slot[:400]}",
            paged=not (shows_whole_program(facts.first) or shows_whole_program(facts.slot)),
            characters=facts.characters,
        )
        if move is not None:
            return MachineExecutor(facts, move, self._judge, temptation, domain).reply()
        shown = read_programs(facts.first)
        if shown and END_SESSION in tools:
            return FlatExecutor(facts, shown, self._judge, temptation, domain).reply()
        raise UserMistake(
            "the reference executor reads frames and programs, not prose; choose another arm"
        )
