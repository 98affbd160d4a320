"""A user who follows a script and tells everything it knows, as SOPBench's default user does."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from sopilot.language.diagnostics import visible
from sopilot.runtime.session.protocols import JSON

_ASKS = re.compile(
    r"[?？]|\b(please|provide|tell me|share|enter|send me|specify|confirm|need|let me know)\b|"
    r"请|提供|告诉我|告知我|需要|多少|什么",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"\b(done|complete[d]?|carried out|success(ful(ly)?)?|booked|refuse[d]?|decline[d]?|"
    r"reject(ed)?|deny|denied|cannot|can't|can not|unable|not (?:able|allowed|possible)|sorry|"
    r"unfortunately|goodbye|bye|that is all|leave (?:it|this))\b|"
    r"办理完毕|已完成|已办理|成功|无法|不能|拒绝|抱歉|对不起|再见",
    re.IGNORECASE,
)
EVERYTHING_TOLD: Final = "I have told you everything I know."


class ScriptedUser:
    """``request`` opens the dialog. Every answer holds everything the user knows, a line a
    value; the fields in ``late`` only from the second answer on. One of the ``follow_ups``
    opens each answer. ``goal`` is named in every answer; the opening may have asked for
    another one. ``answers`` are to the machine's questions, by what they are about. The
    dialog ends when nothing was asked, and there is nothing new to tell or the agent has told
    how the request ended: a farewell is not answered with all the values again.
    """

    def __init__(
        self,
        request: str,
        knows: Mapping[str, JSON],
        *,
        goal: str | None = None,
        late: Sequence[str] = (),
        follow_ups: Sequence[str] = (),
        answers: Mapping[str, str] | None = None,
    ) -> None:
        self._answers = dict(answers or {})
        self._request = request
        self._knows = dict(knows)
        self._goal = goal
        self._late = frozenset(late)
        self._follow_ups = tuple(follow_ups)
        self._turns = 0

    def opening(self) -> str:
        return self._request

    def skip(self, turns: int) -> None:
        """The first ``turns`` answers were given before an interruption."""
        self._turns = turns

    async def answer(self, about: str, question: str) -> str | None:
        """To the machine's own question: who came for something says yes to it."""
        return self._answers.get(about, "yes")

    async def reply(self, message: str) -> str | None:
        turn = self._turns
        nothing_new = turn > (1 if self._late else 0)
        asked = _is_question(message)
        if turn >= len(self._follow_ups) and not asked and (nothing_new or _is_farewell(message)):
            return None
        self._turns += 1
        lines = [self._follow_ups[turn]] if turn < len(self._follow_ups) else []
        if self._goal is not None:
            lines.append(f"goal: {json.dumps(self._goal)}")
        for name, value in self._knows.items():
            if turn > 0 or name not in self._late:
                lines.append(f"{name}: {visible(json.dumps(value, ensure_ascii=False))}")
        if nothing_new:
            lines.append(EVERYTHING_TOLD)
        return "\n".join(lines) or EVERYTHING_TOLD


def _is_question(message: str) -> bool:
    return _ASKS.search(message) is not None


def _is_farewell(message: str) -> bool:
    return _ENDS.search(message) is not None
