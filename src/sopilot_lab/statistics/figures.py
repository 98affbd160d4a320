"""The figures of `sopilot stats`, by name. One that does not exist is ``Undefined``.

Named figures for people, as a small table, and for scripts, as plain JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sopilot.messages.errors import UserMistake
from sopilot_lab import statistics as stats
from sopilot_lab.statistics.accuracy import Rate
from sopilot_lab.statistics.outcomes import RunOutcome, groups
from sopilot_lab.statistics.reading import Row
from sopilot_lab.statistics.undefined import Interval, Undefined

FigureObject = Mapping[str, Any]


def figure_lines(report: FigureObject) -> Iterator[str]:
    lists = {name: value for name, value in report.items() if isinstance(value, list)}
    lines = {name: value for name, value in report.items() if name not in lists}
    width = max(map(len, ("", *lines)))
    for name, value in lines.items():
        yield f"{name:<{width}}  {_cell(value)}"
    for rows in lists.values():
        yield from _table(rows)


def _table(rows: Sequence[FigureObject]) -> Iterator[str]:
    cells = [[str(name) for name in rows[0]]] + [
        [_cell(value) for value in row.values()] for row in rows
    ]
    widths = [max(len(row[place]) for row in cells) for place in range(len(rows[0]))]
    for row in cells:
        yield "  ".join(row[place].ljust(width) for place, width in enumerate(widths)).rstrip()


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
    found: Figures = {"passed": passed, "trials": trials, "confidence": confidence}
    found["rate"] = Rate(passed, trials).share
    found |= _bounds(stats.clopper_pearson(passed, trials, confidence))
    return found | _bounds(stats.wilson(passed, trials, confidence), "wilson_")


def discoveries(p_values: Sequence[float], q: float) -> Figures:
    rows = stats.benjamini_hochberg(p_values, q)
    contrasts = [{"p": row.p, "adjusted": row.adjusted, "rejected": row.rejected} for row in rows]
    return {"q": q, "rejected": sum(row.rejected for row in rows), "contrasts": contrasts}


def clustered(rows: Sequence[Row], arms: Arms, run: int | None, **how: Any) -> Figures:
    """Outcomes of two arms, or rows of ``goal``, ``wins``, ``losses``."""
    dropped: tuple[stats.Dropped, ...] = ()
    if "wins" in rows[0][1]:
        by_goal = stats.discordances_from(rows)
    else:
        pairs = stats.pair(*_two_arms(_of_run(stats.outcomes_from(rows), run), arms))
        by_goal, dropped = pairs.by_cluster(), pairs.dropped
    whole = stats.pool(by_goal.values())
    flips = stats.goal_clustered(by_goal, **how)
    found: Figures = {"wins": whole.wins, "losses": whole.losses}
    found["p_task"] = stats.mcnemar(whole.wins, whole.losses)
    found |= {"goals": len(by_goal), "goals_with_net": flips.units, "p_goal": flips.p}
    found["draws"] = "exact" if flips.draws is None else flips.draws
    found |= _leave_one_out(stats.leave_one_goal_out(by_goal)) | _dropped(dropped)
    return found | {"by_goal": goal_rows(by_goal)}


def goal_rows(by_goal: Mapping[str, stats.Discordance]) -> list[Figures]:
    """A row a goal, the largest net first."""
    rows = [
        {"goal": goal, "wins": part.wins, "losses": part.losses, "net": part.net}
        for goal, part in by_goal.items()
    ]
    return sorted(rows, key=lambda row: (-abs(row["net"]), -row["net"], row["goal"]))


def joint(outcomes: tuple[RunOutcome, ...], arms: Arms, run: int | None) -> Figures:
    pairs = stats.pair(*_two_arms(_of_run(outcomes, run), arms))
    flips = stats.task_joint(pairs)
    whole = pairs.discordance
    found: Figures = {"models": len({item.model for item in pairs.pairs})}
    found |= {"pairs": len(pairs), "wins": whole.wins, "losses": whole.losses}
    return found | {"tasks_with_net": flips.units, "p_joint": flips.p} | _dropped(pairs.dropped)


def compared(
    sides: Sequence[tuple[str, tuple[RunOutcome, ...]]],
    run: int | None,
    *,
    confidence: float,
    draws: int,
    seed: int,
) -> Figures:
    """Two files, each with its name."""
    chosen = []
    for file, side in sides:
        kept = _of_run(side, run)
        arms = sorted({outcome.arm for outcome in kept})
        if len(arms) > 1:
            raise UserMistake(f"`{file}` holds several arms ({', '.join(arms)}): one file an arm")
        chosen.append(kept)
    paired = stats.pair(*chosen)
    found = stats.compare(paired, confidence=confidence, draws=draws, seed=seed)
    figures: Figures = {
        "pairs": found.pairs,
        "passed_a": found.first_passed,
        "passed_b": found.second_passed,
        "wins": found.discordance.wins,
        "losses": found.discordance.losses,
        "difference": found.difference,
        "confidence": confidence,
        **_resampled(found.clustered_interval, "goal_"),
        "goals": found.goals,
        "p_goal": found.clustered.p,
        "p": found.p,
    }
    if found.joint is not None:
        figures |= {"models": found.models, "runs": found.runs, "p_joint": found.joint.p}
    figures |= _leave_one_out(found.leave_one_out)
    figures |= _bounds(found.interval) | _dropped(found.dropped)
    kinds = [
        _headline(str(kind), paired.only(kind), confidence, draws, seed) for kind in stats.TaskKind
    ]
    return figures | {"by_kind": kinds}


def _headline(name: str, pairs: stats.Pairs, confidence: float, draws: int, seed: int) -> Figures:
    found = stats.compare(pairs, confidence=confidence, draws=draws, seed=seed)
    row: Figures = {"kind": name, "pairs": found.pairs, "wins": found.discordance.wins}
    row |= {"losses": found.discordance.losses, "difference": found.difference}
    row |= _resampled(found.clustered_interval, "goal_")
    return row | {"goals": found.goals, "p_goal": found.clustered.p}


def accuracies(outcomes: Iterable[RunOutcome]) -> Figures:
    rows = []
    for (model, arm), some in groups(outcomes).items():
        found = stats.accuracy(some)
        row: Figures = {"model": model, "arm": arm, "judged": found.all.judged}
        row |= {"pass": found.all.share, "execute": found.execute.share}
        row |= {"refuse": found.refuse.share, "balanced": found.balanced}
        rows.append(row | {"unjudged": found.unjudged})
    return {"groups": rows}


def repeated(outcomes: Iterable[RunOutcome], k: int) -> Figures:
    rows = []
    for (model, arm), some in groups(outcomes).items():
        found, spread = stats.pass_k(some, k), stats.run_to_run(some)
        row: Figures = {"model": model, "arm": arm, "k": k, "tasks": found.tasks}
        row |= {"short": found.short, "pass_at_k": found.at, "pass_hat_k": found.every}
        row |= {"runs": len(spread.rates), "mean": spread.mean, "variance": spread.variance}
        rows.append(row | {"unstable": spread.unstable, "agreement": spread.agreement})
    return {"groups": rows}


def design(
    tasks: int | None, effect: float | None, *, discordance: float, alpha: float, power: float
) -> Figures:
    """What a paired design of so many tasks can see, or how many an effect needs."""
    found: Figures = {"discordance": discordance, "alpha": alpha, "power": power}
    if tasks is not None and effect is not None:
        got = stats.mcnemar_power(tasks, discordance=discordance, effect=effect, alpha=alpha)
        return found | {"tasks": tasks, "effect": effect, "power": got}
    if tasks is not None:
        least = stats.minimum_detectable_effect(tasks, **found)
        return found | {"tasks": tasks, "minimum_detectable_effect": least}
    assert effect is not None
    return found | {"effect": effect, "tasks_needed": stats.tasks_needed(effect=effect, **found)}


def non_inferior(wins: int, losses: int, pairs: int, margin: float) -> Figures:
    """Also how many of so many pairs may be lost if none is won."""
    found: Figures = {"wins": wins, "losses": losses, "pairs": pairs, "margin": margin}
    found["p"] = stats.non_inferiority(wins, losses, pairs, margin=margin)
    return found | {"most_losses": stats.most_losses(pairs, margin=margin)}


def after_goal(
    outcomes: Iterable[RunOutcome], arms: Arms, *, confidence: float, **how: Any
) -> Figures:
    first, second = _two_arms(outcomes, arms)
    rows = []
    for model in dict.fromkeys(outcome.model for outcome in (*first, *second)):
        sides = [[one for one in side if one.model == model] for side in (first, second)]
        found = stats.post_goal(*sides, confidence=confidence, **how)
        row: Figures = {"model": model}
        row |= {"first": found.first, "first_runs": found.first_runs}
        row |= {"second": found.second, "second_runs": found.second_runs, "delta": found.delta}
        rows.append(row | _resampled(found.interval))
    return {"confidence": confidence, "groups": rows}


def _of_run(outcomes: tuple[RunOutcome, ...], run: int | None) -> tuple[RunOutcome, ...]:
    if run is None:
        return outcomes
    kept = tuple(outcome for outcome in outcomes if outcome.run == run)
    if not kept:
        raise UserMistake(f"no outcome of run `{run}`")
    return kept


def _two_arms(
    outcomes: Iterable[RunOutcome], arms: tuple[str, str] | None
) -> tuple[list[RunOutcome], list[RunOutcome]]:
    by_arm: dict[str, list[RunOutcome]] = {}
    for outcome in outcomes:
        by_arm.setdefault(outcome.arm, []).append(outcome)
    known = ", ".join(f"`{arm}`" for arm in by_arm)
    if arms is None:
        if len(by_arm) != 2:
            raise UserMistake(f"name two arms with --arms; the file holds {known}")
        first, second = by_arm
    else:
        first, second = arms
        for arm in arms:
            if arm not in by_arm:
                raise UserMistake(f"no outcome of arm `{arm}`; the file holds {known}")
    return by_arm[first], by_arm[second]


def _bounds(interval: Interval | Undefined, prefix: str = "") -> Figures:
    low = interval if isinstance(interval, Undefined) else interval.low
    high = interval if isinstance(interval, Undefined) else interval.high
    return {f"{prefix}low": low, f"{prefix}high": high}


def _resampled(found: stats.BootstrapInterval | Undefined, prefix: str = "") -> Figures:
    return _bounds(found if isinstance(found, Undefined) else found.interval, prefix)


def _leave_one_out(found: stats.LeaveOneOut | Undefined) -> Figures:
    if isinstance(found, Undefined):
        return {"logo_max_p": found, "logo_goal": None}
    return {"logo_max_p": found.p, "logo_goal": found.goal}


def _dropped(dropped: Iterable[stats.Dropped]) -> Figures:
    return {"dropped": {item.reason: item.count for item in dropped}}
