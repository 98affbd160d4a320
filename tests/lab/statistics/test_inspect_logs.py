"""`sopilot lab stats` on Inspect's own logs, written by Inspect."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sopilot.cli.main import main, sopilot
from warm import warm_python

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None, reason="needs the extra `bench`"
)

# Somebody's evaluation: `pg` always answers right, `flat` only on the first two tasks.
EVALUATION = """
import sys
from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import Generate, TaskState, solver

@solver
def answering(arm):
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        right = arm == "pg" or state.metadata["number"] < 2
        state.output.completion = "yes" if right else "no"
        return state
    return solve

@task
def desk(arm):
    samples = [
        Sample(id=f"t{n}", input="?", target="yes", metadata={
            "number": n, "goal": f"g{n % 3}", "kind": "refuse" if n % 2 else "execute"})
        for n in range(9)
    ]
    return Task(dataset=samples, solver=answering(arm), scorer=includes(), metadata={"arm": arm})

for arm, form in (("pg", "eval"), ("flat", "json")):
    (log,) = eval(desk(arm), model="mockllm/model", log_dir=f"{sys.argv[1]}/{arm}",
                  log_format=form, epochs=2, display="none")
    assert log.status == "success", log.error
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder an arm; Inspect owns its process, as in a person's own run."""
    folder = tmp_path_factory.mktemp("logs")
    script = folder / "evaluation.py"
    script.write_text(EVALUATION)
    subprocess.run(
        [*warm_python("inspect_ai"), str(script), str(folder)],
        check=True,
        capture_output=True,
        cwd=folder,
        timeout=120,
    )
    return folder


def as_json(*arguments: object) -> dict[str, Any]:
    result = CliRunner().invoke(sopilot, ["lab", "stats", *map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_another_evaluations_logs_are_read(logs: Path) -> None:
    (flat,) = (logs / "flat").glob("*.json")
    (pg,) = (logs / "pg").glob("*.eval")
    rows = {row["arm"]: row for row in as_json("describe", pg, flat)["rates"]}
    assert {arm: row["judged"] for arm, row in rows.items()} == {"pg": 18, "flat": 18}
    assert rows["pg"]["pass"] == 1.0
    assert (rows["flat"]["execute"], rows["flat"]["refuse"]) == (1 / 5, 1 / 4)
    assert rows["pg"]["model"] == "mockllm/model"


def test_epochs_are_runs_and_metadata_are_goals(logs: Path) -> None:
    (flat,) = (logs / "flat").glob("*.json")
    found = as_json("compare", logs / "pg", flat, "--arms", "pg", "flat", "--run", 1)
    assert (found["wins"], found["losses"], found["goals"]) == (7, 0, 3)
    repeated = as_json("describe", flat, "-k", 2)["repeats"]
    assert (repeated[0]["runs"], repeated[0]["variance"]) == (2, 0.0)


def test_what_is_no_log_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torn = tmp_path / "torn.eval"
    torn.write_bytes(b"PK\x03\x04 not a zip")
    for path, told in ((torn, "not a log of Inspect"), (tmp_path, "not a log of Inspect")):
        assert main(["lab", "stats", "describe", str(path)]) == 2
        assert told in capsys.readouterr().err
    torn.unlink()
    assert main(["lab", "stats", "describe", str(tmp_path)]) == 2
    assert "no outcomes in it" in capsys.readouterr().err
