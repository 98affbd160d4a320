"""Read outcomes for `sopilot lab stats`: result files, Inspect's logs, folders, other archives."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sopilot.files.text import whole_text
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import UserMistake, mistake
from sopilot_lab.experiments.archive_reading import is_archive, opened_archive
from sopilot_lab.experiments.inspect_logs import is_inspect_log, rows_of_inspect_log
from sopilot_lab.experiments.run_folder import RunFolder
from sopilot_lab.statistics.reading import Row, outcomes_from, read_rows


def rows_of(paths: Sequence[Path]) -> list[Row]:
    """The rows of all of them, in the order given; raises `UserMistake`."""
    return [row for path in paths for row in _rows(path)]


def _rows(path: Path) -> list[Row]:
    if path.is_dir():
        return _folder(path)
    if path.suffix == ".eval":
        return list(rows_of_inspect_log(path))
    try:
        text = whole_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UserMistake(f"`{path}` cannot be read: {error}") from None
    if path.suffix == ".json" and is_inspect_log(text):
        return list(rows_of_inspect_log(path))
    return read_rows(text, str(path))


def _folder(path: Path) -> list[Row]:
    if (path / "configuration.json").exists():
        folder = RunFolder.open(path)
        return [
            (Place(str(path), path=task), record.score(folder.configuration))
            for task, record in sorted(folder.records().items())
        ]
    results = [row for log in sorted(path.rglob("*.eval")) for row in rows_of_inspect_log(log)]
    if not results:
        cure = "name a folder of `lab run`, a folder of Inspect's logs, or a result file"
        raise mistake("empty", "no outcomes in it", Place(str(path)), cure)
    return results


def foreign_rows(
    archive: Path, fields: Mapping[str, str], constants: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Convert outcomes of another tool's ZIP, folder or file to our names.

    ``fields``: our name → theirs, with dots for objects within objects. ``constants``: our name →
    a value, in which `{file}` and `{folder}` stand for the place of a row. Files without rows
    that have their fields are left out.
    """
    rows: list[dict[str, Any]] = []
    if archive.is_file() and not is_archive(archive):
        rows += _foreign_file(archive, fields, constants)
    else:
        with opened_archive(archive) as base:
            for path in sorted(base.rglob("*")):
                if path.suffix in (".json", ".jsonl", ".csv"):
                    rows += _foreign_file(path, fields, constants)
    if not rows:
        named = ", ".join(f"`{theirs}`" for theirs in fields.values())
        raise mistake("empty", f"no row in it has {named}", Place(str(archive)))
    outcomes_from([(Place(str(archive), path=f"[{place}]"), row)
                   for place, row in enumerate(rows)])  # fmt: skip
    return rows


def _foreign_file(
    path: Path, fields: Mapping[str, str], constants: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    text = whole_text(path)
    if path.suffix == ".csv":
        results: Iterable[Mapping[str, Any]] = csv.DictReader(io.StringIO(text))
    else:
        try:
            results = [row for _, row in read_rows(text, str(path))]
        except UserMistake:  # an archive holds other files too
            return
    for row in results:
        values = {ours: _field(row, theirs) for ours, theirs in fields.items()}
        if any(value is _ABSENT for value in values.values()):
            continue
        named = {
            ours: value.format(file=path.stem, folder=path.parent.name)
            for ours, value in constants.items()
        }
        yield {ours: _in_our_words(ours, value) for ours, value in (named | values).items()}


_ABSENT = object()


def _field(row: Any, name: str) -> Any:
    for part in name.split("."):
        if not isinstance(row, Mapping) or part not in row:
            return _ABSENT
        row = row[part]
    return row


def _in_our_words(name: str, value: Any) -> Any:
    """Verdicts as booleans, classes as `execute` and `refuse`, whatever they were written as."""
    word = str(value).strip().lower()
    if name == "passed":
        return {"true": True, "1": True, "false": False, "0": False}.get(word, value)
    if name == "kind":
        words = {"true": "execute", "1": "execute", "false": "refuse", "0": "refuse",
                 "refusal": "refuse"}  # fmt: skip
        return words.get(word, word)
    if name in ("run", "post_goal_calls"):
        return int(word) if word.isdecimal() else value
    return str(value)
