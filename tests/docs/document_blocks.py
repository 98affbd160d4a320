"""The fenced blocks of a Markdown document, with the comment that stands right above each.

Comments that mean something: ``<!-- file: NAME -->`` (the block is saved under that
name), ``<!-- wrong file: NAME -->`` (so is one with mistakes in it, which must be
found), ``<!-- append: NAME -->`` (it is added to that file), ``<!-- needs: SOPBench -->``
(run where a checkout is at hand), ``<!-- not run: WHY -->`` (the reason is part of the
document's source).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\S*)\s*$")
_COMMENT = re.compile(r"^<!--\s*(file|wrong file|append|needs|not run):\s*(.+?)\s*-->$")


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str
    line: int
    comment: str = ""
    about: str = ""

    @property
    def left_out(self) -> bool:
        return self.comment == "not run"


@dataclass(frozen=True, slots=True)
class Command:
    """``output`` are the lines shown below the command; none: nothing is promised."""

    text: str
    exit_code: int
    output: tuple[str, ...]


def blocks(path: Path) -> list[Block]:
    found: list[Block] = []
    comment = ("", "")
    opened: tuple[str, int] | None = None
    lines: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is not None:
            if fence and not fence.group(1):
                found.append(Block(opened[0], "\n".join(lines) + "\n", opened[1], *comment))
                opened, lines, comment = None, [], ("", "")
            else:
                lines.append(line)
        elif fence:
            opened = (fence.group(1), number)
        elif match := _COMMENT.match(line):
            comment = (match.group(1), match.group(2))
        elif line.strip():
            comment = ("", "")
    assert opened is None, f"{path.name}:{opened and opened[1]}: a block is not closed"
    return found


def commands(block: Block) -> list[Command]:
    """``$ command  # exit N`` and what is shown below it."""
    found: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            text, _, code = line[2:].partition("  # exit ")
            found.append(Command(text.strip(), int(code or 0), ()))
        elif found:
            last = found.pop()
            found.append(Command(last.text, last.exit_code, (*last.output, line)))
        elif line.strip():
            raise AssertionError(f"line {block.line}: a console block starts with a command")
    return [
        Command(one.text, one.exit_code, tuple(_without_blank_end(one.output))) for one in found
    ]


def _without_blank_end(lines: tuple[str, ...]) -> list[str]:
    kept = list(lines)
    while kept and not kept[-1].strip():
        kept.pop()
    return kept


def shows(output: tuple[str, ...], real: str) -> bool:
    """Whether the shown lines are what was printed; ``…`` stands for anything, also for lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else _line(line) + r"\n" for line in output
    )
    text = "".join(f"{line.rstrip()}\n" for line in real.splitlines())
    return re.fullmatch(pattern + r"\s*", text) is not None


def _line(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.rstrip().split("…"))
