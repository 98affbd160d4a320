"""Every command, program and handbook that the documents show is run here, as it stands there."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from document_blocks import Block, blocks, commands, shows
from document_shell import DocumentShell

from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import UserMistake
from sopilot.runner.check_findings import check_text
from sopilot_lab.sopbench.checkout import find_checkout

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
KNOWN = {"console", "json", "python", "toml", "yaml", "text"}
MOST_LEFT_OUT = 6
"""Blocks that no test runs, over all documents. Each says why."""


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_shows_is_what_happens(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = DocumentShell(tmp_path, monkeypatch)
    for block in blocks(path):
        where = f"{path.name}:{block.line}"
        assert block.language in KNOWN, f"{where}: a block of the kind `{block.language}`"
        if block.left_out or (block.comment == "needs" and not _at_hand(block)):
            continue
        if block.language == "console":
            _run_commands(shell, block, where)
        elif block.language in ("python", "toml") and block.comment == "file":
            _write(block.about, block.text)
        elif block.language == "python":
            code, output = shell.python(block.text)
            assert code == 0, f"{where}: {output}"
        elif block.language == "yaml":
            _take_yaml(block, where)
        elif block.language == "json":
            _take_json(block, where)


def _at_hand(block: Block) -> bool:
    assert block.about == "SOPBench"
    try:
        find_checkout()
    except UserMistake:
        return False
    return True


def _run_commands(shell: DocumentShell, block: Block, where: str) -> None:
    for command in commands(block):
        code, output = shell.run(command.text)
        assert code == command.exit_code, f"{where}: `{command.text}` ended with {code}:\n{output}"
        if command.output:
            shown = "\n".join(command.output)
            assert shows(command.output, output), (
                f"{where}: `{command.text}` printed\n{output}\nbut the document shows\n{shown}"
            )


def _write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")


def _take_yaml(block: Block, where: str) -> None:
    assert block.comment or re.search(r"^procedures:", block.text, re.M), (
        f"{where}: a piece of YAML that nothing reads"
    )
    text = block.text
    if block.comment == "append":
        text = Path(block.about).read_text(encoding="utf-8") + text
    if block.comment:
        _write(block.about, text)
    if re.search(r"^procedures:", text, re.M):
        found = check_text(text, block.about or where)
        problems = "\n".join(str(one) for one in found if one.severity is not Severity.NOTE)
        assert bool(problems) is (block.comment == "wrong file"), f"{where}: {problems}"


def _take_json(block: Block, where: str) -> None:
    """One value, or a value a line in a file of lines."""
    assert block.comment == "file", f"{where}: a piece of JSON that nothing reads"
    lines = block.about.endswith(".jsonl")
    for text in block.text.splitlines() if lines else [block.text]:
        json.loads(text)
    Path(block.about).write_text(block.text, encoding="utf-8")


def test_few_blocks_are_left_out_and_each_says_why() -> None:
    left_out = [block for path in DOCUMENTS for block in blocks(path) if block.left_out]
    assert all(len(block.about) > 10 for block in left_out)
    assert len(left_out) <= MOST_LEFT_OUT


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http://", "https://")):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_command_is_documented() -> None:
    from sopilot.cli.main import GROUPS

    text = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    left_out = [
        name for names in GROUPS.values() for name in names if f"| `sopilot {name}" not in text
    ]
    assert left_out == [], "every command has a row in docs/reference/commands.md"


def test_every_package_is_described() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    missing = [
        package
        for contract in contracts
        for layer in contract.get("layers", ())
        for package in layer.split(" | ")
        if f"`sopilot.{package}`" not in text and f"`{package}`" not in text
    ]
    assert missing == [], "CONTRIBUTING.md describes every package"


def test_the_comparison_can_fail() -> None:
    assert shows(("a … c", "…", "z"), "a b c\nd\ne\nz\n")
    assert not shows(("a", "z"), "a\nb\nz\n")
    assert not shows(("a.c",), "abc\n")
