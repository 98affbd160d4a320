"""Mutation testing by sample: one change in the source, then the everyday tests of its package.

    python benchmarks/mutants.py [--mutants 200] [--seed N] [--json FILE]

Draws a fresh sample over the core, the same number from each package. A comparison is turned,
`and` and `or` are exchanged, a condition is negated, a constant changed, a return emptied, a sign
turned. Then the tests that run its line are run, the quickest first, until one fails
(`mutant_tests.py`). The map of tests to lines stays in ``--work`` until a file changes.
Exits 1 when fewer than 88 % are killed. Survivors are listed in FILE.
"""

from __future__ import annotations

import ast
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign import main
from mutant_tests import Coverage, Runner

ROOT = Path(__file__).resolve().parent.parent
LEAST_KILLED = 0.88
PACKAGES = (
    "sopilot/compiler", "sopilot/machine", "sopilot/audit", "sopilot/session",
    "sopilot_lab/statistics",
)  # fmt: skip
TESTS = tuple(
    f"tests/{name}"
    for name in (
        *("handbook", "program", "compiler", "machine", "proof", "audit", "session", "records"),
        *("trace", "agent", "policies", "attacks", "lab/statistics"),
    )
)
HEAVY = (
    "tests/session/test_campaigns.py",
    "tests/adversary/test_adversary.py::test_a_broken_guard_is_found",
    "tests/lab/statistics/test_inspect_logs.py",
)
"""Campaigns, run for each mutant by nobody: what only they kill counts as alive."""
_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    file: str
    line: int
    last_line: int
    where: str
    """Its function, and its first line as it was."""
    kind: str
    before: str
    after: str
    text: str
    """The whole file, changed."""

    @property
    def row(self) -> dict[str, Any]:
        return {
            "place": f"{self.file}:{self.line}", "where": self.where, "kind": self.kind,
            "before": self.before, "after": self.after,
        }  # fmt: skip


def mutants_of(file: Path) -> Iterator[Mutant]:
    source = file.read_text("utf-8")
    lines, tree = source.split("\n"), ast.parse(source)
    for node in nodes(tree):
        for kind, changed in changes(node):
            assert isinstance(node, ast.expr | ast.stmt)
            before = ast.get_source_segment(source, node) or ""
            after = ast.unparse(changed)
            if isinstance(node, ast.expr):
                after = f"({after})"
            text = spliced(source, node, after)
            shown = str(file.relative_to(ROOT))
            last = node.end_lineno or node.lineno
            where = f"{function_at(tree, node.lineno)}: {short(lines[node.lineno - 1])}"
            yield Mutant(shown, node.lineno, last, where, kind, short(before), short(after), text)


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All but those in formatted strings, whose places are not told, and in decorators, which
    say how a class is made (`frozen`, `slots`) and not what it does."""
    yield tree
    if not isinstance(tree, ast.JoinedStr):
        decorators = getattr(tree, "decorator_list", [])
        for child in ast.iter_child_nodes(tree):
            if child not in decorators:
                yield from nodes(child)


def function_at(tree: ast.Module, line: int) -> str:
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return ".".join(node.name for node in sorted(around, key=lambda node: node.lineno))


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


def make_map(work: Path) -> None:
    """Which tests run which line, and how long each takes."""
    left_out = [f"--deselect={name}" for name in HEAVY]
    command = [sys.executable, str(Path(__file__).with_name("mutant_tests.py"))]
    log = work / "map.log"
    with log.open("w") as out:
        done = subprocess.run(
            [*command, str(work / "map.json"), *TESTS, *left_out], cwd=ROOT, stdout=out, stderr=out
        )
    if done.returncode:
        sys.exit(f"the tests fail as they are: {log}")


def copied(tree: Path) -> Path:
    shutil.rmtree(tree, ignore_errors=True)
    for part in ("src", "tests", "benchmarks", "examples", "evidence", "design", "docs", "deploy"):
        shutil.copytree(ROOT / part, tree / part)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "Makefile", "constraints.txt"):
        shutil.copy(ROOT / name, tree / name)
    return tree


def campaign(work: Path, seed: int, packages: list[str], mutants: int) -> list[dict[str, Any]]:
    known = Coverage.read(work / "map.json")
    draw = random.Random(seed)
    sample: list[tuple[str, Mutant]] = []
    for package in packages:
        files = sorted((ROOT / "src" / package).rglob("*.py"))
        pool = [mutant for file in files for mutant in mutants_of(file)]
        share = min(len(pool), -(-mutants // len(packages)))
        sample += [(package, mutant) for mutant in draw.sample(pool, share)]
    runner = Runner(copied(work / "tree"), known.modules, work / "tests.log")
    rows: list[dict[str, Any]] = []
    for package, mutant in sample:
        stages = known.stages(mutant.file, mutant.line, mutant.last_line)
        begun = time.monotonic()
        killer = runner.killed(mutant.file, mutant.text, stages)
        rows.append({"package": package, **mutant.row, "killed_by": killer})
        shown = "killed  " if killer else "SURVIVED"
        print(f"{shown} {time.monotonic() - begun:5.1f} s {name_of(mutant.row)}", flush=True)
    return rows


def name_of(row: dict[str, Any]) -> str:
    change = f"{row['before']} -> {row['after']}"
    return f"{row['place']}: {row['where']}: {change}"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    survivors = [row for row in rows if not row["killed_by"]]
    killed = len(rows) - len(survivors)
    packages = {
        package: {
            "mutants": sum(row["package"] == package for row in rows),
            "killed": sum(row["package"] == package and bool(row["killed_by"]) for row in rows),
        }
        for package in dict.fromkeys(row["package"] for row in rows)
    }
    return {
        "mutants": len(rows),
        "killed": killed,
        "share": round(killed / len(rows), 4) if rows else None,
        "packages": packages,
        "survivors": survivors,
    }


def is_current(map_file: Path) -> bool:
    files = [file for folder in ("src", "tests") for file in (ROOT / folder).rglob("*.py")]
    newest = max(file.stat().st_mtime for file in files)
    return map_file.exists() and map_file.stat().st_mtime > newest


def measure(mutants: int, seed: int, packages: list[str], work: Path) -> dict[str, Any]:
    work.mkdir(parents=True, exist_ok=True)
    if not is_current(work / "map.json"):
        make_map(work)
    figures = {"seed": seed, **summary(campaign(work, seed, packages, mutants))}
    print(f"{figures['killed']} of {figures['mutants']} killed ({figures['share']:.1%})")
    return {"passed": figures["share"] >= LEAST_KILLED, **figures}


if __name__ == "__main__":
    cache = Path.home() / ".cache" / "sopilot" / "mutants"
    main(__doc__, measure, mutants=200, seed=29, packages=list(PACKAGES), work=cache)
