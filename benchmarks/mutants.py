"""Mutation testing by sample: one change in the source, then the everyday tests of its room.

    python benchmarks/mutants.py --minutes 60 --json evidence/mutants.json

Rooms take turns, so that each has the same number of mutants. A comparison is turned, `and` and
`or` exchanged, a condition negated, a constant changed, a return emptied, a sign turned. Then the
tests of the room are run, the nearest and quickest first, until one fails; how long each takes
is found once (``--map``, kept in ``--work``). What survives is named in SURVIVORS, beside this
file, with the test that now kills it or the reason why it does not matter.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keeping import keep

ROOT = Path(__file__).resolve().parent.parent
ROOMS = {
    "language/compiler": ["language/compiler"],
    "runtime/vm": ["runtime/vm", "runtime/trace"],
    "runtime/proof": ["runtime/proof", "runtime/session"],
    "runtime/audit": ["runtime/audit", "runtime/agent/test_audit_without_machine.py"],
    "runtime/session": ["runtime/session", "runtime/policies"],
    "lab/stats": ["lab/stats"],
}
"""Room → the tests that are run for it, beside those of the other rooms."""
SURVIVORS = Path(__file__).with_name("mutant_survivors.json")
SECONDS = 300.0
"""For the tests of one mutant; one that takes longer hangs, which a test notices."""
QUICK = 1.0
_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    file: str
    line: int
    kind: str
    before: str
    after: str
    text: str
    """The whole file, changed."""

    @property
    def name(self) -> str:
        return f"{self.file}:{self.before} -> {self.after}"


def mutants_of(file: Path) -> Iterator[Mutant]:
    source = file.read_text("utf-8")
    for node in nodes(ast.parse(source)):
        for kind, changed in changes(node):
            assert isinstance(node, ast.expr | ast.stmt)
            before = ast.get_source_segment(source, node) or ""
            after = ast.unparse(changed)
            if isinstance(node, ast.expr):
                after = f"({after})"
            text = spliced(source, node, after)
            shown = str(file.relative_to(ROOT))
            yield Mutant(shown, node.lineno, kind, short(before), short(after), text)


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All but those in formatted strings, whose places are not told, and in decorators, which
    say how a class is made (`frozen`, `slots`) and not what it does."""
    yield tree
    if not isinstance(tree, ast.JoinedStr):
        decorators = getattr(tree, "decorator_list", [])
        for child in ast.iter_child_nodes(tree):
            if child not in decorators:
                yield from nodes(child)


def short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 160 else f"{flat[:157]}..."


def spliced(source: str, node: ast.expr | ast.stmt, after: str) -> str:
    lines = source.encode().splitlines(keepends=True)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    head = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    tail = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    return (head + after.encode() + tail).decode()


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right) if type(op) in _TURNED:
            yield "comparison", ast.Compare(left, [_TURNED[type(op)]()], right)
        case ast.BoolOp(op=op, values=values):
            other: ast.boolop = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "boolean", ast.BoolOp(other, values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "negation", operand
        case ast.Constant(value=bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int() | float() as number):
            yield "constant", ast.Constant(number + 1)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield "sign", ast.BinOp(left, ast.Sub(), right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            yield "sign", ast.BinOp(left, ast.Add(), right)
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield "return", ast.Return(ast.Constant(None))
        case ast.IfExp(test=test, body=yes, orelse=no):
            yield "condition", ast.IfExp(test, no, yes)


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


# --- the tests of a room --------------------------------------------------------------------


def make_map(work: Path) -> None:
    """How long each test takes."""
    wanted = sorted({one for tests in ROOMS.values() for one in tests})
    command = [
        sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider",
        "--durations=0", "-vv", *(f"tests/{one}" for one in wanted),
    ]  # fmt: skip
    with (work / "times.txt").open("w") as out:
        subprocess.run(command, cwd=ROOT, stdout=out, stderr=out, check=False)


def known_tests(work: Path) -> dict[str, float]:
    """Test function → how many seconds all of its cases take."""
    found: dict[str, float] = {}
    for line in (work / "times.txt").read_text(errors="replace").splitlines():
        words = line.split(None, 2)
        if len(words) == 3 and words[0].endswith("s") and words[1] in ("call", "setup"):
            test = words[2].partition("[")[0].strip()
            if "::" in test and words[0][:-1].replace(".", "").isdigit():
                found[test] = found.get(test, 0.0) + float(words[0][:-1])
    return found


def stages(mutant: Mutant, room: str, known: dict[str, float]) -> list[list[str]]:
    """The room's tests: first those of the file's own name, then the quick ones, then the rest."""
    folders = tuple(f"tests/{one}" for one in ROOMS[room])
    own = [test for test in known if test.startswith(folders)]
    name = Path(mutant.file).stem.strip("_")
    near = [test for test in own if name.rstrip("s") in test.partition("::")[0]]
    quick = [test for test in own if known[test] <= QUICK and test not in near]
    rest = [test for test in own if test not in near and test not in quick]
    return [sorted(one, key=known.__getitem__) for one in (near, quick, rest) if one]


def killed(mutant: Mutant, room: str, tree: Path, known: dict[str, float]) -> str | None:
    """How, or ``None``."""
    target = tree / mutant.file
    original = target.read_text("utf-8")
    target.write_text(mutant.text, "utf-8")
    try:
        found = (run_tests(tree, stage) for stage in stages(mutant, room, known))
        return next((one for one in found if one is not None), None)
    finally:
        target.write_text(original, "utf-8")


def run_tests(tree: Path, asked: list[str]) -> str | None:
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider",
        *asked,
    ]  # fmt: skip
    environment = {
        **os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode in (0, 5):
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0][:160] if failed else f"exit {done.returncode}"


def campaign(work: Path, minutes: float, seed: int) -> dict[str, Any]:
    known = known_tests(work)
    tree = work / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for part in ("src", "tests", "benchmarks", "examples", "evidence", "design", "docs"):
        shutil.copytree(ROOT / part, tree / part)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tree / name)
    draw = random.Random(seed)
    pools: dict[str, list[Mutant]] = {}
    for room in ROOMS:
        files = sorted((ROOT / "src" / "sopilot" / room).rglob("*.py"))
        pools[room] = [one for file in files for one in mutants_of(file)]
        draw.shuffle(pools[room])
    ends = time.monotonic() + minutes * 60
    found: list[dict[str, Any]] = []
    while time.monotonic() < ends:
        for room, pool in pools.items():
            if not pool or time.monotonic() >= ends:
                continue
            mutant = pool.pop()
            by = killed(mutant, room, tree, known)
            row = {
                "room": room, "place": f"{mutant.file}:{mutant.line}", "kind": mutant.kind,
                "before": mutant.before, "after": mutant.after, "killed_by": by,
            }  # fmt: skip
            found.append(row)
            (work / "found.json").write_text(json.dumps(found, indent=1))
            print(f"{'killed  ' if by else 'SURVIVED'} {mutant.name}", flush=True)
    return summary(found)


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """A survivor that is known is named with its reason; with a test that kills it by now, it
    counts as killed."""
    known = json.loads(SURVIVORS.read_text("utf-8")) if SURVIVORS.exists() else {}
    survivors = []
    for one in found:
        if one["killed_by"]:
            continue
        file = one["place"].partition(":")[0]
        about = known.get(f"{file}: {one['before']} -> {one['after']}", {})
        if "test" in about:
            one["killed_by"] = about["test"]
        survivors.append({**one, "reason": about.get("reason") or about.get("test") or "unread"})
    rooms = {
        room: {
            "mutants": sum(one["room"] == room for one in found),
            "killed": sum(one["room"] == room and bool(one["killed_by"]) for one in found),
        }
        for room in ROOMS
    }
    dead = sum(bool(one["killed_by"]) for one in found)
    return {
        "mutants": len(found),
        "killed": dead,
        "killed_at_once": len(found) - len(survivors),
        "share": round(dead / len(found), 4) if found else None,
        "rooms": rooms,
        "survivors": survivors,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "sopilot" / "mutants")
    parser.add_argument("--map", action="store_true", help="time the tests anew")
    parser.add_argument("--again", action="store_true", help="only sum up what was found last")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    if asked.again:
        figures = summary(json.loads((asked.work / "found.json").read_text()))
    else:
        if asked.map or not (asked.work / "times.txt").exists():
            make_map(asked.work)
        figures = campaign(asked.work, asked.minutes, asked.seed)
    print(f"{figures['killed']} of {figures['mutants']} killed ({figures['share']:.1%})")
    unread = [one for one in figures["survivors"] if one["reason"] == "unread"]
    if asked.json:
        keep({"seed": asked.seed, "minutes": asked.minutes, **figures}, asked.json)
    sys.exit(1 if unread else 0)


if __name__ == "__main__":
    main()
