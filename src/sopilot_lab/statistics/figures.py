"""The figures of `sopilot lab stats`, by name: printed as a small table or as plain JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sopilot.messages.errors import UserMistake
from sopilot.values.text import table
from sopilot_lab.statistics import intervals, non_inferiority, power
from sopilot_lab.statistics.clustered import LeaveOneOut, goal_clustered, leave_one_goal_out
from sopilot_lab.statistics.comparison import compare
from sopilot_lab.statistics.intervals import Interval, Undefined
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind, groups
from sopilot_lab.statistics.paired import (
    Discordance,
    Pairs,
    benjamini_hochberg,
    mcnemar,
    pair,
    pool,
)
from sopilot_lab.statistics.rates import Rate, accuracy, pass_k, post_goal, run_to_run
from sopilot_lab.statistics.reading import Row, discordances_from, outcomes_from

FigureObject = Mapping[str, Any]


def figure_lines(report: FigureObject) -> Iterator[str]:
    lists = {name: value for name, value in report.items() if isinstance(value, list)}
    lines = {name: value for name, value in report.items() if name not in lists}
    width = max(map(len, ("", *lines)))
    for name, value in lines.items():
        yield f"{name:<{width}}  {_cell(value)}"
    for rows in lists.values():
        yield table([[_cell(value) for value in row.values()] for row in rows], [*rows[0]])


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{count} {reason}" for reason, count in value.items()) or "none"
    return "–" if value in (None, "") else str(value)


def figure_json(report: FigureObject) -> dict[str, Any]:
    """An undefined figure is null and its reason stands under `undefined`, in the object that
    lacks it."""
    plain: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, value in report.items():
        if isinstance(value, Undefined):
            plain[name] = None
            missing[name] = value.reason
        elif isinstance(value, list):
            plain[name] = [figure_json(row) for row in value]
        else:
            plain[name] = value
    return plain | {"undefined": missing} if missing else plain


Figures = dict[str, Any]
Arms = tuple[str, str] | None


def proportion(passed: int, trials: int, confidence: float) -> Figures:
    figures: Figures = {"passed": passed, "trials": trials, "confidence": confidence}
    figures["rate"] = Rate(passed, trials).share
    figures |= _bounds(intervals.clopper_pearson(passed, trials, confidence))
    return figures | _bounds(intervals.wilson(passed, trials, confidence), "wilson_")


def discoveries(p_values: Sequence[float], q: float) -> Figures:
    rows = benjamini_hochberg(p_values, q)
    contrasts = [{"p": row.p, "adjusted": row.adjusted, "rejected": row.rejected} for row in rows]
    return {"q": q, "rejected": sum(row.rejected for row in rows), "contrasts": contrasts}


def contrast(
    files: Sequence[Sequence[Row]], arms: Arms, run: int | None, *, exact: bool = True, **how: Any
) -> Figures:
    """The first side against the second. The sides are two arms, or two files of one arm each;
    ``how`` has the confidence, draws and seed of the intervals.

    Rows of ``goal``, ``wins`` and ``losses`` have no tasks: they get the tests of goals alone.
    """
    rows = [row for file in files for row in file]
    if "wins" in rows[0][1]:
        return _of_goals(discordances_from(rows), exact=exact, seed=how["seed"])
    first, second = _sides([_of_run(outcomes_from(file), run) for file in files], arms)
    pairs = pair(first, second)
    whole = compare(pairs, **how)
    figures: Figures = {
        "pairs": whole.pairs,
        "passed_first": whole.first_passed,
        "passed_second": whole.second_passed,
        "difference": whole.difference,
        "confidence": how["confidence"],
        **_bounds(whole.clustered_interval, "goal_"),
        **_bounds(whole.interval),
        **_of_goals(pairs.by_cluster(), exact=exact, seed=how["seed"]),
        "dropped": {item.reason: item.count for item in pairs.dropped},
    }
    if whole.joint is not None:
        figures |= {"models": whole.models, "runs": whole.runs, "p_joint": whole.joint.p}
        figures["tasks_with_net"] = whole.joint.units
    figures["by_kind"] = [_of_kind(kind, pairs.only(kind), **how) for kind in TaskKind]
    return figures | {"post_goal_calls": _post_goal(first, second, **how)}


def _of_goals(by_goal: Mapping[str, Discordance], *, exact: bool, seed: int) -> Figures:
    whole = pool(by_goal.values())
    flips = goal_clustered(by_goal, exact=exact, seed=seed)
    return {
        "wins": whole.wins,
        "losses": whole.losses,
        "p": mcnemar(whole.wins, whole.losses),
        "goals": len(by_goal),
        "goals_with_net": flips.units,
        "p_goal": flips.p,
        "draws": "exact" if flips.draws is None else flips.draws,
        **_leave_one_out(leave_one_goal_out(by_goal)),
        "by_goal": goal_rows(by_goal),
    }


def goal_rows(by_goal: Mapping[str, Discordance]) -> list[Figures]:
    """One row per goal, the largest net first."""
    rows = [
        {"goal": goal, "wins": part.wins, "losses": part.losses, "net": part.net}
        for goal, part in by_goal.items()
    ]
    return sorted(rows, key=lambda row: (-abs(row["net"]), -row["net"], row["goal"]))


def _of_kind(kind: TaskKind, pairs: Pairs, **how: Any) -> Figures:
    part = compare(pairs, **how)
    row: Figures = {"kind": str(kind), "pairs": part.pairs, "wins": part.discordance.wins}
    row |= {"losses": part.discordance.losses, "difference": part.difference}
    row |= _bounds(part.clustered_interval, "goal_")
    return row | {"goals": part.goals, "p_goal": part.clustered.p}


def _post_goal(
    first: Sequence[RunOutcome], second: Sequence[RunOutcome], **how: Any
) -> list[Figures]:
    """Mean calls after the goal had succeeded, by model."""
    rows = []
    for model in dict.fromkeys(outcome.model for outcome in (*first, *second)):
        sides = [[each for each in side if each.model == model] for side in (first, second)]
        means = post_goal(*sides, **how)
        row: Figures = {"model": model}
        row |= {"first": means.first, "first_runs": means.first_runs}
        row |= {"second": means.second, "second_runs": means.second_runs, "delta": means.delta}
        rows.append(row | _bounds(means.interval))
    return rows


def description(outcomes: Iterable[RunOutcome], k: int) -> Figures:
    """Pass rates by kind, pass@k, pass^k and the spread between runs, by model and arm."""
    rows, repeated = [], []
    for (model, arm), some in groups(outcomes).items():
        rates = accuracy(some)
        row: Figures = {"model": model, "arm": arm, "judged": rates.all.judged}
        row |= {"pass": rates.all.share, "execute": rates.execute.share}
        row |= {"refuse": rates.refuse.share, "balanced": rates.balanced}
        rows.append(row | {"unjudged": rates.unjudged})
        several, spread = pass_k(some, k), run_to_run(some)
        row = {"model": model, "arm": arm, "k": k, "tasks": several.tasks}
        row |= {"short": several.short, "pass_at_k": several.at, "pass_hat_k": several.every}
        row |= {"runs": len(spread.rates), "mean": spread.mean, "variance": spread.variance}
        repeated.append(row | {"unstable": spread.unstable, "agreement": spread.agreement})
    return {"rates": rows, "repeats": repeated}


def design(
    tasks: int | None, effect: float | None, *, discordance: float, alpha: float, wanted: float
) -> Figures:
    """The effect that a paired design detects, or the tasks that an effect needs."""
    figures: Figures = {"discordance": discordance, "alpha": alpha, "power": wanted}
    if tasks is not None and effect is not None:
        got = power.mcnemar_power(tasks, discordance=discordance, effect=effect, alpha=alpha)
        return figures | {"tasks": tasks, "effect": effect, "power": got}
    if tasks is not None:
        least = power.minimum_detectable_effect(tasks, **figures)
        return figures | {"tasks": tasks, "minimum_detectable_effect": least}
    assert effect is not None
    return figures | {
        "effect": effect,
        "tasks_needed": power.tasks_needed(effect=effect, **figures),
    }


def not_inferior(wins: int, losses: int, pairs: int, margin: float) -> Figures:
    """The test, and how many pairs may be lost if no pair is won."""
    figures: Figures = {"wins": wins, "losses": losses, "pairs": pairs, "margin": margin}
    figures["p"] = non_inferiority.non_inferiority(wins, losses, pairs, margin=margin)
    return figures | {"most_losses": non_inferiority.most_losses(pairs, margin=margin)}


def _of_run(outcomes: tuple[RunOutcome, ...], run: int | None) -> tuple[RunOutcome, ...]:
    if run is None:
        return outcomes
    of_run = tuple(outcome for outcome in outcomes if outcome.run == run)
    if not of_run:
        raise UserMistake(f"no outcome of run `{run}`")
    return of_run


def _sides(
    files: Sequence[tuple[RunOutcome, ...]], arms: Arms
) -> tuple[Sequence[RunOutcome], Sequence[RunOutcome]]:
    one_arm_each = all(len({outcome.arm for outcome in file}) == 1 for file in files)
    if arms is None and len(files) == 2 and one_arm_each:
        return files[0], files[1]
    by_arm: dict[str, list[RunOutcome]] = {}
    for outcome in (outcome for file in files for outcome in file):
        by_arm.setdefault(outcome.arm, []).append(outcome)
    known = ", ".join(f"`{arm}`" for arm in by_arm)
    if arms is None:
        if len(by_arm) != 2:
            raise UserMistake(f"name two arms with --arms; the files hold {known}")
        first, second = by_arm
    else:
        first, second = arms
        for arm in arms:
            if arm not in by_arm:
                raise UserMistake(f"no outcome of arm `{arm}`; the files hold {known}")
    return by_arm[first], by_arm[second]


def _bounds(interval: Interval | Undefined, prefix: str = "") -> Figures:
    low = interval if isinstance(interval, Undefined) else interval.low
    high = interval if isinstance(interval, Undefined) else interval.high
    return {f"{prefix}low": low, f"{prefix}high": high}


def _leave_one_out(worst: LeaveOneOut | Undefined) -> Figures:
    if isinstance(worst, Undefined):
        return {"logo_max_p": worst, "logo_goal": None}
    return {"logo_max_p": worst.p, "logo_goal": worst.goal}
