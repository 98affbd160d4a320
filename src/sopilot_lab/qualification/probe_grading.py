"""Grades answers to the probe against the cursor. No part of the prompt is an answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields

from sopilot.values.json import JSON, Fields
from sopilot_lab.qualification.cursor import Cursor
from sopilot_lab.statistics.bootstrap import bootstrap_interval
from sopilot_lab.statistics.clustered import SEED
from sopilot_lab.statistics.intervals import clopper_pearson
from sopilot_lab.statistics.undefined import Interval, Undefined

_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class ProbeGrade:
    """Each part between 0 and 1; ``None`` where neither truth nor answer hold anything."""

    case: str
    depth: int
    function: float
    step: float
    results: float | None
    callers: float | None
    next: float
    answered: bool = True

    @property
    def score(self) -> float:
        parts = (self.function, self.step, self.results, self.callers, self.next)
        counted = [part for part in parts if part is not None]
        return sum(counted) / len(counted)

    @property
    def localised(self) -> bool:
        return self.function == 1.0 and self.step == 1.0

    @property
    def whole(self) -> bool:
        return self.score == 1.0

    def as_json(self) -> dict[str, JSON]:
        return asdict(self) | {"score": self.score}


def grade_from_json(value: Fields) -> ProbeGrade:
    return ProbeGrade(**{item.name: value[item.name] for item in fields(ProbeGrade)})


def grade(cursor: Cursor, answer: str) -> ProbeGrade:
    """``answer`` must be one JSON object, alone or in a code fence; text around it, or a
    second object, makes it no answer."""
    value = read_answer(answer)
    if value is None:
        empty_results = 0.0 if cursor.results else None
        empty_callers = 0.0 if cursor.callers else None
        return ProbeGrade(
            cursor.case, cursor.depth, 0.0, 0.0, empty_results, empty_callers, 0.0, answered=False
        )
    return ProbeGrade(
        case=cursor.case,
        depth=cursor.depth,
        function=float(value.get("function") == cursor.function),
        step=float(value.get("step") == cursor.step),
        results=_results(cursor.results, value.get("results")),
        callers=_callers(cursor.callers, value.get("callers")),
        next=float(_is_licensed(cursor, value.get("next"))),
    )


def read_answer(text: str) -> dict[str, JSON] | None:
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```") and len(bare) > 6:
        bare = bare[3:-3].removeprefix("json").strip()
    try:
        value, end = _DECODER.raw_decode(bare)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and end == len(bare) else None


def _results(truth: Mapping[str, bool], value: JSON) -> float | None:
    if not isinstance(value, dict):
        return 0.0 if truth or value else None
    named = {*truth, *value}
    if not named:
        return None
    right = sum(name in truth and value.get(name) is truth[name] for name in named)
    return right / len(named)


def _callers(truth: tuple[str, ...], value: JSON) -> float | None:
    if not truth and not value:
        return None
    return float(isinstance(value, list) and tuple(value) == truth)


def _is_licensed(cursor: Cursor, value: JSON) -> bool:
    if not isinstance(value, dict):
        return False
    operation, name = value.get("operation"), value.get("name", "")
    if operation in ("return", "ask", "complete", "fail"):
        name = ""  # they need none, and what a model writes there says nothing
    if not isinstance(operation, str) or not isinstance(name, str):
        return False
    return (operation, name) in cursor.licensed


@dataclass(frozen=True, slots=True)
class ProbeScore:
    """Of all questions or of one depth. ``localisation`` (with ``interval``) and ``whole`` are
    shares; ``score`` is a mean, and ``score_interval`` resamples the cases."""

    questions: int
    localisation: float | Undefined
    interval: Interval | Undefined
    score: float | Undefined
    score_interval: Interval | Undefined
    whole: float | Undefined
    answered: int


def probe_score(grades: Iterable[ProbeGrade]) -> ProbeScore:
    held = list(grades)
    count = len(held)
    if not count:
        missing = Undefined("the probe was not asked")
        return ProbeScore(0, missing, missing, missing, missing, missing, 0)
    localised = sum(item.localised for item in held)
    return ProbeScore(
        questions=count,
        localisation=localised / count,
        interval=clopper_pearson(localised, count),
        score=sum(item.score for item in held) / count,
        score_interval=_score_interval(held),
        whole=sum(item.whole for item in held) / count,
        answered=sum(item.answered for item in held),
    )


def _score_interval(grades: Sequence[ProbeGrade]) -> Interval | Undefined:
    """By resampled cases: the questions of a case stand or fall together."""
    sums: dict[str, list[int]] = {}
    for each in grades:
        entry = sums.setdefault(each.case, [0, 0])
        entry[0] += round(each.score * _PARTS)
        entry[1] += 1
    units = [tuple(entry) for _, entry in sorted(sums.items())]
    result = bootstrap_interval(
        units, lambda drawn: drawn[0] / drawn[1] / _PARTS, draws=2_000, seed=SEED
    )
    return result if isinstance(result, Undefined) else result.interval


_PARTS = 1_000_000
"""Scores are added up as whole numbers of such parts."""


def scores_by_depth(grades: Iterable[ProbeGrade]) -> dict[int, ProbeScore]:
    depths: dict[int, list[ProbeGrade]] = {}
    for item in grades:
        depths.setdefault(item.depth, []).append(item)
    return {depth: probe_score(depths[depth]) for depth in sorted(depths)}
