"""Whatever a command is given, it says what is wrong: no traceback, no empty answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sopilot.cli.main import main, sopilot

DEEP = "[" * 100_000
LONG = "x" * 300
FILES = {
    "deep.json": DEEP,
    "trace.jsonl": f'{{"sopilot_trace":1,"session":{DEEP}',
    "replies.json": f'{{"sopilot_replies":1,"replies":{DEEP}',
    "nul.yaml": "handbook: a\0b",
    "empty": "",
}
MISTAKES = {
    "deep transcript": ("audit", "deep.json", "--handbook", "bank", "--goal", "transfer"),
    "deep trace": ("audit", "trace.jsonl"),
    "deep head": ("trace", "verify", "empty", "--head", "deep.json"),
    "deep recording": ("run", "bank", "--model", "replay:replies.json"),
    "deep servers": ("gateway", "--handbook", "bank", "deep.json"),
    "deep amendment": ("approvals", "amend", "a", "b", "--as", "x", "--role", "y",
                       "--arguments", DEEP),
    "long name to audit": ("audit", LONG),
    "long name to run": ("run", LONG),
    "long name to lens": ("lab", "lens", LONG),
    "long handbook": ("audit", "empty", "--handbook", LONG),
    "NUL in a handbook": ("check", "nul.yaml"),
    "NUL in a name": ("run", "a\0b"),
    "half a character": ("run", "a\udcff"),
    "a deadline that is no number": ("gateway", "--handbook", "bank", "--upstream", "x",
                                     "--upstream-timeout", "nan"),
    "an endless deadline": ("gateway", "--handbook", "bank", "--upstream", "x",
        "--recheck-tools", "inf"),
    "minutes that are no number": ("qualify", "--model", "reference", "--minutes", "nan"),
    "money without end": ("qualify", "--model", "reference", "--money", "inf"),
    "a share that is no number": ("lab", "stats", "bh", "nan"),
    "a port that is no number": ("run", "bank", "--model", "http://a:port/v1#m"),
    "a space in a URL": ("run", "bank", "--model", "http://exa mple/v1#m"),
    "half an address": ("gateway", "--handbook", "bank", "--upstream", "http://[bad"),
    "no host": ("gateway", "--handbook", "bank", "--upstream", "x=http://"),
    "half a turn": ("run", "bank", "--budget", "agent_turns=1.5"),
    "half a bracket": ("serve", "bank", "--http", "[::1:80"),
    "no store": ("sessions", "list", "--store", "nonsense"),
}  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", [("test", "."), ("qualify", "--model", "x", "--handbook", ".")])
def test_the_present_folder_has_no_name(
    command: tuple[str, ...], here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("program.yaml", "tasks.yaml"):
        example = Path(__file__).parents[2] / "examples" / "quotation" / name
        (here / name).write_text(example.read_text("utf-8"), "utf-8")
    assert main(command) == 2
    assert "no such scenario file" in capfd.readouterr().err


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told(name: str, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = main(MISTAKES[name])
    out, err = capfd.readouterr()
    assert code == (1 if name == "NUL in a handbook" else 2), err
    assert (out + err).strip()
    assert "Traceback" not in err


def test_a_file_that_is_no_store_is_not_called_damaged(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "list", "--store", "sqlite:/etc/passwd"]) == 1
    told = capfd.readouterr().err
    assert "is not a store of sessions" in told
    assert "damaged" not in told


def test_nobody_means_the_word_that_was_written(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "bank", "--goal", "transfers"]) == 2
    assert "did you mean `transfer`?" in capfd.readouterr().err
    assert main(["nope"]) == 2
    assert "did you mean `nope`" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [("trace", "verify"), ("run", "nope"), ("sessions", "list", "--nope"), ("audit", "nope")],
)
def test_who_asks_for_json_gets_json(
    arguments: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--json"]) == 2
    (error,) = json.loads(capfd.readouterr().out)["errors"]
    assert error["message"]


def shell(line: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", f"{sys.executable} -m sopilot.cli.main {line}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("check --schema > /dev/full", 1, "No space left on device"),
        ("check --schema >&-", 1, "Bad file descriptor"),
        ("chat bank <&-", 2, "the input ended"),
        ("check --schema 2>&- | head -c 1", 0, ""),
    ],
)
def test_streams_that_are_closed_or_full(line: str, code: int, says: str) -> None:
    done = shell(line)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_stream_is_not_taken_by_a_store(tmp_path: Path) -> None:
    """What is printed would go into the file that got its number."""
    store = tmp_path / "s.db"
    shell(f"run bank --store sqlite:{store} <&- >&- 2>&-")
    assert store.read_bytes()[:15] == b"SQLite format 3"
    listed = json.loads(shell(f"sessions list --json --store sqlite:{store}").stdout)["sessions"]
    assert len(listed) == 1


# --- what sessions say of themselves ----------------------------------------------------


def listed_after(*arguments: str, capfd: pytest.CaptureFixture[str]) -> str:
    main(["run", "bank", *arguments])
    capfd.readouterr()
    assert main(["sessions", "list", "--json"]) == 0
    return str(json.loads(capfd.readouterr().out)["sessions"][0]["status"])


def test_a_refusal_is_no_failure(capfd: pytest.CaptureFixture[str]) -> None:
    assert listed_after("--task", "transfer-above-the-limit", capfd=capfd) == "refused"


def test_a_finished_run_without_a_machine_is_not_new(capfd: pytest.CaptureFixture[str]) -> None:
    assert listed_after("--view", "flat", capfd=capfd) == "ended"


def numbers(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every option and argument of every command that is a number."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from numbers(found, (*path, name))
    for param in command.params:
        if isinstance(param.type, click.types.FloatParamType):
            yield (*path, param.name or "")
            for text in ("nan", "inf", "-inf", "1e999"):
                with pytest.raises(click.BadParameter):
                    param.type.convert(text, param, None)


def test_no_number_on_the_command_line_is_none_or_endless() -> None:
    found = set(numbers(sopilot))
    assert {
        ("qualify", "minutes"),
        ("gateway", "recheck_tools"),
        ("lab", "stats", "mde", "alpha"),
    } <= found
