"""Read outcomes from a log of Inspect (extra ``bench``).

A log of `lab run` holds our record of every run. In another log a sample's id is the
task, its epoch the run, its first score the outcome; ``goal``, ``kind``, ``domain``,
``cluster``, ``arm`` and ``post_goal_calls`` come from the sample's metadata or the log's.
Without them the goal is the task itself, the kind `execute`, the arm Inspect's task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import UserMistake, mistake
from sopilot_lab.experiments.run_folder import RunConfiguration, record_from_json

_UNREAD = {"messages", "events", "store", "attachments"}
_NAMES = ("goal", "kind", "domain", "cluster", "arm", "post_goal_calls")
_CONFIGURED = frozenset(each.name for each in fields(RunConfiguration))


def is_inspect_log(text: str) -> bool:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(whole, dict) and {"version", "eval", "plan"} <= whole.keys()


def rows_of_inspect_log(path: Path) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Raises `UserMistake` if the file isn't a log or Inspect isn't installed."""
    try:
        from inspect_ai.log import read_eval_log, read_eval_log_samples
    except ImportError:
        cure = "pip install 'sopilot[bench]'"
        raise _mistake(path, "Inspect's logs need the extra `bench`", cure) from None
    try:
        evaluation = read_eval_log(path, header_only=True).eval
        samples = list(
            read_eval_log_samples(path, all_samples_required=False, exclude_fields=_UNREAD)
        )
    except (ValueError, KeyError, OSError, EOFError) as error:
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _mistake(path, f"not a log of Inspect: {message}", "name an .eval file") from error
    shared = evaluation.metadata or {}
    for sample in samples:
        place = Place(str(path), path=f"sample {sample.id}, epoch {sample.epoch}")
        score = next(iter((sample.scores or {}).values()), None)
        if score is not None and "program_sha256" in (score.metadata or {}):
            configuration = {key: shared[key] for key in _CONFIGURED & shared.keys()}
            record = record_from_json(score.metadata or {})
            yield place, record.score(RunConfiguration(**configuration))
            continue
        known = {**shared, **(sample.metadata or {})}
        usual = {"goal": str(sample.id), "kind": "execute", "arm": evaluation.task}
        row = {name: known[name] for name in _NAMES if known.get(name) is not None}
        passed = None if score is None else _passed(score.value, place)
        ours = {"task": str(sample.id), "model": str(evaluation.model), "run": sample.epoch}
        yield place, {**usual, **row, **ours, "passed": passed}


def _passed(value: object, place: Place) -> bool | None:
    """Inspect's `C` and `I`, booleans, 1 and 0; a sample that was not scored is `None`."""
    if isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value.values()))
    if isinstance(value, float) and value != value:
        return None
    for known, passed in (("C", True), ("I", False), ("N", False), (1, True), (0, False)):
        if value == known:
            return passed
    raise mistake(
        "not-pass-or-fail",
        f"the score `{value}` is neither a pass nor a failure",
        place,
        "these tests compare passes; score with C and I, or with 1 and 0",
    )


def _mistake(path: Path, message: str, cure: str) -> UserMistake:
    return mistake("inspect-log", message, Place(str(path)), cure)
