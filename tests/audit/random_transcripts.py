"""Transcripts by chance: the calls that a goal's checks ask for, some left out, some about
somebody else, with answers of every kind."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

from test_audit_trace import BOOK as APPROVED

from sopilot.audit.transcript_files import Transcript, read_messages, success_first_outcome
from sopilot.audit.transcript_reading import leaf_values, leaves_behind, recipes_of
from sopilot.handbook.model import Handbook
from sopilot.handbook.requirements import Constant, Leaf, Name
from sopilot.tasks.examples.example import load_example

BOOKS: dict[str, Handbook] = {
    "approved": APPROVED,
    **{name: load_example(name).handbook for name in ("bank", "clinic", "it")},
}
_PLAIN: tuple[Any, ...] = (
    True,
    False,
    None,
    {},
    {"error": "no"},
    "Error: no",
    [True, {}],
    [False, 1],
)


def random_transcript(
    rng: random.Random, books: Mapping[str, Handbook] = BOOKS
) -> tuple[str, str | None, Transcript, dict[str, Any]]:
    """Handbook, goal, what was done, and options of the audit."""
    name = rng.choice(list(books))
    book = books[name]
    goal = rng.choice(list(book.procedures))
    procedure = book.procedures[goal]
    values = {one: _value(rng, one) for one in _names(book)}
    steps: list[tuple[str, dict[str, Any], Any]] = []
    for leaf in reversed(leaves_behind(book, procedure.requires)):
        recipes = recipes_of(book.predicates[leaf.predicate])
        if recipes and rng.random() < 0.9:
            for one in rng.choice(recipes):
                if rng.random() < 0.95:
                    arguments = _arguments(rng, one.arguments, leaf_values(leaf, values) | values)
                    steps.append((one.action, arguments, _answer(rng, book, leaf)))
    if rng.random() < 0.25:
        rng.shuffle(steps)
    if rng.random() < 0.75:
        inputs = book.actions[procedure.action].inputs
        given = {one.name: values[one.name] for one in inputs if rng.random() < 0.97}
        answer = rng.choice((True, {"done": True}, False, None, {"error": "no"}))
        steps.insert(
            rng.randint(max(0, len(steps) - 1), len(steps)), (procedure.action, given, answer)
        )
    if rng.random() < 0.2:
        steps.append(("dance" if rng.random() < 0.3 else rng.choice(list(book.actions)), {}, True))
    options: dict[str, Any] = {"session_id": f"s{rng.randrange(100)}"}
    if rng.random() < 0.2:
        options["offered"] = [one for one in book.actions if rng.random() < 0.8]
    if rng.random() < 0.15:
        truths = {one: rng.choice((True, False, None)) for one in book.predicates}
        options["truth"] = lambda index, predicate, subject: truths[predicate]
    transcript = read_messages(
        _messages(rng, steps),
        outcome=success_first_outcome if rng.random() < 0.5 else None,
        effects=frozenset({procedure.action}),
    )
    return name, goal if rng.random() < 0.9 else None, transcript, options


def _names(book: Handbook) -> list[str]:
    found: dict[str, None] = {}
    for predicate in book.predicates.values():
        found.update(dict.fromkeys(predicate.parameters))
    for action in book.actions.values():
        found.update(dict.fromkeys(one.name for one in action.inputs))
    return list(found)


def _value(rng: random.Random, name: str) -> Any:
    numbers = ("amount", "days", "count", "limit", "number")
    return rng.choice((5, 50, 5000)) if any(one in name for one in numbers) else rng.choice("xyz")


def _arguments(rng: random.Random, terms: Any, values: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for parameter, term in terms:
        if isinstance(term, Constant):
            given[parameter] = term.value
        elif isinstance(term, Name) and term.name in values:
            given[parameter] = values[term.name] if rng.random() < 0.93 else "somebody"
    return given


def _answer(rng: random.Random, book: Handbook, leaf: Leaf) -> Any:
    """As its verdict may read it, mostly."""
    verdict = book.predicates[leaf.predicate].verdict or ""
    fields = re.findall(r"result\w*(?:\.\w+)?\.(\w+)", verdict)
    if rng.random() < 0.2 or not fields:
        return rng.choice(_PLAIN)
    return {one: rng.choice((True, False, 5, 5000, "x", "open", [])) for one in fields}


def _messages(rng: random.Random, steps: list[tuple[str, dict[str, Any], Any]]) -> list[Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "please"}]
    for number, (action, arguments, answer) in enumerate(steps):
        if rng.random() < 0.15:
            said = rng.choice(("yes", "no", "my password is x", "hm"))
            messages += [
                {"role": "assistant", "content": f"{action}, amount 5, is it right?"},
                {"role": "user", "content": said},
            ]
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": f"c{number}", "function": {"name": action, "arguments": arguments}}
                ],
            }
        )
        if rng.random() < 0.95:
            messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": answer})
    return messages
