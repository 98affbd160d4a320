"""``sopilot guard``: the guard for agents in other languages, and for coding agents."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import LANGUAGE, STORE, option
from sopilot.cli.output import print_json, say
from sopilot.cli.serve import need_mcp
from sopilot.integrations.mcp.options import TOKEN_VARIABLE, is_loopback, parse_address, read_tokens
from sopilot.messages.errors import UserMistake
from sopilot.runner.store_access import StoreAccess

ADDRESS = "127.0.0.1:8322"
TOKENS = option(
    "--token-file",
    f"File with one line `NAME TOKEN`. Default: the variable {TOKEN_VARIABLE}.",
    "tokens",
    type=click.Path(path_type=Path),
)


@click.group()
def command() -> None:
    """Guard calls of agents that aren't written in Python."""


@command.command()
@click.argument("handbook")
@option(
    "--http HOST:PORT",
    "Address to listen on; port 0 picks a free port.",
    "address",
    default=ADDRESS,
    show_default=True,
)
@TOKENS
@option(
    "--pass-through NAME",
    "Allow and record this tool although the handbook doesn't name it.",
    multiple=True,
)
@LANGUAGE
@STORE
def serve(
    handbook: str,
    address: str,
    tokens: Path | None,
    pass_through: tuple[str, ...],
    language: str,
    store: StoreAccess,
) -> None:
    """Serve decisions about calls of the tools in HANDBOOK over HTTP.

    Before each call, send it to POST /before. Make the call if the decision is `carry_out`, and
    report its answer to POST /after. GET /openapi.json describes both. There is no TLS: put a
    proxy in front.
    """
    need_mcp()
    import uvicorn

    from sopilot.integrations.decision_service import decision_app
    from sopilot.integrations.mcp.http import listen
    from sopilot.integrations.mcp.options import HttpSettings
    from sopilot.runner.conversations import Conversations
    from sopilot.stores.open import open_store

    host, port = parse_address("--http", address)
    app = decision_app(
        Conversations.of(handbook, store=open_store(store.spec), language=language),
        token=_token(tokens),
        pass_through=pass_through,
    )
    settings, sockets = listen(HttpSettings(host, port), protected=False)
    where = "" if is_loopback(host) else "; put a proxy with TLS in front"
    say(f"serving http://{host}:{settings.port}{where}")
    sys.stdout.flush()
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets)


@command.command()
@option(
    "--url",
    "Address of the decision service (`sopilot guard serve`).",
    default=f"http://{ADDRESS}",
    show_default=True,
)
@TOKENS
def hook(url: str, tokens: Path | None) -> None:
    """Answer a coding agent's hook: its JSON on standard input, the decision on standard output.

    Configure this command for the events PreToolUse, PostToolUse and PostToolUseFailure. The hook
    denies a call that isn't proven and names the calls to make first. It also denies a call that
    the user must confirm. It records calls of tools that the handbook doesn't name and leaves the
    decision to the agent's permissions.
    """
    from sopilot.integrations.pre_tool_hook import answer_hook

    try:
        event: Any = json.loads(sys.stdin.read())
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise UserMistake("standard input must be one JSON object")
    answer = answer_hook(event, url, _token(tokens))
    if answer is not None:
        print_json(answer, indent=None)


def _token(token_file: Path | None) -> str:
    tokens = read_tokens(token_file)
    if len(tokens) != 1:
        variable = "is set" if TOKEN_VARIABLE in os.environ else "isn't set"
        raise UserMistake(f"name one token with --token-file; {TOKEN_VARIABLE} {variable}")
    return next(iter(tokens.values()))
