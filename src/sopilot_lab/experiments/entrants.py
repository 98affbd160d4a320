"""Contestants: the models that run a task, and the user they serve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sopilot.agent.approvers import ScriptedUser
from sopilot.agent.budgets import Budgets
from sopilot.agent.reference.executor import Reference
from sopilot.agent.reference.judging import PredicateJudge
from sopilot.agent.reference.reading import read_facts
from sopilot.agent.reference.replies import Replies
from sopilot.agent.retries import Retries
from sopilot.agent.toolbox import END_SESSION
from sopilot.messages.errors import mistake
from sopilot.models.open import asked_model, public_name
from sopilot.protocols import (
    Model,
    ModelReply,
    ModelRequest,
    ToolSchema,
    Usage,
    User,
    inputs_of,
    required_of,
)
from sopilot.tasks.task import Task
from sopilot.values.json import JSON
from sopilot.views.step_tool import STEP_NAMES
from sopilot_lab.experiments.misbehaviour import Misbehaving, Misbehaviour, frame_in
from sopilot_lab.experiments.model_user import ModelUser
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.source import SopbenchTask

DEFAULT_USER = "default"
CONTROLS = ("null", "refuse-always", "call-everything")
_ASK = "What do you know?"


class ControlModel:
    """``null`` says nothing; ``refuse-always`` refuses at once; ``call-everything`` calls
    every tool for which the user gave values, once, and stops."""

    def __init__(self, kind: str) -> None:
        self.name = kind

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self.name == "null":
            return ModelReply()
        facts = read_facts(request)
        tools = {tool.name: tool for tool in request.tools}
        replies = Replies(facts)
        if self.name == "call-everything":
            if not facts.values and not facts.told_everything:
                return ModelReply(_ASK)
            if not facts.seen:
                domain = [t for t in request.tools if t.name not in {*STEP_NAMES, END_SESSION}]
                calls = [
                    replies.call(tool.name, values)
                    for tool in domain
                    if (values := _values(tool, facts.values)) is not None
                ]
                if calls:
                    return ModelReply("", tuple(calls))
        if END_SESSION in tools:
            return replies.tool(END_SESSION, {"outcome": "refused", "reason": "no"})
        if not facts.open:
            goal = frame_in(request).split("start ", 1)[-1].split("(", 1)[0].strip()
            return replies.step("start", goal=goal)
        return replies.step("fail", reason="no")


def _values(tool: ToolSchema, known: dict[str, JSON]) -> dict[str, JSON] | None:
    """The arguments of a call, or ``None`` where a required one is not known."""
    if any(name not in known for name in required_of(tool)):
        return None
    return {name: known[name] for name in inputs_of(tool) if name in known}


ANY: Final = "any"
"""Accept every model: don't compare the name in the answer."""
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Contestant:
    """``name`` is what ``--model`` takes, an address among it; ``alias`` is what records and
    reports call it. ``price`` is of a million prompt and a million completion tokens.
    ``served`` is the model that answers must name, by default the one that was asked for."""

    name: str
    alias: str = ""
    key_variable: str | None = None
    served: str | None = None
    price: tuple[float, float] | None = None

    @property
    def label(self) -> str:
        return self.alias or public_name(self.name)

    @property
    def expected(self) -> str | None:
        if self.served == ANY:
            return None
        return self.served or asked_model(self.name)

    def cost(self, *used: Usage) -> float | None:
        """The cost of the usage in the price's currency; ``None`` without a price."""
        if self.price is None:
            return None
        prompt, completion = self.price
        total = sum((item for item in used), Usage())
        return (total.prompt_tokens * prompt + total.completion_tokens * completion) / _MILLION


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a sweep bears with a provider. ``retries`` are of one request; a run that still
    breaks is made again up to ``redraws`` times, unless the same would happen again. A sweep
    stops when more than ``most_missing`` of the tasks that were tried, and at least
    ``fewest_tried`` of them, stayed without a judged run."""

    retries: Retries = Retries()  # noqa: RUF009  frozen, and made of numbers
    redraws: int = 2
    most_missing: float = 0.5
    fewest_tried: int = 10


@dataclass(frozen=True, slots=True)
class Party:
    """The participants of a run: the model, the user that it serves, and the patience with
    both. ``own`` are tasks that are not SOPBench's, by their references; they cannot leave this
    process."""

    model: Contestant
    user: Contestant = Contestant(DEFAULT_USER)
    patience: Patience = Patience()
    own: Mapping[str, Task] = field(default_factory=dict)
    keep_traces: bool = False


def lasting(fault: str) -> bool:
    """Whether the same run would break in the same way: a refused request, a filter."""
    passing = ("http-408", "http-409", "http-425", "http-429")
    return fault == "content-filter" or (fault.startswith("http-4") and fault not in passing)


def concerns_all(fault: str) -> bool:
    """A key, an account or an address that is wrong is wrong for every task."""
    return fault in ("http-401", "http-402", "http-403", "http-404")


SLOPPY: Final = "sloppy"
SLOPPINESS: Final = Misbehaviour(
    skip_check=0.15, act_early=0.1, over_verify=0.3, return_without_evidence=0.1,
    refuse_wrongly=0.05, ignore_frame=0.15, seed=16,
)  # fmt: skip
"""The reference executor with mistakes that depend only on the request."""
OFFLINE = frozenset({"reference", SLOPPY, *CONTROLS})
"""Models without a network: a sweep runs one task per core."""


def playing(who: Contestant, reader: PredicateJudge, about: Mapping[str, str]) -> Model:
    """``reader`` judges evidence for the reference executor; ``about`` says what the run is."""
    if who.name == "reference":
        return Reference(reader)
    if who.name == SLOPPY:
        return Misbehaving(reader, SLOPPINESS, name=SLOPPY)
    if who.name in CONTROLS:
        return ControlModel(who.name)
    return named_model(who, about)


def named_model(who: Contestant, about: Mapping[str, str]) -> Model:
    """A model that no task's state is needed for. Libraries load on use."""
    name = who.name
    if name.startswith("inspect:"):
        from sopilot_lab.experiments.inspect import InspectModel

        return InspectModel(name.removeprefix("inspect:"), served=who.expected)
    if name in OFFLINE:
        raise mistake("no-such-user", f"`{name}` can't play a user", help="name a real model")
    from sopilot.models.open import make_model

    return make_model(name, key_variable=who.key_variable, served=who.expected, about=about)


def served_user(
    party: Party,
    task: SopbenchTask,
    upstream: Upstream,
    *,
    about: Mapping[str, str],
    budgets: Budgets,
) -> User:
    """``default`` tells everything it knows at every turn, as upstream's default user does;
    any other name is a model that plays upstream's user role."""
    if party.user.name == DEFAULT_USER:
        return ScriptedUser(task.user_prompt, task.user_known)
    text = upstream.official_text(task.domain, task.goal, task.index)
    return ModelUser(
        named_model(party.user, {**about, "plays": "user"}),
        text.user_role,
        task.user_prompt,
        retries=party.patience.retries,
        timeout_seconds=budgets.request_seconds,
        temperature=budgets.temperature,
    )
