"""Which results speak for a verdict: citation, admissibility, staleness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sopilot.language.program.model import Act, Kind
from sopilot.runtime.vm.position import Position
from sopilot.runtime.vm.state import Observed
from sopilot.runtime.vm.terms import MISSING, fits_act, value_of
from sopilot.runtime.vm.values import JSON


@dataclass(frozen=True, slots=True)
class Citation:
    """``how`` is ``cited`` or ``frame``; ``earlier`` are results from before the frame."""

    evidence: tuple[int, ...]
    how: str
    earlier: tuple[int, ...] = ()
    unresolved: tuple[str, ...] = ()

    def as_json(self, holds: bool) -> dict[str, JSON]:
        return {
            "holds": holds,
            "evidence": list(self.evidence),
            "cited": self.how,
            "earlier": list(self.earlier),
            "unresolved": list(self.unresolved),
        }


def bind_evidence(here: Position, cited: Sequence[str]) -> Citation:
    """The results a return stands on: what it cites, else what its frame gathered."""
    if cited:
        return _resolve(here, cited)
    if here.layout.function.kind is Kind.GROUP:
        union = {seq for bound in here.frame.slots.values() for seq in bound.evidence}
        return Citation(tuple(sorted(union)), "frame")
    gathered = {result.seq for result in frame_results(here) if admissible(here, result)}
    gathered.update(here.frame.borrowed)
    return Citation(tuple(sorted(gathered)), "frame", here.frame.borrowed)


def frame_results(here: Position) -> list[Observed]:
    """The results of the calls made in the active frame, oldest first."""
    opened = here.frame.opened
    found = []
    for result in reversed(here.process.results):
        # Results are in order, and none from before the frame belongs to it.
        if result.seq < opened:
            break
        if result.opened == opened:
            found.append(result)
    found.reverse()
    return found


def admissible(here: Position, result: Observed) -> bool:
    """Whether some recipe of the active function asks for this call with these values."""
    return any(fits_result(here, act, result) for act in here.layout.recipe_acts)


def fits_result(here: Position, act: Act, result: Observed) -> bool:
    return fits_act(
        act, result.action, result.arguments, here.layout, here.frame, here.process.known
    )


def available(here: Position) -> tuple[Observed, ...]:
    """Earlier results of the process that the active rule could stand on."""
    if not here.layout.soft:
        return ()
    opened, fresh = here.frame.opened, here.configuration.goal_seq
    return tuple(
        result
        for result in here.process.results
        if result.opened != opened and result.seq > fresh and admissible(here, result)
    )


def borrowable(here: Position, act: Act) -> Observed | None:
    """The latest earlier success that makes a repeated call of ``act`` needless.

    Only where every argument is known: a call with an open value may ask for
    something else this time.
    """
    for _, term in act.arguments:
        if value_of(term, here.layout, here.frame, here.process.known) is MISSING:
            return None
    for result in reversed(available(here)):
        if result.ok and fits_result(here, act, result):
            return result
    return None


def _resolve(here: Position, cited: Sequence[str]) -> Citation:
    found: set[int] = set()
    unresolved: list[str] = []
    for one in cited:
        seqs = _find(here, one.strip())
        found.update(seqs)
        if not seqs:
            unresolved.append(one)
    inside = {result.seq for result in frame_results(here)}
    return Citation(tuple(sorted(found)), "cited", tuple(sorted(found - inside)), tuple(unresolved))


def _find(here: Position, cited: str) -> list[int]:
    number = cited.removeprefix("#")
    if number.isascii() and number.isdigit() and len(number) <= 12:
        wanted = int(number)
        for result in here.process.results:
            if wanted in (result.seq, result.call_seq):
                return [result.seq]
        return []
    inside = [result.seq for result in frame_results(here) if result.action == cited]
    if inside:
        return inside
    for result in reversed(here.process.results):
        if result.action == cited:
            return [result.seq]
    return []
