"""Where `sopilot stats` reads from: result files, Inspect's logs, folders of either."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from sopilot.adapters.text_files import whole_text
from sopilot.lab import stats
from sopilot.lab.stats.reading import Row
from sopilot.language.diagnostics import Place, UserMistake, mistake


def rows_of(paths: Sequence[Path]) -> list[Row]:
    """The rows of all of them, in the order given; raises `UserMistake`."""
    return [row for path in paths for row in _rows(path)]


def _rows(path: Path) -> list[Row]:
    if path.is_dir():
        return _folder(path)
    if path.suffix == ".eval":
        return _inspect_log(path)
    try:
        text = whole_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UserMistake(f"`{path}` cannot be read: {error}") from None
    if path.suffix == ".json" and _is_inspect_log(text):
        return _inspect_log(path)
    return stats.read_rows(text, str(path))


def _folder(path: Path) -> list[Row]:
    if (path / "configuration.json").exists():
        from sopilot.lab.bench._run_folder import RunFolder

        folder = RunFolder.open(path)
        return [
            (Place(str(path), path=task), record.score(folder.configuration))
            for task, record in sorted(folder.records().items())
        ]
    found = [row for each in sorted(path.rglob("*.eval")) for row in _inspect_log(each)]
    if not found:
        cure = "name a folder of `bench run`, a folder of Inspect's logs, or a result file"
        raise mistake("empty", "no outcomes in it", Place(str(path)), cure)
    return found


def _inspect_log(path: Path) -> list[Row]:
    from sopilot.lab.bench._inspect_outcomes import rows_of_inspect_log

    return list(rows_of_inspect_log(path))


def _is_inspect_log(text: str) -> bool:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(whole, dict) and {"version", "eval", "plan"} <= whole.keys()
