"""A study's file: models, arms, tasks, budgets, and the hypotheses fixed before the first run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

import yaml

from sopilot.agent.budgets import Budgets
from sopilot.agent.retries import Retries
from sopilot.files.text import load_yaml, read_text
from sopilot.messages.diagnostic import Diagnostic, Place, did_you_mean
from sopilot.messages.errors import UserMistake, mistake
from sopilot.views.catalogue import VIEWS
from sopilot_lab.experiments.entrants import DEFAULT_USER, Contestant, Patience
from sopilot_lab.sopbench.process import ToolList
from sopilot_lab.sopbench.recorded import SCREENS
from sopilot_lab.sopbench.reference import DOMAINS
from sopilot_lab.statistics.outcomes import KINDS

TESTS: Final = ("clustered", "mcnemar")


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """The first arm of ``contrast`` is compared with the second, on the tasks that both judged,
    for each of ``models``. ``test``: whole goals flip their signs (``clustered``), or tasks are
    taken for independent (``mcnemar``). Hypotheses of one ``family`` share their ``level``
    (Holm)."""

    name: str
    contrast: tuple[str, str]
    models: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    kind: str = "both"
    test: str = "clustered"
    family: str = "primary"
    level: float = 0.05


@dataclass(frozen=True, slots=True)
class Preregistration:
    """``stopping`` and ``exclusions`` say when no more is run and what is left out."""

    hypotheses: Sequence[Hypothesis] = ()
    stopping: str = ""
    exclusions: str = ""

    @property
    def sha256(self) -> str:
        """Empty where nothing was fixed: then everything is exploratory."""
        if not self.hypotheses:
            return ""
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


PRESETS: Final = ("paper",)
_SAMPLING: Final = {
    "temperature": "temperature",
    "seed": "seed",
    "max_tokens": "reply_tokens",
    "context": "context_tokens",
    "timeout": "request_seconds",
}
_BLOCK_KEYS: Final = ("arms", "domains", "language", "screen", "repetitions")
"""Keys that may differ between models, and between blocks of a model's `runs`."""
_MODEL_KEYS: Final = ("alias", "model", "key", "served", "price", *_SAMPLING, *_BLOCK_KEYS, "runs")
_KEYS: Final = (
    "study", "models", "arms", "tools", "domains", "tasks", "screen", "repetitions", "user",
    "language", "budgets", "missing", "hypotheses", "stopping", "exclusions", "power",
)  # fmt: skip
_TOOL_LISTS: Final = get_args(ToolList)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Block:
    """Arms that a model runs on the tasks of some domains. ``condition`` names budgets or a
    user that differ from the study's, for a block that shows how sensitive results are."""

    arms: tuple[str, ...]
    domains: tuple[str, ...] = DOMAINS
    language: str = "en"
    screen: str = "none"
    repetitions: int = 1
    condition: str = ""
    budgets: Mapping[str, Any] = field(default_factory=dict)
    user: Contestant | None = None


@dataclass(frozen=True, slots=True)
class Entrant:
    """A model of the study, the blocks that it runs, and the budgets and sampling that are its
    own."""

    who: Contestant
    blocks: tuple[Block, ...] = ()
    budgets: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Study:
    """``limit`` tasks are stratified by class and goal, or drawn by ``seed``; ``per_domain`` is
    the same for each domain. ``listed`` is a file of references. ``screen`` is the report's.
    ``discordance`` and ``effect`` are what power is computed for."""

    name: str
    entrants: tuple[Entrant, ...]
    tools: ToolList = "official"
    limit: int | None = None
    per_domain: int | None = None
    seed: int | None = None
    kind: str | None = None
    listed: Path | None = None
    screen: str = "none"
    user: Contestant = field(default_factory=lambda: Contestant(DEFAULT_USER))
    budgets: Mapping[str, Any] = field(default_factory=dict)
    patience: Patience = field(default_factory=Patience)
    fixed: Preregistration = field(default_factory=Preregistration)
    discordance: float = 0.25
    effect: float = 0.1

    @property
    def varies(self) -> tuple[str, ...]:
        """The fields that differ between models or blocks beside arm, tasks and language."""
        blocks = [(each, block) for each in self.entrants for block in each.blocks]
        budgets = {str(sorted({**item.budgets, **block.budgets}.items())) for item, block in blocks}
        users = {block.user.label for _, block in blocks if block.user} - {self.user.label}
        return (*(["budgets"] if len(budgets) > 1 else []), *(["user"] if users else []))


def preset(name: str) -> str:
    """The text of a study that comes along."""
    file = resources.files("sopilot_lab.experiments.study").joinpath(f"{name}.yaml")
    return file.read_text(encoding="utf-8")


def load_study(path: Path) -> Study:
    try:
        document = load_yaml(read_text(path))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise mistake("study", f"not YAML: {error}", Place(str(path))) from error
    reader = _Reader(path)
    study = reader.study(document if isinstance(document, Mapping) else {})
    if reader.mistakes:
        raise UserMistake(reader.mistakes)
    return study


class _Reader:
    """Collects what is wrong; what it returns is good only if nothing is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.mistakes: list[Diagnostic] = []

    def study(self, row: Mapping[str, Any]) -> Study:
        self._known(row, _KEYS, "")
        usual = self._block(row, "", Block(()))
        entrants = self._list(row, "models", lambda item, place: self._entrant(item, place, usual))
        labels = [each.who.label for each in entrants]
        for label in {each for each in labels if labels.count(each) > 1}:
            self._wrong("models", f"two models are called `{label}`", "give them an `alias` each")
        tasks = self._mapping(row, "tasks", ("limit", "per_domain", "seed", "kind", "file"))
        missing = self._mapping(row, "missing", ("most", "redraws", "attempts"))
        power = self._mapping(row, "power", ("discordance", "effect"))
        user = row.get("user", DEFAULT_USER)
        user = self._entrant(user if isinstance(user, Mapping) else {"model": user}, "user")
        blocks = [each for entrant in entrants for each in entrant.blocks]
        arms = tuple(dict.fromkeys(arm for each in blocks for arm in each.arms))
        domains = tuple(dict.fromkeys(domain for each in blocks for domain in each.domains))
        for entrant in entrants:
            if not all(each.arms for each in entrant.blocks):
                cure = f"name some of {', '.join(VIEWS)}"
                self._wrong("arms", f"no arm is named for `{entrant.who.label}`", cure)
        if not entrants:
            self._wrong("models", "no model is named", "write `- model: reference`, for example")
        return Study(
            name=str(row.get("study", self._path.stem)),
            entrants=tuple(entrants),
            tools=self._choice(row, "tools", _TOOL_LISTS, "official"),
            limit=self._count(tasks, "limit", "tasks.limit"),
            per_domain=self._count(tasks, "per_domain", "tasks.per_domain"),
            seed=self._count(tasks, "seed", "tasks.seed"),
            kind=self._choice(tasks, "kind", (None, *KINDS), None),
            listed=self._path.parent / str(tasks["file"]) if "file" in tasks else None,
            screen=usual.screen,
            user=user.who,
            budgets=self._budgets(row.get("budgets") or {}, "budgets"),
            patience=self._patience(missing),
            fixed=self._fixed(row, labels, arms, domains),
            discordance=self._share(power, "discordance", 0.25, "power.discordance"),
            effect=self._share(power, "effect", 0.1, "power.effect"),
        )

    def _block(self, row: Mapping[str, Any], place: str, usual: Block) -> Block:
        """Read ``row``, with ``usual`` for what it leaves out."""
        user = row.get("user") if "condition" in row else None
        if user is not None:
            user = self._entrant(user if isinstance(user, Mapping) else {"model": user}, place).who
        return Block(
            arms=tuple(self._names(row, "arms", VIEWS, place)) or usual.arms,
            domains=tuple(self._names(row, "domains", DOMAINS, place)) or usual.domains,
            language=self._choice(row, "language", ("en", "zh"), usual.language),
            screen=self._choice(row, "screen", tuple(SCREENS), usual.screen),
            repetitions=self._count(row, "repetitions", f"{place}.repetitions".strip("."))
            or usual.repetitions,
            condition=str(row.get("condition", "")),
            budgets=self._budgets(row.get("budgets") or {}, place) if "condition" in row else {},
            user=user,
        )

    def _blocks(self, row: Mapping[str, Any], place: str, usual: Block) -> tuple[Block, ...]:
        own = self._block(row, place, usual)

        def block(value: Any, where: str) -> Block:
            if not isinstance(value, Mapping):
                self._wrong(
                    f"{place}.{where}", "a block must name its arms", "{arms: [flat, pg-paper]}"
                )
                return own
            self._known(value, (*_BLOCK_KEYS, "condition", "budgets", "user"), f"{place}.{where}")
            if {"budgets", "user"} & value.keys() and "condition" not in value:
                cure = "such as `condition: ten user turns`"
                self._wrong(f"{place}.{where}", "other budgets or users need a `condition`", cure)
            return self._block(value, f"{place}.{where}", own)

        return tuple(self._list(row, "runs", block)) or (own,)

    def _entrant(self, row: Any, place: str, usual: Block | None = None) -> Entrant:
        if isinstance(row, str):
            row = {"model": row}
        if not isinstance(row, Mapping) or not isinstance(row.get("model"), str):
            self._wrong(place, "a model needs `model`", "as `sopilot run --model` takes it")
            return Entrant(Contestant("reference"), () if usual is None else (usual,))
        self._known(row, _MODEL_KEYS, place)
        price = row.get("price")
        if price is not None and not _is_price(price):
            self._wrong(place, "`price` is [PROMPT, REPLY], each per million tokens", "[0.5, 1.5]")
            price = None
        key = row.get("key")
        if key is not None and not str(key).isidentifier():
            self._wrong(
                place, "`key` names the variable that holds the key, and is not the key",
                "write key: MY_KEY, and export MY_KEY=…",
            )  # fmt: skip
            key = None
        own = {budget: row[name] for name, budget in _SAMPLING.items() if name in row}
        return Entrant(
            Contestant(
                row["model"],
                str(row.get("alias", "")),
                None if key is None else str(key),
                row.get("served"),
                None if price is None else (float(price[0]), float(price[1])),
            ),
            () if usual is None else self._blocks(row, place, usual),
            self._budgets(own, place),
        )

    def _fixed(
        self, row: Mapping[str, Any], models: Sequence[str], arms: Sequence[str],
        domains: Sequence[str],
    ) -> Preregistration:  # fmt: skip
        def hypothesis(value: Any, place: str) -> Hypothesis:
            if not isinstance(value, Mapping):
                value = {}
            self._known(value, [each.name for each in fields(Hypothesis)], place)
            contrast = self._names(value, "contrast", arms, place)
            if len(contrast) != 2:
                self._wrong(place, "`contrast` must name two arms of the study", "[pg, flat]")
                contrast = ["", ""]
            return Hypothesis(
                name=str(value.get("name", f"{contrast[0]}:{contrast[1]}")),
                contrast=(contrast[0], contrast[1]),
                models=tuple(self._names(value, "models", models, place)) or tuple(models),
                domains=tuple(self._names(value, "domains", domains, place)) or tuple(domains),
                kind=self._choice(value, "kind", ("both", *KINDS), "both"),
                test=self._choice(value, "test", TESTS, "clustered"),
                family=str(value.get("family", "primary")),
                level=self._share(value, "level", 0.05, f"{place}.level"),
            )

        hypotheses = self._list(row, "hypotheses", hypothesis)
        for name in ("stopping", "exclusions"):
            if hypotheses and not row.get(name):
                cure = "write when no more is run" if name == "stopping" else "write what is left"
                self._wrong(name, f"hypotheses also need `{name}`", f"{cure}, or `none`")
        texts = (str(row.get(name) or "") for name in ("stopping", "exclusions"))
        return Preregistration(tuple(hypotheses), *texts)

    def _budgets(self, argument: Any, place: str) -> dict[str, Any]:
        known = [each.name for each in fields(Budgets)]
        if not isinstance(argument, Mapping):
            self._wrong(place, "it must map budgets to numbers", f"some of {', '.join(known)}")
            return {}
        self._known(argument, known, place)
        chosen = {
            name: None if value == "none" else value
            for name, value in argument.items()
            if name in known
        }
        try:
            Budgets(**chosen)  # type: ignore[arg-type]  # what is wrong with them it says itself
        except UserMistake as mistake:
            self._wrong(place, str(mistake), "see `sopilot run --help`")
            return {}
        return chosen

    def _patience(self, row: Mapping[str, Any]) -> Patience:
        usual = Patience()
        attempts = self._count(row, "attempts", "missing.attempts") or usual.retries.attempts
        redraws = row.get("redraws", usual.redraws)
        if not isinstance(redraws, int) or isinstance(redraws, bool) or redraws < 0:
            self._wrong("missing.redraws", "it must be a count", "0, 1, 2, …")
            redraws = usual.redraws
        most = self._share(row, "most", usual.most_missing, "missing.most", closed=True)
        return Patience(replace(Retries(), attempts=attempts), redraws, most)

    # --- parts -----------------------------------------------------------------------

    def _wrong(self, place: str, message: str, cure: str = "") -> None:
        where = Place(str(self._path), path=place)
        self.mistakes.append(Diagnostic("study", message, where, cure))

    def _known(self, row: Mapping[str, Any], keys: Sequence[str], place: str) -> None:
        for name in row:
            if name not in keys:
                self._wrong(place, f"unknown key `{name}`", did_you_mean(str(name), keys))

    def _list(self, row: Mapping[str, Any], name: str, read: Callable[[Any, str], T]) -> list[T]:
        value = row.get(name) or []
        if not isinstance(value, list):
            self._wrong(name, f"`{name}` must be a list", "write a `-` before each")
            return []
        return [read(item, f"{name}[{place}]") for place, item in enumerate(value)]

    def _mapping(self, row: Mapping[str, Any], name: str, keys: Sequence[str]) -> Mapping[str, Any]:
        value = row.get(name) or {}
        if value == "all" or not isinstance(value, Mapping):
            if value != "all":
                self._wrong(name, f"`{name}` must have the keys {', '.join(keys)}")
            return {}
        self._known(value, keys, name)
        return value

    def _names(
        self, row: Mapping[str, Any], name: str, known: Sequence[str] | Mapping[str, Any],
        place: str = "",
    ) -> list[str]:  # fmt: skip
        value = row.get(name)
        if value is None or value == "all":
            return []
        result = [value] if isinstance(value, str) else value
        where = f"{place}.{name}" if place else name
        if not isinstance(result, list):
            self._wrong(where, f"`{name}` must be a list of names")
            return []
        names = list(known)  # the items of a file may not be hashable
        for item in result:
            if item not in names:
                self._wrong(where, f"unknown: `{item}`", did_you_mean(str(item), names))
        return [str(entry) for entry in result if entry in names]

    def _choice(self, row: Mapping[str, Any], name: str, known: Sequence[Any], usual: Any) -> Any:
        value = row.get(name, usual)
        if value not in known:
            self._wrong(name, f"`{value}` isn't one of {', '.join(map(str, known))}")
            return usual
        return value

    def _count(self, row: Mapping[str, Any], name: str, place: str) -> int | None:
        value = row.get(name)
        if value is not None and (
            not isinstance(value, int) or isinstance(value, bool) or value < 1
        ):
            self._wrong(place, "it must be a count of at least 1", "1, 2, 3, …")
            return None
        return value

    def _share(
        self, row: Mapping[str, Any], name: str, usual: float, place: str, *, closed: bool = False
    ) -> float:
        value = row.get(name, usual)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not (0 <= value <= 1 if closed else 0 < value < 1):
            self._wrong(place, "it must be a share between 0 and 1", f"{usual}")
            return usual
        return float(value)


def _is_price(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(item, int | float) and not isinstance(item, bool) for item in value)
    )
