"""Where values learned on the way go: the frame, the callers that passed the name, the process."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.handbook import Path
from sopilot.language.program.model import Act, Check, Literal, Unknown
from sopilot.runtime.audit._audit_state import Contradiction
from sopilot.runtime.audit._state import FrameView, ProcessView
from sopilot.runtime.vm.values import JSON, MISSING


def learn(process: ProcessView, name: str, value: JSON, learned: dict[str, JSON]) -> None:
    """Under ``name`` in the top frame, and upwards under the callers' names for it."""
    learned[name] = value
    for depth in range(len(process.frames) - 1, -1, -1):
        frame = process.frames[depth]
        frame.values = {**frame.values, name: value}
        if depth == 0 or name not in frame.code.function.parameters:
            process.known[name] = value
            return
        caller = process.frames[depth - 1]
        step = caller.step
        passed = dict(step.arguments).get(name) if isinstance(step, Check) else None
        if passed is None or isinstance(passed, Literal):
            return
        name = passed.name


def learn_beside(
    process: ProcessView,
    frame: FrameView,
    supplied: Mapping[str, JSON],
    learned: dict[str, JSON],
) -> None:
    """Values under names that the function knows of, beside the ones that a step needs."""
    for name, given in supplied.items():
        if given is None:
            continue
        if name in frame.code.learnable:
            learn(process, name, given, learned)
        elif name in frame.code.function.parameters:
            have = frame.values.get(name, MISSING)
            if have is MISSING:
                learn(process, name, given, learned)
            elif not process.say_the_same(have, given):
                raise Contradiction(f"`{name}` is known to be another value here")
        else:
            raise Contradiction(f"nothing here is called `{name}`")


def learn_from_call(
    process: ProcessView,
    frame: FrameView,
    act: Act,
    arguments: Mapping[str, JSON],
    learned: dict[str, JSON],
) -> None:
    """What a successful call tells about names that had no value."""
    for parameter, term in act.arguments:
        if isinstance(term, Literal | Path) or parameter not in arguments:
            continue
        have = process.value_of(term, frame)
        used = arguments[parameter]
        if have is MISSING or (isinstance(term, Unknown) and not process.say_the_same(have, used)):
            learn(process, term.name, used, learned)
