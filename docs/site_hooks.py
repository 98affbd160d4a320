"""MkDocs hooks: bring the repository's other documents into the site and resolve links to them.

Documents link to each other by their paths in the repository, so that the links work there, too.
In the site, documents outside ``docs/`` stand under ``project/``. A link to anything else in the
repository (a script, a result, a manifest) becomes its path, as code.

The page on the command line is made from the commands' own help.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^(?:```|~~~)")
CELL = re.compile(r"<td\b.*?</td>", re.DOTALL)


def included() -> list[str]:
    """Documents outside ``docs/`` that are pages of the site, by their paths."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("design/*.md"), *ROOT.glob("examples/*/README.md")]
    return sorted(str(page.relative_to(ROOT)) for page in pages if page.name != "README.zh.md")


def site_path(path: str) -> str | None:
    """The place of a repository file in the site; ``None`` if it isn't part of it."""
    if path in ("README.md", "README.zh.md"):
        return {"README.md": "index.md", "README.zh.md": "start/quickstart.zh.md"}[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"project/{path}" if path in included() else None


def on_files(files: Files, config: Any) -> Files:
    for path in included():
        if path != "README.md":
            content = (ROOT / path).read_text(encoding="utf-8")
            page = File.generated(config, f"project/{path}", content=content)
            page.inclusion = files.get_file_from_path("index.md").inclusion
            files.append(page)
    return files


def resolve_links(markdown: str, source: str) -> str:
    """``markdown`` with links that hold in the site; ``source`` is its page there."""
    in_repository = source.removeprefix("project/")
    if in_repository == source:
        in_repository = f"docs/{source}"
    folder = posixpath.dirname(in_repository)

    def resolve(link: re.Match[str]) -> str:
        picture, label, target, anchor = link.groups()
        if re.match(r"[a-z]+:", target):
            return link.group(0)
        path = posixpath.normpath(posixpath.join(folder, target))
        place = site_path(path)
        if place is None:
            return f"{label} (`{path}`)" if f"`{path}" not in label else label
        relative = posixpath.relpath(place, posixpath.dirname(source) or ".")
        return f"{picture}[{label}]({relative}{anchor or ''})"

    lines, fenced = [], False
    for line in markdown.splitlines(keepends=True):
        if FENCE.match(line.lstrip()):
            fenced = not fenced
        lines.append(line if fenced else LINK.sub(resolve, line))
    return "".join(lines)


def command_help() -> str:
    """The help of every command, by group, as Markdown."""
    from sopilot.cli.main import GROUPS, sopilot

    parts: list[str] = []
    root = click.Context(sopilot, info_name="sopilot")
    for group, names in GROUPS.items():
        parts.append(f"## {group}")
        for name in names:
            parts.extend(_help_of(sopilot.get_command(root, name), name, root, "###"))
    return "\n\n".join(parts)


def _help_of(
    command: click.Command | None, name: str, parent: click.Context, heading: str
) -> Iterator[str]:
    assert command is not None, name
    context = click.Context(
        command, info_name=name, parent=parent, terminal_width=80, max_content_width=80
    )
    help_text = command.get_help(context).replace("\b", "")
    yield f"{heading} {context.command_path}"
    yield f"```text\n{help_text}\n```"
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            yield from _help_of(command.get_command(context, each), each, context, heading + "#")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    if page.file.src_uri == "reference/cli.md":
        markdown = markdown.replace("<!-- every command's help -->", command_help())
    return resolve_links(markdown, page.file.src_uri)


def on_page_content(html: str, **_: Any) -> str:
    """Show `\\|` in a table's code as a bar, as GitHub does."""
    return CELL.sub(lambda cell: cell.group(0).replace("\\|", "|"), html)
