"""What goes out to a person, to a script, and beside the answer."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from sopilot.cli.lazy_group import LazyGroup
from sopilot.cli.output import give, tell
from sopilot.values.text import Heading


def lines() -> Iterator[str]:
    yield Heading("audit")
    yield "no findings\x1b[2J"


def test_a_person_gets_lines_that_hide_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    give(False, {}, lines())
    assert capsys.readouterr().out == "audit\nno findings\\u001b[2J\n"


def test_only_headings_are_bold() -> None:
    @click.command()
    def shown() -> None:
        tell(lines())

    styled = CliRunner().invoke(shown, color=True).output.splitlines()
    assert styled[0] == "\x1b[1maudit\x1b[0m"
    assert styled[1].startswith("no findings")


def test_commands_load_on_use() -> None:
    group = LazyGroup(
        "group",
        package="sopilot.cli",
        commands_on_use={
            "check": ("author.check", "Validate."),
            "wrong": ("no_such_module.command", "Broken."),
        },
    )
    helped = CliRunner().invoke(group, ["--help"])
    assert helped.exit_code == 0
    assert "Broken." in helped.output
    assert CliRunner().invoke(group, ["check", "--schema"]).exit_code == 0
    assert "did you mean `check`?" in CliRunner().invoke(group, ["chek"]).output
    assert isinstance(CliRunner().invoke(group, ["wrong"]).exception, ModuleNotFoundError)
