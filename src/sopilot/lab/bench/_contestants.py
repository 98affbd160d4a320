"""Who runs a task: models by name, and the user they serve."""

from __future__ import annotations

from sopilot.lab.bench._control_models import CONTROLS, ControlModel
from sopilot.lab.bench.sopbench_process import Upstream
from sopilot.lab.bench.source import SopbenchTask
from sopilot.language.diagnostics import Diagnostic, UserMistake
from sopilot.runtime.agent import (
    DEEP_BUDGETS,
    Budgets,
    ModelUser,
    PredicateJudge,
    Reference,
    ScriptedUser,
)
from sopilot.runtime.session.protocols import Model, User

DEFAULT_USER = "default"
DEEP_DOMAINS = frozenset({"hotel", "university"})
"""The deep-program domains of the study: they get its longer budgets."""


def domain_budgets(domain: str) -> Budgets:
    return DEEP_BUDGETS if domain in DEEP_DOMAINS else Budgets()


def contestant(name: str, reader: PredicateJudge) -> Model:
    """``reader`` judges evidence for the reference executor."""
    if name == "reference":
        return Reference(reader)
    if name in CONTROLS:
        return ControlModel(name)
    return named_model(name)


def named_model(name: str) -> Model:
    """A model that no task's state is needed for. Libraries load on use."""
    if name.startswith("inspect:"):
        from sopilot.lab.bench._inspect_model import InspectModel

        return InspectModel(name.removeprefix("inspect:"))
    if name == "reference" or name in CONTROLS:
        raise UserMistake(
            [Diagnostic("no-such-user", f"`{name}` cannot play a user", help="name a real model")]
        )
    from sopilot.adapters.model_by_name import make_model

    return make_model(name)


def served_user(name: str, task: SopbenchTask, upstream: Upstream) -> User:
    """``default`` tells everything it knows at every turn, as upstream's default user does;
    any other name is a model that plays upstream's user role."""
    if name == DEFAULT_USER:
        return ScriptedUser(task.user_prompt, task.user_known)
    text = upstream.official_text(task.domain, task.goal, task.index)
    return ModelUser(named_model(name), text.user_role, task.user_prompt)
