"""Mutation testing by sample: one change in the source, then the everyday tests of its package.

    python benchmarks/mutants.py --minutes 60 --json evidence/mutants.json
    python benchmarks/mutants.py --seed 40 --packages sopilot/machine sopilot/audit --each 60

Rooms take turns, so that each has the same number of mutants. A comparison is turned, `and` and
`or` exchanged, a condition negated, a constant changed, a return emptied, a sign turned. Then the
tests that run its line are run, the quickest first, until one fails (`mutant_tests.py`); which
they are is found once (``--map``, kept in ``--work``). What survives is named in SURVIVORS,
beside this file, with the test that now kills it or the reason why it does not matter. What was
found stays in ``--work``, and a later run adds to it; where nothing is there yet, it adds to what
the evidence says.
"""

from __future__ import annotations

import argparse
import ast
import json
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
from mutant_tests import Coverage, Runner

ROOT = Path(__file__).resolve().parent.parent
LEAST_KILLED = 0.95
PACKAGES = (
    "sopilot/compiler", "sopilot/machine", "sopilot/audit", "sopilot/session",
    "sopilot_lab/statistics",
)  # fmt: skip
TESTS = tuple(
    f"tests/{name}"
    for name in (
        *("handbook", "program", "compiler", "machine", "proof", "audit", "session", "records"),
        *("trace", "agent", "policies", "lab/statistics"),
    )
)
HEAVY = (
    "tests/session/test_campaigns.py",
    "tests/adversary/test_adversary.py::test_a_broken_guard_is_found_by_the_simulator_and_by_the_audit",
    "tests/lab/statistics/test_inspect_logs.py",
)
"""Campaigns, run for each mutant by nobody: what only they kill counts as alive."""
SURVIVORS = Path(__file__).with_name("mutant_survivors.json")
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
    left_out = [f"--deselect={one}" for one in HEAVY]
    command = [sys.executable, str(Path(__file__).with_name("mutant_tests.py"))]
    told = work / "map.log"
    with told.open("w") as out:
        done = subprocess.run(
            [*command, str(work / "map.json"), *TESTS, *left_out], cwd=ROOT, stdout=out, stderr=out
        )
    if done.returncode:
        sys.exit(f"the tests fail as they are: {told}")


def copied(tree: Path) -> Path:
    shutil.rmtree(tree, ignore_errors=True)
    for part in ("src", "tests", "benchmarks", "examples", "evidence", "design", "docs", "deploy"):
        shutil.copytree(ROOT / part, tree / part)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "Makefile", "constraints.txt"):
        shutil.copy(ROOT / name, tree / name)
    return tree


def campaign(work: Path, minutes: float, seed: int, packages: list[str], each: int | None) -> None:
    """What was tried before, with any seed, is not tried again; what is found is added to it."""
    known = Coverage.read(work / "map.json")
    kept = work / "found.json"
    found: list[dict[str, Any]] = json.loads(kept.read_text())
    tried = {(one["place"], name_of(one)) for one in found}
    draw = random.Random(seed)
    pools: dict[str, list[Mutant]] = {}
    for package in packages:
        files = sorted((ROOT / "src" / package).rglob("*.py"))
        pools[package] = [
            one
            for file in files
            for one in mutants_of(file)
            if (one.row["place"], name_of(one.row)) not in tried
        ]
        draw.shuffle(pools[package])
        del pools[package][each:]
    runner = Runner(copied(work / "tree"), known.modules, work / "tests.log")
    ends = time.monotonic() + minutes * 60
    while time.monotonic() < ends and any(pools.values()):
        for package, pool in pools.items():
            if not pool or time.monotonic() >= ends:
                continue
            mutant = pool.pop()
            stages = known.stages(mutant.file, mutant.line, mutant.last_line)
            begun = time.monotonic()
            by = runner.killed(mutant.file, mutant.text, stages)
            found.append({"package": package, "seed": seed, **mutant.row, "killed_by": by})
            kept.write_text(json.dumps(found, indent=1))
            shown = "killed  " if by else "SURVIVED"
            print(f"{shown} {time.monotonic() - begun:5.1f} s {name_of(mutant.row)}", flush=True)


def again(work: Path) -> None:
    """What has survived, once more: with the tests that are said to kill it by now."""
    known = Coverage.read(work / "map.json")
    kept = work / "found.json"
    found: list[dict[str, Any]] = json.loads(kept.read_text())
    said = survivors_named()
    runner = Runner(copied(work / "tree"), known.modules, work / "tests.log")
    tests = sorted({one["test"].split(" ")[0] for one in said.values() if "test" in one})
    if failing := runner.failing(tests):
        sys.exit(f"fails without a mutant: {failing}")
    for one in found:
        if one["killed_by"] or one.get("gone") or "reason" in said.get(name_of(one), {}):
            continue
        file = one["place"].partition(":")[0]
        same = [mutant for mutant in mutants_of(ROOT / file) if name_of(mutant.row) == name_of(one)]
        if not same:
            one["gone"] = True  # the line is another by now, or there is none
            continue
        line = int(one["place"].partition(":")[2])
        mutant = min(same, key=lambda mutant: abs(mutant.line - line))
        test = said.get(name_of(one), {}).get("test", "").split(" ")[0]
        stages = [[test]] if test else known.stages(file, mutant.line, mutant.last_line)
        one["killed_by"], one["later"] = runner.killed(file, mutant.text, stages), True
        print(f"{'killed  ' if one['killed_by'] else 'SURVIVED'} {name_of(one)}", flush=True)
    kept.write_text(json.dumps(found, indent=1))


def found_before(evidence: Path | None) -> list[dict[str, Any]]:
    """What another machine found, of which the evidence has the survivors and the sums."""
    if evidence is None or not evidence.exists():
        return []
    told = json.loads(evidence.read_text("utf-8"))
    unnamed = dict.fromkeys(("place", "where", "kind", "before", "after"), "")
    dead = [
        {
            "package": package,
            **unnamed,
            "killed_by": f"a test, at {told.get('commit', 'some commit')}",
        }
        for package, sums in told.get("packages", {}).items()
        for _ in range(sums["killed"])
    ]
    return [*dead, *({"where": "", **one} for one in told["survivors"])]


def survivors_named() -> dict[str, dict[str, str]]:
    return dict(json.loads(SURVIVORS.read_text("utf-8"))) if SURVIVORS.exists() else {}


def name_of(row: dict[str, Any]) -> str:
    """By what its line says, and not by where that stands: the line may move."""
    change = f"{row['before']} -> {row['after']}"
    return f"{row['place'].partition(':')[0]}: {row['where']}: {change}"


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """What survived is named with the reason why it does not matter. That a test kills it by now
    counts once it was run (``--again``). What survived in a line that is no more counts neither
    way. ``at_first_sight`` is what tests killed that nobody had written for it: who draws other
    mutants will find about that, or rather what the latest of ``batches`` says, one a seed."""
    known = survivors_named()
    seen = [one for one in found if "seed" in one]
    at_first = [one for one in seen if one["killed_by"] and not one.get("later")]
    batches = {
        str(seed): {
            "mutants": sum(one["seed"] == seed for one in seen),
            "killed": sum(one["seed"] == seed for one in at_first),
        }
        for seed in sorted({one["seed"] for one in seen})
    }
    gone = sum(one.get("gone", False) for one in found)
    found = [one for one in found if not one.get("gone")]
    survivors = [
        {**one, "reason": known.get(name_of(one), {}).get("reason", "unread")}
        for one in found
        if not one["killed_by"]
    ]
    packages = {
        package: {
            "mutants": sum(one["package"] == package for one in found),
            "killed": sum(one["package"] == package and bool(one["killed_by"]) for one in found),
        }
        for package in PACKAGES
    }
    dead = len(found) - len(survivors)
    return {
        "mutants": len(found),
        "killed": dead,
        "gone": gone,
        "share": round(dead / len(found), 4) if found else None,
        "at_first_sight": {"mutants": len(seen), "killed": len(at_first)},
        "batches": batches,
        "packages": packages,
        "survivors": survivors,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument(
        "--packages", nargs="+", choices=PACKAGES, default=list(PACKAGES), metavar="PACKAGE"
    )
    parser.add_argument("--each", type=int, metavar="N", help="at most so many of every package")
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "sopilot" / "mutants")
    parser.add_argument("--map", action="store_true", help="time the tests anew")
    parser.add_argument("--again", action="store_true", help="what survived once more")
    parser.add_argument("--sum", action="store_true", help="only sum up what was found")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    if not (asked.work / "found.json").exists():
        (asked.work / "found.json").write_text(json.dumps(found_before(asked.json), indent=1))
    if asked.again:
        again(asked.work)
    elif not asked.sum:
        if asked.map or not (asked.work / "map.json").exists():
            make_map(asked.work)
        campaign(asked.work, asked.minutes, asked.seed, asked.packages, asked.each)
    figures = summary(json.loads((asked.work / "found.json").read_text()))
    print(f"{figures['killed']} of {figures['mutants']} killed ({figures['share']:.1%})")
    unread = [one for one in figures["survivors"] if one["reason"] == "unread"]
    if asked.json:
        keep({"seed": asked.seed, "minutes": asked.minutes, **figures}, asked.json)
    few = figures["share"] is None or figures["share"] < LEAST_KILLED
    sys.exit(1 if unread or few else 0)


if __name__ == "__main__":
    main()
