"""What holds for every command: options are explained, help fits one screen, data comes as JSON."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from sopilot.cli.main import GROUPS, main, sopilot

WITHOUT_JSON = {
    "serve": "speaks MCP",
    "gateway": "speaks MCP",
    "guard serve": "speaks HTTP",
    "guard hook": "prints JSON",
    "chat": "is a dialog",
    "trace export": "prints JSON Lines",
    "trace sign": "prints JSON",
    "records prove": "prints JSON",
}
COLUMNS, LINES = 80, 40


def every_command(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from every_command(inner, (*path, name))


COMMANDS = dict(every_command(sopilot))
LEAVES = {name for name, command in COMMANDS.items() if not isinstance(command, click.Group)}


def test_help_shows_the_groups() -> None:
    text = COMMANDS[""].get_help(click.Context(COMMANDS[""]))
    assert [line[:-1] for line in text.splitlines() if line[:-1] in GROUPS] == list(GROUPS)


def test_help_loads_no_command() -> None:
    code = (
        "import sys; from sopilot.cli.main import main; assert main(['--help']) == 0\n"
        "assert not {'sopilot.cli.run', 'sopilot.cli.audit', 'sopilot_lab'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained_on_one_screen(name: str) -> None:
    command = COMMANDS[name]
    options = [param for param in command.params if isinstance(param, click.Option)]
    assert [option.opts[0] for option in options if not option.help] == []
    assert all(option.help and option.help.endswith((".", ")")) for option in options)
    context = click.Context(command, info_name=name, terminal_width=COLUMNS)
    text = command.get_help(context)
    assert command.help, "a command says what it does"
    assert len(text.splitlines()) <= LINES


def test_every_command_that_prints_data_prints_json() -> None:
    without = {
        name
        for name in LEAVES
        if not any("--json" in param.opts for param in COMMANDS[name].params)
    }
    assert without == set(WITHOUT_JSON)


def test_colours_can_be_turned_off() -> None:
    coloured = CliRunner(env={"NO_COLOR": ""}).invoke(sopilot, ["demo"], color=True).output
    assert "\x1b[" in coloured
    assert (
        "\x1b[" not in CliRunner(env={"NO_COLOR": "1"}).invoke(sopilot, ["demo"], color=True).output
    )


def test_the_shell_completes_commands() -> None:
    words = {"_SOPILOT_COMPLETE": "bash_complete", "COMP_WORDS": "sopilot appr", "COMP_CWORD": "1"}
    assert (
        CliRunner(env=words).invoke(sopilot, [], prog_name="sopilot").output == "plain,approvals\n"
    )


def test_an_option_means_the_same_everywhere() -> None:
    """Of the shared options, each has one help text."""
    for option in ("--json", "--store", "--language"):
        helps = {
            param.help
            for name in LEAVES - {"demo"}
            for param in COMMANDS[name].params
            if isinstance(param, click.Option) and option in param.opts
        }
        assert len(helps) == 1, option


def test_an_option_of_sopilot_in_another_place_is_named_with_the_cure(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(["sessions", "list", "--token-file", "x"]) == 2
    problem = capfd.readouterr().err
    cure = "before the command: `sopilot --token-file … sessions list`"
    assert cure in problem
    assert main(["sessions", "list", "--nonsense"]) == 2
    assert "before the command" not in capfd.readouterr().err


def test_a_group_without_a_command_prints_its_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions"]) == 2
    problem = capfd.readouterr().err
    assert problem.count("Usage:") == 1
    assert "Error" not in problem
