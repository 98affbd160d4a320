"""``docs/reference/messages.md`` lists every code that authors and auditors meet, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from sopilot.audit.findings import TITLES

ROOT = Path(__file__).parents[2]
MESSAGES = (ROOT / "docs" / "reference" / "messages.md").read_text(encoding="utf-8")
AUTHORING = (
    "handbook",
    "compiler",
    "tasks/scenarios.py",
    "tasks/scenario_tasks.py",
    "tasks/scenario_verdict.py",
    "tasks/coverage.py",
    "tasks/task.py",
    "tasks/testing.py",
    "files/text.py",
    "messages/diagnostic.py",
    "runner/check_findings.py",
    "runner/options.py",
    "runner/sources.py",
    "cli/author.py",
)


MAKES_CODES = {
    "Diagnostic", "mistake", "HandbookProblem", "error", "warning", "_at_requirement", "_at_input",
}  # fmt: skip


def listed(heading: str) -> list[str]:
    section = MESSAGES.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `([a-z0-9-]+)` \|", section, re.M)


def codes_in(tree: ast.AST) -> Iterator[str]:
    """The codes that are the first argument where a diagnostic is made."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        first = node.args[0]
        if name in MAKES_CODES:
            for part in (first.body, first.orelse) if isinstance(first, ast.IfExp) else (first,):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value
        elif name == "unknown" and len(node.args) > 2:
            kind = node.args[2]
            if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
                yield f"unknown-{kind.value}"


def test_every_authoring_code_is_listed() -> None:
    files: list[Path] = []
    for part in AUTHORING:
        path = ROOT / "src" / "sopilot" / part
        assert path.exists(), part
        files.extend([path] if path.is_file() else path.rglob("*.py"))
    raised = {code for file in files for code in codes_in(ast.parse(file.read_text("utf-8")))}
    shown = listed("In handbooks and scenarios")
    assert sorted(raised - set(shown)) == []
    assert sorted(set(shown) - raised) == []
    assert shown == sorted(shown)


def test_every_finding_is_listed() -> None:
    assert sorted(listed("In an audit")) == sorted(TITLES)


def test_every_code_of_a_running_session_that_is_listed_is_raised() -> None:
    files = (ROOT / "src" / "sopilot").rglob("*.py")
    raised = {code for file in files for code in codes_in(ast.parse(file.read_text("utf-8")))}
    shown = listed("In sessions and stores")
    assert set(shown) >= {"no-requester", "not-fenced", "tool-default"}
    assert set(shown) <= raised
