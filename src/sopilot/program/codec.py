"""The program artifact: YAML out, YAML in, and its hash.

A program can be written by hand in the same form::

    sopilot_program: 1
    entry: close_ticket
    functions:
      close_ticket:
        kind: process                      # process, group, gate or rule
        parameters: [ticket]
        steps:
          - step: open                     # the label
            call: ticket_open              # or branch, choose, act, ask, do, emit,
            with: {ticket: $ticket}        #    return, complete, fail
            bind: is_open                  # the slot that holds the result
            unmet: refuse                  # without `met` and `unmet`: the next step
          - step: close
            act: close_ticket
            with: {ticket: $ticket, note: "?note"}
            goal: true
          - step: done
            complete: The ticket is closed.
          - step: refuse
            fail: Say that the ticket is not open.
            starts: hand_over              # the goal that follows, if one does
      ticket_open:
        kind: rule
        parameters: [ticket]
        predicate: ticket_open
        steps:
          - {step: read, act: read_ticket, with: {id: $ticket}}
          - {step: judge, return: null}    # null: judged from the evidence

``$name`` is a value of the function, ``$call.key`` a place in an earlier answer of the
recipe (``$call.`` all of it), ``?name`` one that must be found out, ``$$`` and ``??``
stand for a text that starts with the sign. An ``act`` may ``name`` its answer and be
made ``for_each: call.list as element``. A condition is a slot,
``not slot``, ``true``, ``false``, ``{all: […]}`` or ``{any: […]}``.

YAML → program, as input from anyone: strict, bounded, every mistake at its place.

One step of a program from its YAML node.

Program → YAML. Built by hand: the same program always gives the same bytes, fast.

How a single value is written in a program's YAML, and what a written value means.

Strings stay plain only where no YAML reader could take them for anything else;
everything else is double-quoted with JSON's escapes.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from sopilot.handbook.fields import (
    Field,
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
from sopilot.handbook.grammar import Translated
from sopilot.handbook.nodes import ListNode, MapNode, Node, ScalarNode
from sopilot.handbook.requirements import Path, Scalar
from sopilot.handbook.yaml import parse_nodes
from sopilot.messages.diagnostic import Diagnostic, DiagnosticCollector, Place
from sopilot.messages.errors import UserMistake, mistake
from sopilot.program.model import (
    FORMAT,
    Act,
    ActionFacts,
    Always,
    Argument,
    Arguments,
    Ask,
    Branch,
    CallArgument,
    CallArguments,
    Check,
    Choose,
    CompleteStep,
    Condition,
    Do,
    Emit,
    Every,
    FailStep,
    Function,
    Guarded,
    Holds,
    Kind,
    Literal,
    Local,
    Option,
    Program,
    ReturnStep,
    Some,
    Source,
    Step,
    Unknown,
)
from sopilot.program.verifier import WHOLE, verify_program

_PLAIN = re.compile(r"[A-Za-z_$](?:[A-Za-z0-9_$./ -]*[A-Za-z0-9_$./])?")


_NOT_PLAIN = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufdd0-\ufdef\ufeff\ufffe\uffff]")


_LARGEST = 10**300


_HALF_PAIR = re.compile("[\ud800-\udfff]")


@lru_cache(maxsize=8192)
def text_to_yaml(text: str) -> str:
    """A text that is written in several languages becomes a mapping."""
    if isinstance(text, Translated):
        written = [f"{item}: {text_to_yaml(reply)}" for item, reply in text.texts.items()]
        return "{" + ", ".join(written) + "}"
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN:
        return text
    if _HALF_PAIR.search(text):
        raise _unwritable(f"a text holds half a surrogate pair: {ascii(text)[:80]}")
    return _UNPRINTABLE.sub(
        lambda match: f"\\u{ord(match.group()):04x}", json.dumps(text, ensure_ascii=False)
    )


def scalar_to_yaml(value: Scalar) -> str:
    if isinstance(value, str):
        return text_to_yaml(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _unwritable("a number is infinite or not a number")
        return repr(value)
    if abs(value) >= _LARGEST:
        raise _unwritable("a whole number has too many digits")
    return repr(value)


def argument_to_yaml(argument: CallArgument) -> str:
    if isinstance(argument, Local):
        return text_to_yaml("$" + argument.name)
    if isinstance(argument, Unknown):
        return text_to_yaml("?" + argument.name)
    if isinstance(argument, Path):
        return text_to_yaml("$" + path_to_text(argument))
    value = argument.value
    if isinstance(value, str) and value[:1] in ("$", "?"):
        return text_to_yaml(value[0] + value)
    return scalar_to_yaml(value)


def argument_from_scalar(value: Scalar) -> CallArgument:
    """``$name`` is a local, ``$name.key`` a place in an answer, ``?name`` nobody knows yet; a
    doubled sign stands for itself."""
    if isinstance(value, str) and value[:1] in ("$", "?"):
        if value[1:2] == value[0]:
            return Literal(value[1:])
        if value[0] == "?":
            return Unknown(value[1:])
        return path_from_text(value[1:]) or Local(value[1:])
    return Literal(value)


_PATH = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\.|(?:\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,6}\])+)")


_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]")


def path_to_text(path: Path) -> str:
    """``call.key[0]``; a whole answer ends with a dot, which tells it from a local."""
    return str(path) if path.steps else f"{path.root}."


def path_from_text(text: str) -> Path | None:
    match = _PATH.fullmatch(text)
    if match is None:
        return None
    steps = tuple(key or int(position) for key, position in _STEP.findall(match[2]))
    return Path(match[1], steps)


def json_to_yaml(value: object) -> str:
    """JSON on one line, keys sorted; it means the same to a YAML reader."""
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _unwritable(f"a schema is not JSON: {error}") from error
    if _HALF_PAIR.search(text):
        raise _unwritable("a schema holds half a surrogate pair")
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _unwritable(message: str) -> UserMistake:
    return mistake("unwritable-value", message, help="use a plain JSON value")


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
    result = fields(report, node, ("step", verb, *VERBS[verb]), f"a `{verb}` step")
    for key in ("step", *_NEEDED.get(verb, ())):
        if key not in result:
            missing(report, node, key, f"a `{verb}` step")
    return _LOAD[verb](report, optional_text(report, result, "step"), result)


def _call(report: DiagnosticCollector, label: str, result: Fields) -> Step:
    wanted = flag(report, result["wanted"].value, "`wanted`") if "wanted" in result else True
    return Check(
        label=label,
        function=optional_text(report, result, "call"),
        arguments=_arguments(report, result),
        slot=optional_text(report, result, "bind"),
        wanted=wanted,
        met=text_or_none(report, result, "met"),
        unmet=text_or_none(report, result, "unmet"),
        says=wording(report, result, "says"),
    )


def _branch(report: DiagnosticCollector, label: str, result: Fields) -> Step:
    return Branch(
        label,
        _condition(report, result["branch"].value),
        optional_text(report, result, "then"),
        optional_text(report, result, "otherwise"),
    )


def _choose(report: DiagnosticCollector, label: str, result: Fields) -> Step:
    options: list[Option] = []
    if "options" in result:
        node = result["options"].value
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
    return Choose(label, wording(report, result, "choose"), tuple(options))


def _act(report: DiagnosticCollector, label: str, result: Fields) -> Step:
    goal = flag(report, result["goal"].value, "`goal`") if "goal" in result else False
    each, element = _each(report, result)
    return Act(
        label=label,
        action=optional_text(report, result, "act"),
        arguments=_call_arguments(report, result),
        goal=goal,
        says=wording(report, result, "says"),
        next=text_or_none(report, result, "next"),
        name=optional_text(report, result, "name"),
        each=each,
        element=element,
    )


def _each(report: DiagnosticCollector, result: Fields) -> tuple[Path | None, str]:
    """``call.items as item``."""
    if "for_each" not in result:
        return None, ""
    where, _, element = optional_text(report, result, "for_each").partition(" as ")
    path = path_from_text(where)
    if path is None or not element:
        wrong(report, result["for_each"].value, "`for_each`", "a list like `read.items as item`")
    return path, element


def _ask(report: DiagnosticCollector, label: str, result: Fields) -> Step:
    says = wording(report, result, "says")
    return Ask(label, texts(report, result, "ask"), says, text_or_none(report, result, "next"))


def _do(report: DiagnosticCollector, label: str, result: Fields) -> Step:
    says = wording(report, result, "do")
    return Do(label, says, texts(report, result, "uses"), text_or_none(report, result, "next"))


def _emit(report: DiagnosticCollector, label: str, result: Fields) -> Step:
    schema: dict[str, object] | None = None
    if "schema" in result:
        node = result["schema"].value
        value = json_of(node)
        if isinstance(value, dict):
            schema = value
        else:
            wrong(report, node, "`schema`", "a JSON Schema object")
    return Emit(
        label=label,
        artifact=optional_text(report, result, "emit"),
        says=wording(report, result, "says"),
        schema=schema,
        next=text_or_none(report, result, "next"),
    )


def _return(report: DiagnosticCollector, label: str, result: Fields) -> Step:
    node = result["return"].value
    judged = isinstance(node, ScalarNode) and node.value is None
    holds = None if judged else _condition(report, node)
    return ReturnStep(label, holds, wording(report, result, "says"))


def _complete(report: DiagnosticCollector, label: str, result: Fields) -> Step:
    return CompleteStep(label, _closing(report, result, "complete"))


def _fail(report: DiagnosticCollector, label: str, result: Fields) -> Step:
    starts = optional_text(report, result, "starts")
    return FailStep(label, _closing(report, result, "fail"), starts)


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


def _closing(report: DiagnosticCollector, result: Fields, key: str) -> str:
    node = result[key].value
    if isinstance(node, ScalarNode) and node.value is None:
        return ""
    return wording(report, result, key)


def _arguments(report: DiagnosticCollector, result: Fields) -> Arguments:
    """Of a function, which knows no answers."""
    arguments: list[tuple[str, Argument]] = []
    for name, argument in _call_arguments(report, result):
        if isinstance(argument, Path):
            wrong(report, result["with"].value, f"`{name}`", "a value, not a place in an answer")
        else:
            arguments.append((name, argument))
    return tuple(arguments)


def _call_arguments(report: DiagnosticCollector, result: Fields) -> CallArguments:
    if "with" not in result:
        return ()
    return tuple(
        (key.text, argument_from_scalar(constant(report, value, f"`{key.text}`")))
        for key, value in entries(report, result["with"].value, "`with`")
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


def texts(report: DiagnosticCollector, result: Fields, key: str) -> tuple[str, ...]:
    """A list of text under ``key``; nothing when it is absent."""
    if key not in result:
        return ()
    node = result[key].value
    if not isinstance(node, ListNode):
        wrong(report, node, f"`{key}`", "a list")
        return ()
    return tuple(text(report, item, f"an entry of `{key}`") for item in node.items)


LARGEST_PROGRAM = 20_000_000
"""Characters. A program says at length what its handbook says in a line."""


_PROGRAM_KEYS = (
    "sopilot_program",
    "entry",
    "compiler",
    "source",
    "constants",
    "guarded",
    "types",
    "actions",
    "read_only",
    "functions",
    "secrets",
    "not_found",
)


_FUNCTION_KEYS = (
    "kind",
    "parameters",
    "predicate",
    "says",
    "says_not",
    "verdict",
    "remedy",
    "steps",
    "fallbacks",
    "notes",
    "judged_by",
    "closed_by",
    "principal",
    "reusable",
    "computes",
    "value",
    "optional",
    "question",
    "customer_message",
)


def program_from_yaml(written: str, source: str = "<input>") -> Program:
    """The program in ``written``, verified. Raises ``UserMistake`` with every mistake found."""
    report = DiagnosticCollector(source)
    root = parse_nodes(written, report, largest=LARGEST_PROGRAM)
    if root is None:
        raise UserMistake(report.diagnostics())
    loader = _Loader(source, report)
    program = loader.program(root)
    mistakes = [*report.diagnostics(), *loader.diagnostics]
    results = verify_program(program, places=loader.places)
    if mistakes:
        # What could not be read is missing from the program: only what the verifier says
        # about functions that were read whole, and does not rest on the others, is certain.
        results = [item for item in results if loader.is_certain(item)]
    mistakes += results
    if mistakes:
        raise UserMistake(sorted(mistakes, key=lambda item: (item.place.line, item.place.column)))
    return program


class _Loader:
    def __init__(self, source: str, report: DiagnosticCollector) -> None:
        self.source = source
        self.report = report
        self.places: dict[tuple[str, int], Place] = {}
        self.diagnostics: list[Diagnostic] = []
        self._broken: set[str] = set()

    def is_certain(self, diagnostic: Diagnostic) -> bool:
        function = diagnostic.place.path.split("@", 1)[0]
        rests_on_others = ("unused-function", "wrong-arguments")
        return (
            (function, WHOLE) in self.places
            and function not in self._broken
            and diagnostic.code not in rests_on_others
        )

    def program(self, root: Node) -> Program:
        report = self.report
        result = fields(report, root, _PROGRAM_KEYS, "a program")
        self.places["", WHOLE] = Place(self.source, root.line, root.column)
        for needed in ("sopilot_program", "entry", "functions"):
            if needed not in result and isinstance(root, MapNode):
                missing(report, root, needed, "a program")
        _check_format(report, result)
        functions: dict[str, Function] = {}
        if "functions" in result:
            for key, value in entries(report, result["functions"].value, "`functions`"):
                functions[key.text] = self._function(key, value)
        return Program(
            entry=optional_text(report, result, "entry"),
            functions=functions,
            source=self._source(result),
            compiler=optional_text(report, result, "compiler"),
            constants=self._constants(result),
            guarded=self._guarded(result),
            types=_schemas(report, result, "types"),
            actions=_actions(report, result),
            read_only=texts(report, result, "read_only"),
            secrets=texts(report, result, "secrets"),
            not_found=_expressions(report, result, "not_found"),
        )

    def _source(self, result: Fields) -> Source:
        if "source" not in result:
            return Source("", "", "")
        keys = ("handbook", "procedure", "sha256", "tools")
        inner = fields(self.report, result["source"].value, keys, "`source`")
        values = [optional_text(self.report, inner, key) for key in keys]
        return Source(*values)

    def _constants(self, result: Fields) -> dict[str, Any]:
        if "constants" not in result:
            return {}
        return {
            key.text: constant(self.report, value, f"`{key.text}`")
            if isinstance(value, ScalarNode)
            else json_of(value)
            for key, value in entries(self.report, result["constants"].value, "`constants`")
        }

    def _guarded(self, result: Fields) -> tuple[Guarded, ...]:
        if "guarded" not in result:
            return ()
        node = result["guarded"].value
        if not isinstance(node, ListNode):
            wrong(self.report, node, "`guarded`", "a list")
            return ()
        guards = []
        for item in node.items:
            keys = ("action", "roles", "needed", "expires_seconds", "recheck", "when")
            inner = fields(self.report, item, keys, "a guard")
            if "action" not in inner:
                missing(self.report, item, "action", "a guard")
            guards.append(
                Guarded(
                    action=optional_text(self.report, inner, "action"),
                    roles=texts(self.report, inner, "roles"),
                    needed=_whole(self.report, inner, "needed") or 0,
                    expires_seconds=_whole(self.report, inner, "expires_seconds"),
                    recheck="recheck" in inner
                    and flag(self.report, inner["recheck"].value, "`recheck`"),
                    when=text_or_none(self.report, inner, "when"),
                )
            )
        return tuple(guards)

    def _function(self, key: ScalarNode, node: Node) -> Function:
        report = DiagnosticCollector(self.source)
        name = key.text
        self.places[name, WHOLE] = Place(self.source, key.line, key.column)
        what = f"function `{name}`"
        result = fields(report, node, _FUNCTION_KEYS, what)
        for needed in ("kind", "steps"):
            if needed not in result and isinstance(node, MapNode):
                missing(report, key, needed, what)
        function = Function(
            name=name,
            kind=_kind(report, result),
            parameters=texts(report, result, "parameters"),
            steps=self._steps(report, name, result),
            says=wording(report, result, "says"),
            says_not=wording(report, result, "says_not"),
            predicate=text_or_none(report, result, "predicate"),
            fallbacks=_fallbacks(report, result),
            verdict=text_or_none(report, result, "verdict"),
            remedy=wording(report, result, "remedy"),
            notes=texts(report, result, "notes"),
            judged_by_model=_judged_by_model(report, result),
            closed_by=_closed_by(report, result),
            principal="principal" in result
            and flag(report, result["principal"].value, "`principal`"),
            reusable="reusable" in result and flag(report, result["reusable"].value, "`reusable`"),
            computes=optional_text(report, result, "computes"),
            value=text_or_none(report, result, "value"),
            optional=texts(report, result, "optional"),
            question=optional_text(report, result, "question"),
            customer_message=wording(report, result, "customer_message"),
        )
        if report.failed:
            self._broken.add(name)
            self.diagnostics += report.diagnostics()
        return function

    def _steps(
        self, report: DiagnosticCollector, function: str, result: Fields
    ) -> tuple[Step, ...]:
        steps: list[Step] = []
        for item in _items(report, result, "steps"):
            step = load_step(report, item)
            if step is not None:
                place = Place(self.source, item.line, item.column)
                self.places[function, len(steps)] = place
                steps.append(step)
        return tuple(steps)


def _check_format(report: DiagnosticCollector, result: Fields) -> None:
    version = _whole(report, result, "sopilot_program")
    if version is not None and version != FORMAT:
        report.error(
            "unknown-format",
            f"program format {version} is not known",
            result["sopilot_program"].value,
            f"this version reads format {FORMAT}",
        )


def _kind(report: DiagnosticCollector, result: Fields) -> Kind:
    word = optional_text(report, result, "kind")
    if word in set(Kind):
        return Kind(word)
    if "kind" in result:
        kinds = ", ".join(f"`{kind}`" for kind in Kind)
        wrong(report, result["kind"].value, "`kind`", f"one of {kinds}")
    return Kind.RULE


def _fallbacks(report: DiagnosticCollector, result: Fields) -> tuple[tuple[Act, ...], ...]:
    fallbacks = []
    for item in _items(report, result, "fallbacks"):
        if not isinstance(item, ListNode):
            wrong(report, item, "a fallback", "a list of `act` steps")
            continue
        acts = []
        for inner in item.items:
            step = load_step(report, inner)
            if isinstance(step, Act):
                acts.append(step)
            elif step is not None:
                wrong(report, inner, "a part of a fallback", "an `act` step")
        fallbacks.append(tuple(acts))
    return tuple(fallbacks)


def _judged_by_model(report: DiagnosticCollector, result: Fields) -> bool:
    if "judged_by" not in result:
        return False
    if optional_text(report, result, "judged_by") != "model":
        wrong(report, result["judged_by"].value, "`judged_by`", "`model`")
    return True


def _closed_by(report: DiagnosticCollector, result: Fields) -> Act | None:
    if "closed_by" not in result:
        return None
    step = load_step(report, result["closed_by"].value)
    if isinstance(step, Act):
        return step
    if step is not None:
        wrong(report, result["closed_by"].value, "`closed_by`", "an `act` step")
    return None


def _schemas(
    report: DiagnosticCollector, result: Fields, key: str
) -> dict[str, Mapping[str, object]]:
    """Name → JSON Schema; a bare word is a type."""
    if key not in result:
        return {}
    schemas: dict[str, Mapping[str, object]] = {}
    for name, node in entries(report, result[key].value, f"`{key}`"):
        value = json_of(node)
        if isinstance(value, str):
            value = {"type": value}
        if isinstance(value, dict):
            schemas[name.text] = value
        else:
            wrong(report, node, f"`{name.text}`", "a type or a JSON Schema")
    return schemas


def _expressions(report: DiagnosticCollector, result: Fields, key: str) -> dict[str, str]:
    if key not in result:
        return {}
    return {
        name.text: text(report, node, f"`{name.text}`")
        for name, node in entries(report, result[key].value, f"`{key}`")
    }


def _actions(report: DiagnosticCollector, result: Fields) -> dict[str, ActionFacts]:
    if "actions" not in result:
        return {}
    actions: dict[str, ActionFacts] = {}
    for name, node in entries(report, result["actions"].value, "`actions`"):
        keys = ("input", "required", "changes", "reads", "shared")
        inner = fields(report, node, keys, f"the action `{name.text}`")
        actions[name.text] = ActionFacts(
            _schemas(report, inner, "input"),
            texts(report, inner, "required"),
            texts(report, inner, "changes") if "changes" in inner else None,
            texts(report, inner, "reads") if "reads" in inner else None,
            "shared" in inner and flag(report, inner["shared"].value, "`shared`"),
        )
    return actions


def _items(report: DiagnosticCollector, result: Fields, key: str) -> tuple[Node, ...]:
    if key not in result:
        return ()
    node = result[key].value
    if isinstance(node, ListNode):
        return node.items
    wrong(report, node, f"`{key}`", "a list")
    return ()


def _whole(report: DiagnosticCollector, result: Fields, key: str) -> int | None:
    field: Field | None = result.get(key)
    if field is None:
        return None
    node = field.value
    value = node.value if isinstance(node, ScalarNode) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    wrong(report, node, f"`{key}`", "a whole number")
    return None


Parts = list[str]
"""``key: value`` texts in the order they are shown, for a block or a flow mapping."""


def program_to_yaml(program: Program) -> str:
    """The artifact: deterministic, readable, and read back to an equal program."""
    source = program.source
    lines = [
        f"sopilot_program: {FORMAT}",
        f"entry: {text_to_yaml(program.entry)}",
    ]
    if program.compiler:
        lines.append(f"compiler: {text_to_yaml(program.compiler)}")
    named = [
        ("handbook", source.handbook),
        ("procedure", source.procedure),
        ("sha256", source.sha256),
        ("tools", source.tools),
    ]
    if any(value for _, value in named):
        lines.append("source:")
        lines += [f"  {key}: {text_to_yaml(value)}" for key, value in named if value]
    if program.constants:
        lines.append("constants:")
        lines += [
            f"  {text_to_yaml(name)}: {_constant(value)}"
            for name, value in program.constants.items()
        ]
    if program.guarded:
        lines.append("guarded:")
        for guarded in program.guarded:
            parts = [f"action: {text_to_yaml(guarded.action)}"]
            if guarded.roles:
                parts.append(f"roles: {_names(guarded.roles)}")
            if guarded.needed:
                parts.append(f"needed: {guarded.needed!r}")
            if guarded.expires_seconds is not None:
                parts.append(f"expires_seconds: {guarded.expires_seconds!r}")
            if guarded.recheck:
                parts.append("recheck: true")
            if guarded.when is not None:
                parts.append(f"when: {text_to_yaml(guarded.when)}")
            lines.append(f"  - {_flow(parts)}")
    if program.secrets:
        lines.append(f"secrets: {_names(program.secrets)}")
    if program.not_found:
        lines.append("not_found:")
        lines += [
            f"  {text_to_yaml(name)}: {text_to_yaml(item)}"
            for name, item in program.not_found.items()
        ]
    if program.types:
        lines.append("types:")
        lines += [
            f"  {text_to_yaml(name)}: {_schema(schema)}" for name, schema in program.types.items()
        ]
    if program.actions:
        lines.append("actions:")
        lines += [
            f"  {text_to_yaml(name)}: {_facts(facts)}" for name, facts in program.actions.items()
        ]
    if program.read_only:
        lines.append(f"read_only: {_names(program.read_only)}")
    lines.append("functions:" if program.functions else "functions: {}")
    for name, function in program.functions.items():
        _write_function(name, function, lines)
    lines.append("")
    return "\n".join(lines)


def _constant(value: object) -> str:
    return json_to_yaml(value) if isinstance(value, list | dict) else scalar_to_yaml(value)  # type: ignore[arg-type]  # JSON


def _schema(schema: Mapping[str, object]) -> str:
    kind = schema.get("type")
    if len(schema) == 1 and isinstance(kind, str):
        return text_to_yaml(kind)
    return json_to_yaml(schema)


def _facts(facts: ActionFacts) -> str:
    parts = []
    if facts.inputs:
        written = [f"{text_to_yaml(name)}: {_schema(item)}" for name, item in facts.inputs.items()]
        parts.append(f"input: {{{', '.join(written)}}}")
    if facts.required:
        parts.append(f"required: {_names(facts.required)}")
    if facts.changes is not None:
        parts.append(f"changes: {_names(facts.changes)}")
    if facts.reads is not None:
        parts.append(f"reads: {_names(facts.reads)}")
    if facts.shared:
        parts.append("shared: true")
    return _flow(parts)


def _write_function(name: str, function: Function, lines: list[str]) -> None:
    lines.append(f"  {text_to_yaml(name)}:")
    lines.append(f"    kind: {function.kind.value}")
    if function.parameters:
        lines.append(f"    parameters: {_names(function.parameters)}")
    for key, value in (
        ("predicate", function.predicate),
        ("says", function.says or None),
        ("says_not", function.says_not or None),
        ("verdict", function.verdict),
        ("remedy", function.remedy or None),
        ("computes", function.computes or None),
        ("value", function.value),
        ("question", function.question or None),
        ("customer_message", function.customer_message or None),
    ):
        if value is not None:
            lines.append(f"    {key}: {text_to_yaml(value)}")
    if function.optional:
        lines.append(f"    optional: {_names(function.optional)}")
    if function.principal:
        lines.append("    principal: true")
    if function.reusable:
        lines.append("    reusable: true")
    if function.judged_by_model:
        lines.append("    judged_by: model")
    if function.closed_by is not None:
        lines.append(f"    closed_by: {_flow(step_parts(function.closed_by))}")
    lines.append("    steps:" if function.steps else "    steps: []")
    lines += ["      - " + "\n        ".join(step_parts(step)) for step in function.steps]
    if function.fallbacks:
        lines.append("    fallbacks:")
        lines += [
            "      - [" + ", ".join(_flow(step_parts(act)) for act in acts) + "]"
            for acts in function.fallbacks
        ]
    if function.notes:
        lines.append("    notes:")
        lines += [f"      - {text_to_yaml(note)}" for note in function.notes]


def step_parts(step: Step) -> Parts:
    """A step as it is written: its label, what it is, then what it needs."""
    parts = [f"step: {text_to_yaml(step.label)}"]
    if isinstance(step, Check):
        parts.append(f"call: {text_to_yaml(step.function)}")
        _with(parts, step.arguments)
        parts.append(f"bind: {text_to_yaml(step.slot)}")
        if not step.wanted:
            parts.append("wanted: false")
        _jump(parts, "met", step.met)
        _jump(parts, "unmet", step.unmet)
        _says(parts, step.says)
    elif isinstance(step, Act):
        parts.append(f"act: {text_to_yaml(step.action)}")
        _with(parts, step.arguments)
        if step.goal:
            parts.append("goal: true")
        if step.name:
            parts.append(f"name: {text_to_yaml(step.name)}")
        if step.each is not None:
            each = f"{path_to_text(step.each)} as {step.element}"
            parts.append(f"for_each: {text_to_yaml(each)}")
        _says(parts, step.says)
        _jump(parts, "next", step.next)
    elif isinstance(step, ReturnStep):
        value = "null" if step.holds is None else condition_to_yaml(step.holds)
        parts.append(f"return: {value}")
        _says(parts, step.says)
    elif isinstance(step, Branch):
        parts.append(f"branch: {condition_to_yaml(step.when)}")
        _jump(parts, "then", step.then)
        _jump(parts, "otherwise", step.otherwise)
    elif isinstance(step, CompleteStep):
        parts.append(f"complete: {text_to_yaml(step.says)}")
    elif isinstance(step, FailStep):
        parts.append(f"fail: {text_to_yaml(step.says)}")
        _jump(parts, "starts", step.starts or None)
    elif isinstance(step, Choose):
        parts.append(f"choose: {text_to_yaml(step.says)}")
        parts.append("options: [" + ", ".join(map(_option, step.options)) + "]")
    elif isinstance(step, Ask):
        parts.append(f"ask: {_names(step.wants)}")
        _says(parts, step.says)
        _jump(parts, "next", step.next)
    elif isinstance(step, Do):
        parts.append(f"do: {text_to_yaml(step.says)}")
        if step.uses:
            parts.append(f"uses: {_names(step.uses)}")
        _jump(parts, "next", step.next)
    elif isinstance(step, Emit):
        parts.append(f"emit: {text_to_yaml(step.artifact)}")
        _says(parts, step.says)
        if step.schema is not None:
            parts.append(f"schema: {json_to_yaml(step.schema)}")
        _jump(parts, "next", step.next)
    return parts


def condition_to_yaml(condition: Condition) -> str:
    if isinstance(condition, Holds):
        return text_to_yaml(condition.slot if condition.wanted else f"not {condition.slot}")
    if isinstance(condition, Always):
        return "true" if condition.value else "false"
    word = "all" if isinstance(condition, Every) else "any"
    return f"{{{word}: [" + ", ".join(map(condition_to_yaml, condition.conditions)) + "]}"


def _option(option: Option) -> str:
    parts = [f"name: {text_to_yaml(option.name)}", f"to: {text_to_yaml(option.target)}"]
    _says(parts, option.says)
    return _flow(parts)


def _with(parts: Parts, arguments: CallArguments) -> None:
    if arguments:
        written = [f"{text_to_yaml(name)}: {argument_to_yaml(value)}" for name, value in arguments]
        parts.append(f"with: {{{', '.join(written)}}}")


def _jump(parts: Parts, key: str, target: str | None) -> None:
    if target is not None:
        parts.append(f"{key}: {text_to_yaml(target)}")


def _says(parts: Parts, says: str) -> None:
    if says:
        parts.append(f"says: {text_to_yaml(says)}")


def _names(names: Iterable[str]) -> str:
    return "[" + ", ".join(map(text_to_yaml, names)) + "]"


def _flow(parts: Parts) -> str:
    return "{" + ", ".join(parts) + "}"


def program_hash(program: Program) -> str:
    """SHA-256 of the artifact's bytes: two programs share it only if they are written alike."""
    return hashlib.sha256(program_to_yaml(program).encode()).hexdigest()
