"""A customer's data is erased: no byte is left, and chain, heads and register still verify."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.messages.errors import RunEnded, UserMistake

BOOK = """handbook: till
actions:
  look: {input: {who: string}, read_only: true}
  pay: {input: {who: string, amount: integer, note: string}, irreversible: true, confirm: false}
predicates:
  known(who): {says: "{who} is known.", verify: look(who), verdict: result.known}
procedures:
  pay: {requires: known(who)}
"""


@pytest.fixture
def paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{tmp_path}/store.db")
    (tmp_path / "till.yaml").write_text(BOOK)

    def pay(who: str, amount: int) -> str:
        results = tmp_path / "results.yaml"
        results.write_text(f"look: {{known: true, name: {who}}}\npay: {{paid_to: {who}}}\n")
        ran = run(
            "run", str(tmp_path / "till.yaml"), "--goal", "pay", "--results", str(results),
            "--request", f"Hello, this is {who}, pay me.", "--input", f"who={who}",
            "--input", f"amount={amount}", "--input", f"note=for {who}", "--json",
        )  # fmt: skip
        found = json.loads(ran.stdout)
        assert found["ending"] == "executed", ran.output
        return str(found["session"])

    return pay


def run(*arguments: str) -> Result:
    return CliRunner().invoke(sopilot, list(arguments))


def code_of(result: Result) -> str:
    assert isinstance(result.exception, UserMistake), result.output
    return result.exception.diagnostics[0].code


def whole(tmp_path: Path) -> bool:
    check = (
        "records",
        "verify",
        "--head",
        str(tmp_path / "heads.jsonl"),
        "--key",
        str(tmp_path / "k.pub"),
    )
    told = run(*check)
    return told.exit_code == 0 and "complete" in told.stdout


def test_erasing_leaves_everything_verifiable_and_no_byte_of_a_person(
    paid: Callable[..., str], tmp_path: Path
) -> None:
    run("people", "require", "privacy")
    run("privacy", "set", "columns", "amount")
    hers, his = paid("Zelda-Quast", 1200), paid("Otto", 30)
    assert run("audit", hers, "--keep").exit_code == 0
    run("trace", "keygen", str(tmp_path / "k"))
    run("records", "seal", "--key", str(tmp_path / "k"), "--to", str(tmp_path / "heads.jsonl"))
    assert whole(tmp_path)
    page = tmp_path / "before.html"
    run("audit", hers, "--html", str(page))
    assert "Zelda-Quast" in page.read_text()
    page.unlink()
    rows = run("records", "actions", "--where", "amount>1000", "--columns", "amount").stdout
    assert "1 of 2 actions" in rows
    done = run("privacy", "erase", "--subject", "zelda-quast", "--why", "asked for", "--json")
    assert json.loads(done.stdout)["erased"] == [hers]
    (tmp_path / "results.yaml").unlink()
    run("trace", "export", hers, "-o", str(tmp_path / "trace.jsonl"), "--payloads")
    run("audit", hers, "--html", str(page))
    run("privacy", "log")
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert b"zelda" not in file.read_bytes().lower(), file
    assert whole(tmp_path)
    assert run("records", "actions", "--where", "amount>1000", "--columns", "amount").stdout == rows
    assert run(
        "records", "actions", "--rebuild", "--where", "amount>1000", "--columns", "amount"
    ).stdout.endswith(rows[-40:])
    assert whole(tmp_path)
    assert run("trace", "verify", str(tmp_path / "trace.jsonl")).exit_code == 0
    run("records", "seal", "--key", str(tmp_path / "k"), "--to", str(tmp_path / "heads.jsonl"))
    assert whole(tmp_path)
    assert isinstance(run("resume", hers).exception, RunEnded | UserMistake)
    assert "Otto" in run("trace", "export", his, "--payloads").stdout


def test_holds_periods_and_sessions_without_privacy_are_respected(
    paid: Callable[..., str], tmp_path: Path
) -> None:
    bare = paid("Zelda", 1)
    run("people", "require", "privacy")
    held, free = paid("Zelda", 2), paid("Zelda", 3)
    run("privacy", "hold", held, "--why", "case 7")
    done = run("privacy", "erase", "--subject", "Zelda", "--why", "asked for", "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert (told["erased"], told["held"]) == ([free], {held: "case 7"})
    assert told["inside_the_chain"] == [bare]
    run("privacy", "lift", held)
    run("privacy", "set", "retain", "till", "3650")
    assert (
        json.loads(run("privacy", "erase", "--due", "--why", "x", "--json").stdout)["erased"] == []
    )
    run("privacy", "set", "retain", "till", "0")
    due = json.loads(run("privacy", "erase", "--due", "--why", "period", "--json").stdout)
    assert due["erased"] == [held]


def test_contents_are_shown_by_role_and_reading_is_on_record(
    paid: Callable[..., str], tmp_path: Path
) -> None:
    run("people", "require", "privacy")
    session = paid("Zelda", 2)
    for name, role in (("Ada", "auditor"), ("Bo", "clerk")):
        run("people", "add", name, "--role", role)
        (tmp_path / name).write_text(run("people", "token", name, "--name", name).stdout)
    run("privacy", "set", "readers", "auditor")
    auditor, clerk = ("--token-file", str(tmp_path / "Ada")), ("--token-file", str(tmp_path / "Bo"))
    assert "Zelda" in run("audit", session, *auditor).stdout
    masked = run("audit", session, *clerk, "--html", str(tmp_path / "page.html"))
    assert "Zelda" not in masked.stdout + (tmp_path / "page.html").read_text()
    assert code_of(run("trace", "export", session, "--payloads", *clerk)) == "not-entitled"
    assert code_of(run("privacy", "disclose", "--subject", "Zelda", "-o", str(tmp_path / "d"))) == (
        "not-entitled"
    )
    out = tmp_path / "told.json"
    assert run("privacy", "disclose", "--subject", "Zelda", "-o", str(out), *auditor).exit_code == 0
    (about,) = json.loads(out.read_text())["sessions"]
    assert about["session"] == session
    log = json.loads(run("privacy", "log", "--json").stdout)["readings"]
    assert [(one["what"], one["by"], one["contents"]) for one in log] == [
        ("audit", "Ada", True), ("audit", "Bo", False), ("export", "Bo", False),
        ("disclose", "", False), ("disclose", "Ada", True),
    ]  # fmt: skip
    assert [one.get("refused", False) for one in log] == [False, False, True, True, False]
    lines = run("privacy", "log").stdout.splitlines()[:-1]
    assert [line.partition("(")[2].partition(")")[0] for line in lines] == [
        "contents", "masked", "refused", "refused", "contents",
    ]  # fmt: skip


def test_looking_at_what_waits_the_register_and_a_copy_is_on_record(
    paid: Callable[..., str], tmp_path: Path
) -> None:
    session = paid("Zelda", 2)
    run("records", "actions")
    assert json.loads(run("privacy", "log", "--json").stdout)["readings"] == [], "not demanded"
    run("people", "require", "privacy")
    run("people", "add", "Ada", "--role", "auditor")
    (tmp_path / "Ada").write_text(run("people", "token", "Ada", "--name", "Ada").stdout)
    run("privacy", "set", "readers", "privacy")
    token = ("--token-file", str(tmp_path / "Ada"))
    for looked in (
        ("approvals", "list", session, *token),
        ("approvals", "list"),
        ("records", "actions", "--action", "pay", "--where", "amount>1", "--json", *token),
        ("store", "backup", str(tmp_path / "copy.db"), *token),
    ):
        assert run(*looked).exit_code == 0, looked
    log = json.loads(run("privacy", "log", "--json").stdout)["readings"]
    assert [(one["what"], one["sessions"], one["by"], one["contents"]) for one in log] == [
        ("approvals list", [session], "Ada", True),
        ("approvals list", [], "", True),
        ("records actions", ["pay", "amount>1", "ever to now"], "Ada", True),
        ("backup", [str(tmp_path / "copy.db")], "Ada", True),
    ]


def test_under_keys_no_copy_holds_a_byte_and_a_simulated_world_goes_too(
    paid: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "elsewhere"
    monkeypatch.setenv("SOPILOT_KEYS", str(keys))
    run("people", "require", "keys")
    session = paid("Zelda-Quast", 1200)
    (tmp_path / "results.yaml").unlink()
    assert not [
        one for one in tmp_path.rglob("*") if one.is_file() and b"zelda" in one.read_bytes().lower()
    ]
    assert "Zelda-Quast" in run("audit", session).stdout
    assert run("privacy", "erase", "--subject", "zelda", "--why", "asked for").exit_code == 0
    assert [one for one in keys.rglob("*") if one.is_file()] == []
    ran = json.loads(run("run", "bank", "--task", "transfer-rent-share", "--json").stdout)
    world = tmp_path / "simulators" / f"{ran['session']}.json"
    assert world.exists()
    run("privacy", "erase", "--session", ran["session"], "--why", "asked for")
    assert not world.exists()
    monkeypatch.delenv("SOPILOT_KEYS")
    (tmp_path / "results.yaml").write_text("look: {}\npay: {}\n")
    assert code_of(run("run", str(tmp_path / "till.yaml"), "--goal", "pay", "--results",
                       str(tmp_path / "results.yaml"), "--request", "x", "--input", "who=x")
                   ) == "no-keys"  # fmt: skip


def test_a_session_that_waits_is_not_erased_without_a_word(
    paid: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "till.yaml").write_text(BOOK.replace("confirm: false", "approval: boss"))
    run("people", "require", "privacy")
    results = tmp_path / "results.yaml"
    results.write_text("look: {known: true}\npay: {}\n")
    ran = run("run", str(tmp_path / "till.yaml"), "--goal", "pay", "--results", str(results),
              "--request", "pay", "--input", "who=Zelda", "--input", "amount=1", "--input",
              "note=x", "--json")  # fmt: skip
    session = json.loads(ran.stdout)["session"]
    told = run("privacy", "erase", "--session", session, "--why", "asked for")
    assert told.exit_code == 1
    assert "waits for people" in told.stdout
    assert "pay" in run("approvals", "list", session).stdout, "it can still be decided"
    done = run("privacy", "erase", "--session", session, "--unfinished", "--why", "asked for")
    assert done.exit_code == 0, done.stdout
    for told in (
        run("records", "actions", "--json"),
        run("records", "actions", "--csv"),
        run("approvals", "list"),
    ):
        assert "'$ref'" not in told.stdout, "a digest is data, and no words"
