"""The reference executor in a model's place: what runs will take, before the first request.

It makes no detours and explains nothing, so its figures are a lower estimate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sopilot.messages.errors import UserMistake
from sopilot.models.wire import wire_messages, wire_tools
from sopilot.protocols import ModelReply, ModelRequest
from sopilot.tasks.task import Task
from sopilot_lab.experiments.entrants import DEFAULT_USER, Contestant, Party
from sopilot_lab.experiments.model_user import FIRST_QUESTION, RULES
from sopilot_lab.experiments.run_folder import Effort, RunConfiguration
from sopilot_lab.experiments.trial import Reference, Trial, TrialRunner
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.reference import TaskReference

LIKE_FLAT: Final = "flat"
CHARACTERS: Final = 3.7
"""Per token of requests, which are half JSON."""
_WIDE: Final = re.compile("[\u2e80-\U0010ffff]+")


def text_tokens(text: str) -> float:
    """About as many as tokenizers make of English, JSON and Chinese."""
    wide = sum(map(len, _WIDE.findall(text)))
    return (len(text) - wide) / CHARACTERS + wide * 0.7


class Rehearsal:
    """Runs tasks under any arm. An arm that the reference executor can't read takes what `flat`
    takes, with its own first message."""

    def __init__(
        self,
        configuration: RunConfiguration,
        upstream: Upstream | None = None,
        own: Mapping[str, Task] | None = None,
    ) -> None:
        who = "reference"
        self._base = replace(configuration, model=who, user=DEFAULT_USER, hypotheses="")
        self._upstream = upstream
        self._party = Party(Contestant(who), own=own or {})
        self._exchanges: list[Effort] = []
        self._user_role = 0.0
        self._runners: dict[str, TrialRunner] = {}
        self._done: dict[tuple[str, Reference], tuple[Trial, Effort]] = {}
        self._unread: set[str] = set()

    def arm_of(self, arm: str) -> str:
        """The arm whose requests were measured for this arm."""
        return LIKE_FLAT if arm in self._unread else arm

    async def run(self, arm: str, task: Reference) -> tuple[Trial, Effort]:
        """The run, and what it took."""
        if (arm, task) not in self._done:
            self._done[arm, task] = await self._run(arm, task)
        return self._done[arm, task]

    async def _run(self, arm: str, task: Reference) -> tuple[Trial, Effort]:
        if arm not in self._unread:
            self._exchanges.clear()
            self._user_role = self._role_tokens(task)
            try:
                trial = await self._runner(arm).run(task)
            except UserMistake:
                if arm == LIKE_FLAT:
                    raise
                self._unread.add(arm)
            else:
                return trial, sum(self._exchanges, Effort())
        trial, effort = await self.run(LIKE_FLAT, task)
        own, flat = (
            text_tokens(self._runner(each).first_message(task)) for each in (arm, LIKE_FLAT)
        )
        prompt = max(0.0, effort.prompt_tokens + effort.requests * (own - flat))
        return trial, replace(effort, prompt_tokens=prompt)

    def _role_tokens(self, task: Reference) -> float:
        """Of the instructions that a model in the user's place reads with every message."""
        if self._upstream is None or not isinstance(task, TaskReference):
            return 0.0
        text = self._upstream.official_text(task.domain, task.goal, task.index)
        return text_tokens(f"{RULES}\n\n{text.user_role}\n{FIRST_QUESTION}")

    def _runner(self, arm: str) -> TrialRunner:
        if arm not in self._runners:
            configuration = replace(self._base, arm=arm)
            self._runners[arm] = TrialRunner(
                configuration, self._upstream, self._party, exchanged=self._measure
            )
        return self._runners[arm]

    def _measure(self, request: ModelRequest, reply: ModelReply) -> None:
        parts = [*wire_tools(request.tools), *wire_messages(request.messages)]
        prompt = sum(text_tokens(json.dumps(part, ensure_ascii=False)) for part in parts)
        calls = "".join(f"{call.name}{call.arguments}" for call in reply.tool_calls)
        contents = [m.content for m in request.messages if m.role in ("user", "assistant")]
        said = sum(map(text_tokens, (*contents, reply.content)))
        user = 0.0 if reply.tool_calls else self._user_role + said
        self._exchanges.append(Effort(1, prompt, text_tokens(reply.content + calls), user))
