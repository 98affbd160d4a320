"""Nobody is paged before the check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sopilot.cli.run_and_audit import default_view
from sopilot.runner import qualifications as checks
from sopilot.runner.sources import open_source
from sopilot.tasks.starter import starter

FOLDER = str(Path(__file__).parents[2] / "examples" / "quotation")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def checked(home: Path, model: str, view: str | None, *, page: bool, **more: object) -> None:
    """As release 1 stored it, and what was added since."""
    path = checks.model_folder(home, model) / checks.LATEST
    path.parent.mkdir(parents=True)
    stored = {"arm": view, "page": page, "cases": 4, "planned": 4, **more}
    path.write_text(json.dumps(stored))


@pytest.mark.parametrize("model", ["reference", "person", "replay:x"])
def test_who_needs_no_check_is_paged_without_a_word(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert default_view(model, open_source("bank")) == "pg"
    assert capsys.readouterr().err == ""


def test_an_unchecked_model_sees_everything(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert default_view("local", open_source("bank")) == "flat"
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "view flat: `local` was never checked" in told
    assert "sopilot qualify --model local" in told
    assert default_view("local", open_source(FOLDER)) == "full-cursor"
    assert "view full-cursor" in capsys.readouterr().err


def test_a_verdict_is_followed(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checked(home, "good", "fused", page=True)
    checked(home, "weak", "flat", page=False)
    assert default_view("good", open_source("bank")) == "fused"
    assert default_view("good", open_source(FOLDER)) == "fused"
    assert default_view("weak", open_source("bank")) == "flat"
    assert "says do not page" in capsys.readouterr().err
    handbook = tmp_path / "mine.yaml"
    text, _ = starter("mine")
    handbook.write_text(text)
    assert default_view("weak", open_source(str(handbook))) == "full-cursor"
    handbook.write_text(text.replace("irreversible: true", "irreversible: false"))
    assert default_view("weak", open_source(str(handbook))) == "flat"
    # A program written by hand has no other wording, and its guards need the machine.
    assert default_view("weak", open_source(FOLDER)) == "full-cursor"


def test_a_model_that_may_page_gets_fused_where_actions_are_guarded(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checked(home, "strong", "prose", page=False, answer="may page", guarded_arm="fused")
    handbook = tmp_path / "mine.yaml"
    text, _ = starter("mine")
    handbook.write_text(text)
    assert default_view("strong", open_source(str(handbook))) == "fused"
    assert "view fused: the last check of `strong` says may page" in capsys.readouterr().err
    assert default_view("strong", open_source(FOLDER)) == "fused"
    assert default_view("strong", open_source("bank")) == "fused"
    handbook.write_text(text.replace("irreversible: true", "irreversible: false"))
    assert default_view("strong", open_source(str(handbook))) == "prose"


@pytest.mark.parametrize("answer", ["too few", "broken"])
def test_a_check_without_a_finding_is_followed_by_nobody(
    home: Path, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    checked(home, "m", "prose", page=False, answer=answer, guarded_arm=None)
    assert default_view("m", open_source("bank")) == "flat"
    assert "`m` was checked without a finding" in capsys.readouterr().err
    checked(home, "reference", "flat", page=False, answer=answer)
    assert default_view("reference", open_source("bank")) == "pg"
