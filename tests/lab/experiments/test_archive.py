from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest
from bench_records import record, write_runs
from click.testing import CliRunner

from sopbench_checkout import MISSING
from sopilot.messages.errors import UserMistake
from sopilot.program.codec import program_to_yaml
from sopilot_lab.cli import archive as archive_command
from sopilot_lab.experiments.archive import build_archive, check_file, without_wording
from sopilot_lab.experiments.run_folder import RunFolder
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.reference import TaskReference
from sopilot_lab.sopbench.source import load_task


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return write_runs(tmp_path / "runs", record("sopbench:bank/goal#0", reason="kept at home"))


def changed_names(path: Path) -> list[str]:
    """The names whose content is not what the manifest says."""
    with zipfile.ZipFile(path) as archive:
        lines = archive.read("SHA256SUMS").decode().splitlines()
        stated = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
        names = set(archive.namelist()) - {"SHA256SUMS"}
        wrong = [
            name
            for name in names & set(stated)
            if hashlib.sha256(archive.read(name)).hexdigest() != stated[name]
        ]
    return sorted([*wrong, *(names ^ set(stated))])


def test_the_manifest_covers_every_file_and_the_bytes_are_reproducible(
    folder: RunFolder, tmp_path: Path
) -> None:
    first, second = tmp_path / "1.zip", tmp_path / "2.zip"
    names = build_archive([folder], first, analysis={"report.md": "x"}, upstream=None)
    build_archive([folder], second, analysis={"report.md": "x"}, upstream=None)
    assert first.read_bytes() == second.read_bytes()
    assert changed_names(first) == []
    assert {"SHA256SUMS", "analysis/report.md", "README.txt"} <= set(names)
    with zipfile.ZipFile(first) as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
    assert b"kept at home" not in content


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("a.json", '{"api_key": "0123456789abcdef0123"}', "archive-credential"),
        ("a.json", "sk-abcdefghijklmnopqrstuvwx", "archive-credential"),
        ("a.json", "-----BEGIN OPENSSH PRIVATE KEY-----", "archive-credential"),
        ("a.json", "postgresql://me:secret@host/db", "archive-credential"),
        ("a.json", "written to /home/someone/runs", "archive-absolute-path"),
        ("a.json", r"C:\\Users\\someone\\runs", "archive-absolute-path"),
        ("a.json", "author: Maria Muster", "archive-person"),
        ("a.json", "someone@example.org", "archive-person"),
        (".env", "x", "archive-hidden"),
        ("a/.git/config", "x", "archive-hidden"),
        ("../a", "x", "archive-path"),
    ],
)
def test_what_must_not_go_out_is_refused(name: str, text: str, code: str) -> None:
    found = list(check_file(name, text, upstream=None, forbidden=["Maria Muster"]))
    assert code in {each.code for each in found}


def test_ordinary_results_are_let_through() -> None:
    text = '{"task": "sopbench:bank/get_loan#3", "seconds": 0.1, "token": "x", "p": ".05/2"}'
    assert list(check_file("results/a.json", text, upstream=None)) == []


def test_nothing_is_written_when_something_is_refused(folder: RunFolder, tmp_path: Path) -> None:
    target = tmp_path / "a.zip"
    with pytest.raises(UserMistake) as caught:
        build_archive([folder], target, analysis={"notes": "/Users/someone/secret"}, upstream=None)
    assert caught.value.diagnostics[0].code == "archive-absolute-path"
    assert not target.exists()


def test_a_credential_in_a_case_is_refused(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = {"case/desk/notes.md": "the key is sk-abcdefghijklmnopqrstuvwx"}
    monkeypatch.setattr("sopilot_lab.experiments.archive.case_files", lambda folder: notes)
    with pytest.raises(UserMistake, match="looks like a credential"):
        build_archive(
            [folder], tmp_path / "a.zip", analysis={}, upstream=None, case=tmp_path, source=True
        )


@pytest.mark.sopbench
@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_upstreams_sentences_are_noticed_and_programs_go_out_without_them() -> None:
    upstream = shared_upstream()
    task = load_task(TaskReference("bank", "get_loan", 2), upstream)
    program = ProgramShelf("official", upstream).program(task).program
    spoken = list(check_file("a.yaml", program_to_yaml(program), upstream=upstream))
    assert [each.code for each in spoken] == ["archive-upstream"]
    silent = program_to_yaml(without_wording(program))
    assert list(check_file("a.yaml", silent, upstream=upstream)) == []
    assert "check_logged_in_user" in silent
    assert list(check_file("a.txt", task.user_prompt, upstream=upstream))
    named = load_task(TaskReference("library", "reserve_room", 8), upstream)
    program = ProgramShelf("official", upstream).program(named).program
    silent = program_to_yaml(without_wording(program))
    assert max(map(len, program.functions)) > 48, "the longest name is as long as a fragment"
    assert list(check_file("a.yaml", silent, upstream=upstream)) == []
    middle = task.user_prompt[len(task.user_prompt) // 3 :]
    assert list(check_file("a.txt", f"quoted: {middle}", upstream=upstream))


def test_without_a_checkout_nobody_can_tell_what_is_upstreams(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOPBENCH_HOME", str(tmp_path / "nowhere"))
    target = tmp_path / "a.zip"
    done = CliRunner().invoke(archive_command.archive, [str(folder.path), "-o", str(target)])
    assert isinstance(done.exception, UserMistake)
    assert "sopbench-missing" in str(done.exception.diagnostics[0].code)
    assert not target.exists()
