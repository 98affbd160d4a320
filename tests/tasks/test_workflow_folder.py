"""Folders with a program, tools and tasks: what they must hold, and what is said otherwise."""

from __future__ import annotations

import importlib.util
import json
import py_compile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake
from sopilot.runner.options import run_folder
from sopilot.stores.open import data_folder
from sopilot.tasks.folders import is_workflow_folder, load_folder

PROGRAM = """\
sopilot_program: 1
entry: greet
functions:
  greet:
    kind: process
    parameters: [name]
    steps:
      - {step: wave, act: wave, with: {name: $name}, goal: true}
      - {step: done, complete: Waved.}
"""
GUARDED = (
    PROGRAM.replace("functions:", "guarded: [{action: wave}]\ntypes: {name: string}\nfunctions:")
    + "actions: {wave: {input: {name: string}, changes: [hand]}}\n"
)
TOOLS = """\
from sopilot.protocols import ToolResult, ToolSchema
from .manners import WAVE

class Tools:
    def __init__(self, out):
        self.out = out
    def schemas(self):
        properties = {"name": {"type": "string"}}
        parameters = {"type": "object", "properties": properties, "required": ["name"]}
        return [ToolSchema("wave", "Waves.", parameters)]
    async def call(self, name, arguments, *, key):
        (self.out / "waved").write_text(arguments["name"] + WAVE)
        return ToolResult(True, {"waved": True})

def make_tools(task, out):
    return Tools(out)
"""
TASKS = "tasks: [{id: '1', goal: greet, says: Wave., inputs: {name: you}, expected: executed}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "greeting"
    path.mkdir()
    (path / "program.yaml").write_text(PROGRAM)
    (path / "tools.py").write_text(TOOLS)
    (path / "manners.py").write_text("WAVE = '!'\n")
    (path / "tasks.yaml").write_text(TASKS)
    return path


def run_it(folder: Path, out: str, *more: str) -> Result:
    where = folder.parent
    arguments = ["run", str(folder), "--out", str(where / out), "--store", f"sqlite:{where}/s.db"]
    return CliRunner().invoke(sopilot, [*arguments, *more])


def every_task(folder: Path) -> Result:
    return run_it(folder, "out", "--trust", "--task", "all")


def test_a_small_folder_runs(folder: Path) -> None:
    result = run_it(folder, "out", "--trust")
    assert result.exit_code == 0, result.output
    assert (folder.parent / "out" / "waved").read_text() == "you!"
    again = run_it(folder, "out", "--trust")
    assert isinstance(again.exception, UserMistake)
    assert "is not empty" in str(again.exception)


def test_every_task_and_the_coverage(folder: Path) -> None:
    result = every_task(folder)
    assert result.exit_code == 0, result.output
    assert "steps reached 2/2" in result.output


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ("tasks: []", "there are no tasks"),
        ("[1]", "there are no tasks"),
        ("tasks: [3]", "task 1 is not a mapping"),
        ("tasks: [{id: '1', goal: greet}]", "task 1 lacks `says`"),
        ("tasks: [{id: '1', goal: greet, says: x, know: {}}]", "unknown key `know`"),
        (
            "tasks: [{id: '1', goal: greet, says: x, inputs: 3}]",
            "`inputs` and `simulator` are mappings",
        ),
        ("tasks: [{id: '1', goal: greet, says: x, votes: [approve]}]", "a vote is incomplete"),
        (
            "tasks: [{id: '1', goal: greet, says: x}, {id: '1', goal: greet, says: y}]",
            "two tasks have the same id",
        ),
        ("tasks: [", "is not YAML"),
    ],
)
def test_mistakes_in_the_tasks(tasks: str, message: str, folder: Path) -> None:
    (folder / "tasks.yaml").write_text(tasks)
    with pytest.raises(UserMistake, match=message):
        load_folder(str(folder))


def test_a_task_that_is_not_there(folder: Path) -> None:
    with pytest.raises(UserMistake, match="has no task `7`"):
        load_folder(str(folder)).task("7")


def test_tools_without_a_maker(folder: Path, tmp_path: Path) -> None:
    (folder / "tools.py").write_text("")
    loaded = load_folder(str(folder))
    loaded.code().trust()
    with pytest.raises(UserMistake, match="has no function `make_tools"):
        loaded.make_tools(loaded.task(None), tmp_path / "out")


@pytest.mark.parametrize(
    ("instead_of", "written", "line", "message", "cure"),
    [
        ("return Tools(out)", "return None", 0, "make_tools(task, out)` gave", "`schemas()` and"),
        ("def make", "async def make", 0, "make_tools(task, out)` is `async def`", "write `def`"),
        ("return Tools(out)", "1 / 0", 16, "raised ZeroDivisionError", "correct it there"),
        (
            "return Tools(out)",
            "return (",
            16,
            "`tools.py` raised Syntax",
            "correct it there",
        ),
        (
            "from .manners",
            "from .manner",
            2,
            "`tools.py` raised ModuleNotFou",
            "correct it",
        ),
        ("return [ToolSchema", "return ['wave']; [To", 0, "`schemas()` gave", "ToolSchema(name"),
        (
            "return [ToolSchema",
            "[][0]; [ToolSchema",
            10,
            "`schemas()` raised",
            "correct it there",
        ),
    ],
)
def test_what_the_python_of_a_folder_does_wrong(
    instead_of: str, written: str, line: int, message: str, cure: str, folder: Path, tmp_path: Path
) -> None:
    assert instead_of in TOOLS
    (folder / "tools.py").write_text(TOOLS.replace(instead_of, written))
    loaded = load_folder(str(folder))
    loaded.code().trust()
    with pytest.raises(UserMistake) as told:
        loaded.make_tools(loaded.task(None), tmp_path / "out")
    (one,) = told.value.diagnostics
    assert one.code == "bad-folder-code"
    assert (one.place.source, one.place.line) == (str(folder / "tools.py"), line)
    assert message in one.message
    assert cure in one.help


@pytest.mark.parametrize("given", ["None", "{'waved': True}", "(True, {})"])
def test_a_tool_that_gives_no_result_broke_off(given: str, folder: Path, tmp_path: Path) -> None:
    (folder / "tools.py").write_text(TOOLS.replace('ToolResult(True, {"waved": True})', given))
    result = every_task(folder)
    assert result.exit_code == 1, result.output
    assert "task 1: wave failed" in result.output
    store = f"sqlite:{tmp_path}/s.db"
    trace = CliRunner().invoke(sopilot, ["sessions", "list", "--store", store, "--json"])
    (session,) = json.loads(trace.output)["sessions"]
    shown = CliRunner().invoke(sopilot, ["trace", "export", session["id"], "--store", store])
    assert "`call` gave no ToolResult for `wave`: return ToolResult(ok, value)" in shown.output


@pytest.mark.parametrize(
    ("recall", "ending"),
    [
        ("", "waiting"),
        ("return ToolResult(True, {'waved': True})", "executed"),
        ("return {'waved': True}", "waiting"),
        ("raise OSError('no record')", "waiting"),
    ],
)
def test_only_tools_that_can_tell_settle_what_was_cut_off(
    recall: str, ending: str, folder: Path, tmp_path: Path
) -> None:
    """Silence is no record: what cannot be undone is not taken for unmade because of it."""
    method = f"    async def recall(self, key):\n        {recall}\n" if recall else ""
    (folder / "program.yaml").write_text(GUARDED)
    (folder / "tools.py").write_text(TOOLS.replace("\ndef make", f"{method}\ndef make"))
    (folder / "tasks.yaml").write_text(TASKS.replace("goal:", "interrupted_after: wave, goal:"))
    result = every_task(folder)
    assert f"{ending} (resumed)" in result.output


def test_a_folder_without_tools(folder: Path, tmp_path: Path) -> None:
    (folder / "tools.py").unlink()
    loaded = load_folder(str(folder))
    with pytest.raises(UserMistake, match=r"has no tools.py"):
        loaded.make_tools(loaded.task(None), tmp_path / "out")


def test_other_sources_take_no_folder_to_work_in(tmp_path: Path) -> None:
    assert not is_workflow_folder(str(tmp_path))
    assert run_folder("bank", None, None) is None
    with pytest.raises(UserMistake, match="--out is for workflow folders"):
        run_folder("bank", None, str(tmp_path))


# --- whose Python runs -----------------------------------------------------------------


@pytest.fixture
def witness(folder: Path) -> Path:
    """A file that the folder's Python makes when it runs."""
    made = folder.parent / "ran"
    (folder / "tools.py").write_text(
        f"from pathlib import Path\nPath({str(made)!r}).write_text('x')\n{TOOLS}"
    )
    return made


def test_the_python_of_a_folder_runs_once_somebody_trusts_it(folder: Path, witness: Path) -> None:
    refused = run_it(folder, "a")
    assert "add --trust" in str(refused.exception)
    assert f"this runs the Python of {folder}" in refused.stderr
    assert not witness.exists()
    trusted = run_it(folder, "b", "--trust")
    assert trusted.exit_code == 0, trusted.output
    assert f"this runs the Python of {folder}" in trusted.stderr
    assert witness.read_text() == "x"
    assert run_it(folder, "c").exit_code == 0
    assert (folder.parent / "c" / "waved").read_text() == "you!"


def test_a_case_for_an_archive_is_asked_for_too(folder: Path, witness: Path) -> None:
    runs = folder.parent / "runs"
    runs.mkdir()
    command = ["lab", "archive", str(runs), "-o", str(folder.parent / "a.zip"), "--case"]
    refused = CliRunner().invoke(sopilot, [*command, str(folder)])
    assert "add --trust" in str(refused.exception)
    assert not witness.exists()


def test_one_byte_more_is_not_what_was_trusted(folder: Path, witness: Path) -> None:
    assert run_it(folder, "a", "--trust").exit_code == 0
    before = witness.read_text()
    (folder / "manners.py").write_text("WAVE = '?'\n")
    changed = run_it(folder, "b")
    assert "has changed since it was trusted" in str(changed.exception)
    assert witness.read_text() == before
    assert run_it(folder, "c", "--trust").exit_code == 0
    assert (folder.parent / "c" / "waved").read_text() == "you?"


def test_compiled_files_beside_the_source_are_not_run(folder: Path, tmp_path: Path) -> None:
    """Such a file may hold anything, and Python would take it for the source's."""
    evil = tmp_path / "evil.py"
    evil.write_text("WAVE = ' and your money'\n")
    target = importlib.util.cache_from_source(str(folder / "manners.py"))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(evil), cfile=target, invalidation_mode=mode)
    assert run_it(folder, "a", "--trust").exit_code == 0
    assert (tmp_path / "a" / "waved").read_text() == "you!"


def test_a_folder_cannot_pass_for_a_bundled_desk(
    folder: Path, witness: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.rename(folder.with_name("bank"))
    monkeypatch.chdir(folder.parent)
    store = f"sqlite:{folder.parent}/s.db"
    result = CliRunner().invoke(sopilot, ["run", "bank", "--trust", "--store", store])
    assert result.exit_code == 0, result.output
    assert not witness.exists()
    checked = CliRunner().invoke(sopilot, ["check", "bank"])
    assert "1 file checked: 0 errors" in checked.output


def test_a_list_of_trusted_folders_that_cannot_be_read_trusts_nobody(
    folder: Path, witness: Path
) -> None:
    assert run_it(folder, "a", "--trust").exit_code == 0
    (data_folder() / "trusted-folders.json").write_text('{"sopilot_trusted_folders": 1, "fol')
    assert "was never trusted" in str(run_it(folder, "b").exception)
