"""People who prove who they are by a provider's signed token, on the command line."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import pytest
from click.testing import CliRunner, Result

from counter_desk import COUNTER, ERRANDS, CountingTools, walk
from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake
from sopilot.session.opening import open_session
from sopilot.stores.open import open_store

WIRE = ERRANDS["wire"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(sopilot, list(arguments))


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    program = Path(__file__).with_name("openid_provider.py")
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()
        process.wait(timeout=10)


def test_a_providers_token_is_believed_by_its_keys_alone(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{tmp_path}/store.db")

    def token(**given: str) -> str:
        query = urlencode({"sub": "u-17", "aud": "sopilot", **given})
        file = tmp_path / "token"
        file.write_text(httpx2.get(f"{provider}/token?{query}").json()["token"])
        return str(file)

    def approve(file: str) -> Result:
        return run("approvals", "approve", session, call, "--role", "supervisor",
                   "--token-file", file, "--json")  # fmt: skip

    async def waiting() -> str:
        store = open_store(f"sqlite:{tmp_path}/store.db")
        opened = await open_session(store, COUNTER, tools=CountingTools())
        await walk(opened, "wire", stop_at_action="wire")
        await opened.call_tool("wire", WIRE, "w")
        await opened.release()
        await store.close()
        return opened.id

    session, call = asyncio.run(waiting()), "w"

    def refused(file: str) -> str:
        result = approve(file)
        assert isinstance(result.exception, UserMistake)
        return result.exception.diagnostics[0].code

    assert refused(token()) == "unknown-provider"
    assert run("people", "provider", provider, "--audience", "sopilot").exit_code == 0
    assert refused(token()) == "unknown-subject"
    assert run("people", "add", "Sue", "--role", "supervisor",
               "--openid", f"{provider}#u-17").exit_code == 0  # fmt: skip
    assert refused(token(key="other")) == "bad-token"
    assert refused(token(aud="another")) == "bad-token"
    assert refused(token(seconds="-3600")) == "bad-token"
    assert refused(token(iss="https://elsewhere.example")) == "unknown-provider"
    held = json.loads(approve(token()).stdout)
    assert [(one["by"], one["identity"]) for one in held["rulings"]] == [("Sue", "openid")]
    secret = run("people", "token", "Sue", "--name", "sue-laptop").stdout.strip()
    assert secret not in (tmp_path / "store.db").read_bytes().decode("latin-1")
    listed = json.loads(run("people", "list", "--json").stdout)
    assert [one["name"] for one in listed["people"][0]["tokens"]] == ["sue-laptop"]
    sessions = json.loads(run("sessions", "list", "--json").stdout)
    assert (len(sessions["sessions"]), sessions["of"]) == (1, 1)
