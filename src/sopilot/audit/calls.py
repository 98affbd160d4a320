"""Which results speak for a verdict, recomputed from the events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sopilot.audit.leaf_reading import is_linked, meets, read_recipe, wanted_by
from sopilot.audit.state import FrameView, ProcessView, SeenResult, is_withheld
from sopilot.handbook.requirements import Path
from sopilot.program.model import Act, Kind, Unknown
from sopilot.values.json import JSON, MISSING


def disagreement(
    process: ProcessView, frame: FrameView, act: Act, arguments: Mapping[str, JSON]
) -> str | None:
    """The first argument that differs from what the frame knows, or ``None``."""
    for parameter, term in act.arguments:
        if isinstance(term, Unknown | Path):
            continue
        value = process.value_of(term, frame)
        if value is MISSING:
            continue
        if parameter not in arguments:
            if value is not None:
                return parameter
        elif not process.say_the_same(value, arguments[parameter]):
            return parameter
    return None


def answers(process: ProcessView, frame: FrameView, act: Act, result: SeenResult) -> bool:
    if is_linked(act):
        wanted = wanted_by(process, frame, act, gathered(process, frame))
        return (
            act.action == result.action
            and wanted is not None
            and any(meets(process, one, result) for one in wanted)
        )
    return (
        act.action == result.action and disagreement(process, frame, act, result.arguments) is None
    )


def may_be_another(process: ProcessView, frame: FrameView, act: Act, result: SeenResult) -> bool:
    """Whether it ``answers`` only as far as one can see: one of two values that must be the same
    is withheld."""
    if act.action != result.action:
        return False
    if is_linked(act):
        wanted = wanted_by(process, frame, act, gathered(process, frame)) or []
        known = [(name, value) for one in wanted for name, value in one.items()]
    else:
        known = []
        for parameter, term in act.arguments:
            value = MISSING if isinstance(term, Path) else process.value_of(term, frame)
            if value is not MISSING:
                known.append((parameter, value))
    given = result.arguments
    return any(
        name in given and is_withheld(value) != is_withheld(given[name]) for name, value in known
    )


def is_admissible(process: ProcessView, frame: FrameView, result: SeenResult) -> bool:
    return any(answers(process, frame, act, result) for act in frame.code.acts)


def all_made(process: ProcessView, frame: FrameView, act: Act, done: Sequence[SeenResult]) -> bool:
    """Whether every call that ``act`` stands for is among the results."""
    if not is_linked(act):
        return any(answers(process, frame, act, one) for one in done)
    wanted = wanted_by(process, frame, act, gathered(process, frame))
    return wanted is not None and all(
        any(one.action == act.action and meets(process, each, one) for one in done)
        for each in wanted
    )


def gathered(process: ProcessView, frame: FrameView) -> list[SeenResult]:
    """The results that the frame took over or made itself, oldest first."""
    return [
        one for one in process.results if one.opened == frame.opened or one.seq in frame.borrowed
    ]


def made_in(process: ProcessView, frame: FrameView) -> list[SeenResult]:
    return [result for result in process.results if result.opened == frame.opened]


@dataclass(frozen=True, slots=True)
class Cited:
    """``named`` are results found by an action's name: a loose citation."""

    evidence: tuple[int, ...]
    how: str
    earlier: tuple[int, ...] = ()
    unresolved: tuple[str, ...] = ()
    exact: tuple[int, ...] = ()
    named: Mapping[str, tuple[int, ...]] | None = None

    def as_payload(self, holds: bool | None) -> dict[str, JSON]:
        return {
            "holds": holds,
            "evidence": list(self.evidence),
            "cited": self.how,
            "earlier": list(self.earlier),
            "unresolved": list(self.unresolved),
        }


def cite(process: ProcessView, frame: FrameView, citations: Sequence[str]) -> Cited:
    """The results a return stands on: what it cites, else what its interval gathered."""
    if not citations:
        if frame.code.function.kind is Kind.GROUP:
            union = {seq for bound in frame.slots.values() for seq in bound.evidence}
            return Cited(tuple(sorted(union)), "frame")
        own = {r.seq for r in made_in(process, frame) if is_admissible(process, frame, r)}
        gathered = tuple(sorted(own | set(frame.borrowed)))
        return Cited(gathered, "frame", tuple(frame.borrowed), exact=gathered)
    exact: set[int] = set()
    named: dict[str, tuple[int, ...]] = {}
    unresolved = []
    for one in citations:
        number = _number(one.strip())
        if number is not None:
            hits = [r.seq for r in process.results if number in (r.seq, r.call_seq)][:1]
            exact.update(hits)
        else:
            hits = _by_name(process, frame, one.strip())
            named[one.strip()] = tuple(hits)
        if not hits:
            unresolved.append(one)
    found = exact.union(*named.values())
    inside = {result.seq for result in made_in(process, frame)}
    return Cited(
        tuple(sorted(found)),
        "cited",
        tuple(sorted(found - inside)),
        tuple(unresolved),
        tuple(sorted(exact)),
        named,
    )


def cited_number(one: str) -> int | None:
    """The event that ``#12`` names, or ``None`` for an action's name."""
    return _number(one.strip())


def _number(cited: str) -> int | None:
    digits = cited.removeprefix("#")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 12 else None


def _by_name(process: ProcessView, frame: FrameView, action: str) -> list[int]:
    inside = [r.seq for r in made_in(process, frame) if r.action == action]
    if inside:
        return inside
    return [r.seq for r in process.results if r.action == action][-1:]


def covered(process: ProcessView, frame: FrameView, results: Sequence[SeenResult]) -> bool:
    """Whether some recipe has every call of it among the results."""
    return any(
        all(all_made(process, frame, act, results) for act in recipe)
        for recipe in frame.code.recipes
    )


def named_answers(
    process: ProcessView, frame: FrameView, results: Sequence[SeenResult]
) -> tuple[dict[str, JSON], JSON] | None:
    """What a verdict reads: the answers of the first whole recipe by name, and its last one."""
    for recipe in frame.code.recipes:
        found = read_recipe(process, frame, recipe, results)
        if found is not None and recipe:
            return found, found[recipe[-1].answer]
    return None
