"""Commands as a person calls them: the result, its JSON, or the mistake it reports."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake


def call(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(sopilot, list(map(str, arguments)), input=typed)


def as_json(*arguments: str) -> dict[str, Any]:
    """The exit code tells executed, refused and waiting apart."""
    done = call(*arguments, "--json")
    document: dict[str, Any] = json.loads(done.stdout)
    codes = {"refused": 3, "waiting": 4}
    assert done.exit_code == codes.get(document.get("ending", ""), 0), done.output
    return document


def mistake(*arguments: str) -> str:
    done = call(*arguments)
    assert isinstance(done.exception, UserMistake), done.output
    return str(done.exception)
