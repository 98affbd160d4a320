"""`sopilot audit` as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_audit_trace import HANDBOOK, PROGRAMS, Desk
from test_foreign_transcripts import BALANCE, LOGIN, PAY, dialog

from sopilot.cli.audit import command
from sopilot.cli.main import main
from sopilot.session import ProgramSet, TraceFile, write_trace
from sopilot.vm import Complete, Fail, Note, genesis, seal_all

KNOWN = ProgramSet(PROGRAMS)
NOTHING: dict[str, object] = {"handbook": None, "arm": None, "model": None, "goals": None}


def opened() -> Desk:
    return Desk().do(Note("opened", {"programs": dict(KNOWN.hashes), **NOTHING}))


def trace_file(desk: Desk, *, programs: bool = True) -> TraceFile:
    sealed = tuple(seal_all(desk.events, genesis("s1")))
    return TraceFile(
        "s1", sealed, dict(KNOWN.hashes), dict(KNOWN.texts) if programs else {}, NOTHING
    )


def write(path: Path, desk: Desk, *, programs: bool = True) -> str:
    path.write_text(write_trace(trace_file(desk, programs=programs)), "utf-8")
    return str(path)


def clean(tmp_path: Path) -> str:
    desk = opened().log_in().check_funds().approve().pay().do(Complete("done"))
    return write(tmp_path / "clean.jsonl", desk)


def test_a_clean_trace(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, [clean(tmp_path)])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("session s1: completed, no findings, chain verified")


def test_findings_exit_1_and_come_as_json_and_as_a_page(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.jsonl", opened().log_in().do(Fail("no")))
    page = tmp_path / "page.html"
    result = CliRunner().invoke(command, [path, "--json", "--html", str(page)])
    assert result.exit_code == 1
    found = json.loads(result.output)
    assert [one["code"] for one in found["findings"]] == ["refusal-without-cause"]
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_verify_alone(tmp_path: Path) -> None:
    path = clean(tmp_path)
    assert CliRunner().invoke(command, [path, "--verify"]).exit_code == 0
    lines = Path(path).read_text("utf-8").split("\n")
    Path(path).write_text("\n".join([*lines[:5], *lines[6:]]), "utf-8")
    result = CliRunner().invoke(command, [path, "--verify"])
    assert result.exit_code == 1
    assert "broken-chain" in result.output


def test_programs_may_come_from_a_handbook(tmp_path: Path) -> None:
    path = write(tmp_path / "bare.jsonl", opened().log_in().do(Fail("no")), programs=False)
    book = tmp_path / "desk.yaml"
    book.write_text(HANDBOOK, "utf-8")
    assert "without its programs" in _misuse([path])
    book.write_text(HANDBOOK.replace("Pays a bill", "Settles a bill"), "utf-8")
    assert "not the program that ran" in _misuse([path, "--handbook", str(book)])


def _misuse(arguments: list[str]) -> str:
    result = CliRunner().invoke(command, arguments)
    assert result.exception is not None
    return str(result.exception)


def test_a_transcript(tmp_path: Path) -> None:
    book = tmp_path / "desk.yaml"
    book.write_text(HANDBOOK, "utf-8")
    path = tmp_path / "dialog.json"
    path.write_text(json.dumps({"messages": dialog(LOGIN, PAY)}), "utf-8")
    arguments = [str(path), "--handbook", str(book)]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 1
    assert "premature-goal" in result.output
    path.write_text(json.dumps(dialog(LOGIN, BALANCE, PAY)), "utf-8")
    assert CliRunner().invoke(command, [*arguments, "--goal", "pay"]).exit_code == 0
    assert "no chain to verify" in _misuse([*arguments, "--verify"])
    assert "needs an SOP" in _misuse([str(path)])


def test_misuse_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.json"
    path.write_text("{}", "utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["audit", str(path)])
    assert ended.value.code == 2
    assert "no list of messages" in capsys.readouterr().err
