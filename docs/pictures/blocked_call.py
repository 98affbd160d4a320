"""Draw the README's picture: a call that is blocked, proven, carried out, and one that is refused.

``python docs/pictures/blocked_call.py`` runs README.md's own handbook and program, and writes
``blocked-call.svg`` beside this file. It needs the extra ``docs``.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
README = HERE.parents[1] / "README.md"
WIDTH = 76
COLOURS = {"Not called yet": "yellow", "refunded": "green", "Refused": "red"}
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.S)


def saved_blocks(text: str) -> dict[str, str]:
    """The blocks of a document that a reader saves, by file name."""
    found = re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", text, re.S)
    return dict(found)


def run_program(files: dict[str, str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_text(content, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "shop.py"], cwd=folder, capture_output=True, text=True, check=True
        )
    return done.stdout.splitlines()


def main() -> None:
    files = saved_blocks(README.read_text(encoding="utf-8"))
    calls = re.findall(r"print\((\w+\(.*?\))\)", files["shop.py"])
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print("[bold]$[/] python shop.py\n")
    for call, answer in zip(calls, run_program(files), strict=True):
        colour = next((COLOURS[start] for start in COLOURS if answer.startswith(start)), "cyan")
        sign = {"yellow": "■", "green": "✓", "red": "✗"}.get(colour, "→")
        console.print(Text(f"agent  {call}", style="bold"))
        lines = textwrap.wrap(answer, WIDTH - 6)
        console.print(Text(f"  {sign} " + "\n    ".join(lines) + "\n", style=colour))
    picture = console.export_svg(title="sopilot", unique_id="blocked-call")
    picture = FONTS.sub("", picture).replace("Fira Code,", "ui-monospace,Menlo,Consolas,")
    (HERE / "blocked-call.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
