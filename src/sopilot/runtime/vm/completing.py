"""What a call need not say: the arguments that the program has for it where it stands."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.program.model import Act, Unknown
from sopilot.runtime.vm.evidence import frame_results, is_done, next_wanted
from sopilot.runtime.vm.position import Position
from sopilot.runtime.vm.terms import known_arguments, plain_arguments
from sopilot.runtime.vm.values import JSON


def completed(
    here: Position, action: str, arguments: dict[str, JSON], stated: Mapping[str, JSON]
) -> dict[str, JSON]:
    """The arguments with the ones that were left out, if the program asks for such a call here:
    what the program has, and for names that only the user can give what was ``stated``. What
    was written stands, whatever the program has."""
    for act in _asked_for(here, action):
        asked = {
            parameter: stated[term.name]
            for parameter, term in act.arguments
            if isinstance(term, Unknown) and stated.get(term.name) is not None
        }
        known = {**asked, **_known(here, act)}
        agree = here.layout.agree
        if all(name not in known or agree(known[name], arguments[name]) for name in arguments):
            return {**known, **arguments}
    return arguments


def _asked_for(here: Position, action: str) -> list[Act]:
    """The one at the cursor first, then those of the rule that were not made yet."""
    step = here.layout.steps[here.layout.past_asking(here.frame.cursor)]
    acts = [step] if isinstance(step, Act) and step.action == action else []
    if here.layout.soft:
        done = [one for one in frame_results(here) if one.ok]
        others = [act for act in here.layout.recipe_acts if act.action == action]
        acts += sorted(others, key=lambda act: is_done(here, act, done))
    return acts


def _known(here: Position, act: Act) -> Mapping[str, JSON]:
    if here.layout.linked:
        wanted = next_wanted(here, act)
        return wanted.arguments if wanted is not None else {}
    return known_arguments(
        plain_arguments(act.arguments), here.layout, here.frame, here.process.known
    )[0]
