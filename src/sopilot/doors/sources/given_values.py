"""Values that a person gives: NAME=VALUE on the command line, results in a file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from sopilot.adapters.text_files import read_text
from sopilot.language.diagnostics import Diagnostic, Place, UserMistake, mistake
from sopilot.language.program import Act, Program, Unknown
from sopilot.runtime.agent import DEEP_BUDGETS, Budgets
from sopilot.runtime.vm.schema_check import violation

DEEPEST = 64
MOST_VALUES = 100_000
"""In one file, with aliases written out: a few lines of them can stand for more than fits."""
LARGEST_BUDGET = 10**9


def told(written: tuple[str, ...], programs: Mapping[str, Program]) -> dict[str, Any]:
    """What ``--knows`` says. ``order=17`` is a text where the procedures take nothing else."""
    found = pairs("--knows", written)
    texts = dict(pair.split("=", 1) for pair in written)
    for name, value in found.items():
        if isinstance(value, bool | int | float) and misfit(name, value, programs):
            found[name] = value if misfit(name, texts[name], programs) else texts[name]
    check_told(found, programs, "--knows")
    return found


def check_told(knows: Mapping[str, Any], programs: Mapping[str, Program], where: str) -> None:
    """Refuses what no procedure could take: the machine would refuse it at every step."""
    wrong = [
        Diagnostic("wrong-type", f"{problem}, not {json.dumps(value)}", Place(where))
        for name, value in knows.items()
        if (problem := misfit(name, value, programs))
    ]
    if wrong:
        raise UserMistake(wrong)


def misfit(name: str, value: Any, programs: Mapping[str, Program]) -> str:
    """Why a value fits none of the places that take such a name."""
    problems = [violation(value, kind, f"`{name}`") for kind in taken(programs).get(name, ())]
    return next((one for one in problems if one), "") if all(problems) else ""


def taken(programs: Mapping[str, Program]) -> dict[str, list[Mapping[str, object]]]:
    """What the user may be asked for, with the JSON Schemas it must meet one of: inputs of
    procedures, and what else a call needs (the password of a login)."""
    kinds: dict[str, list[Mapping[str, object]]] = {}
    for program in programs.values():
        for name, kind in program.types.items():
            kinds.setdefault(name, []).append(kind)
        for step in (one for function in program.functions.values() for one in function.steps):
            wanted = step.arguments if isinstance(step, Act) else ()
            facts = program.actions.get(step.action) if isinstance(step, Act) else None
            for given, value in wanted:
                if isinstance(value, Unknown):
                    kind = facts.inputs.get(given, {}) if facts else {}
                    kinds.setdefault(value.name, []).append(kind)
    return kinds


def pairs(option: str, written: tuple[str, ...]) -> dict[str, Any]:
    """``name=value``; a value that is not JSON is a text."""
    found: dict[str, Any] = {}
    if not written:
        return found
    for pair in written:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UserMistake(f"{option} takes NAME=VALUE, not `{pair}`")
        try:
            found[name] = json.loads(value)
        except (ValueError, RecursionError):
            found[name] = value
    check_values(found, Place(option))
    return found


def chosen_budgets(written: tuple[str, ...], *, deep: bool) -> dict[str, Any]:
    known = set(type(DEEP_BUDGETS).__dataclass_fields__)
    chosen: dict[str, Any] = (
        {"wall_seconds": DEEP_BUDGETS.wall_seconds, "user_turns": DEEP_BUDGETS.user_turns}
        if deep
        else {}
    )
    given = pairs("--budget", written)
    unknown = sorted(set(given) - known)
    if unknown:
        raise UserMistake(f"--budget: `{unknown[0]}` is none of {', '.join(sorted(known))}")
    given = {name: None if value == "none" else value for name, value in given.items()}
    Budgets(**given)
    for name, value in given.items():
        whole = isinstance(getattr(DEEP_BUDGETS, name), int)
        if whole and value is not None and not isinstance(value, int):
            raise UserMistake(f"the budget `{name}` is a whole number, not {value}")
    for name, value in given.items():
        if value is not None and value > LARGEST_BUDGET:
            raise UserMistake(f"the budget `{name}` is at most {LARGEST_BUDGET}")
    return chosen | given


def read_results(path: str) -> dict[str, Any]:
    text = read_text(Path(path))
    try:
        value = _json_or_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # A date that no calendar has is a ValueError of the reader.
        raise UserMistake(f"{path} is not YAML: {error}") from error
    if not isinstance(value, dict):
        raise UserMistake(f"{path} must map each action to its result")
    check_values(value, Place(path))
    return value


def _json_or_yaml(text: str) -> Any:
    """What is JSON is read as such: YAML's reader would leave its surrogate pairs apart."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return yaml.safe_load(text)


def check_values(value: object, place: Place) -> None:
    """Refuses what JSON cannot say, with the way to it: a tool could not have answered it."""
    found = _Walk().problem(value, "", 0)
    if found is not None:
        way, message, cure = found
        where = f"`{way}`: " if way else ""
        raise mistake("not-json", f"{where}{message}", place, cure)


def is_text(value: object) -> bool:
    """Whether it is a text, and can be written down: JSON can spell half of a character."""
    try:
        if isinstance(value, str):
            value.encode()
            return True
    except UnicodeEncodeError:
        pass
    return False


class _Walk:
    def __init__(self) -> None:
        self._seen = 0

    def problem(self, value: object, way: str, depth: int) -> tuple[str, str, str] | None:
        self._seen += 1
        if depth > DEEPEST or self._seen > MOST_VALUES:
            return way[:60], "it is nested too deeply, or holds itself", "write it out, without &"
        if isinstance(value, str):
            return None if is_text(value) else (way, "it holds half a character", "write it whole")
        if value is None or isinstance(value, bool | int):
            return None
        if isinstance(value, float):
            cure = "write a number, or a text in quotes"
            return None if math.isfinite(value) else (way, f"{value} is no JSON number", cure)
        inner: Sequence[tuple[object, object]]
        if isinstance(value, Mapping):
            inner = list(value.items())
            wrong = next((name for name, _ in inner if not is_text(name)), None)
            if wrong is not None or None in value:
                return way, f"the name {wrong!r} is not a text", "put it in quotes"
        elif isinstance(value, list):
            inner = list(enumerate(value))
        else:
            kind = type(value).__name__
            return way, f"a value of the kind {kind} is not JSON", "put it in quotes"
        for name, item in inner:
            found = self.problem(item, f"{way}.{name}" if way else str(name), depth + 1)
            if found is not None:
                return found
        return None


def sweep_budgets(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for beside the defaults; ``--budget`` has the last word."""
    chosen: dict[str, Any] = {}
    if given["temperature"] is not None:
        chosen |= chosen_budgets((f"temperature={given['temperature']}",), deep=False)
    named = (
        ("seed", "seed"),
        ("max_tokens", "reply_tokens"),
        ("context", "context_tokens"),
        ("timeout", "request_seconds"),
    )
    chosen |= {budget: given[option] for option, budget in named if given[option] is not None}
    return chosen | chosen_budgets(given["budget"], deep=False)


def json_object(option: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise UserMistake(f"{option} is not JSON") from None
    if not isinstance(found, dict):
        raise UserMistake(f"{option} must be a JSON object")
    return found
