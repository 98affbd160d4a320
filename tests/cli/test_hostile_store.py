"""Every command that shows a store, over stores whose every column somebody has written to: no
line that others chose, no sign that steers a terminal, no fault of ours."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from _pytest.mark.structures import ParameterSet
from click.testing import CliRunner
from test_hostile_text import BOOK, HOSTILE, is_quiet

from sopilot.cli.main import main, sopilot
from sopilot.cli.output import tell
from sopilot.values.text import Heading, Lines

EVIL = f"x\nFORGED {HOSTILE}".replace("\x00", "")
POUR = "pour: {input: {cup: string}"
GUARDED = BOOK.replace(POUR, f"{POUR}, irreversible: true, approval: host")
COLUMNS = [
    ("sessions", "id"), ("sessions", "metadata"), ("heads", "owner"), ("heads", "summary"),
    ("heads", "hash"), ("events", "line"), ("actions", "call"), ("actions", "action"),
    ("actions", "outcome"), ("actions", "proof"), ("actions", "arguments"), ("actions", "rest"),
    ("log", "session"), ("log", "hash"), ("seals", "line"),
]  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a call that waits, people, a journal of audits, a hold and a seal."""
    here = tmp_path_factory.mktemp("store")
    (here / "tea.yaml").write_text(GUARDED, "utf-8")
    (here / "results.yaml").write_text("look: {clean: true}\npour: {}\n", "utf-8")
    store = ("--store", f"sqlite:{here / 's.db'}")
    commands: list[list[str]] = [
        ["people", "add", "Sue", "--role", "host", "--alias", "s.h"],
        ["run", f"{here}/tea.yaml", "--results", f"{here}/results.yaml", "--input", "cup=c"],
        ["privacy", "hold", "c", "--why", "court"],
        ["trace", "keygen", f"{here}/k"],
        ["records", "seal", "--key", f"{here}/k", "--to", f"{here}/heads.jsonl"],
    ]
    for one in commands:
        made = CliRunner().invoke(sopilot, [*one, *(() if one[0] == "trace" else store)])
        assert made.exception is None or isinstance(made.exception, SystemExit), made.output
    return here


def in_texts(value: object) -> object:
    if isinstance(value, str):
        return value + EVIL
    if isinstance(value, list):
        return [in_texts(one) for one in value]
    return {k: in_texts(v) for k, v in value.items()} if isinstance(value, dict) else value


def in_names(value: object) -> object:
    if isinstance(value, list):
        return [in_names(one) for one in value]
    return {k + EVIL: in_names(v) for k, v in value.items()} if isinstance(value, dict) else value


def written(text: str, change: Callable[[object], object] | None) -> str:
    if change is None:
        return text + EVIL
    try:
        return json.dumps(change(json.loads(text)), separators=(",", ":"))
    except ValueError:
        return text


EVERYDAY = {
    "sessions.id raw", "sessions.metadata texts", "events.line texts", "actions.action texts",
    "actions.action raw", "actions.rest texts", "log.session raw",
}  # fmt: skip


def every_way() -> list[ParameterSet]:
    ways = {"texts": in_texts, "names": in_names, "raw": None}
    named = {f"{t}.{c} {way}": (t, c, ways[way]) for t, c in COLUMNS for way in ways}
    return [
        pytest.param(*one, id=name, marks=() if name in EVERYDAY else pytest.mark.slow)
        for name, one in named.items()
    ]


@pytest.mark.parametrize(("table", "column", "change"), every_way())
def test_a_store_that_others_wrote_to(
    base: Path,
    tmp_path: Path,
    table: str,
    column: str,
    change: Callable[[object], object] | None,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "s.db"
    with sqlite3.connect(base / "s.db") as whole:
        (session,) = whole.execute(
            "SELECT id FROM sessions WHERE id NOT LIKE 'journal%'"
        ).fetchone()
        whole.execute("VACUUM INTO ?", (str(path),))
    whole.close()
    copy = sqlite3.connect(path)
    copy.create_function("written", 1, lambda text: written(str(text), change))
    copy.execute(f"UPDATE {table} SET {column} = written({column})")
    copy.commit()
    copy.close()
    heads = ("--head", f"{base}/heads.jsonl")
    commands = [
        ["sessions", "list"], ["records", "actions"], ["records", "actions", "--json"],
            ["people", "list"], ["privacy", "log"],
        ["approvals", "list", "--within", "999999"], ["approvals", "list", session], ["audit",
            session],
        ["audit", "--all", "--workers", "1"], ["store", "size"], ["records", "deviations", "list"],
        ["records", "verify", *heads, "--key", f"{base}/k.pub"], ["records", "prove", session,
            *heads],
        ["records", "export", "--from", "2020-01-01", "--to", "2040-01-01", "-o",
            f"{tmp_path}/out"],
        ["trace", "export", session, "-o", f"{tmp_path}/t.jsonl"],
    ]  # fmt: skip
    for one in commands:
        try:
            code: object = main([*one, "--store", f"sqlite:{path}"])
        except SystemExit as ended:
            code = ended.code
        told = "\n".join(capfd.readouterr())
        assert code in (0, 1, 2, 5), one
        assert is_quiet(told), one
        assert not any(line.startswith("FORGED") for line in told.split("\n")), (one, told)


def test_a_line_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    tell(["\nsession a\nFORGED", Lines("a\nb"), ""])
    assert capsys.readouterr().out == "\nsession a\\u000aFORGED\na\nb\n\n"


def test_only_headings_are_bold() -> None:
    @click.command()
    def shown() -> None:
        tell([Heading("audit"), "no findings\x1b[2J"])

    lines = CliRunner().invoke(shown, color=True).output.splitlines()
    assert lines == ["\x1b[1maudit\x1b[0m", "no findings\\u001b[2J"]
