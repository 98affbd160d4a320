"""The checklist baseline: every required check as a line, ticked once a call has verified it.

There is no machine behind it, so nobody knows for which values a call was made:
a recipe that several checks share ticks one of them per distinct call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sopilot.language.program.model import Act, Check, Function, Kind, Program
from sopilot.language.render.sentences import check_saying
from sopilot.runtime.agent.arms._view import Done, View
from sopilot.runtime.vm import canonical


def checklist_slot(view: View) -> str:
    lines: list[str] = []
    for goal, program in view.briefing.programs.items():
        lines.append(f"{goal}:")
        used: Counter[str] = Counter()
        for check, function in required_checks(program):
            ticked = _is_ticked(function, view.done, used)
            saying = check_saying(check, program, view.briefing.language)
            says = saying.text if saying is not None else check.function
            lines.append(f"  [{'x' if ticked else ' '}] {says}")
    return "\n".join(lines)


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


def _is_ticked(function: Function, done: Sequence[Done], used: Counter[str]) -> bool:
    own = tuple(step for step in function.steps if isinstance(step, Act))
    recipes = [recipe for recipe in (own, *function.fallbacks) if recipe]
    made: dict[str, set[bytes]] = {}
    for one in done:
        if one.ok:
            made.setdefault(one.action, set()).add(canonical(dict(one.arguments)))
    # The n-th check with the same verifiers needs the n-th distinct call.
    number = used[function.name]
    used[function.name] += 1
    return any(all(len(made.get(act.action, ())) > number for act in recipe) for recipe in recipes)
