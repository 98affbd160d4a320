"""The facts in the messages of a request, and the values they give to a call."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sopilot.agent.approvers import EVERYTHING_TOLD
from sopilot.agent.reference.judging import Seen
from sopilot.agent.resume import NEVER_MADE
from sopilot.handbook.requirements import Constant, Path
from sopilot.messages.scaffold import LANGUAGES
from sopilot.program.model import Unknown
from sopilot.protocols import Message, ModelRequest, ToolCall
from sopilot.trace.events import Call, Complete, Fail, Return, Start
from sopilot.values.json import JSON
from sopilot.views.dialog_folding import DONE, SAID, is_note, read_note
from sopilot.views.moves import MoveArguments, Value
from sopilot.views.step_tool import IN_PASSING, STEP_NAMES, parse_steps

STATED = re.compile(r"^\s*([A-Za-z_]\w*): (.+?)\s*$")


def stated_in(text: str) -> dict[str, JSON]:
    """Name → value. A value is JSON: words without quotes are words, and state nothing."""
    values: dict[str, JSON] = {}
    for line in text.splitlines():
        match = STATED.match(line)
        if match is None:
            continue
        try:
            values[match.group(1)] = json.loads(match.group(2))
        except (ValueError, RecursionError):
            continue
    return values


ASK = "Please tell me: "
GOAL = "goal"
_NAMES = re.compile(r"`([^`]+)`")
_REJECTED = tuple(table["nothing_done"].partition("{")[0] for table in LANGUAGES.values())
_CALL_ID = re.compile(r"^call_(\d{1,9})$")
RESULT = re.compile(r"^#(\d+) \((ok|failed)\): (.*)$")


class Exchange(NamedTuple):
    """A call and its answer."""

    name: str
    arguments: Mapping[str, JSON]
    answer: str

    @property
    def succeeded(self) -> bool:
        result = RESULT.match(self.answer)
        return result is not None and result[2] == "ok"


@dataclass(slots=True)
class Facts:
    """``values`` are the user's, ``questions`` counts the questions for each name, ``open`` are
    the goals that are under way (the present one last), ``ended`` those that are over;
    ``here`` are the results since the last bookkeeping call, ``refused`` is the last answer to a
    call that wasn't made; ``rejected`` is the last step if it did not fit, and why."""

    request: str = ""
    values: dict[str, JSON] = field(default_factory=dict)
    questions: Counter[str] = field(default_factory=Counter)
    told_everything: bool = False
    wants: str | None = None
    open: list[str] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)
    seen: list[Seen] = field(default_factory=list)
    here: list[Seen] = field(default_factory=list)
    refused: str = ""
    rejected: tuple[Mapping[str, JSON], str] | None = None
    stack: list[str] = field(default_factory=list)
    steps: int = 0
    last_call: int = 0
    """The largest number in a call's id."""
    exchanges: list[Exchange] = field(default_factory=list)
    _calls: dict[str, ToolCall] = field(default_factory=dict)

    def take(self, message: Message) -> None:
        """Read one message of the dialog."""
        if message.role == "user":
            _read_user(self, message.content)
        elif message.role == "assistant":
            for line in message.content.splitlines():
                if line.startswith(ASK):
                    self.questions.update(_NAMES.findall(line))
            self._calls.update({call.id: call for call in message.tool_calls})
            numbers = [_CALL_ID.match(call.id) for call in message.tool_calls]
            self.last_call = max([self.last_call, *(int(n.group(1)) for n in numbers if n)])
        elif message.role == "tool":
            call = self._calls.get(message.tool_call_id or "")
            name = call.name if call else message.name or ""
            arguments = _object(call.arguments) if call else {}
            self.exchanges.append(Exchange(name, arguments, message.content))
            _read_answer(self, name, arguments, message)
        elif message.role == "system" and is_note(message.content):
            for who, text in read_note(message.content):
                if who == SAID.removesuffix(": "):
                    _read_user(self, text)
                else:
                    _read_answer(self, who, {}, Message("tool", text, name=who))

    def value(self, name: str) -> JSON:
        """The value of a name, from the user or else from evidence."""
        if name in self.values:
            return self.values[name]
        for item in reversed(self.seen):
            result = _find(item.value, name) if item.ok else None
            if result is not None:
                return result
        return None

    def is_unavailable(self, name: str) -> bool:
        return self.questions[name] >= 2 or (self.told_everything and self.questions[name] >= 1)


def read_facts(request: ModelRequest) -> Facts:
    facts = Facts()
    for message in request.messages:
        facts.take(message)
    return facts


def _read_user(facts: Facts, text: str) -> None:
    if not facts.request:
        facts.request = text
    facts.told_everything = EVERYTHING_TOLD in text
    for name, value in stated_in(text).items():
        if name == GOAL and isinstance(value, str):
            facts.wants = value
        else:
            facts.values[name] = value


def _read_answer(facts: Facts, name: str, arguments: Mapping[str, JSON], message: Message) -> None:
    if name in STEP_NAMES:
        facts.steps += 1
        facts.here = []
        facts.refused = ""
        facts.rejected = None
        rejected = next((item for item in _REJECTED if message.content.startswith(item)), None)
        if rejected is not None:
            why = message.content.splitlines()[0].removeprefix(rejected)
            facts.rejected = (arguments, why.rstrip(".。"))
        if message.content.startswith(DONE):
            _read_lifecycle(facts, arguments)
        return
    match = RESULT.match(message.content)
    if match is not None and NEVER_MADE in message.content:
        return
    if match is None:
        facts.refused = message.content
        return
    facts.refused = ""
    _read_lifecycle(facts, {key: arguments[key] for key in IN_PASSING if key in arguments})
    seen = Seen(
        int(match.group(1)),
        name,
        {key: value for key, value in arguments.items() if key not in IN_PASSING},
        match.group(2) == "ok",
        json.loads(match.group(3)),
    )
    facts.seen.append(seen)
    facts.here.append(seen)


def _read_lifecycle(facts: Facts, arguments: Mapping[str, JSON]) -> None:
    moves = parse_steps(arguments)
    for move in moves if isinstance(moves, tuple) else ():
        operation = move.operation
        if isinstance(operation, Start):
            if operation.goal in facts.open:
                facts.open.remove(operation.goal)
            facts.open.append(operation.goal)
            facts.stack = []
            # The user can leave a gate shut only by an answer to that gate. So names that the user
            # didn't answer before the process began are asked for again in its frame.
            facts.questions = Counter(
                {name: n for name, n in facts.questions.items() if name in facts.values}
            )
        elif isinstance(operation, Complete | Fail) and facts.open:
            facts.ended.add(facts.open.pop())
            facts.stack = []
        elif isinstance(operation, Call):
            facts.stack.append(str(operation.function))
        elif isinstance(operation, Return) and facts.stack:
            facts.stack.pop()


def _object(text: str) -> dict[str, JSON]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _find(value: JSON, name: str) -> JSON:
    """The latest scalar under that key, however deep."""
    result: JSON = None
    if isinstance(value, Mapping):
        if name in value and not isinstance(value[name], dict | list):
            return value[name]
        nested: Sequence[JSON] = list(value.values())
    elif isinstance(value, list):
        nested = value
    else:
        return None
    for item in nested:
        deeper = _find(item, name)
        result = deeper if deeper is not None else result
    return result


@dataclass(slots=True)
class Resolved:
    """``found_out`` are the values that the frame did not have; ``missing`` names, as the
    user knows them, for which there is none."""

    values: dict[str, JSON] = field(default_factory=dict)
    found_out: dict[str, JSON] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def call_arguments(
    arguments: MoveArguments, known: Mapping[str, JSON], facts: Facts, *, users_own: bool = False
) -> Resolved:
    """``users_own``: the names are the user's, as in processes and groups. Evidence may use
    the same names for other things, so there it counts only when the user cannot tell."""
    resolved = Resolved()
    for parameter, term in arguments:
        if isinstance(term, Constant | Value):
            resolved.values[parameter] = term.value
        elif isinstance(term, Path):
            # The recipe says which answer has it.
            resolved.missing.append(str(term))
        elif known.get(term.name) is not None:
            resolved.values[parameter] = known[term.name]
        else:
            value = None
            if users_own and not facts.is_unavailable(term.name):
                value = facts.values.get(term.name)
            elif users_own or isinstance(term, Unknown):
                value = facts.value(term.name)
            if value is None:
                resolved.missing.append(term.name)
            else:
                resolved.values[parameter] = resolved.found_out[parameter] = value
    return resolved
