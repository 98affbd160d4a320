"""``sopilot serve`` as a person gets it wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from click.testing import CliRunner
from mcp_servers import INITIALIZE

from sopilot.cli.main import sopilot
from sopilot.messages.errors import SopilotError
from sopilot.stores.sqlite import SQLiteStore
from warm import warm_python

READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
STEP = {"name": "pg_program_step", "arguments": {"operation": "start", "goal": "transfer"}}
START = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": STEP}


def send(stream: IO[bytes], *messages: object) -> None:
    for message in messages:
        stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def refused(*arguments: str) -> str:
    command = ["serve"] if arguments[0] != "--handbook" else ["gateway"]
    done = CliRunner(env={"SOPILOT_MCP_TOKEN": ""}).invoke(sopilot, [*command, *arguments])
    assert isinstance(done.exception, SopilotError), done.output
    return str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("bank", "--http", "0.0.0.0:8000"), "there is no token"),
        (("bank", "--http", "8000"), "is not HOST:PORT"),
        (("bank", "--http", "127.0.0.1:-1"), "is not HOST:PORT"),
        (("bank", "--http", "127.0.0.1:²"), "is not HOST:PORT"),
        (("bank", "--http", f"127.0.0.1:{'9' * 5000}"), "is not HOST:PORT"),
        (("bank", "--http", "127.0.0.1:65536"), "there is no port 65536"),
        (("bank", "--view", "pgg"), "there is no view `pgg`"),
        (("bank-dsk",), "neither a file nor a bundled handbook"),
        (("bank/nothing",), "has no task `nothing`"),
        (("--handbook", "bank", "--upstream", "a=x", "--upstream", "a=y"), "the same name"),
        (("--handbook", "bank", "--upstream", "a=/no/such/program"), "cannot be reached"),
        (("--handbook", "bank", "/no/such/file"), "cannot be read"),
    ],
)
def test_misuse_is_named(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    store = ("--store", f"sqlite:{tmp_path / 's.db'}")
    assert said in refused(*arguments, *store)


@pytest.mark.parametrize(
    ("tokens", "mode", "said"),
    [
        (f"anna {'a' * 32}\n", 0o644, "others can read"),
        (f"anna {'a' * 32}\nanna {'c' * 32}\n", 0o600, "`anna` has two tokens"),
        # Whoever holds it would be let in as one of the two, to sessions of the other's.
        (f"anna {'a' * 32}\nben {'a' * 32}\n", 0o600, "`ben` has the same token as another name"),
        ("anna\n", 0o600, "`NAME TOKEN`"),
    ],
)
def test_tokens_come_from_a_file_that_others_cannot_read(
    tokens: str, mode: int, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "tokens"
    path.write_text(tokens)
    path.chmod(mode)
    assert said in refused("bank", "--http", "127.0.0.1:1", "--token-file", str(path))


def test_an_view_that_guards_nothing_is_refused_in_front_of_real_tools(tmp_path: Path) -> None:
    import shlex

    odd = Path(__file__).with_name("odd_upstream.py")
    upstream = shlex.join((*warm_python(), str(odd), "bank"))
    said = refused(
        "--handbook", "bank", "--view", "flat", "--upstream", f"odd={upstream}",
        "--store", f"sqlite:{tmp_path / 's.db'}",
    )  # fmt: skip
    assert "can't guard" in said


@contextmanager
def started(python: Sequence[str], folder: Path, *options: str) -> Iterator[Any]:
    command = [*python, "-m", "sopilot.cli.main", "serve", "bank", *options]
    pipe = subprocess.PIPE
    environment = {**os.environ, "SOPILOT_HOME": str(folder)}
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
    ) as process:
        yield process


async def test_an_interrupt_ends_it_and_gives_the_session_back(tmp_path: Path) -> None:
    """Although a thread waits for the client's next line."""
    with started([sys.executable], tmp_path) as running:
        for messages in ([INITIALIZE], [READY, START]):
            send(running.stdin, *messages)
            assert b"result" in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 130
    store = SQLiteStore(tmp_path / "sessions.db")
    assert [record.owner for record in await store.sessions()] == [""]
    await store.close()


def test_a_client_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    with started(warm_python(), tmp_path) as running:
        send(running.stdin, INITIALIZE)
        running.stdout.readline()
        running.stdout.close()
        send(running.stdin, READY, START)
        running.stdin.close()
        assert running.wait(timeout=30) == 0
        assert running.stderr.read() == b""


def test_a_port_in_use_is_misuse_and_nothing_is_announced(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with started(warm_python(), tmp_path, "--http", address) as ended:
            said = ended.communicate(timeout=60)[1].decode()
    assert ended.returncode == 2
    assert "no-listening" in said
    assert f"can't listen on `{address}`" in said
    assert "serving" not in said
    assert "Traceback" not in said
