"""How far a recipe has come: which answers are there, which call is next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sopilot.language.program.model import Act
from sopilot.runtime.agent.reference._judging import Seen
from sopilot.runtime.session.protocols import JSON
from sopilot.runtime.vm.recipe_calls import Absent, Values, WantedCall, linked, wanted_calls
from sopilot.runtime.vm.values import same


@dataclass(slots=True)
class Gathered:
    """``answers`` by name, ``evidence`` oldest first. ``missing`` is the first call that nobody
    made, ``failed`` the first whose newest answer is a failure, ``absent`` what an answer
    lacks."""

    answers: dict[str, JSON] = field(default_factory=dict)
    evidence: list[Seen] = field(default_factory=list)
    missing: WantedCall | None = None
    failed: Seen | None = None
    absent: str = ""

    @property
    def whole(self) -> bool:
        return self.missing is None and self.failed is None and not self.absent


def gather(recipe: Sequence[Act], values: Values, seen: Sequence[Seen]) -> Gathered:
    found = Gathered()
    for act in recipe:
        wanted = wanted_calls(act, values, found.answers, open_values=True)
        if isinstance(wanted, Absent):
            found.absent = wanted.why
            return found
        answers: list[JSON] = []
        for call in wanted:
            newest = next((one for one in reversed(seen) if is_answer(call, one)), None)
            if newest is None:
                found.missing = call
                return found
            found.evidence.append(newest)
            if not newest.ok:
                found.failed = newest
                return found
            answers.append(newest.value)
        found.answers[act.answer] = answers if act.each is not None else answers[0]
    return found


def is_answer(call: WantedCall, one: Seen) -> bool:
    return one.action == call.act.action and all(
        name in one.arguments and same(value, one.arguments[name])
        for name, value in call.arguments.items()
    )


def known_or(known: Mapping[str, JSON], otherwise: Callable[[str], JSON]) -> Values:
    """The value of a name: what the frame knows, else what the dialog or evidence tells."""

    def value(name: str) -> JSON | Absent:
        found = known.get(name)
        if found is None:
            found = otherwise(name)
        return Absent(f"`{name}` has no value") if found is None else found

    return value


def is_linked(recipe: Sequence[Act]) -> bool:
    return linked((recipe,))
