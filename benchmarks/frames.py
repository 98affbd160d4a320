"""Hold the text of frames against what programs do.

    python benchmarks/frames.py [--limit N] [--json FILE]

Reads the text of every function of all 830 SOPBench programs in both languages, by a reader of
its own, and prints how many lines it held against the program. Exits 1 if a sentence stands on
the wrong side, a way to verify is offered twice, a line names a move that the machine makes, or a
group's sentence has another truth table than its steps.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from campaign import main
from sopilot.handbook.grammar import in_language
from sopilot.machine.layout import FunctionLayout, lay_out
from sopilot.program.model import (
    Always,
    Branch,
    Check,
    Choose,
    Condition,
    Function,
    Holds,
    Kind,
    Program,
    ReturnStep,
    Some,
    Step,
)
from sopilot.views.frame import render_function

ROOT = Path(__file__).resolve().parent.parent
# Written down here a second time: what is read must not come from what wrote it.
TRUE_IF = {"en": "True if: ", "zh": "为 true 的条件："}
EVERY_ONE = {"en": "; check every one, then decide", "zh": "；全部查明之后再作判断"}
TRUE_MEANS = {"en": "True if this is met: ", "zh": "符合以下内容则为 true："}
FALSE_MEANS = {"en": "False if this is met: ", "zh": "符合以下内容则为 false："}
DENIED = {"en": "This must NOT be the case: ", "zh": "以下情况不得成立："}
WORDS = {
    "en": {"and": "and", "or": "or", "not": "not"},
    "zh": {"且": "and", "或": "or", "非": "not"},
}
MACHINE_MOVES = re.compile(r"\b(call|select_branch|enter)\b|进入函数")
Truth = Mapping[str, bool]


def problems(program: Program, language: str, held: Counter[str]) -> Iterator[str]:
    """Wrong texts of a program's functions; ``held`` counts the comparisons."""
    for function in program.functions.values():
        text = render_function(function, program, language)
        lines = text.splitlines()
        yield from sides(function, program, lines, language, held)
        yield from twice(function, program, lines, held)
        yield from machine_moves(function, program, lines, language, held)
        if function.kind is Kind.GROUP and not function.says:
            yield from truth_table(function, lines, language, held)


# --- sentences ------------------------------------------------------------------------


def sides(
    function: Function, program: Program, lines: list[str], language: str, held: Counter[str]
) -> Iterator[str]:
    """The sentence below a check describes the result that its words say it describes."""
    for step in function.steps:
        if not isinstance(step, Check):
            continue
        rule = program.functions[step.function]
        if rule.predicate is None or not rule.says or step.says:
            continue
        at = next(i for i, line in enumerate(lines) if line[2:].startswith(f"{step.label}: "))
        sentence = lines[at + 1].strip()
        demanded = step.met is None and step.unmet is not None
        side = step.wanted
        if sentence.startswith(TRUE_MEANS[language]):
            side, sentence = True, sentence.removeprefix(TRUE_MEANS[language])
        elif sentence.startswith(FALSE_MEANS[language]):
            side, sentence = False, sentence.removeprefix(FALSE_MEANS[language])
        elif sentence.startswith(DENIED[language]) and not rule.says_not:
            side, sentence = True, sentence.removeprefix(DENIED[language])
            if step.wanted or not demanded:
                yield f"{function.name}@{step.label}: denied, and wanted true"
        elif not demanded:
            yield f"{function.name}@{step.label}: nobody says which result this is: {sentence}"
        held["sentences"] += 1
        expected = (rule.says if side else rule.says_not) or "nothing is said about this side"
        if not _template(in_language(expected, language).strip()).fullmatch(sentence):
            yield f"{function.name}@{step.label}: on the wrong side: {sentence}"
        if demanded and not re.search(
            rf"(must be|须为) {str(step.wanted).lower()}[;；]", lines[at]
        ):
            yield f"{function.name}@{step.label}: demands the other side"


def _template(says: str) -> re.Pattern[str]:
    """Any filling of a template. A name may take the place of its own word beside it."""
    pattern = ""
    beside_name = False
    for part in re.split(r"(\{\{|\}\}|\{=?\w+\})", says):
        if re.fullmatch(r"\{=?\w+\}", part):
            pattern += r"(?:.|\n)*?"
            beside_name = True
            continue
        text = part[0] if part in ("{{", "}}") else part
        after = re.match(r" [\w ]+\b", text) if beside_name else None
        before = re.search(r"\b[\w ]+ $", text[after.end() :] if after else text)
        middle = text[after.end() if after else 0 : len(text) - (len(before[0]) if before else 0)]
        for piece, optional in ((after, True), (middle, False), (before, True)):
            words = piece if isinstance(piece, str) else piece[0] if piece else ""
            pattern += f"(?:{re.escape(words)})?" if optional and words else re.escape(words)
        beside_name = False
    return re.compile(pattern)


# --- moves ----------------------------------------------------------------------------


def twice(
    function: Function, program: Program, lines: list[str], held: Counter[str]
) -> Iterator[str]:
    """No way to verify is offered a second time, and no check stands on two labels of one path."""
    acts = [line for line in lines if re.match(r"(> |  )\w+: (tool|调用工具) ", line)]
    ways = [" ".join(line.split(": ", 1)[1] for line in acts)]
    ways += [line.strip() for line in lines if re.match(r"    (or instead: |或改用：)", line)]
    held["ways"] += len(ways)
    for way, count in Counter(ways).items():
        if count > 1:
            yield f"{function.name}: offered {count} times: {way}"
    bare: dict[str, list[str]] = {}
    for line in lines:
        if re.match(r"(> |  )check_", line):
            label, _, check = line.partition(": ")
            bare.setdefault(check, []).append(label[2:])
    held["checks"] += len(bare)
    for check, labels in bare.items():
        for each in labels:
            again = _reached(lay_out(program).functions[function.name], each) & set(labels)
            if again:
                yield f"{function.name}: asked at {each} and again at {min(again)}: {check}"


def _reached(layout: FunctionLayout, label: str) -> set[str]:
    """The steps that may come after one."""
    labels: set[str] = set()
    waiting = [label]
    while waiting:
        here = waiting.pop()
        step = layout.steps[here]
        following = {layout.after.get(here), layout.unmet.get(here)}
        if isinstance(step, Branch):
            following = {step.then, step.otherwise}
        elif isinstance(step, Choose):
            following = {option.target for option in step.options}
        new = {label for label in following if label is not None} - labels
        labels |= new
        waiting += new
    return labels


def machine_moves(
    function: Function, program: Program, lines: list[str], language: str, held: Counter[str]
) -> Iterator[str]:
    """No line but the author's own sentences has a word for entering, branching or leaving."""
    for line in lines:
        if re.match(r"(> |  )\w+: ", line) and not line.startswith("    "):
            held["lines"] += 1
            body = line.split(": ", 1)[1]
            if MACHINE_MOVES.search(re.sub(r'"[^"]*"|<[^>]*>', "", body.split(" — ")[0])):
                yield f"{function.name}: a move of the machine: {line}"


# --- groups ---------------------------------------------------------------------------


def truth_table(
    function: Function, lines: list[str], language: str, held: Counter[str]
) -> Iterator[str]:
    begun = TRUE_IF[language]
    sentence = next((line for line in lines if line.startswith(begun)), None)
    if sentence is None:
        yield f"{function.name}: the group does not say when it is true"
        return
    text = sentence.removeprefix(begun)
    decides_last = text.endswith(EVERY_ONE[language])
    meaning = read_condition(text.removesuffix(EVERY_ONE[language]), WORDS[language])
    checks = [step for step in function.steps if isinstance(step, Check)]
    slots = list(dict.fromkeys(step.slot for step in checks))
    for values in itertools.product((False, True), repeat=len(slots)):
        truth = dict(zip(slots, values, strict=True))
        value, questions = walked(function, truth)
        held["rows of truth tables"] += 1
        if meaning(truth) is not value:
            yield f"{function.name}: says {meaning(truth)} and comes out {value} for {truth}"
            return
        if decides_last and len(questions) < len(slots):
            yield f"{function.name}: says that it checks every one, and leaves some out"
            return


def read_condition(text: str, words: Mapping[str, str]) -> Callable[[Truth], bool]:
    """A sentence's meaning, by a parser of its own: ``or`` binds least, ``not`` most."""
    tokens = re.findall(r"[()]|[^\s()]+", text)
    tokens = [words.get(token, token) for token in tokens]
    position = 0

    def peek() -> str:
        return tokens[position] if position < len(tokens) else ""

    def take() -> str:
        nonlocal position
        position += 1
        return tokens[position - 1]

    def some() -> Callable[[Truth], bool]:
        parts = [every()]
        while peek() == "or":
            take()
            parts.append(every())
        return lambda truth: any(part(truth) for part in parts)

    def every() -> Callable[[Truth], bool]:
        parts = [single()]
        while peek() == "and":
            take()
            parts.append(single())
        return lambda truth: all(part(truth) for part in parts)

    def single() -> Callable[[Truth], bool]:
        token = take()
        if token == "(":
            inside = some()
            assert take() == ")", text
            return inside
        if token == "not":
            denied = single()
            return lambda truth: not denied(truth)
        if token in ("true", "false"):
            return lambda truth: token == "true"
        return lambda truth: truth[token]

    meaning = some()
    assert position == len(tokens), f"not read to its end: {text}"
    return meaning


def walked(function: Function, truth: Truth) -> tuple[bool, set[str]]:
    """The result of the steps for these verdicts, and the checks that were asked."""
    steps = {step.label: index for index, step in enumerate(function.steps)}
    questions: set[str] = set()
    position = 0
    while True:
        step: Step = function.steps[position]
        target: str | None = None
        if isinstance(step, ReturnStep):
            assert step.holds is not None
            return _true(step.holds, truth), questions
        if isinstance(step, Check):
            questions.add(step.slot)
            target = step.met if truth[step.slot] is step.wanted else step.unmet
        elif isinstance(step, Branch):
            target = step.then if _true(step.when, truth) else step.otherwise
        position = position + 1 if target is None else steps[target]


def _true(condition: Condition, truth: Truth) -> bool:
    if isinstance(condition, Always):
        return condition.value
    if isinstance(condition, Holds):
        return truth[condition.slot] is condition.wanted
    parts = [_true(part, truth) for part in condition.conditions]
    return any(parts) if isinstance(condition, Some) else all(parts)


# --- the command ----------------------------------------------------------------------


def over_sopbench(limit: int | None) -> tuple[Counter[str], list[str]]:
    from sopilot.runner.sources import compile_source

    held: Counter[str] = Counter()
    failures: list[str] = []
    for tools in ("official", "full-state"):
        for unit in compile_source("sopbench:all", tools=tools)[:limit]:
            held["programs"] += 1
            for language in TRUE_IF:
                failures += [
                    f"{unit.label} ({tools}, {language}): {problem}"
                    for problem in problems(unit.program, language, held)
                ]
    return held, failures


def measure(limit: int | None) -> dict[str, object]:
    held, failures = over_sopbench(limit)
    for problem in failures[:20]:
        print(f"  {problem}")
    return {"passed": not failures, **held, "problems": len(failures)}


if __name__ == "__main__":
    main(__doc__, measure, limit=int)
