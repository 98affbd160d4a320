"""`sopilot audit` as a person calls it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from audit_desk import PROGRAMS, Desk
from click.testing import CliRunner
from test_foreign_transcripts import BALANCE, HANDBOOK, LOGIN, PAY, REQUEST

from chat_messages import messages
from sopilot.cli.main import main, sopilot
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import UserMistake
from sopilot.trace.chain import genesis, seal_all
from sopilot.trace.events import Complete, Fail, Note
from sopilot.trace.files import TraceFile, write_trace
from sopilot.trace.redaction import redact

KNOWN = ProgramSet(PROGRAMS)
NOTHING: dict[str, object] = {"handbook": None, "view": None, "model": None, "goals": None}


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
    result = CliRunner().invoke(sopilot, ["audit", clean(tmp_path)])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("session s1: completed, no findings, chain verified")


def test_findings_exit_1_and_come_as_json_and_as_a_page(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.jsonl", opened().log_in().do(Fail("no")))
    page = tmp_path / "page.html"
    result = CliRunner().invoke(sopilot, ["audit", path, "--json", "--html", str(page)])
    assert result.exit_code == 1
    found = json.loads(result.output)
    assert [one["code"] for one in found["findings"]] == ["refusal-without-cause"]
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_verify_alone(tmp_path: Path) -> None:
    path = clean(tmp_path)
    assert CliRunner().invoke(sopilot, ["audit", path, "--verify"]).exit_code == 0
    lines = Path(path).read_text("utf-8").split("\n")
    Path(path).write_text("\n".join([*lines[:5], *lines[6:]]), "utf-8")
    result = CliRunner().invoke(sopilot, ["audit", path, "--verify"])
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
    result = CliRunner().invoke(sopilot, ["audit", *arguments])
    assert result.exception is not None
    return str(result.exception)


def test_a_transcript(tmp_path: Path) -> None:
    book = tmp_path / "desk.yaml"
    book.write_text(HANDBOOK, "utf-8")
    path = tmp_path / "dialog.json"
    path.write_text(json.dumps({"messages": messages(REQUEST, LOGIN, PAY)}), "utf-8")
    arguments = [str(path), "--handbook", str(book)]
    result = CliRunner().invoke(sopilot, ["audit", *arguments])
    assert result.exit_code == 1
    assert "premature-goal" in result.output
    path.write_text(json.dumps(messages(REQUEST, LOGIN, BALANCE, PAY)), "utf-8")
    assert CliRunner().invoke(sopilot, ["audit", *arguments, "--goal", "pay"]).exit_code == 0
    assert "no hash chain to verify" in _misuse([*arguments, "--verify"])
    assert "needs a handbook" in _misuse([str(path)])


def test_what_cannot_be_judged_exits_5(tmp_path: Path) -> None:
    """Only a model could judge the balance."""
    book, path = tmp_path / "desk.yaml", tmp_path / "dialog.json"
    book.write_text(re.sub(r"\n    verdict: .*", "", HANDBOOK), "utf-8")
    path.write_text(json.dumps(messages(REQUEST, LOGIN, BALANCE, PAY)), "utf-8")
    arguments = ["audit", str(path), "--handbook", str(book), "--goal", "pay"]
    result = CliRunner().invoke(sopilot, arguments)
    assert result.exit_code == 5, result.output
    assert "not judged" in result.output


def test_misuse_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.json"
    path.write_text("{}", "utf-8")
    assert main(["audit", str(path)]) == 2
    assert "this isn't a list of messages" in capsys.readouterr().err


def with_payload() -> TraceFile:
    """The balance, which was too small, and the opening are kept outside of the chain."""
    desk = opened().log_in().check_funds(balance=1, holds=False).do(Fail("no"))
    events, kept = [], {}
    for event in desk.events:
        light, values = redact(event, limit=11)
        outside = event.kind in ("domain_result", "note")
        events.append(light if outside else event)
        kept.update(values if outside else {})
    sealed = tuple(seal_all(events, genesis("s1")))
    return TraceFile("s1", sealed, dict(KNOWN.hashes), dict(KNOWN.texts), NOTHING, payloads=kept)


def _another_value(trace: TraceFile) -> TraceFile:
    changed = {
        digest: {"balance": 99} if value == {"balance": 1} else value
        for digest, value in trace.payloads.items()
    }
    assert changed != trace.payloads
    return dataclasses.replace(trace, payloads=changed)


def _itself(trace: TraceFile) -> TraceFile:
    changed = {digest: {"$ref": digest, "bytes": 1} for digest in trace.payloads}
    return dataclasses.replace(trace, payloads=changed)


def _another_text(trace: TraceFile) -> TraceFile:
    changed = {
        digest: text.replace("result.balance >= amount", "result.balance < amount")
        for digest, text in trace.program_texts.items()
    }
    assert changed != trace.program_texts
    return dataclasses.replace(trace, program_texts=changed)


def _another_program(trace: TraceFile) -> TraceFile:
    texts = {
        hashlib.sha256(text.encode()).hexdigest(): text
        for text in _another_text(trace).program_texts.values()
    }
    return dataclasses.replace(trace, programs={"pay": next(iter(texts))}, program_texts=texts)


@pytest.mark.parametrize(
    "touch",
    [_another_value, _itself, _another_text, _another_program],
    ids=lambda one: one.__name__,
)
def test_a_touched_file_is_told_before_anything_in_it_is_believed(
    tmp_path: Path, touch: Callable[[TraceFile], TraceFile]
) -> None:
    whole = tmp_path / "whole.jsonl"
    whole.write_text(write_trace(with_payload()), "utf-8")
    assert CliRunner().invoke(sopilot, ["audit", str(whole)]).exit_code == 0
    path = tmp_path / "touched.jsonl"
    path.write_text(write_trace(touch(with_payload())), "utf-8")
    result = CliRunner().invoke(sopilot, ["audit", str(path), "--json"])
    assert result.exit_code == 1, result.output
    codes = {one["code"] for one in json.loads(result.output)["findings"]}
    assert "tampering" in codes
    assert codes == {"tampering"}


@pytest.mark.parametrize(
    "entries",
    [
        [{"interactions": 5}],
        [{"interactions": [{}]}],
        [{"interactions": [{"interaction": 5}]}],
        [{"interactions": []}, 5],
        [{"interactions": [], "domain": "bank", "task": 5}],
    ],
)
def test_a_recording_of_another_shape_is_misuse(tmp_path: Path, entries: object) -> None:
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps(entries), "utf-8")
    with pytest.raises(UserMistake):
        CliRunner().invoke(sopilot, ["audit", str(path)], catch_exceptions=False)
