"""`sopilot qualify` against endpoints that work and endpoints that do not."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from chat_server import Plan, serving
from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.runner.qualifications import checked_view
from sopilot.runner.sources import open_source

EMPTY = """{
    "choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 1}
}"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def gate(model: str, *words: str) -> Result:
    arguments = ["qualify", "--model", model, "--handbook", "bank", "--cases", "2", *words]
    return CliRunner().invoke(sopilot, arguments)


def document(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (Plan(raw=EMPTY), "the answer is empty"),
        (Plan(status=401), "HTTP 401"),
        (Plan(raw=EMPTY, delay=5.0), "no answer within 0.6 s"),
    ],
)
def test_a_broken_endpoint_is_called_broken(plan: Plan, said: str) -> None:
    with serving(plan) as server:
        model = f"{server.url}#m"
        begun = time.monotonic()
        result = gate(model, "--timeout", "0.3" if plan.delay else "30", "--json")
        assert result.exit_code == 1, result.output
        found = document(result)
    assert found["answer"] == "broken"
    assert said in found["reasons"][0]
    assert (found["page"], found["arm"], found["representation"]) == (False, None, None)
    assert (found["conditions"], found["changes"]) == ([], ["an endpoint that answers"])
    assert said in found["stopped_by"]
    assert time.monotonic() - begun < 60
    # Nothing was found out about the model: it is as if it had never been checked.
    assert checked_view(model, open_source("bank"))[0] == "flat"


def test_what_was_spent_is_told_also_by_a_broken_check() -> None:
    with serving(Plan(raw=EMPTY)) as server:
        model = f"{server.url}#m"
        told = gate(model, "--price", "2", "10").stdout
        again = document(gate(model, "--json"))
    assert "verdict for " in told
    assert ": broken" in told
    assert "reply tokens, 0.0" in told
    used = again["used"]
    assert used["money"] is None  # no price, no money
    assert used["prompt_tokens"] >= 1_000 * (used["requests"] - 3)
    # What the first call had spent counts too, though its runs were made again.
    assert used["requests"] > 6
