"""Commands as people call them."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake

WAITING = 4
"""The exit code of a run that waits for people."""


def run(*arguments: object, token: str = "", typed: str = "") -> Result:
    environment = {"SOPILOT_TOKEN": token} if token else None
    words = [str(argument) for argument in arguments]
    return CliRunner(env=environment).invoke(sopilot, words, input=typed)


def ran(*arguments: object, token: str = "", code: int = 0) -> str:
    """The output of a command that ends with this code."""
    done = run(*arguments, token=token)
    assert done.exit_code == code, (done.output, done.exception)
    return done.stdout


def shown(*arguments: object, token: str = "", code: int = 0) -> Any:
    """As ``ran``, read as JSON."""
    return json.loads(ran(*arguments, "--json", token=token, code=code))


def token(name: str, *roles: str, by: str = "") -> str:
    """Add a person in these roles and issue them a token."""
    ran("people", "add", name, *(word for role in roles for word in ("--role", role)), token=by)
    return ran("people", "token", name, "--name", name, token=by).strip()


def bare_transfer(view: str = "pg") -> tuple[str, list[str]]:
    """Move money with nothing checked: the session, and the requirements that the oracle misses."""
    session = str(
        shown("lab", "play", "start", "bank/transfer-rent-share", "--view", view)["session"]
    )
    order = '{"username": "anna", "to": "ben", "amount": 200}'
    ran("lab", "play", "call", session, "transfer", order)
    score = json.loads(run("lab", "play", "finish", session, "--json").stdout)
    return session, score["verdict"]["reasons"]


def refused(*arguments: object, token: str = "") -> str:
    """The code of the mistake that a command reports."""
    problem = run(*arguments, token=token).exception
    assert isinstance(problem, UserMistake), problem
    return problem.diagnostics[0].code
