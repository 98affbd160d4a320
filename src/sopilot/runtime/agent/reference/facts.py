"""What the messages of a request say, as any reader could know it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sopilot.runtime.agent._recovery import NEVER_MADE
from sopilot.runtime.agent.arms._folding import FOLDED, SAID, read_note
from sopilot.runtime.agent.reference._judging import Seen
from sopilot.runtime.agent.stated_values import stated_in
from sopilot.runtime.agent.users._scripted import EVERYTHING_TOLD
from sopilot.runtime.session.protocols import JSON, Message, ModelRequest
from sopilot.runtime.vm import (
    IN_PASSING,
    STEP_NAMES,
    Call,
    Complete,
    Fail,
    Return,
    Start,
    parse_steps,
)

ASK = "Please tell me: "
GOAL = "goal"
REJECTED = "Nothing was done: "
STATED_AS = "`name: value`"
_NAMES = re.compile(r"`([^`]+)`")
_CALL_ID = re.compile(r"^call_(\d{1,9})$")
_NOW_AT = re.compile(r"^Now at (?:.*/)?([^/@]+)@", re.MULTILINE)
_SETTLED = re.compile(r"^Passed ", re.MULTILINE)
RESULT = re.compile(r"^#(\d+) (ok|failed): (.*)$")


@dataclass(slots=True)
class Facts:
    """``values`` is what the user told, ``asked`` how often each name was asked for, ``open``
    the goals that are under way (the present one last), ``ended`` those that are over;
    ``here`` are the results since the last bookkeeping call, ``not_made`` the calls that were
    answered without being made, ``refused`` the last such answer; ``rejected`` is the last
    step if it did not fit, and why."""

    first: str = ""
    slot: str = ""
    request: str = ""
    values: dict[str, JSON] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    told_everything: bool = False
    wants: str | None = None
    open: list[str] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)
    seen: list[Seen] = field(default_factory=list)
    here: list[Seen] = field(default_factory=list)
    not_made: list[Seen] = field(default_factory=list)
    refused: str = ""
    rejected: tuple[Mapping[str, JSON], str] | None = None
    stack: list[str] = field(default_factory=list)
    at: str = ""
    """The function that the last step led to, if its answer said so."""
    judged: str = ""
    """The rule or gate that was judged last, if nothing was settled without us since."""
    steps: int = 0
    last_call: int = 0
    """The largest number in a call's id."""
    characters: int = 0
    stated: bool = False
    """Whether what the user stated by name need not be written."""

    def value(self, name: str) -> JSON:
        """What is known under a name: told by the user, else found in evidence."""
        if name in self.values:
            return self.values[name]
        for one in reversed(self.seen):
            found = _find(one.value, name) if one.ok else None
            if found is not None:
                return found
        return None

    def is_unavailable(self, name: str) -> bool:
        return self.asked[name] >= 2 or (self.told_everything and self.asked[name] >= 1)


def read_facts(request: ModelRequest) -> Facts:
    messages = list(request.messages)
    facts = Facts(characters=sum(len(message.content) for message in messages))
    if messages and messages[0].role == "system":
        facts.first = messages.pop(0).content
        facts.stated = STATED_AS in facts.first
    if messages and messages[-1].role == "system":
        facts.slot = messages.pop().content
    calls: dict[str, tuple[str, str]] = {}
    for message in messages:
        if message.role == "user":
            _read_user(facts, message.content)
        elif message.role == "assistant":
            for line in message.content.splitlines():
                if line.startswith(ASK):
                    facts.asked.update(_NAMES.findall(line))
            calls.update({call.id: (call.name, call.arguments) for call in message.tool_calls})
            numbers = [_CALL_ID.match(call.id) for call in message.tool_calls]
            facts.last_call = max([facts.last_call, *(int(n.group(1)) for n in numbers if n)])
        elif message.role == "tool":
            name, arguments = calls.get(message.tool_call_id or "", (message.name or "", "{}"))
            _read_answer(facts, name, _object(arguments), message)
        elif message.role == "system" and message.content.startswith(FOLDED):
            for who, text in read_note(message.content):
                if who == SAID.removesuffix(": "):
                    _read_user(facts, text)
                else:
                    _read_answer(facts, who, {}, Message("tool", text, name=who))
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
        if message.content.startswith(REJECTED):
            why = message.content.splitlines()[0].removeprefix(REJECTED)
            facts.rejected = (arguments, why.rstrip("."))
        if message.content.startswith("Done"):
            _read_lifecycle(facts, arguments)
            now = _NOW_AT.search(message.content)
            facts.at = now.group(1) if now else ""
            if _SETTLED.search(message.content):
                facts.judged = ""
        return
    match = RESULT.match(message.content)
    if match is not None and NEVER_MADE in message.content:
        return
    if match is None:
        facts.refused = message.content
        facts.not_made.append(Seen(-1, name, arguments, False, message.content))
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
            # A gate stays shut on the user's word only if the word was given to that gate: what
            # was asked before the process began and not told is asked for again in its frame.
            facts.asked = Counter(
                {name: n for name, n in facts.asked.items() if name in facts.values}
            )
        elif isinstance(operation, Complete | Fail) and facts.open:
            facts.ended.add(facts.open.pop())
            facts.stack = []
        elif isinstance(operation, Call):
            facts.stack.append(str(operation.function))
        elif isinstance(operation, Return):
            # The machine may have entered the function by itself.
            called = facts.stack.pop() if facts.stack else ""
            facts.judged = facts.judged if operation.holds is None else facts.at or called
            facts.at = ""


def _object(text: str) -> dict[str, JSON]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _find(value: JSON, name: str) -> JSON:
    """The latest scalar under that key, however deep."""
    found: JSON = None
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
        found = deeper if deeper is not None else found
    return found
