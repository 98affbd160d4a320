"""`sopilot.toml`: found from the current folder upwards, overridden by variables and options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sopilot.cli.main import main


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "inner" / "folder").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "inner" / "folder")
    return tmp_path


def sessions(capfd: pytest.CaptureFixture[str], *options: str) -> int:
    capfd.readouterr()
    assert main(["sessions", "list", "--json", *options]) == 0
    return len(json.loads(capfd.readouterr().out)["sessions"])


def test_store_and_view_come_from_the_nearest_file(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "sopilot.toml").write_text('store = "sqlite:kept/s.db"\nview = "flat"\n')
    assert main(["run", "bank", "--json"]) == 0
    assert (here / "kept" / "s.db").is_file(), "relative to the file"
    shown = json.loads(capfd.readouterr().out)["session"]
    assert main(["trace", "export", shown]) == 0
    assert '"view":"flat"' in capfd.readouterr().out.replace(" ", "")
    assert sessions(capfd) == 1
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{here}/variable.db")
    assert sessions(capfd) == 0, "a variable overrides the file"
    assert sessions(capfd, "--store", f"sqlite:{here}/kept/s.db") == 1, "an option overrides both"
    monkeypatch.delenv("SOPILOT_STORE")
    (here / "inner" / "sopilot.toml").write_text('language = "zh"\n')
    assert sessions(capfd) == 0, "the nearest file alone counts"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('modell = "x"', "`modell` isn't a setting"),
        ("view = 3", "`view` must be text"),
        ('language = "fr"', "`language`: 'fr' is not one of 'en', 'zh'"),
        ("store = ", "can't be read"),
        ('store = "postgres://elsewhere/db"', "`store` isn't a local file"),
        ('store = "sqlite:../../x/s.db"', "`store` is outside the folder"),
        ('store = "sqlite:inner/../../s.db"', "`store` is outside the folder"),
        ('store = "sqlite:/tmp/s.db"', "`store` is outside the folder"),
        ('store = "sqlite:~/s.db"', "`store` is outside the folder"),
        ('store = "sqlite:link/s.db"', "`store` is outside the folder"),
        ('model = "http://elsewhere/v1#m"', "`model` is an address"),
        ('model = "mailbox:../../../box"', "`model` is outside the folder"),
        ('[gateway]\nupstream = ["sh"]', "`[gateway]` sets options of a command"),
        ("[nonsense]", "`nonsense` isn't a setting"),
    ],
)
def test_a_wrong_file_is_named_with_the_cure(
    here: Path, capfd: pytest.CaptureFixture[str], text: str, problem: str
) -> None:
    (here / "link").symlink_to(here.parent)
    (here / "sopilot.toml").write_text(text)
    assert main(["run", "bank"]) == 2
    told = capfd.readouterr().err
    assert problem in told
    assert str(here / "sopilot.toml") in told
    assert not (here.parent / "s.db").exists()
    assert "isn't a setting" not in problem or "known keys: store, model, view, language" in told


@pytest.mark.parametrize("by_variable", [False, True])
def test_a_named_file_sets_any_option_of_a_command(
    here: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    by_variable: bool,
) -> None:
    file = here / "inner" / "my.toml"
    file.write_text('store = "${WHERE:-sqlite:../s.db}"\n[sessions.list]\nlimit = 1\n')
    named = [] if by_variable else ["--config", str(file)]
    if by_variable:
        monkeypatch.setenv("SOPILOT_CONFIG", str(file))
    for _ in range(2):
        assert main([*named, "run", "bank", "--json"]) == 0
    capfd.readouterr()
    assert main([*named, "sessions", "list", "--json"]) == 0
    assert len(json.loads(capfd.readouterr().out)["sessions"]) == 1
    file.write_text("[sessions.list]\nlimt = 1\n")
    assert main([*named, "sessions", "list"]) == 2
    assert "`sessions.list.limt` isn't a setting" in capfd.readouterr().err
    file.write_text("[sessions.list]\nlimit = 'many'\n")
    assert main([*named, "sessions", "list"]) == 2
    assert "`sessions.list.limit`: 'many' is not a valid integer" in capfd.readouterr().err
