"""The baselines: a checklist, retrieval by BM25, and chunks around the current obligation.

The checklist has no machine behind it, so it can't know for which values a call was made: a
recipe that several checks share ticks one of them per distinct call. A chunk grows through the
call graph, callees first, then the caller and its other callees, up to the size of the largest
frame.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from sopilot.machine.layout import Position
from sopilot.machine.state import Configuration
from sopilot.program.model import Act, Check, Function, Kind, Program
from sopilot.views.check_sentences import check_saying
from sopilot.views.frame import render_function
from sopilot.views.moment import Moment
from sopilot.views.moves import FrameMessage
from sopilot.views.state_text import no_process, state_message


def checklist_message(moment: Moment) -> FrameMessage:
    lines: list[str] = []
    for goal, program in moment.briefing.programs.items():
        lines.append(f"{goal}:")
        used: Counter[str] = Counter()
        for check, function in required_checks(program):
            ticked = _is_ticked(function, moment.configuration, used)
            saying = check_saying(check, program, moment.briefing.language)
            says = saying.text if saying is not None else check.function
            lines.append(f"  [{'x' if ticked else ' '}] {says}")
    return FrameMessage("\n".join(lines))


def required_checks(program: Program) -> Iterator[tuple[Check, Function]]:
    """Checks of rules and gates, in the order in which the program comes to them."""

    def walk(function: Function) -> Iterator[tuple[Check, Function]]:
        for step in function.steps:
            if not isinstance(step, Check):
                continue
            called = program.functions[step.function]
            if called.kind is Kind.GROUP:
                yield from walk(called)
            else:
                yield step, called

    yield from walk(program.functions[program.entry])


def _is_ticked(function: Function, configuration: Configuration, used: Counter[str]) -> bool:
    own = tuple(step for step in function.steps if isinstance(step, Act))
    recipes = [recipe for recipe in (own, *function.fallbacks) if recipe]
    # The n-th check with the same verifiers needs the n-th distinct call.
    number = used[function.name]
    used[function.name] += 1

    def succeeded(action: str) -> int:
        answers = configuration.answers.get(action, {}).values()
        return sum(answer.succeeded >= 0 for answer in answers)

    return any(all(succeeded(act.action) > number for act in recipe) for recipe in recipes)


def chunk_message(moment: Moment) -> FrameMessage:
    here = moment.here
    if here is None:
        return no_process(moment)
    budget = moment.briefing.largest_frame(here.process.goal)
    text, move = state_message(moment)
    return FrameMessage(f"{chunk_text(here, budget, moment.briefing.language)}\n\n{text}", move)


def chunk_text(here: Position, budget: int, language: str) -> str:
    program = here.source
    current = here.frame.function
    chosen = {current: render_function(program.functions[current], program, language).rstrip()}
    size = len(chosen[current])
    for name in _around(here):
        if name in chosen:
            continue
        text = render_function(program.functions[name], program, language).rstrip()
        if size + 2 + len(text) > budget:
            break
        chosen[name] = text
        size += 2 + len(text)
    return "\n\n".join(chosen[name] for name in program.functions if name in chosen)


def _around(here: Position) -> Iterator[str]:
    program = here.source
    for frame in reversed(here.process.frames):
        yield frame.function
        yield from _below(program.functions[frame.function], program)


def _below(function: Function, program: Program) -> Iterator[str]:
    for step in function.steps:
        if isinstance(step, Check):
            yield step.function
            yield from _below(program.functions[step.function], program)


TOP = 5
"""Functions shown."""
RECENT = 4
"""Messages that make the query."""
_K1, _B = 1.5, 0.75
_WORD = re.compile(r"[^\W_]+")


def retrieval_message(moment: Moment) -> FrameMessage:
    texts = _functions(moment)
    recent = [message.content for message in moment.dialog if message.content][-RECENT:]
    chosen = best(" ".join(recent), texts, TOP)
    return FrameMessage("\n\n".join(texts[index] for index in chosen))


def best(query: str, documents: Sequence[str], count: int) -> list[int]:
    """Indices of the documents that fit the query best, in their own order; ties go to the
    earlier one."""
    scores = bm25(query, documents)
    ranked = sorted(range(len(documents)), key=lambda index: (-scores[index], index))
    return sorted(ranked[:count])


def bm25(query: str, documents: Sequence[str]) -> list[float]:
    bags = [_bag(document) for document in documents]
    lengths = [sum(bag.values()) for bag in bags]
    mean = sum(lengths) / len(lengths) if lengths else 1.0
    scores = [0.0] * len(bags)
    for word in set(_words(query)):
        holding = sum(1 for bag in bags if word in bag)
        if not holding:
            continue
        rarity = math.log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
        for index, bag in enumerate(bags):
            often = bag[word]
            norm = often + _K1 * (1 - _B + _B * lengths[index] / (mean or 1.0))
            scores[index] += rarity * often * (_K1 + 1) / norm if often else 0.0
    return scores


def _functions(moment: Moment) -> list[str]:
    seen: dict[str, None] = {}
    for program in moment.briefing.programs.values():
        for function in program.functions.values():
            text = render_function(function, program, moment.briefing.language).rstrip()
            seen.setdefault(text)
    return list(seen)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


@lru_cache(maxsize=4096)
def _bag(text: str) -> Counter[str]:
    return Counter(_words(text))
