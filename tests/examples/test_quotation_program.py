"""The program itself: its size, its form, and that the runtime knows nothing of its subject."""

from __future__ import annotations

import re
from pathlib import Path

from quotation_runs import EXAMPLE, tasks

import sopilot
from commands import ran
from quotation.tools import make_tools
from sopilot.program.codec import program_from_yaml
from sopilot.program.model import Act

PROGRAM = program_from_yaml((EXAMPLE / "program.yaml").read_text(encoding="utf-8"), "program.yaml")


def test_the_tools_offer_what_the_program_calls(tmp_path: Path) -> None:
    offered = {schema.name for schema in make_tools(tasks()["1"], tmp_path).schemas()}
    called = {
        step.action
        for function in PROGRAM.functions.values()
        for step in function.steps
        if isinstance(step, Act)
    }
    assert called == offered


def test_the_runtime_has_no_line_about_quoting() -> None:
    subject = re.compile(r"\b(freight|rfq|supplier|workbook|price list|openpyxl)s?\b", re.I)
    named = re.compile(r"examples/quotation|import quotation|from quotation")
    source = Path(sopilot.__file__).parent
    found = [
        f"{path.relative_to(source)}: {line}"
        for path in source.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if subject.search(line) or named.search(line)
    ]
    assert found == []


def test_checking_the_folder_checks_its_program() -> None:
    assert ran("check", EXAMPLE) == "1 file checked: 0 errors, 0 warnings\n"
