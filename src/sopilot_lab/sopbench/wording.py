"""SOPBench's official text of a task, and the check that ours is the same."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sopilot.handbook.requirements import leaves
from sopilot.handbook.wording import sentence
from sopilot.messages.scaffold import LANGUAGES
from sopilot.views.briefing import Briefing, OwnText
from sopilot.views.catalogue import VIEWS
from sopilot.views.official import Required, list_recipes, requirements_as_code
from sopilot.views.program_text import Correspondence, correspondence
from sopilot.views.quoting import Rendered
from sopilot_lab.sopbench.checkout import Checkout
from sopilot_lab.sopbench.process import OfficialText, ToolList, Upstream
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.recorded import configurations, paper_screen, recorded_prompts
from sopilot_lab.sopbench.reference import TaskReference
from sopilot_lab.sopbench.source import (
    SopbenchTask,
    load_task,
    predicate_name,
    read_tree,
    singles,
    sopbench_handbook,
    task_actions,
)

BEFORE_CONSTRAINTS = "\n\n\n"
"""Upstream's text between its preamble and the constraints."""
Said = tuple[str, str]
"""An action and a sentence about it."""
_BULLET = re.compile(r"\s*(?:•|\d+\.) ")
_HEADERS = tuple(LANGUAGES["en"][f"official_{name}"] for name in ("all", "any", "in_order"))
_NOTHING = LANGUAGES["en"]["official_none"]


def own_text(task: SopbenchTask, tools: ToolList, upstream: Upstream, language: str) -> OwnText:
    """Ask the worker on first use, because most arms don't show the official text."""

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
    """Action → its sentences, in the order and words of the text."""
    handbook = task.handbook
    parameters = {name: each.parameters for name, each in handbook.predicates.items()}
    reply: dict[str, list[str]] = defaultdict(list)
    for action, line in read_sentences(text):
        reply[action].append(line)
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


PAPER = 834
PAPER_RULE = (
    "leaves of the goal's own block in off-code, and checks of the compiled prose, on the screened "
    "Bank tasks; the study says `leaf correspondences` and not which, so this is our reading"
)


@dataclass(slots=True)
class OfficialCheck:
    """``recorded`` tasks have a prompt in upstream's recordings that could be compared,
    ``as_recorded`` of them have ours among them."""

    tasks: int = 0
    identical: int = 0
    recipes_below_it: int = 0
    recorded: int = 0
    as_recorded: int = 0
    sentences: int = 0
    compared: int = 0
    paper_tasks: int = 0
    paper_leaves: int = 0
    paper_checks: int = 0
    mismatches: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        whole = self.tasks == self.identical == self.recipes_below_it
        return whole and self.as_recorded == self.recorded and not self.mismatches

    @property
    def by_paper(self) -> int:
        return self.paper_leaves + self.paper_checks

    def as_json(self) -> dict[str, Any]:
        row = asdict(self) | {"mismatches": len(self.mismatches), "first": self.mismatches[:5]}
        return row | {
            "correspondences": {
                "study": PAPER,
                "by_the_study": self.by_paper,
                "its_rule": PAPER_RULE,
                "by_ours": self.sentences,
                "our_rule": "every sentence of every action in every text, each compared with our "
                "wording of it and with official-code in every language",
            },
            "holds": self.holds,
        }

    def check_bytes(self, text: OfficialText, shown: Briefing) -> None:
        self.tasks += 1
        official = VIEWS["official"].first_message(shown).encode()
        with_recipes = VIEWS["official-recipes"].first_message(shown).encode()
        self.identical += official.endswith(b"\n\n" + text.system.encode())
        self.recipes_below_it += with_recipes.startswith(official + b"\n\n")

    def check_sentences(self, task: SopbenchTask, text: OfficialText, upstream: Upstream) -> None:
        theirs = list(read_sentences(text))
        self.sentences += len(theirs)
        # Only the goal has the task's constants; the rest of the text was written with the
        # defaults.
        default = sopbench_handbook(task.domain, upstream)
        ours = [
            (each.action, sentence(task.handbook if each.action == task.goal else default, leaf))
            for each in required(task, text)
            for leaf in leaves(each.tree)
        ]
        # Upstream's layout strips the end of a sentence that stands deeper; its words are the
        # same.
        stripped = [[(action, reply.rstrip()) for action, reply in each] for each in (theirs, ours)]
        self._compare(f"{task.reference}, our wording", *stripped)
        for language in LANGUAGES:
            code = official_code(task, text, language)
            quoted = [(each.owner, code.text[each.start : each.end]) for each in code.quotes]
            self._compare(f"{task.reference}, official-code ({language})", theirs, quoted)

    def _compare(self, where: str, theirs: Sequence[Said], ours: Sequence[Said]) -> None:
        self.compared += max(len(theirs), len(ours))
        if len(theirs) != len(ours):
            self.mismatches.append(f"{where}: {len(ours)} sentences, {len(theirs)} in the text")
        self.mismatches += [
            f"{where}: `{mine[1]}` for {mine[0]}, `{other[1]}` for {other[0]} in the text"
            for other, mine in zip(theirs, ours, strict=False)
            if other != mine
        ]

    def count_by_the_paper(self, task: SopbenchTask, made: Correspondence) -> None:
        worded = task.handbook.procedures[task.goal].worded
        self.paper_tasks += 1
        self.paper_leaves += len(list(leaves(worded))) if worded is not None else 0
        self.paper_checks += made.checks
        self.mismatches += [f"{task.reference}, {each}" for each in made.mismatches]


def check_official(
    references: Sequence[TaskReference], tools: ToolList, upstream: Upstream
) -> OfficialCheck:
    check = OfficialCheck()
    shelf = ProgramShelf(tools, upstream)
    prompts = _prompts(upstream.checkout, {each.domain for each in references})
    for reference in references:
        task = load_task(reference, upstream)
        text = upstream.official_text(task.domain, task.goal, task.index)
        program = shelf.program(task).program
        own = own_text(task, tools, upstream, "en")
        check.check_bytes(text, Briefing(task.handbook, {task.goal: program}, own_text=own))
        known = prompts.get(str(reference), set())
        check.recorded += bool(known)
        check.as_recorded += text.system in known
        check.check_sentences(task, text, upstream)
        should = upstream.scoring(task.domain)[task.goal][task.index]
        if task.domain == "bank" and paper_screen(reference, should):
            procedure = task.handbook.procedures[task.goal]
            check.count_by_the_paper(task, correspondence(task.handbook, procedure, program))
    return check


def _prompts(checkout: Checkout, domains: set[str]) -> Mapping[str, set[str]]:
    """Task → the prompts in recordings whose every prompt was written by the present text:
    upstream changed its wording between recordings, and says nowhere when."""
    known: dict[str, set[str]] = defaultdict(set)
    for domain in sorted(domains):
        for each in configurations(checkout, domain):
            if each.tools == "full":
                for reference, prompt in recorded_prompts(each).items():
                    known[str(reference)].add(prompt)
    return known


def official_lines(check: OfficialCheck) -> Iterator[str]:
    yield f"{check.identical} of {check.tasks} texts are upstream's, byte for byte"
    yield f"{check.recipes_below_it} of {check.tasks} have their recipes below the whole text"
    yield f"{check.as_recorded} of {check.recorded} stand in a recorded run of upstream's"
    yield (
        f"correspondences: {check.sentences:,} sentences, {check.compared:,} comparisons; "
        f"{len(check.mismatches)} mismatches"
    )
    if check.paper_tasks:
        yield (
            f"by the study's rule, on {check.paper_tasks} screened Bank tasks: {check.by_paper} "
            f"(it counts {PAPER})"
        )
    for each in check.mismatches[:5]:
        yield f"  {each}"
