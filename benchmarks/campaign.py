"""The command line that all campaigns share: options, figures as JSON, exit code 1 on a failure.

A campaign is a function that takes its options by name and returns its figures; `passed` among
them says whether all bounds were met. An option's default gives its type: a number, a text, a list
of texts, `False` for a switch, or a class (`int`, `Path`) for an option without a default.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Figures = Mapping[str, Any]
Measure = Callable[..., Figures]


def main(doc: str | None, measure: Measure, **options: Any) -> None:
    """Run the campaign with the options of the command line."""
    parser = _parser(doc)
    _add(parser, options)
    _run(measure, vars(parser.parse_args()))


def parts(doc: str | None, **campaigns: tuple[Measure, dict[str, Any]]) -> None:
    """Run one of several campaigns; the first argument names it."""
    parser = _parser(doc)
    choices = parser.add_subparsers(dest="part", required=True)
    for name, (measure, options) in campaigns.items():
        _add(choices.add_parser(name, help=(measure.__doc__ or "").split("\n")[0]), options)
    chosen = vars(parser.parse_args())
    _run(campaigns[chosen.pop("part")][0], chosen)


def _parser(doc: str | None) -> argparse.ArgumentParser:
    plain = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=doc, formatter_class=plain)


def _add(parser: argparse.ArgumentParser, options: Mapping[str, Any]) -> None:
    for name, default in options.items():
        option = f"--{name.replace('_', '-')}"
        if default is False:
            parser.add_argument(option, action="store_true")
        elif isinstance(default, type):
            parser.add_argument(option, type=default)
        elif isinstance(default, list):
            parser.add_argument(option, nargs="+", default=default)
        else:
            parser.add_argument(option, type=type(default), default=default)
    parser.add_argument("--json", type=Path, help="also write the figures there")


def _run(measure: Measure, options: dict[str, Any]) -> None:
    file = options.pop("json")
    figures = measure(**options)
    print(json.dumps({key: value for key, value in figures.items() if key != "rows"}, indent=1))
    if file:
        write(figures, file)
    sys.exit(0 if figures.get("passed", True) else 1)


def write(figures: Figures, file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", "utf-8")
