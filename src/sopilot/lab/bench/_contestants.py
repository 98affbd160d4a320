"""Who runs a task: models by name, and the user they serve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sopilot.lab.bench._control_models import CONTROLS, ControlModel
from sopilot.lab.bench.contestant import Contestant
from sopilot.lab.bench.sopbench_process import Upstream
from sopilot.lab.bench.source import SopbenchTask
from sopilot.language.diagnostics import mistake
from sopilot.runtime.agent import (
    DEEP_BUDGETS,
    Budgets,
    Misbehaviour,
    ModelUser,
    PredicateJudge,
    Reference,
    Retries,
    ScriptedUser,
)
from sopilot.runtime.session.protocols import Model, User

DEFAULT_USER = "default"
SLOPPY: Final = "sloppy"
SLOPPINESS: Final = Misbehaviour(
    skip_check=0.15, act_early=0.1, over_verify=0.3, return_without_evidence=0.1,
    refuse_wrongly=0.05, ignore_frame=0.15, seed=16,
)  # fmt: skip
"""The reference executor on a bad day: what it does wrong depends on what it is shown alone."""
DEEP_DOMAINS = frozenset({"hotel", "university"})
"""The deep-program domains of the study: they get its longer budgets."""


def domain_budgets(domain: str) -> Budgets:
    return DEEP_BUDGETS if domain in DEEP_DOMAINS else Budgets()


OFFLINE = frozenset({"reference", SLOPPY, *CONTROLS})
"""Who needs nobody else: as many tasks at once as there are cores."""


def playing(who: Contestant, reader: PredicateJudge, about: Mapping[str, str]) -> Model:
    """``reader`` judges evidence for the reference executor; ``about`` says what the run is."""
    if who.name == "reference":
        return Reference(reader)
    if who.name == SLOPPY:
        return Reference(reader, SLOPPINESS, name=SLOPPY)
    if who.name in CONTROLS:
        return ControlModel(who.name)
    return named_model(who, about)


def named_model(who: Contestant, about: Mapping[str, str]) -> Model:
    """A model that no task's state is needed for. Libraries load on use."""
    name = who.name
    if name.startswith("inspect:"):
        from sopilot.lab.bench._inspect_model import InspectModel

        return InspectModel(name.removeprefix("inspect:"), served=who.expected)
    if name in OFFLINE:
        raise mistake("no-such-user", f"`{name}` cannot play a user", help="name a real model")
    from sopilot.adapters.model_by_name import make_model

    return make_model(name, key_variable=who.key_variable, served=who.expected, about=about)


def served_user(
    who: Contestant,
    task: SopbenchTask,
    upstream: Upstream,
    *,
    about: Mapping[str, str],
    budgets: Budgets,
    retries: Retries,
) -> User:
    """``default`` tells everything it knows at every turn, as upstream's default user does;
    any other name is a model that plays upstream's user role."""
    if who.name == DEFAULT_USER:
        return ScriptedUser(task.user_prompt, task.user_known)
    text = upstream.official_text(task.domain, task.goal, task.index)
    return ModelUser(
        named_model(who, {**about, "plays": "user"}),
        text.user_role,
        task.user_prompt,
        retries=retries,
        timeout_seconds=budgets.request_seconds,
        temperature=budgets.temperature,
    )
