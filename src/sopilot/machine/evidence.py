"""Evidence for a verdict: citation, admissibility, freshness (P4 and P5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sopilot.handbook.requirements import Path
from sopilot.machine.layout import Position, Programs
from sopilot.machine.recipes import Absent, Values, WantedCall, wanted_calls
from sopilot.machine.state import NEVER, UNRESOLVED, CallRecord, Configuration
from sopilot.machine.terms import fits_act, value_at
from sopilot.messages.catalogue import sentence
from sopilot.program.model import Act, ActionFacts, Kind, Local
from sopilot.values.json import JSON, MISSING, key_of, same

_UNKNOWN = ActionFacts({})
"""An undescribed action may change and read everything."""


def changes(programs: Programs, action: str) -> tuple[str, ...] | None:
    """The topics that a success of ``action`` may change; ``None`` is everything.

    Programs that guard nothing have no facts: then only goal actions change anything.
    """
    if not programs.actions:
        return None if action in programs.goal_actions else ()
    return programs.actions.get(action, _UNKNOWN).changes


def may_disturb(programs: Programs, action: str, verifier: str) -> bool:
    """Whether a success of ``action`` may change what ``verifier`` reads."""
    touched = changes(programs, action)
    read = programs.actions.get(verifier, _UNKNOWN).reads
    return touched != () and (touched is None or read is None or not set(touched).isdisjoint(read))


def may_unprove(programs: Programs, action: str) -> bool:
    """Whether a success may change what a rule reads, or opens or shuts a gate or fact."""
    for layout in programs.layouts.values():
        for function in layout.functions.values():
            acts = [act.action for act in function.recipe_acts]
            if function.function.kind is Kind.RULE:
                if any(may_disturb(programs, action, verifier) for verifier in acts):
                    return True
            elif function.function.kind is Kind.GATE:
                closing = function.function.closed_by
                if action in acts or (closing is not None and closing.action == action):
                    return True
    return False


def renewed(programs: Programs, configuration: Configuration, action: str) -> int:
    """P8: the event since which an action is called on its present connection; ``NEVER`` if it
    has none, or if the handbook says that its state is shared."""
    if not configuration.connections or programs.actions.get(action, _UNKNOWN).shared:
        return NEVER
    of_it = (
        connection.seq
        for connection in configuration.connections.values()
        if action in connection.actions
    )
    return max(of_it, default=NEVER)


def stale_since(
    programs: Programs, configuration: Configuration, verifier: str, newest: CallRecord
) -> str:
    """Why ``newest`` may be out of date; empty if it isn't."""
    since = renewed(programs, configuration, verifier)
    if newest.call_seq < since:
        return sentence("connection-changed", seq=since)
    for action, by_arguments in configuration.answers.items():
        if not may_disturb(programs, action, verifier):
            continue
        latest = max(
            (argument.touched for argument in by_arguments.values() if argument is not newest),
            default=NEVER,
        )
        if latest == UNRESOLVED:
            return sentence("may-change", action=action)
        if latest > newest.call_seq:
            return sentence("may-have-changed", action=action, seq=latest)
    for pending in configuration.pending.values():
        if pending.call_seq != newest.call_seq and may_disturb(programs, pending.action, verifier):
            return sentence("may-be-changing", action=pending.action, seq=pending.call_seq)
    uses = [pending.uses for pending in configuration.pending.values()]
    if newest.seq in configuration.used or any(newest.seq in use for use in uses):
        return sentence("used-already")
    return ""


def asked_otherwise(
    programs: Programs,
    configuration: Configuration,
    action: str,
    arguments: Mapping[str, JSON],
    newest: CallRecord,
) -> int:
    """The event of a later call that differs only by undeclared arguments, which the action
    ignores: it answered the same question. 0 if there is none."""
    facts = programs.actions.get(action)
    declared: Collection[str] = facts.inputs.keys() if facts is not None else ()

    def is_it(values: Mapping[str, JSON]) -> bool:
        more = values.keys() - arguments.keys()
        shared = {name: item for name, item in values.items() if name in arguments}
        return bool(more) and more.isdisjoint(declared) and same(shared, dict(arguments))

    for other in configuration.answers.get(action, {}).values():
        if other.seq > newest.seq and is_it(other.arguments):
            return other.seq
    for pending in configuration.pending.values():
        if pending.action == action and is_it(pending.arguments):
            return pending.call_seq
    return 0


def is_current(programs: Programs, configuration: Configuration, result: CallRecord) -> bool:
    """Whether a result is the newest of its call and still fresh."""
    key = key_of(result.arguments)
    newest = configuration.answers.get(result.action, {}).get(key)
    called_again = any(
        item.action == result.action and key_of(item.arguments) == key
        for item in configuration.pending.values()
    )
    return (
        newest is not None
        and newest.seq == result.seq
        and not called_again
        and not may_disturb(programs, result.action, result.action)
        and not stale_since(programs, configuration, result.action, newest)
    )


class Citation(NamedTuple):
    """The evidence of a return. ``how`` is ``cited`` or ``frame``; ``earlier`` are results from
    before the frame."""

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
    """The results that a return cites, else those that its frame gathered."""
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


def frame_results(here: Position) -> list[CallRecord]:
    """The results of the calls made in the active frame, oldest first."""
    opened = here.frame.opened
    results = []
    for result in reversed(here.process.results):
        # Results are in order, and none from before the frame belongs to it.
        if result.seq < opened:
            break
        if result.opened == opened:
            results.append(result)
    results.reverse()
    return results


def admissible(here: Position, result: CallRecord) -> bool:
    """Whether some recipe of the active function asks for this call with these values."""
    return any(fits_result(here, act, result) for act in here.layout.recipe_acts)


def fits_result(here: Position, act: Act, result: CallRecord) -> bool:
    if here.layout.linked and act.action == result.action:
        wanted = wanted_here(here, act)
        return not isinstance(wanted, Absent) and any(
            _is_answer(here, item, result) for item in wanted
        )
    return fits_act(here, act, result.action, result.arguments)


def _is_answer(here: Position, wanted: WantedCall, result: CallRecord) -> bool:
    agree, argument = here.program.agree, result.arguments
    return result.action == wanted.act.action and all(
        agree(value, argument[name]) if name in argument else value is None
        for name, value in wanted.arguments.items()
    )


def wanted_here(here: Position, act: Act) -> list[WantedCall] | Absent:
    """The calls of an act of a linked recipe, given the answers so far."""
    recipe = next((item for item in here.layout.recipes if act in item), (act,))
    answers: dict[str, JSON] = {}
    for earlier in recipe:
        if earlier is act:
            break
        answer_to = _answer_to(here, earlier, answers)
        if answer_to is None:
            break
        answers[earlier.answer] = answer_to[0]
    return wanted_calls(act, _values(here), answers, open_values=True)


def _values(here: Position) -> Values:
    def value(name: str) -> JSON | Absent:
        result = value_at(here, Local(name))
        return Absent(sentence("no-value", name=name)) if result is MISSING else result

    return value


def _answer_to(
    here: Position,
    act: Act,
    answers: dict[str, JSON],
    results: Sequence[CallRecord] | None = None,
) -> tuple[JSON] | None:
    """The answer to an act in a tuple; a list if the act has ``each``. ``results`` may include
    failures; by default they are the successes that the frame has gathered."""
    wanted = wanted_calls(act, _values(here), answers, open_values=True)
    if isinstance(wanted, Absent):
        return None
    values: list[JSON] = []
    among = _gathered(here) if results is None else results
    for call in wanted:
        newest = next((item for item in reversed(among) if _is_answer(here, call, item)), None)
        if newest is None or not (newest.ok or results is not None):
            return None
        values.append(newest.value)
    return (values,) if act.each is not None else (values[0],)


def frame_answers(
    here: Position, results: Sequence[CallRecord] | None = None
) -> tuple[dict[str, JSON], JSON] | None:
    """The answers of the first complete recipe by name, and its last answer. ``results`` as in
    ``_answer_to``."""
    for recipe in here.layout.recipes:
        answers: dict[str, JSON] = {}
        for act in recipe:
            answer_to = _answer_to(here, act, answers, results)
            if answer_to is None:
                break
            answers[act.answer] = answer_to[0]
        else:
            return answers, answers[recipe[-1].answer]
    return None


def _gathered(here: Position) -> list[CallRecord]:
    borrowed = here.frame.borrowed
    taken = (
        [result for result in here.process.results if result.seq in borrowed] if borrowed else []
    )
    return [*taken, *frame_results(here)]


def is_done(here: Position, act: Act, done: Sequence[CallRecord]) -> bool:
    """Whether the frame has made all calls of an act."""
    if not here.layout.linked:
        return any(fits_result(here, act, item) for item in done)
    wanted = wanted_here(here, act)
    return not isinstance(wanted, Absent) and all(
        any(_is_answer(here, call, item) for item in done) for call in wanted
    )


def successes(here: Position) -> list[CallRecord]:
    return [result for result in frame_results(here) if result.ok]


def past_done(here: Position, label: str) -> str:
    """Skip the calls that this frame has made already: a recipe's calls may come in any order.
    An empty list needs none."""
    done: list[CallRecord] | None = None
    seen = set()
    while label not in seen:
        seen.add(label)
        step = here.layout.steps[label]
        if not isinstance(step, Act):
            break
        if done is None:
            done = successes(here)
        if not is_done(here, step, done):
            break
        label = here.layout.after[label]
    return label


def next_wanted(here: Position, act: Act) -> WantedCall | None:
    """The first call of an act that the frame has not made yet."""
    wanted = wanted_here(here, act)
    if isinstance(wanted, Absent) or not wanted:
        return None
    done = [item for item in _gathered(here) if item.ok]
    for call in wanted:
        if not any(_is_answer(here, call, item) for item in done):
            return call
    return wanted[-1]


def borrowable(here: Position, act: Act) -> CallRecord | None:
    """The latest earlier success of the same call, if it is still current.

    Every argument must be known: a call with an open value may ask for something else this time.
    """
    if act.each is not None:
        return None
    if here.layout.linked:
        wanted = wanted_here(here, act)
        if isinstance(wanted, Absent) or any(item.open for item in wanted):
            return None
    elif any(
        isinstance(term, Path) or value_at(here, term) is MISSING for _, term in act.arguments
    ):
        return None
    for result in reversed(here.process.results):
        if result.seq <= here.configuration.goal_seq:
            return None
        if result.opened != here.frame.opened and result.ok and fits_result(here, act, result):
            return result if is_current(here.programs, here.configuration, result) else None
    return None


def _resolve(here: Position, cited: Sequence[str]) -> Citation:
    numbers: set[int] = set()
    unresolved: list[str] = []
    for item in cited:
        seqs = _find(here, item.strip())
        numbers.update(seqs)
        if not seqs:
            unresolved.append(item)
    inside = {result.seq for result in frame_results(here)}
    return Citation(
        tuple(sorted(numbers)), "cited", tuple(sorted(numbers - inside)), tuple(unresolved)
    )


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
