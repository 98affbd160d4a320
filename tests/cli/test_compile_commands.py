"""``compile``, ``check``, ``show`` and ``show --as explanation`` as a person calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from called_commands import call as run
from called_commands import mistake

from sopilot.program.codec import program_from_yaml

SMALL = """\
handbook: small-desk
actions:
  find: {input: {user: string}}
  close: {input: {user: string}}
predicates:
  known(user):
    says: The user {user} is known.
    verify: find(user)
procedures:
  close:
    requires: known(user)
"""


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def test_compile_prints_counts_and_writes_programs(handbook: Path, tmp_path: Path) -> None:
    assert program_from_yaml(run("compile", str(handbook)).stdout, "stdout").entry == "close"
    figures = json.loads(run("compile", str(handbook), "--json").stdout)
    assert figures["programs"] == figures["goals"] == figures["rules"] == 1
    assert figures["functions"] == {"median": 2.0, "max": 2}
    assert figures["missing_recipes"] == 0
    bank = json.loads(run("compile", "bank", "--json").stdout)
    assert bank["rules"] > bank["goals"] > 1
    assert run("compile", str(handbook), "-o", str(tmp_path / "out")).exit_code == 0
    assert "check_known" in (tmp_path / "out" / "close.yaml").read_text(encoding="utf-8")
    assert run("check", str(tmp_path / "out")).exit_code == 0


def test_same_bytes_for_another_key_order(handbook: Path, tmp_path: Path) -> None:
    shuffled = tmp_path / "other.yaml"
    head, rest = SMALL.split("actions:\n")
    actions, rest = rest.split("predicates:\n")
    predicates, procedures = rest.split("procedures:\n")
    lines = actions.splitlines(keepends=True)
    shuffled.write_text(
        f"procedures:\n{procedures}predicates:\n{predicates}"
        f"actions:\n{''.join(reversed(lines))}{head}",
        encoding="utf-8",
    )
    assert run("compile", str(handbook)).stdout == run("compile", str(shuffled)).stdout


def test_check_prints_every_finding_and_exits_1(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(
        SMALL.replace("verify: find(user)", "verify: fnd(user)").replace(
            "known(user)\n", "knwn(user)\n"
        ),
        encoding="utf-8",
    )
    result = run("check", str(broken))
    assert result.exit_code == 1
    assert "did you mean `find`?" in result.stdout
    assert "did you mean `known`?" in result.stdout
    findings = json.loads(run("check", str(broken), "--json").stdout)["findings"]
    assert all(finding["line"] > 0 and finding["column"] > 0 for finding in findings)


def test_check_accepts_the_bundled_handbooks() -> None:
    result = run("check", "bank", "clinic", "it")
    assert result.exit_code == 0
    assert "3 files checked: 0 errors, 0 warnings" in result.stdout


@pytest.mark.parametrize(
    "form",
    ["frame", "listing", "flat", "prose", "official", "official-code", "official-recipes"],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_show_quotes_the_sentence_in_every_form(handbook: Path, form: str, language: str) -> None:
    result = run("show", str(handbook), "--as", form, "--language", language)
    assert result.exit_code == 0, result.output
    said = "The user {user} is known." if form == "listing" else "The <user> is known."
    assert said in result.stdout


def test_show_check_proves_the_correspondence() -> None:
    result = run("show", "bank", "--check", "--json")
    assert result.exit_code == 0
    proof = json.loads(result.stdout)
    assert proof["mismatches"] == {}
    assert proof["leaves"] > 50


def test_explain_names_guard_recipe_and_frames() -> None:
    why = json.loads(
        run("show", "bank", "--as", "explanation", "--goal", "transfer", "--json").stdout
    )
    transfer = why["bank/transfer"]
    assert any("requires it" in each["because"] for each in transfer["prerequisites"])
    assert any(recipe["fallbacks"] for recipe in transfer["recipes"])
    assert any(frame["because"] for frame in transfer["frames"])


def test_explain_says_who_approves() -> None:
    told = run("show", "bank", "--as", "explanation").stdout
    assert "wire_abroad is approved by 2 of: supervisor, auditor, duty_officer" in told
    assert "close_account is approved by supervisor\n" in told


@pytest.mark.parametrize("name", ["compile", "check", "show", "format", "new"])
def test_a_name_that_no_file_can_have_is_a_mistake_not_a_crash(name: str) -> None:
    assert mistake(name, "a" * 5_000)


def test_programs_are_shown_and_told_apart_from_handbooks(handbook: Path, tmp_path: Path) -> None:
    assert run("compile", str(handbook), "-o", str(tmp_path / "out")).exit_code == 0
    program = str(tmp_path / "out" / "close.yaml")
    for form in ("flat", "prose", "frame", "listing", "first-frame"):
        of_program = run("show", program, "--as", form)
        assert of_program.exit_code == 0
        assert of_program.stdout == run("show", str(handbook), "--as", form).stdout
    for arguments in (
        ("show", "--as", "explanation"),
        ("run",),
        ("test",),
        ("show", "--as", "official"),
    ):
        told = mistake(arguments[0], program, *arguments[1:])
        assert "error[program-not-handbook]" in told
        assert "name the handbook's file" in told
