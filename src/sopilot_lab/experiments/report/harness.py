"""What the folders of a comparison must share: one harness, but for what is compared.

Two folders may differ in arm, model, run, tool list and language: each of these is a row or a
column of the tables. Everything else that decides a run must be the same, or the difference
between two arms is a difference between two experiments.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sopilot.messages.diagnostic import Diagnostic, Place
from sopilot.messages.errors import UserMistake
from sopilot_lab.experiments.record import RunConfiguration

COMPARED: Final = ("arm", "model", "run", "tools", "language")


SHARED: Final = (
    "upstream_commit",
    "sources",
    "budgets",
    "user",
    "temperature",
    "hash_seed",
    "compiler",
)
"""These must agree between models too; what else a configuration has is a model's own."""


def harness_fingerprint(configuration: RunConfiguration) -> str:
    text = json.dumps(_shared(configuration), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def require_one_harness(
    result: Sequence[tuple[Path, RunConfiguration]], vary: Sequence[str] = ()
) -> None:
    """Raises ``UserMistake`` that says what differs, and where."""
    diagnostics: dict[str, Diagnostic] = {}
    for place, (path, configuration) in enumerate(result):
        for other_path, other in result[:place]:
            for field, change in _differences(other, configuration):
                if field in vary or field in diagnostics:
                    continue
                diagnostics[field] = Diagnostic(
                    "other-harness",
                    f"`{field}` differs from `{other_path}`: {change}",
                    Place(str(path)),
                    f"run both with the same, or report them apart with `--vary {field}`",
                )
    if diagnostics:
        raise UserMistake(list(diagnostics.values()))


def varied_label(
    configuration: RunConfiguration, all_of_them: Sequence[RunConfiguration], vary: Sequence[str]
) -> str:
    """What sets this configuration apart, of the fields that vary on purpose."""
    parts = []
    for field in vary:
        flat = [_flat(field, each.as_json().get(field)) for each in all_of_them]
        own = _flat(field, configuration.as_json().get(field))
        keys = dict.fromkeys(key for each in flat for key in each)
        differ = [key for key in keys if len({str(each.get(key)) for each in flat}) > 1]
        parts += [f"{key} {_short(own.get(key))}" for key in differ]
    return ", ".join(dict.fromkeys(parts))


def _differences(
    run_configuration: RunConfiguration, other: RunConfiguration
) -> list[tuple[str, str]]:
    left, right = run_configuration.as_json(), other.as_json()
    fields = [*left, *(key for key in right if key not in left)]
    if run_configuration.model == other.model:
        names = [name for name in fields if name not in COMPARED]
    else:
        names = [name for name in fields if name in SHARED]
    return [
        (name, _change(name, left.get(name), right.get(name)))
        for name in names
        if left.get(name) != right.get(name)
    ]


def _change(name: str, left: Any, right: Any) -> str:
    before, after = _flat(name, left), _flat(name, right)
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    shown = [
        f"{key} {_short(before.get(key))} there, {_short(after.get(key))} here" for key in keys
    ]
    return "; ".join([*shown[:3], "…"] if len(shown) > 3 else shown)


def _flat(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {name: value}
    values: dict[str, Any] = {}
    for key, inner in value.items():
        values |= _flat(str(key) if name == "budgets" else f"{name}.{key}", inner)
    return values


def _short(value: Any) -> str:
    if value in (None, ""):
        return "not recorded"
    text = str(value)
    return text if len(text) <= 20 else f"{text[:12]}…"


def _shared(configuration: RunConfiguration) -> dict[str, Any]:
    row = configuration.as_json()
    return {name: row[name] for name in SHARED if name in row}
