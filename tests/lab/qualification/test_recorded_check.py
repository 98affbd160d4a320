"""A check on a model's own sweeps: nothing is run, the probe asks where it stood in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from gate_records import perfect

from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ModelReply, ModelRequest
from sopilot_lab.experiments.entrants import Contestant
from sopilot_lab.experiments.run_folder import recorded_runs
from sopilot_lab.qualification.checking import Allowance, CheckSpending, Qualification
from sopilot_lab.qualification.folder import CheckFolder
from sopilot_lab.qualification.paging_decision import decide
from sopilot_lab.qualification.plan import PreparedCheck, recorded_check
from sopilot_lab.qualification.probe import probe_request


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweeps")
    for arm in ("pg", "flat"):
        done = call(
            "lab", "run", "--source", "bank", "--arm", arm, "--runner", "plain",
            "--traces", "--limit", "6", "-o", str(folder / arm),
        )  # fmt: skip
        assert done.exit_code == 0, done.output
    return folder


def call(*words: str) -> Result:
    return CliRunner().invoke(sopilot, words)


class Oriented:
    """Answers every question with the truth."""

    name = "oriented"

    def __init__(self, prepared: PreparedCheck) -> None:
        self._truth = {
            probe_request(cursor, program).messages[-1].content: cursor
            for cursor, program in prepared.questions
        }

    async def complete(self, request: ModelRequest) -> ModelReply:
        cursor = self._truth[request.messages[-1].content]
        return ModelReply(json.dumps(perfect(cursor)))


async def test_its_places_are_asked_about_and_its_runs_judged(sweeps: Path, tmp_path: Path) -> None:
    prepared = recorded_check("any", "reference", recorded_runs([sweeps]), 12)
    assert (prepared.arms, prepared.planned, len(prepared.runs)) == (("flat", "pg"), 6, 12)
    assert prepared.sessions == 6
    assert len({cursor.case for cursor, _ in prepared.questions}) > 1
    folder = CheckFolder(tmp_path, {})
    check = Qualification(
        cases={},
        arms=prepared.arms,
        rehearsal=prepared.rehearsal,
        spending=CheckSpending(Allowance(100, None, 1.0), Contestant("any")),
        folder=folder,
        questions=prepared.questions,
        probed=Oriented(prepared),
        play=lambda who, reader, about: pytest.fail("nothing is run"),
    )
    await check.run()
    grades = list(folder.graded().values())
    verdict = decide("any", prepared.runs, grades, planned=prepared.planned)
    assert (verdict.probe.questions, verdict.probe.localisation) == (12, 1.0)
    assert verdict.natural.delta == 0.0
    assert not folder.runs()


def test_runs_that_failed_teach_nothing_about_places(sweeps: Path) -> None:
    recorded = recorded_runs([sweeps / "pg"])
    passed = {one.record.task for one in recorded if one.record.passed}
    asked = recorded_check("any", "reference", recorded, 50)
    assert {cursor.case.removesuffix("/pg") for cursor, _ in asked.questions} <= passed


def test_the_command_tells_what_it_rests_on(sweeps: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOPILOT_HOME", str(tmp_path))
        done = call(
            "qualify", "--model", "reference", "--from", str(sweeps), "--probe", "0", "--json"
        )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["recorded"] == {"model": "reference", "sessions": 0}
    assert (found["arms"]["pg"]["pass"], found["used"]["requests"]) == (6, 0)


def test_what_cannot_be_asked_is_refused(sweeps: Path, tmp_path: Path) -> None:
    for words, said in (
        (("--model", "local"), "runs of reference, which say nothing about local"),
        (("--model", "reference"), "use --probe 0"),
        (("--model", "local", "--handbook", "bank"), "can't be combined"),
    ):
        assert said in str(call("qualify", "--from", str(sweeps), *words).exception)
    with pytest.raises(UserMistake, match="it contains no runs"):
        recorded_runs([tmp_path])
    twice = recorded_runs([sweeps, sweeps / "pg"])
    with pytest.raises(UserMistake, match="run twice"):
        recorded_check("any", "reference", twice, 0)
