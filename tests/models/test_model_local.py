"""The local model really runs: through the loop, within its budgets, and audited."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake
from sopilot.models.local import local_model_file

pytestmark = pytest.mark.slow


def test_a_session_with_the_local_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xllamacpp")
    try:
        local_model_file()
    except UserMistake as mistake:
        pytest.skip(str(mistake))
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path))
    done = CliRunner().invoke(
        sopilot,
        ["run", "bank", "--model", "local", "--budget", "agent_turns=3", "--json"],
    )
    document = json.loads(done.stdout)
    assert document["ending"] in ("executed", "refused", "abandoned", "budget", "waiting")
    assert 1 <= document["agent_turns"] <= 3
    assert document["usage"]["completion_tokens"] > 0
    assert document["audit"]["score_card"]["chain_verified"] is True
