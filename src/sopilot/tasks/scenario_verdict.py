"""Compare a run with the expectation of its scenario."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sopilot.agent.reference.judging import CannotJudge, Seen, VerdictJudge
from sopilot.agent.result import Ending, SessionResult
from sopilot.handbook.model import BUILT_IN, Handbook
from sopilot.handbook.requirements import AnyOf, First, Leaf, Name, Tree
from sopilot.tasks.scenarios import MadeCall, Scenario, ScriptedRuling, fits
from sopilot.tasks.task import FinishedRun
from sopilot.trace.events import Event
from sopilot.values.json import JSON


class ScenarioJudge(VerdictJudge):
    """Judges by the handbook's verdicts, else by the scenario's table. ``problems`` tells the
    scenario's author which predicates couldn't be judged."""

    def __init__(
        self,
        handbook: Handbook,
        rulings: Mapping[str, Sequence[ScriptedRuling]],
        simulated: frozenset[str],
    ) -> None:
        super().__init__(handbook)
        self._rulings = rulings
        self._simulated = simulated
        self.problems: list[str] = []

    def __call__(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> bool:
        known = self._handbook.predicates.get(predicate)
        if known is None or known.is_gate or known.done is not None or known.verdict is not None:
            return self._verdict(predicate, arguments, evidence)
        for ruling in self._rulings.get(predicate, ()):
            if fits(ruling.when, arguments):
                return ruling.holds
        why = "for these arguments " if predicate in self._rulings else ""
        self.problems.append(
            f"`{predicate}` has no verdict in the handbook, and the scenario's `verdicts` "
            f"say nothing about it {why}".rstrip()
        )
        raise CannotJudge(self.problems[-1])

    def _verdict(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> bool:
        try:
            return super().__call__(predicate, arguments, evidence)
        except CannotJudge as error:
            self.problems.append(self._why(predicate, evidence, error))
            raise CannotJudge(self.problems[-1]) from error

    def _why(self, predicate: str, evidence: Sequence[Seen], error: CannotJudge) -> str:
        failed = ", ".join(sorted({f"`{item.action}`" for item in evidence if not item.ok}))
        if failed:
            return f"{error}: {failed} failed"
        why = f"the verdict of `{predicate}` cannot be judged: {error}"
        silent = sorted({item.action for item in evidence} - self._simulated)
        if silent:
            named = ", ".join(f"`{action}`" for action in silent)
            why += f"; give {named} a result under `tools`"
        return why


def calls_made(events: Iterable[Event]) -> list[MadeCall]:
    """Domain calls with a result, in the order of their results."""
    arguments: dict[int, Mapping[str, JSON]] = {}
    results = []
    for event in events:
        if event.kind == "domain_call":
            arguments[event.seq] = event.payload["arguments"]
        elif event.kind == "domain_result":
            value = arguments.get(event.payload["call"], {})
            results.append(MadeCall(event.payload["action"], value, event.payload["ok"]))
    return results


def post_goal_calls(calls: Sequence[MadeCall], goal_action: str) -> int | None:
    """R2 of a run: domain calls after the goal action first succeeded; ``None`` if it never
    did."""
    for index, item in enumerate(calls):
        if item.action == goal_action and item.ok:
            return len(calls) - index - 1
    return None


def unproven(
    scenario: Scenario,
    handbook: Handbook,
    calls: Sequence[MadeCall],
    *,
    unseen: frozenset[str] = frozenset(),
) -> list[str]:
    """Predicates that the run rests on without a tool's evidence. ``unseen`` are actions that
    reach no tool, so ``calls`` can't have them.

    Before the goal action every requirement needs its verifier; one option of a disjunction is
    enough. A refusal needs an attempt at its predicate, unless the user can't tell what the
    verifier asks for.
    """
    procedure = handbook.procedures[scenario.goal]
    if scenario.expect.ending is Ending.EXECUTED:
        goal = next((i for i, item in enumerate(calls) if item.action == procedure.action), None)
        if goal is None:
            return []  # the ending says so already
        done = {call.action for call in calls[:goal] if call.ok} | unseen
        missing = _missing(procedure.requires, handbook, done)
        return [f"`{name}` was not verified before the goal" for name in missing]
    cause = scenario.expect.cause
    if cause is None or _attempted(
        cause, scenario, handbook, {call.action for call in calls} | unseen
    ):
        return []
    return [f"refused without checking `{cause}`"]


def _missing(tree: Tree, handbook: Handbook, done: set[str]) -> list[str]:
    if isinstance(tree, Leaf):
        recipes = _recipes(tree.predicate, handbook)
        shown = not recipes or any(done.issuperset(recipe) for recipe in recipes)
        return [] if shown else [tree.predicate]
    gaps = [_missing(child, handbook, done) for child in tree.children]
    if isinstance(tree, AnyOf | First):
        return min(gaps, key=len, default=[])
    return list(dict.fromkeys(name for gap in gaps for name in gap))


def _attempted(cause: str, scenario: Scenario, handbook: Handbook, tried: set[str]) -> bool:
    recipes = _recipes(cause, handbook)
    if not recipes or any(tried.intersection(recipe) for recipe in recipes):
        return True
    predicate = handbook.predicates[cause]
    gate = predicate.established_by
    if gate is None:
        return False
    names = {term.name for _, term in gate.arguments if isinstance(term, Name)}
    return not names <= {*scenario.inputs, *handbook.parameters}


def _recipes(name: str, handbook: Handbook) -> list[set[str]]:
    predicate = handbook.predicates[name]
    if predicate.tool_free:
        return []
    if predicate.established_by is not None:
        return [{predicate.established_by.action}]
    return [{call.action for call in recipe} for recipe in predicate.recipes]


_WORDS = {
    Ending.EXECUTED: "the request was executed",
    Ending.REFUSED: "the request was refused",
    Ending.WAITING: "the run waits for people",
    Ending.ABANDONED: "it ended unfinished",
    Ending.BUDGET: "a budget ran out",
    Ending.INFRASTRUCTURE_FAILURE: "the run failed",
}


@dataclass(frozen=True, slots=True)
class ScenarioVerdict:
    """``reasons`` say why it failed, and are empty for a pass; ``causes`` are the predicates
    a refusal rests on."""

    reasons: tuple[str, ...]
    causes: tuple[str, ...] = ()
    calls: tuple[MadeCall, ...] = ()

    def as_json(self) -> dict[str, JSON]:
        return {
            "success": not self.reasons,
            "reasons": list(self.reasons),
            "causes": list(self.causes),
            "calls": [call.action for call in self.calls],
        }


def judge_run(
    scenario: Scenario, handbook: Handbook, run: FinishedRun, problems: Sequence[str] = ()
) -> ScenarioVerdict:
    """Judge by ending and cause, by required and forbidden calls, and by the evidence.
    ``problems`` are those of the run's judge."""
    causes: tuple[str, ...] | None = None
    if run.session.configuration.processes:  # without a machine nothing is blamed
        causes = tuple(dict.fromkeys(item.rule for item in reversed(run.result.refusals)))
    calls = tuple(calls_made(run.session.own_events))
    reasons = list(dict.fromkeys(problems)) or _ending_reasons(scenario, run.result, causes)
    reasons += judge_calls(scenario, handbook, calls, quiet=bool(reasons))
    return ScenarioVerdict(tuple(reasons), causes or (), calls)


def judge_calls(
    scenario: Scenario,
    handbook: Handbook,
    calls: Sequence[MadeCall],
    *,
    quiet: bool = False,
    unseen: frozenset[str] = frozenset(),
) -> list[str]:
    """Judge by the calls that reached the tools. ``quiet`` reports only forbidden calls: after
    another ending the rest differs anyway. ``unseen``: as in ``unproven``."""
    reasons = _forbidden(scenario, calls)
    if quiet or reasons:
        return reasons
    return _out_of_order(scenario, calls) or unproven(scenario, handbook, calls, unseen=unseen)


def judge_outside(
    scenario: Scenario, handbook: Handbook, calls: Sequence[MadeCall]
) -> ScenarioVerdict:
    """Judge by the calls alone: the goal is done if its action succeeded. The runtime's own
    questions to the user reach no tool; the audit judges those."""
    action = handbook.procedures[scenario.goal].action
    done = any(call.action == action and call.ok for call in calls)
    wanted = scenario.expect.ending is Ending.EXECUTED
    reasons = []
    if done is not wanted:
        happened = "carried out" if done else "not carried out"
        reasons = [f"expected `{scenario.expect.ending}`, but `{action}` was {happened}"]
    reasons += judge_calls(
        scenario, handbook, calls, quiet=bool(reasons), unseen=frozenset(BUILT_IN)
    )
    return ScenarioVerdict(tuple(reasons), (), tuple(calls))


def _ending_reasons(
    scenario: Scenario, result: SessionResult, causes: Sequence[str] | None
) -> list[str]:
    expect, ending, why = scenario.expect, result.ending, result.reason
    named = " and ".join(f"`{cause}`" for cause in causes or ())
    if ending is not expect.ending:
        happened = _WORDS[ending]
        if ending is Ending.REFUSED and named:
            happened += f" because of {named}"
        elif ending is not Ending.EXECUTED and why:
            happened += f" ({why.rstrip('.')})"
        return [f"expected `{expect.ending}`, but {happened}"]
    blames = expect.ending is Ending.REFUSED and expect.cause is not None
    if blames and causes is not None and expect.cause not in causes:
        instead = f"{named} failed" if named else f"the reason was: {why.rstrip('.')}"
        return [f"expected a refusal because of `{expect.cause}`, but {instead}"]
    return []


def _forbidden(scenario: Scenario, calls: Sequence[MadeCall]) -> list[str]:
    return [
        f"`{action}` must not be called, but it was"
        for action in dict.fromkeys(call.action for call in calls)
        if action in scenario.no_calls
    ]


def _out_of_order(scenario: Scenario, calls: Sequence[MadeCall]) -> list[str]:
    """The first expected call that does not come after those before it."""
    left = iter(calls)
    for expected in scenario.calls:
        if not any(
            item.action == expected.action and fits(expected.arguments, item.arguments)
            for item in left
        ):
            made = ", ".join(f"`{call.action}`" for call in calls) or "none"
            with_arguments = " with these arguments" if expected.arguments else ""
            return [
                f"expected a call of `{expected.action}`{with_arguments} in this order; "
                f"the calls were {made}"
            ]
    return []
