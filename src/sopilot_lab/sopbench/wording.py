"""The official arms in upstream's own words, put together at run time.

``official`` is the text that upstream's runner gives the model, unchanged. The other two are
made of it: ``official-code`` keeps what stands before the constraints and every sentence of
them, and changes their layout; ``official-recipes`` adds how each is verified with what is
offered, below the unchanged text.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from sopilot.messages.scaffold import LANGUAGES
from sopilot.views.briefing import OwnText
from sopilot.views.official import Required, list_recipes, requirements_as_code
from sopilot.views.quoting import Rendered
from sopilot_lab.sopbench.process import OfficialText, ToolList, Upstream
from sopilot_lab.sopbench.source import (
    SopbenchTask,
    predicate_name,
    read_tree,
    singles,
    task_actions,
)

BEFORE_CONSTRAINTS = "\n\n\n"
"""What upstream itself writes between its preamble and the constraints."""
Said = tuple[str, str]
"""An action and a sentence about it."""
_BULLET = re.compile(r"\s*(?:•|\d+\.) ")
_HEADERS = tuple(LANGUAGES["en"][f"official_{name}"] for name in ("all", "any", "in_order"))
_NOTHING = LANGUAGES["en"]["official_none"]


def own_text(task: SopbenchTask, tools: ToolList, upstream: Upstream, language: str) -> OwnText:
    """Asked for on use: most arms show nothing of it."""

    @functools.cache
    def official() -> OfficialText:
        return upstream.official_text(task.domain, task.goal, task.index, tools=tools)

    @functools.cache
    def made(name: str) -> str | None:
        if name == "official":
            return official().system
        if name == "official-code":
            return official_code(task, official(), language).text
        if name == "official-recipes":
            return with_recipes(task, official(), tools, language)
        return None

    return made


def official_code(task: SopbenchTask, text: OfficialText, language: str) -> Rendered:
    before = text.preamble + BEFORE_CONSTRAINTS
    code = requirements_as_code(required(task, text), language)
    quotes = tuple(
        each._replace(start=each.start + len(before), end=each.end + len(before))
        for each in code.quotes
    )
    return Rendered(before + code.text.rstrip(), quotes)


def required(task: SopbenchTask, text: OfficialText) -> Sequence[Required]:
    """What the text says of every action, in its order, in the words of the text."""
    handbook = task.handbook
    parameters = {name: each.parameters for name, each in handbook.predicates.items()}
    reply: dict[str, list[str]] = defaultdict(list)
    for action, sentence in read_sentences(text):
        reply[action].append(sentence)
    return [
        Required(
            name,
            handbook.actions[name].input_names(),
            read_tree(tree, parameters),
            tuple(reply[name]),
        )
        for name, tree in text.blocks
    ]


def read_sentences(text: OfficialText) -> Iterator[Said]:
    """The sentences of the constraints, as a reader of the text finds them."""
    action = ""
    for line in text.system[len(text.preamble) :].splitlines():
        if line.startswith("* "):
            action = line.removeprefix("* ").removesuffix(":")
        elif line.startswith("### "):
            action = ""
        elif action and line:
            reply = _BULLET.sub("", line, count=1)
            if reply not in (*_HEADERS, _NOTHING):
                yield action, reply


def with_recipes(
    task: SopbenchTask, text: OfficialText, tools: ToolList, language: str = "en"
) -> str:
    named = dict.fromkeys(
        predicate_name(single) for _, tree in text.blocks for single in singles(tree)
    )
    offered = task_actions(task, tools)
    recipes = list_recipes(task.handbook, named, language, offered=offered)
    return f"{text.system}\n\n{recipes.rstrip()}"
