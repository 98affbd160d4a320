"""P6 and P7: a verdict expression over the answers that a recipe names."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.diagnostics import SopilotError
from sopilot.runtime.audit._moment import Moment, RecipeAnswers, Unreadable
from sopilot.runtime.audit._resolved_function import ResolvedFunction
from sopilot.runtime.audit._state import has_withheld
from sopilot.runtime.vm.values import JSON


def machine_verdict(
    moment: Moment,
    code: ResolvedFunction,
    verdict: str,
    values: Mapping[str, JSON],
    answers: RecipeAnswers,
) -> bool | None:
    """P6: on exactly these answers. An error is no verdict."""
    if moment.judge is None or has_withheld(dict(answers.named)):
        raise Unreadable
    asked = {name: moment.known[name] for name in code.learnable if name in moment.known}
    if has_withheld(asked):
        raise Unreadable
    variables: dict[str, JSON] = {"now": moment.clock} if moment.clock else {}
    variables |= {**moment.process.program.program.constants, **asked}
    variables |= {**dict.fromkeys(code.function.optional), **values}
    variables["results"], variables["result"] = dict(answers.named), answers.last
    try:
        return moment.judge(verdict, variables)
    except SopilotError:
        return None
