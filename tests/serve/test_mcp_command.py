"""``sopilot mcp`` as a person gets it wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from click.testing import CliRunner

from sopilot.cli.main import sopilot
from sopilot.diagnostics import SopilotError


def refused(*arguments: str) -> str:
    done = CliRunner(env={"SOPILOT_MCP_TOKEN": ""}).invoke(sopilot, ["mcp", *arguments])
    assert isinstance(done.exception, SopilotError), done.output
    return str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("bank-desk", "--http", "0.0.0.0:8000"), "there is no token"),
        (("bank-desk", "--http", "8000"), "is not HOST:PORT"),
        (("bank-desk", "--arm", "pgg"), "there is no arm `pgg`"),
        (("bank-dsk",), "neither a file nor a bundled handbook"),
        (("bank-desk/nothing",), "has no task `nothing`"),
        (("bank-desk", "--upstream", "a=x", "--upstream", "a=y"), "the same name"),
        (("bank-desk", "--upstream", "a=/no/such/program"), "cannot be reached"),
        (("bank-desk", "--upstream-file", "/no/such/file"), "cannot be read"),
    ],
)
def test_misuse_is_named(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    store = ("--store", f"sqlite:{tmp_path / 's.db'}", "--pins", str(tmp_path / "pins.json"))
    assert said in refused(*arguments, *store)


def test_tokens_come_from_a_file_that_others_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("anna " + "a" * 32 + "\n")
    os.chmod(path, 0o644)
    assert "others can read" in refused(
        "bank-desk", "--http", "127.0.0.1:1", "--token-file", str(path)
    )
    os.chmod(path, 0o600)
    path.write_text("anna\n")
    assert "`NAME TOKEN`" in refused(
        "bank-desk", "--http", "127.0.0.1:1", "--token-file", str(path)
    )


def test_an_arm_that_guards_nothing_is_refused_in_front_of_real_tools(tmp_path: Path) -> None:
    import shlex
    import sys

    odd = Path(__file__).with_name("odd_upstream.py")
    upstream = shlex.join((sys.executable, str(odd), "bank-desk"))
    said = refused(
        "bank-desk", "--arm", "flat", "--upstream", f"odd={upstream}",
        "--store", f"sqlite:{tmp_path / 's.db'}", "--pins", str(tmp_path / "pins.json"),
    )  # fmt: skip
    assert "has no machine that could guard" in said
