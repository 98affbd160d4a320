"""One step of a program from its YAML node."""

from __future__ import annotations

from collections.abc import Callable

from sopilot.language.handbook import Path
from sopilot.language.handbook.collector import DiagnosticCollector
from sopilot.language.handbook.fields import (
    Fields,
    constant,
    entries,
    fields,
    flag,
    missing,
    optional_text,
    text,
    text_or_none,
    wording,
    wrong,
)
from sopilot.language.handbook.nodes import ListNode, MapNode, Node, ScalarNode
from sopilot.language.program.model import (
    Act,
    Always,
    Argument,
    Arguments,
    Ask,
    Branch,
    CallArguments,
    Check,
    Choose,
    CompleteStep,
    Condition,
    Do,
    Emit,
    Every,
    FailStep,
    Holds,
    Option,
    ReturnStep,
    Some,
    Step,
)
from sopilot.language.program.scalars import argument_from_scalar, path_from_text

_NOTHING_ELSE: tuple[str, ...] = ()
VERBS: dict[str, tuple[str, ...]] = {
    "call": ("with", "bind", "wanted", "met", "unmet", "says"),
    "branch": ("then", "otherwise"),
    "choose": ("options",),
    "act": ("with", "goal", "name", "for_each", "says", "next"),
    "ask": ("says", "next"),
    "do": ("uses", "next"),
    "emit": ("says", "schema", "next"),
    "return": ("says",),
    "complete": _NOTHING_ELSE,
    "fail": ("starts",),
}
"""What a step is → the keys it may have beside its label."""

_NEEDED: dict[str, tuple[str, ...]] = {
    "call": ("bind",),
    "branch": ("then", "otherwise"),
    "choose": ("options",),
}


def load_step(report: DiagnosticCollector, node: Node) -> Step | None:
    """The step, with harmless values where a diagnostic was reported; ``None`` without a kind."""
    if not isinstance(node, MapNode):
        wrong(report, node, "a step", "a mapping")
        return None
    verbs = [key for key, _ in node.pairs if key.text in VERBS]
    if len(verbs) != 1:
        seen = " and ".join(f"`{key.text}`" for key in verbs) or "none"
        names = ", ".join(f"`{verb}`" for verb in VERBS)
        message = f"a step does exactly one thing, found {seen}"
        report.error("wrong-step", message, node, f"use one of {names}")
        return None
    verb = verbs[0].text
    found = fields(report, node, ("step", verb, *VERBS[verb]), f"a `{verb}` step")
    for key in ("step", *_NEEDED.get(verb, ())):
        if key not in found:
            missing(report, node, key, f"a `{verb}` step")
    return _LOAD[verb](report, optional_text(report, found, "step"), found)


def _call(report: DiagnosticCollector, label: str, found: Fields) -> Step:
    wanted = flag(report, found["wanted"].value, "`wanted`") if "wanted" in found else True
    return Check(
        label=label,
        function=optional_text(report, found, "call"),
        arguments=_arguments(report, found),
        slot=optional_text(report, found, "bind"),
        wanted=wanted,
        met=text_or_none(report, found, "met"),
        unmet=text_or_none(report, found, "unmet"),
        says=wording(report, found, "says"),
    )


def _branch(report: DiagnosticCollector, label: str, found: Fields) -> Step:
    return Branch(
        label,
        _condition(report, found["branch"].value),
        optional_text(report, found, "then"),
        optional_text(report, found, "otherwise"),
    )


def _choose(report: DiagnosticCollector, label: str, found: Fields) -> Step:
    options: list[Option] = []
    if "options" in found:
        node = found["options"].value
        if not isinstance(node, ListNode):
            wrong(report, node, "`options`", "a list")
        else:
            for item in node.items:
                inner = fields(report, item, ("name", "to", "says"), "an option")
                for key in ("name", "to"):
                    if key not in inner:
                        missing(report, item, key, "an option")
                name, target = (optional_text(report, inner, key) for key in ("name", "to"))
                options.append(Option(name, target, wording(report, inner, "says")))
    return Choose(label, wording(report, found, "choose"), tuple(options))


def _act(report: DiagnosticCollector, label: str, found: Fields) -> Step:
    goal = flag(report, found["goal"].value, "`goal`") if "goal" in found else False
    each, element = _each(report, found)
    return Act(
        label=label,
        action=optional_text(report, found, "act"),
        arguments=_call_arguments(report, found),
        goal=goal,
        says=wording(report, found, "says"),
        next=text_or_none(report, found, "next"),
        name=optional_text(report, found, "name"),
        each=each,
        element=element,
    )


def _each(report: DiagnosticCollector, found: Fields) -> tuple[Path | None, str]:
    """``call.items as item``."""
    if "for_each" not in found:
        return None, ""
    where, _, element = optional_text(report, found, "for_each").partition(" as ")
    path = path_from_text(where)
    if path is None or not element:
        wrong(report, found["for_each"].value, "`for_each`", "a list like `read.items as item`")
    return path, element


def _ask(report: DiagnosticCollector, label: str, found: Fields) -> Step:
    says = wording(report, found, "says")
    return Ask(label, texts(report, found, "ask"), says, text_or_none(report, found, "next"))


def _do(report: DiagnosticCollector, label: str, found: Fields) -> Step:
    says = wording(report, found, "do")
    return Do(label, says, texts(report, found, "uses"), text_or_none(report, found, "next"))


def _emit(report: DiagnosticCollector, label: str, found: Fields) -> Step:
    schema: dict[str, object] | None = None
    if "schema" in found:
        node = found["schema"].value
        value = json_of(node)
        if isinstance(value, dict):
            schema = value
        else:
            wrong(report, node, "`schema`", "a JSON Schema object")
    return Emit(
        label=label,
        artifact=optional_text(report, found, "emit"),
        says=wording(report, found, "says"),
        schema=schema,
        next=text_or_none(report, found, "next"),
    )


def _return(report: DiagnosticCollector, label: str, found: Fields) -> Step:
    node = found["return"].value
    judged = isinstance(node, ScalarNode) and node.value is None
    holds = None if judged else _condition(report, node)
    return ReturnStep(label, holds, wording(report, found, "says"))


def _complete(report: DiagnosticCollector, label: str, found: Fields) -> Step:
    return CompleteStep(label, _closing(report, found, "complete"))


def _fail(report: DiagnosticCollector, label: str, found: Fields) -> Step:
    starts = optional_text(report, found, "starts")
    return FailStep(label, _closing(report, found, "fail"), starts)


_LOAD: dict[str, Callable[[DiagnosticCollector, str, Fields], Step]] = {
    "call": _call,
    "branch": _branch,
    "choose": _choose,
    "act": _act,
    "ask": _ask,
    "do": _do,
    "emit": _emit,
    "return": _return,
    "complete": _complete,
    "fail": _fail,
}


def _closing(report: DiagnosticCollector, found: Fields, key: str) -> str:
    node = found[key].value
    if isinstance(node, ScalarNode) and node.value is None:
        return ""
    return wording(report, found, key)


def _arguments(report: DiagnosticCollector, found: Fields) -> Arguments:
    """Of a function, which knows no answers."""
    arguments: list[tuple[str, Argument]] = []
    for name, argument in _call_arguments(report, found):
        if isinstance(argument, Path):
            wrong(report, found["with"].value, f"`{name}`", "a value, not a place in an answer")
        else:
            arguments.append((name, argument))
    return tuple(arguments)


def _call_arguments(report: DiagnosticCollector, found: Fields) -> CallArguments:
    if "with" not in found:
        return ()
    return tuple(
        (key.text, argument_from_scalar(constant(report, value, f"`{key.text}`")))
        for key, value in entries(report, found["with"].value, "`with`")
    )


def _condition(report: DiagnosticCollector, node: Node) -> Condition:
    """The parser bounds the depth of nodes, so this recursion is bounded too."""
    if isinstance(node, ScalarNode):
        value = node.value
        if isinstance(value, bool):
            return Always(value)
        if isinstance(value, str):
            slot = value.removeprefix("not ")
            return Holds(slot, slot == value)
    elif isinstance(node, MapNode) and len(node.pairs) == 1:
        key, inner = node.pairs[0]
        if key.text in ("all", "any") and isinstance(inner, ListNode):
            parts = tuple(_condition(report, part) for part in inner.items)
            return Every(parts) if key.text == "all" else Some(parts)
    expected = "a slot, `not slot`, `true`, `false`, `{all: […]}` or `{any: […]}`"
    wrong(report, node, "a condition", expected)
    return Always(True)


def json_of(node: Node) -> object:
    if isinstance(node, ListNode):
        return [json_of(item) for item in node.items]
    if isinstance(node, MapNode):
        return {key.text: json_of(value) for key, value in node.pairs}
    return node.value


def texts(report: DiagnosticCollector, found: Fields, key: str) -> tuple[str, ...]:
    """A list of text under ``key``; nothing when it is absent."""
    if key not in found:
        return ()
    node = found[key].value
    if not isinstance(node, ListNode):
        wrong(report, node, f"`{key}`", "a list")
        return ()
    return tuple(text(report, item, f"an entry of `{key}`") for item in node.items)
