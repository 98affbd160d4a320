"""Result files as text: JSON Lines, a JSON list, or an object with ``outcomes``.

A row needs ``task``, ``goal``, ``kind`` (`execute` or `refuse`) and ``passed``
(`true`, `false`, or `null` for a run that was never judged); ``arm``, ``model``,
``domain``, ``cluster``, ``run`` and ``post_goal_calls`` are optional. Rows that
differ in ``tools``, ``user`` or ``language`` are never taken for one model: its
name says which. Other fields are left alone. Every mistake is reported at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sopilot.messages.diagnostic import Diagnostic, Place, did_you_mean
from sopilot.messages.errors import UserMistake
from sopilot_lab.statistics.outcomes import KINDS, RunOutcome, TaskKind
from sopilot_lab.statistics.paired import Discordance

Row = tuple[Place, dict[str, Any]]
_NEEDED = ("task", "goal")
_TEXTS = ("arm", "model", "domain", "cluster")
_APART = ("tools", "user", "language")


def read_rows(text: str, source: str = "") -> list[Row]:
    """The objects of a result file with their places; raises `UserMistake`."""
    mistakes: list[Diagnostic] = []
    results: list[tuple[Place, object]] = []
    try:
        whole = _decode(text)
    except ValueError:
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip():
                continue
            place = Place(source, number, 1)
            try:
                results.append((place, _decode(line)))
            except ValueError as error:
                mistakes.append(Diagnostic("not-json", f"this line isn't JSON: {error}", place))
    else:
        inner = whole.get("outcomes", [whole]) if isinstance(whole, dict) else whole
        items = inner if isinstance(inner, list) else [inner]
        results = [(Place(source, path=f"[{place}]"), item) for place, item in enumerate(items)]
    rows: list[Row] = []
    for place, item in results:
        if isinstance(item, dict):
            rows.append((place, item))
        else:
            mistakes.append(Diagnostic("not-an-object", "a row must be an object", place))
    if not rows and not mistakes:
        mistakes.append(Diagnostic("empty", "no rows", Place(source)))
    _raise(mistakes)
    return rows


def outcomes_from(rows: Sequence[Row]) -> tuple[RunOutcome, ...]:
    mistakes: list[Diagnostic] = []
    vary = [name for name in _APART if len({str(row.get(name)) for _, row in rows}) > 1]
    results = [_outcome(_apart(row, vary), place, mistakes) for place, row in rows]
    _raise(mistakes)
    return tuple(outcome for outcome in results if outcome is not None)


def _apart(row: dict[str, Any], vary: Sequence[str]) -> dict[str, Any]:
    if not vary or not isinstance(row.get("model") or "", str):
        return row
    extra = ", ".join(f"{name} {row.get(name)}" for name in vary)
    return row | {"model": f"{row.get('model') or ''} ({extra})".strip()}


def discordances_from(rows: Sequence[Row]) -> dict[str, Discordance]:
    """Rows of ``goal``, ``wins`` and ``losses``; a goal named twice is added up."""
    mistakes: list[Diagnostic] = []
    discordances: dict[str, Discordance] = {}
    for place, row in rows:
        goal, wins, losses = (row.get(name) for name in ("goal", "wins", "losses"))
        if not isinstance(goal, str) or not goal:
            mistakes.append(_wrong("goal", "a non-empty string", row, place))
        if not _is_count(wins):
            mistakes.append(_wrong("wins", "a count", row, place))
        if not _is_count(losses):
            mistakes.append(_wrong("losses", "a count", row, place))
        if isinstance(goal, str) and isinstance(wins, int) and isinstance(losses, int):
            discordances[goal] = discordances.get(goal, Discordance()) + Discordance(wins, losses)
    _raise(mistakes)
    return discordances


def _outcome(row: dict[str, Any], place: Place, mistakes: list[Diagnostic]) -> RunOutcome | None:
    before = len(mistakes)
    missing = [name for name in _NEEDED if not isinstance(row.get(name), str) or not row[name]]
    strange = [name for name in _TEXTS if not isinstance(row.get(name) or "", str)]
    mistakes.extend(_wrong(name, "a non-empty string", row, place) for name in missing)
    mistakes.extend(_wrong(name, "a string", row, place) for name in strange)
    if row.get("kind") not in KINDS:
        mistakes.append(_wrong("kind", "`execute` or `refuse`", row, place))
    if "passed" not in row or not (row["passed"] is None or isinstance(row["passed"], bool)):
        mistakes.append(_wrong("passed", "`true`, `false` or `null`", row, place))
    if not _is_count(row.get("run", 1)):
        mistakes.append(_wrong("run", "a count", row, place))
    calls = row.get("post_goal_calls")
    if calls is not None and not _is_count(calls):
        mistakes.append(_wrong("post_goal_calls", "a count or `null`", row, place))
    if len(mistakes) > before:
        return None
    return RunOutcome(
        task=row["task"],
        goal=row["goal"],
        kind=TaskKind(row["kind"]),
        passed=row["passed"],
        run=row.get("run", 1),
        post_goal_calls=calls,
        **{name: row.get(name) or "" for name in _TEXTS},
    )


def _wrong(name: str, expected: str, row: dict[str, Any], place: Place) -> Diagnostic:
    if name in row:
        written = json.dumps(row[name], ensure_ascii=False)
        shown = written if len(written) <= 40 else f"{written[:40]}…"
        return Diagnostic("bad-field", f"`{name}` must be {expected}, not `{shown}`", place)
    return Diagnostic(
        "missing-field", f"`{name}` is missing ({expected})", place, did_you_mean(name, row)
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _decode(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"`{name}` is not JSON")


def _raise(mistakes: Sequence[Diagnostic]) -> None:
    if mistakes:
        raise UserMistake(mistakes)
