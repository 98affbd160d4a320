"""Where values come from, and where learned ones go.

A frame has room for a part of a long value and gives that part a name. ``whole_values`` puts the
whole value back where an executor copied the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sopilot.handbook.requirements import Constant, Path
from sopilot.machine.layout import FunctionLayout, Position, ProgramLayout
from sopilot.machine.state import Configuration, Frame, Process
from sopilot.program.model import Act, Argument, Arguments, CallArguments, Check, Unknown
from sopilot.values.json import JSON, MISSING, Missing, parts_of
from sopilot.values.text import abbreviation_name, digest_of

_OPEN = (Unknown, Path)
_FIXED = (Constant, Path)


def value_of(
    term: Argument, layout: FunctionLayout, frame: Frame, known: Mapping[str, JSON]
) -> JSON | Missing:
    """The term's value, or ``MISSING``.

    A parameter is looked up in the frame alone: the process may know another
    value under the same name.
    """
    if isinstance(term, Constant):
        return term.value
    name = term.name
    if name in frame.locals:
        return frame.locals[name]
    if name in layout.parameters:
        return MISSING
    return known.get(name, MISSING)


def plain_arguments(arguments: CallArguments) -> Arguments:
    """Without the ones that look into an answer: a frame doesn't know them beforehand."""
    return tuple((name, term) for name, term in arguments if not isinstance(term, Path))


def value_at(here: Position, term: Argument) -> JSON | Missing:
    return value_of(term, here.layout, here.frame, here.process.known)


def known_arguments(here: Position, arguments: Arguments) -> tuple[dict[str, JSON], list[str]]:
    """The arguments that have a value, and the parameters that have none."""
    values: dict[str, JSON] = {}
    missing: list[str] = []
    for parameter, term in arguments:
        value = value_at(here, term)
        if value is MISSING:
            missing.append(parameter)
        else:
            values[parameter] = value
    return values, missing


def fits_act(here: Position, act: Act, action: str, arguments: Mapping[str, JSON]) -> bool:
    """Whether a call is the one the step asks for, as far as its values are known. Calls that
    look into earlier answers are judged where those are: see ``evidence``."""
    if act.action != action:
        return False
    for parameter, term in act.arguments:
        if isinstance(term, _OPEN):
            continue
        value = value_at(here, term)
        if value is MISSING:
            continue
        if parameter not in arguments:
            if value is not None:
                return False
        elif not here.program.agree(value, arguments[parameter]):
            return False
    return True


class Learning:
    """Collects learned values over a stack: a value goes to the frame, upwards to every
    caller that passed its name down, and to what the process knows."""

    __slots__ = ("_known", "_program", "frames", "learned")

    def __init__(self, program: ProgramLayout, process: Process) -> None:
        self._program = program
        self.frames = list(process.frames)
        self._known: Mapping[str, JSON] = process.known
        self.learned: dict[str, JSON] = {}

    @property
    def known(self) -> Mapping[str, JSON]:
        return self._known

    def learn(self, name: str, value: JSON) -> None:
        """Under ``name`` in the top frame."""
        self.learned[name] = value
        depth = len(self.frames) - 1
        while True:
            frame = self.frames[depth]
            layout = self._program.functions[frame.function]
            self.frames[depth] = frame.knowing({**frame.locals, name: value})
            if depth == 0 or name not in layout.parameters:
                self._known = {**self._known, name: value}
                return
            depth -= 1
            caller = self.frames[depth]
            step = self._program.functions[caller.function].steps[caller.cursor]
            assert isinstance(step, Check)
            term = dict(step.arguments).get(name)
            if term is None or isinstance(term, Constant):
                return
            name = term.name

    def learn_from_call(
        self, act: Act, arguments: Mapping[str, JSON], layout: FunctionLayout
    ) -> None:
        """Learn names that had no value from a successful call of ``act``."""
        agree = self._program.agree
        for parameter, term in act.arguments:
            if isinstance(term, _FIXED) or parameter not in arguments:
                continue
            have = value_of(term, layout, self.frames[-1], self._known)
            used = arguments[parameter]
            if have is MISSING or (isinstance(term, Unknown) and not agree(have, used)):
                self.learn(term.name, used)


_NESTED = (list, dict)
_SHOWN = (str, list, dict)


def whole_values(configuration: Configuration, arguments: dict[str, JSON]) -> dict[str, JSON]:
    """The arguments with every abbreviation of a known value replaced by it."""
    for value in arguments.values():
        if (isinstance(value, str) and value[:1] == "@") or (
            isinstance(value, _NESTED) and any(map(abbreviation_name, parts_of(value)))
        ):
            break
    else:
        return arguments
    known: dict[str, JSON] = {}
    twice: set[str] = set()
    for value in _known(configuration):
        name = digest_of(value)
        if name in known and known[name] != value:
            twice.add(name)
        known[name] = value

    def whole(value: JSON) -> JSON:
        if isinstance(value, list):
            return [whole(item) for item in value]
        if isinstance(value, dict):
            return {key: whole(item) for key, item in value.items()}
        name = abbreviation_name(value)
        return known[name] if name in known and name not in twice else value

    return {key: whole(value) for key, value in arguments.items()}


def _known(configuration: Configuration) -> Iterator[JSON]:
    for process in configuration.processes.values():
        yield from _long(process.arguments)
        yield from _long(process.known)
        for frame in process.frames:
            yield from _long(frame.locals)
            yield from (bound.value for bound in frame.slots.values() if bound.value is not None)

    for by_arguments in configuration.answers.values():
        for answered in by_arguments.values():
            # A recipe may lead to any place in an answer, and a frame shows what stands there.
            yield from (part for part in parts_of(answered.value) if isinstance(part, _SHOWN))


def _long(values: Mapping[str, JSON]) -> Iterator[JSON]:
    yield from (value for value in values.values() if not isinstance(value, int | float | bool))
