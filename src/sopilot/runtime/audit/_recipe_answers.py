"""P1 to P5: the answers to exactly the calls of one recipe, whole, newest and fresh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sopilot.language.handbook import CONFIRM, Path, values_asked_about
from sopilot.language.program.model import Act, ActionFacts, Literal
from sopilot.runtime.audit._linked_calls import at_place
from sopilot.runtime.audit._moment import (
    NEWER,
    NOTHING,
    OTHER,
    PART,
    STALE,
    VALUE,
    Lack,
    Moment,
    RecipeAnswers,
    Unreadable,
    told,
)
from sopilot.runtime.audit._resolved_function import ResolvedFunction
from sopilot.runtime.audit._session_calls import SessionCall, newest_answer
from sopilot.runtime.audit._state import has_withheld
from sopilot.runtime.audit._value_types import has_type
from sopilot.runtime.vm.values import JSON, MISSING, same


def recipe_answers(
    moment: Moment, code: ResolvedFunction, recipe: Sequence[Act], values: Mapping[str, JSON]
) -> RecipeAnswers | Lack:
    """P2, P3: the answers to exactly the calls of one recipe, every one of them."""
    named: dict[str, JSON] = {}
    evidence: set[int] = set()
    for act in recipe:
        asked = asked_calls(moment, code, act, values, named)
        if isinstance(asked, Lack):
            return asked
        found: list[SessionCall] = []
        for arguments in asked:
            one = answer_to(moment, act, arguments)
            if one is None:
                begun = bool(evidence or found) or _begun(moment, code, recipe, act, values, named)
                ours = _asked_by(moment, code, recipe, act.action, values, named)
                return _unmade(moment, code, act, ours, arguments, begun=begun)
            if isinstance(one, Lack):
                return one
            found.append(one)
        evidence |= {one.answered for one in found if one.answered is not None}
        values_found = [one.value for one in found]
        named[act.answer] = values_found if act.each is not None else values_found[0]
    return RecipeAnswers(named, named[recipe[-1].answer], tuple(sorted(evidence)))


LONGEST_LIST = 1_000
"""As the definition has it: see ``design/proof.md``."""


def asked_calls(
    moment: Moment,
    code: ResolvedFunction,
    act: Act,
    values: Mapping[str, JSON],
    named: Mapping[str, JSON],
) -> list[dict[str, JSON]] | Lack:
    """The arguments of each call that ``act`` stands for, its terms evaluated (P1, P2)."""
    given = {name: values[name] for name in code.function.parameters if name in values}
    named = {**given, **named}
    scopes: list[Mapping[str, JSON]] = [named]
    if act.each is not None:
        listed = at_place(act.each, named)
        if not isinstance(listed, list):
            return Lack(PART, f"`{act.each}` is no list in what was answered")
        if len(listed) > LONGEST_LIST:
            return Lack(PART, f"`{act.each}` has more than {LONGEST_LIST} elements")
        scopes = [{**named, act.element: one} for one in listed]
    calls: list[dict[str, JSON]] = []
    for scope in scopes:
        arguments: dict[str, JSON] = {}
        for parameter, term in act.arguments:
            if isinstance(term, Literal):
                arguments[parameter] = term.value
                continue
            if isinstance(term, Path):
                value = at_place(term, scope)
                if value is MISSING or value is None:
                    return Lack(PART, f"there is nothing at `{term}` in what was answered")
            else:
                own = term.name in code.function.parameters
                value = (values if own else moment.known).get(term.name)
                if value is None and term.name in code.function.optional:
                    continue
                if value is None:
                    return Lack(VALUE, f"`{term.name}` has no value")
            arguments[parameter] = value
        if has_withheld(arguments):
            raise Unreadable
        calls.append(arguments)
    return calls


def answer_to(moment: Moment, act: Act, arguments: Mapping[str, JSON]) -> SessionCall | Lack | None:
    """The newest and fresh answer to one call; ``None`` where it was never made."""
    shown = told(act.action, arguments)
    mistyped = mistyped_input(moment.facts, act.action, arguments)
    if mistyped:
        return Lack(VALUE, f"{shown} cannot be asked: `{mistyped}` is of another type")
    newest = newest_answer(moment.calls, act.action, arguments)
    if newest is None:
        return None
    if newest.awaited:
        return Lack(NEWER, f"{shown} is not answered yet (#{newest.seq})")
    if has_withheld(newest.value):
        raise Unreadable
    # Where nothing is guarded a tool may say no by failing with `false`.
    if not newest.ok and (moment.facts or not isinstance(newest.value, bool)):
        return Lack(NEWER, f"{shown} failed when it was called last (#{newest.answered})")
    known = moment.facts[act.action].inputs if act.action in moment.facts else {}
    for later in moment.calls:
        more = later.arguments.keys() - arguments.keys()
        shared = {name: one for name, one in later.arguments.items() if name in arguments}
        if (
            later.action == act.action
            and later.done_by() > newest.done_by()
            and more
            and not any(name in known for name in more)
            and same(shared, dict(arguments))
        ):
            return Lack(NEWER, f"{shown} was called again with more than it takes (#{later.seq})")
    change = disturbed_by(moment, newest)
    if change is not None:
        return Lack(
            STALE,
            f"{shown} was answered (#{newest.answered}) before `{change.action}` "
            f"(#{change.seq}) may have changed it",
        )
    return newest


def mistyped_input(
    facts: Mapping[str, ActionFacts], action: str, arguments: Mapping[str, JSON]
) -> str:
    """P1: the first argument that is not of its input's declared type."""
    if action not in facts:
        return ""
    for name, value in arguments.items():
        if not has_withheld(value) and not has_type(value, facts[action].inputs.get(name, {})):
            return name
    return ""


def disturbed_by(moment: Moment, answer: SessionCall) -> SessionCall | None:
    """P5: a call that may have changed what ``answer`` reads since it was asked for: the one
    that it answers, where a verifier changes what it reads."""
    if _touches(moment, answer.action, answer.action):
        return answer
    for one in moment.calls:
        if not one.may_have_run or one.done_by() < answer.seq:
            continue
        if _touches(moment, one.action, answer.action) or _uses_up(one, answer):
            return one
    return None


def _uses_up(call: SessionCall, answer: SessionCall) -> bool:
    """Whether it is the call that ``answer`` says yes to: a yes serves one."""
    if answer.action != CONFIRM or call.action != answer.arguments.get("action"):
        return False
    return same(dict(call.arguments), values_asked_about(CONFIRM, answer.arguments))


def changed_topics(
    facts: Mapping[str, ActionFacts], goal_actions: frozenset[str], action: str
) -> tuple[str, ...] | None:
    """What an action may change, ``None`` for everything. Programs that guard nothing carry no
    facts: there only what a program is for changes anything."""
    if not facts:
        return None if action in goal_actions else ()
    return facts[action].changes if action in facts else None


def _touches(moment: Moment, action: str, verifier: str) -> bool:
    changed = changed_topics(moment.facts, moment.goal_actions, action)
    read = moment.facts[verifier].reads if verifier in moment.facts else None
    if changed is None or read is None:
        return changed != ()
    return any(topic in read for topic in changed)


def _begun(
    moment: Moment,
    code: ResolvedFunction,
    recipe: Sequence[Act],
    missing: Act,
    values: Mapping[str, JSON],
    named: Mapping[str, JSON],
) -> bool:
    """Whether another call of the recipe was made: then half of it is there."""
    others = [act for act in recipe if act is not missing]
    ways = [(act, asked_calls(moment, code, act, values, named)) for act in others]
    return any(
        newest_answer(moment.calls, act.action, one) is not None
        for act, asked in ways
        if not isinstance(asked, Lack)
        for one in asked
    )


def _asked_by(
    moment: Moment,
    code: ResolvedFunction,
    recipe: Sequence[Act],
    action: str,
    values: Mapping[str, JSON],
    named: Mapping[str, JSON],
) -> list[dict[str, JSON]]:
    """Every call of one action that the recipe asks for, as far as that can be told."""
    ways = [asked_calls(moment, code, one, values, named) for one in recipe if one.action == action]
    return [each for way in ways if not isinstance(way, Lack) for each in way]


def _unmade(
    moment: Moment,
    code: ResolvedFunction,
    act: Act,
    asked: Sequence[Mapping[str, JSON]],
    missing: Mapping[str, JSON],
    *,
    begun: bool,
) -> Lack:
    why = f"{told(act.action, missing)} was not called"
    frames = {one.opened for one in moment.process.judged if one.function == code.function.name}
    others = [
        one
        for one in moment.calls
        if one.action == act.action
        and not any(same(dict(one.arguments), dict(each)) for each in asked)
    ]
    if any(one.opened in frames for one in others) or (others and not begun):
        other = others[-1]
        return Lack(OTHER, f"{why}; {told(other.action, other.arguments)} (#{other.seq}) was")
    return Lack(PART if begun else NOTHING, why)
