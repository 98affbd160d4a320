"""Which results speak for a verdict: citation, admissibility, staleness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from sopilot.language.handbook import Path
from sopilot.language.program.model import Act, Kind, Local
from sopilot.runtime.vm.freshness import is_current
from sopilot.runtime.vm.position import Position, Programs
from sopilot.runtime.vm.recipe_calls import Absent, Values, WantedCall, wanted_calls
from sopilot.runtime.vm.state import NEVER, Observed
from sopilot.runtime.vm.terms import fits_act, value_of
from sopilot.runtime.vm.values import JSON, MISSING, same


class Citation(NamedTuple):
    """``how`` is ``cited`` or ``frame``; ``earlier`` are results from before the frame."""

    evidence: tuple[int, ...]
    how: str
    earlier: tuple[int, ...] = ()
    unresolved: tuple[str, ...] = ()

    def as_json(self, holds: bool | None) -> dict[str, JSON]:
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
    gathered = [result.seq for result in frame_results(here) if admissible(here, result)]
    borrowed = here.frame.borrowed
    if borrowed:
        gathered = sorted({*gathered, *borrowed})
    return Citation(tuple(gathered), "frame", borrowed)


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
    if here.layout.linked and act.action == result.action:
        wanted = wanted_here(here, act)
        return not isinstance(wanted, Absent) and any(
            _is_answer(here, one, result) for one in wanted
        )
    return fits_act(
        act, result.action, result.arguments, here.layout, here.frame, here.process.known
    )


def _is_answer(here: Position, wanted: WantedCall, result: Observed) -> bool:
    agree, given = here.layout.agree, result.arguments
    return result.action == wanted.act.action and all(
        agree(value, given[name]) if name in given else value is None
        for name, value in wanted.arguments.items()
    )


def wanted_here(here: Position, act: Act) -> list[WantedCall] | Absent:
    """The calls that an act of a linked recipe stands for, as far as its answers are there."""
    recipe = next((one for one in here.layout.recipes if act in one), (act,))
    answers: dict[str, JSON] = {}
    for earlier in recipe:
        if earlier is act:
            break
        found = _answer_to(here, earlier, answers)
        if found is None:
            break
        answers[earlier.answer] = found[0]
    return wanted_calls(act, _values(here), answers, open_values=True)


def _values(here: Position) -> Values:
    def value(name: str) -> JSON | Absent:
        found = value_of(Local(name), here.layout, here.frame, here.process.known)
        return Absent(f"`{name}` has no value") if found is MISSING else found

    return value


def _answer_to(here: Position, act: Act, answers: dict[str, JSON]) -> tuple[JSON] | None:
    """What the frame has gathered for an act, a list for one with ``each``, in a tuple."""
    wanted = wanted_calls(act, _values(here), answers, open_values=True)
    if isinstance(wanted, Absent):
        return None
    found: list[JSON] = []
    results = _gathered(here)
    for call in wanted:
        newest = next((one for one in reversed(results) if _is_answer(here, call, one)), None)
        if newest is None or not newest.ok:
            return None
        found.append(newest.value)
    return (found,) if act.each is not None else (found[0],)


def frame_answers(here: Position) -> tuple[dict[str, JSON], JSON] | None:
    """The answers of the first recipe that the frame has whole, by name, and the last one's."""
    for recipe in here.layout.recipes:
        answers: dict[str, JSON] = {}
        for act in recipe:
            found = _answer_to(here, act, answers)
            if found is None:
                break
            answers[act.answer] = found[0]
        else:
            return answers, answers[recipe[-1].answer]
    return None


def _gathered(here: Position) -> list[Observed]:
    borrowed = here.frame.borrowed
    taken = [one for one in here.process.results if one.seq in borrowed] if borrowed else []
    return [*taken, *frame_results(here)]


def is_done(here: Position, act: Act, done: list[Observed]) -> bool:
    """Whether the frame has made the call, for every element where there are several."""
    if not here.layout.linked:
        return any(fits_result(here, act, one) for one in done)
    wanted = wanted_here(here, act)
    return not isinstance(wanted, Absent) and all(
        any(_is_answer(here, call, one) for one in done) for call in wanted
    )


def next_wanted(here: Position, act: Act) -> WantedCall | None:
    """The first call of an act that the frame has not made yet."""
    wanted = wanted_here(here, act)
    if isinstance(wanted, Absent) or not wanted:
        return None
    done = [one for one in _gathered(here) if one.ok]
    for call in wanted:
        if not any(_is_answer(here, call, one) for one in done):
            return call
    return wanted[-1]


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
    """The latest earlier success that makes a repeated call of ``act`` needless: nothing newer
    was answered, and nothing may have changed it since.

    Only where every argument is known: a call with an open value may ask for
    something else this time.
    """
    if act.each is not None:
        return None
    if here.layout.linked:
        wanted = wanted_here(here, act)
        if isinstance(wanted, Absent) or any(one.open for one in wanted):
            return None
    elif any(
        isinstance(term, Path)
        or value_of(term, here.layout, here.frame, here.process.known) is MISSING
        for _, term in act.arguments
    ):
        return None
    for result in reversed(available(here)):
        if result.ok and fits_result(here, act, result):
            return result if is_current(here.programs, here.configuration, result) else None
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


def was_done(here: Position) -> bool | None:
    """Whether the call of a fact has succeeded in this session, in whatever process; ``None``
    where that cannot be told."""
    act = here.layout.recipe_acts[0]
    wanted = wanted_calls(act, _values(here), {}, open_values=True)
    if isinstance(wanted, Absent):
        return None
    (call,) = wanted
    inputs = call.arguments.keys() | set(call.open)
    touched = False
    for one in here.configuration.answers.get(act.action, {}).values():
        given = {name: one.arguments.get(name) for name in call.arguments}
        if one.touched == NEVER or not same(given, dict(call.arguments)):
            continue
        if one.succeeded != NEVER and done_with(here.programs, act.action, inputs, one.arguments):
            return True
        touched = True
    pending = any(one.action == act.action for one in here.configuration.pending.values())
    return None if touched or pending else False


def done_with(
    programs: Programs, action: str, inputs: Set[str], arguments: Mapping[str, JSON]
) -> bool:
    """Whether a call had these inputs, and no other than declared ones: what was done was done,
    whatever its caller chose beside what is asked about. Nobody makes it for the check."""
    facts = programs.actions.get(action)
    declared = facts.inputs.keys() if facts is not None else frozenset[str]()
    return inputs <= arguments.keys() <= inputs | declared
