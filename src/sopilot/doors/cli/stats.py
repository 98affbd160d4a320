"""`sopilot stats`: the tests on counts or on result files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from sopilot.doors.cli.figures import show
from sopilot.doors.cli.outcome_files import rows_of
from sopilot.lab import stats
from sopilot.lab.stats import Discordance, Interval, Outcome, Undefined
from sopilot.lab.stats.accuracy import Rate
from sopilot.lab.stats.bootstrap import DRAWS as RESAMPLES
from sopilot.lab.stats.outcome import groups
from sopilot.lab.stats.sign_flip import DRAWS
from sopilot.language.diagnostics import UserMistake

JSON_FLAG = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
CONFIDENCE = click.option("--confidence", type=float, default=0.95, show_default=True)
SEEDED = click.option("--seed", type=int, default=stats.SEED, show_default=True)
RESAMPLED = click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=RESAMPLES,
    show_default=True,
    help="Bootstrap draws of the clustered interval.",
)
ARMS = click.option(
    "--arms",
    nargs=2,
    metavar="FIRST SECOND",
    help="The arms to compare; needed unless the file holds exactly two.",
)
RUN = click.option("--run", type=click.IntRange(min=0), help="Use this repetition alone.")
COUNT = click.IntRange(min=0)
FILE = click.Path(exists=True, path_type=Path)
FILES = click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")


@click.group()
def command() -> None:
    """Exact paired tests, clustered permutation, intervals.

    A FILE is JSON Lines or JSON, a folder of `bench run`, an Inspect log (.eval; ours or
    another's) or a folder of them. A row has `task`, `goal`, `kind` (execute or refuse),
    `passed`, and optionally `arm`, `model`, `domain`, `cluster`, `run`, `post_goal_calls`;
    an Inspect log gives them by its samples' metadata. A figure that does not exist is
    said to be undefined.
    """


@command.command()
@click.argument("wins", type=COUNT)
@click.argument("losses", type=COUNT)
@JSON_FLAG
def mcnemar(wins: int, losses: int, as_json: bool) -> None:
    """Exact two-sided McNemar test on WINS and LOSSES."""
    show({"wins": wins, "losses": losses, "p": stats.mcnemar(wins, losses)}, as_json)


@command.command()
@click.argument("parts", nargs=-1, required=True, metavar="W:L...")
@JSON_FLAG
def sign(parts: Sequence[str], as_json: bool) -> None:
    """Exact sign test on pooled W:L counts that share no task."""
    counts = [_discordance(part) for part in parts]
    whole = stats.pool(counts)
    show({"wins": whole.wins, "losses": whole.losses, "p": stats.sign_test(counts)}, as_json)


@command.command("clopper-pearson")
@click.argument("passed", type=COUNT)
@click.argument("trials", type=COUNT)
@CONFIDENCE
@JSON_FLAG
def clopper_pearson(passed: int, trials: int, confidence: float, as_json: bool) -> None:
    """Exact interval for PASSED of TRIALS, and Wilson's beside it."""
    exact = stats.clopper_pearson(passed, trials, confidence)
    score = stats.wilson(passed, trials, confidence)
    report: dict[str, Any] = {"passed": passed, "trials": trials, "confidence": confidence}
    report["rate"] = Rate(passed, trials).share
    report |= _bounds(exact) | _bounds(score, "wilson_")
    show(report, as_json)


@command.command()
@click.argument("p_values", nargs=-1, required=True, type=float, metavar="P...")
@click.option("--q", type=float, default=0.05, show_default=True, help="False discovery rate.")
@JSON_FLAG
def bh(p_values: Sequence[float], q: float, as_json: bool) -> None:
    """Benjamini–Hochberg over several p-values."""
    rows = stats.benjamini_hochberg(p_values, q)
    contrasts = [{"p": row.p, "adjusted": row.adjusted, "rejected": row.rejected} for row in rows]
    show({"q": q, "rejected": sum(row.rejected for row in rows), "contrasts": contrasts}, as_json)


@command.command()
@FILES
@ARMS
@RUN
@click.option("--monte-carlo", is_flag=True, help="Sample the sign flips instead of counting all.")
@click.option("--draws", type=click.IntRange(min=1), default=DRAWS, show_default=True)
@SEEDED
@JSON_FLAG
def clustered(
    files: Sequence[Path],
    arms: tuple[str, str] | None,
    run: int | None,
    monte_carlo: bool,
    draws: int,
    seed: int,
    as_json: bool,
) -> None:
    """Goal-clustered sign-flip test on FILE...

    They hold outcomes of two arms, or rows of `goal`, `wins`, `losses`.
    """
    rows = rows_of(files)
    dropped: tuple[stats.Dropped, ...] = ()
    if "wins" in rows[0][1]:
        by_goal = stats.discordances_from(rows)
    else:
        pairs = stats.pair(*_two_arms(_of_run(stats.outcomes_from(rows), run), arms))
        by_goal, dropped = pairs.by_cluster(), pairs.dropped
    whole = stats.pool(by_goal.values())
    flips = stats.goal_clustered(by_goal, exact=not monte_carlo, draws=draws, seed=seed)
    report: dict[str, Any] = {"wins": whole.wins, "losses": whole.losses}
    report["p_task"] = stats.mcnemar(whole.wins, whole.losses)
    report |= {"goals": len(by_goal), "goals_with_net": flips.units, "p_goal": flips.p}
    report["draws"] = "exact" if flips.draws is None else flips.draws
    report |= _leave_one_out(stats.leave_one_goal_out(by_goal)) | _dropped(dropped)
    show(report, as_json)


@command.command()
@FILES
@ARMS
@RUN
@JSON_FLAG
def joint(
    files: Sequence[Path], arms: tuple[str, str] | None, run: int | None, as_json: bool
) -> None:
    """Task-joint sign-flip test: models that share tasks flip together."""
    pairs = stats.pair(*_two_arms(_of_run(_outcomes(files), run), arms))
    flips = stats.task_joint(pairs)
    whole = pairs.discordance
    report: dict[str, Any] = {"models": len({item.model for item in pairs.pairs})}
    report |= {"pairs": len(pairs), "wins": whole.wins, "losses": whole.losses}
    report |= {"tasks_with_net": flips.units, "p_joint": flips.p} | _dropped(pairs.dropped)
    show(report, as_json)


@command.command()
@click.argument("file_a", type=FILE)
@click.argument("file_b", type=FILE)
@RUN
@CONFIDENCE
@RESAMPLED
@SEEDED
@JSON_FLAG
def pairs(
    file_a: Path,
    file_b: Path,
    run: int | None,
    confidence: float,
    draws: int,
    seed: int,
    as_json: bool,
) -> None:
    """FILE_A against FILE_B on their common tasks; a win is a pass of FILE_A alone."""
    sides = [_of_run(_outcomes([file]), run) for file in (file_a, file_b)]
    for file, side in zip((file_a, file_b), sides, strict=True):
        arms = sorted({outcome.arm for outcome in side})
        if len(arms) > 1:
            raise UserMistake(f"`{file}` holds several arms ({', '.join(arms)}): one file an arm")
    found = stats.compare(stats.pair(*sides), confidence=confidence, draws=draws, seed=seed)
    report: dict[str, Any] = {
        "pairs": found.pairs,
        "passed_a": found.first_passed,
        "passed_b": found.second_passed,
        "wins": found.discordance.wins,
        "losses": found.discordance.losses,
        "p": found.p,
    }
    if found.joint is not None:
        report |= {"models": found.models, "p_joint": found.joint.p}
    report |= {"goals": found.goals, "p_goal": found.clustered.p}
    report |= _leave_one_out(found.leave_one_out)
    report |= {"difference": found.difference, "confidence": confidence} | _bounds(found.interval)
    report |= _resampled(found.clustered_interval, "goal_") | _dropped(found.dropped)
    show(report, as_json)


@command.command()
@FILES
@JSON_FLAG
def accuracy(files: Sequence[Path], as_json: bool) -> None:
    """Pass rates by kind and their balanced mean, for each model and arm."""
    rows = []
    for (model, arm), outcomes in groups(_outcomes(files)).items():
        found = stats.accuracy(outcomes)
        row: dict[str, Any] = {"model": model, "arm": arm, "judged": found.all.judged}
        row |= {"pass": found.all.share, "execute": found.execute.share}
        row |= {"refuse": found.refuse.share, "balanced": found.balanced}
        rows.append(row | {"unjudged": found.unjudged})
    show({"groups": rows}, as_json)


@command.command("pass-k")
@FILES
@click.option("-k", type=click.IntRange(min=1), default=1, show_default=True)
@JSON_FLAG
def pass_k(files: Sequence[Path], k: int, as_json: bool) -> None:
    """pass@k, pass^k and the spread between runs, for each model and arm."""
    rows = []
    for (model, arm), outcomes in groups(_outcomes(files)).items():
        found, spread = stats.pass_k(outcomes, k), stats.run_to_run(outcomes)
        row: dict[str, Any] = {"model": model, "arm": arm, "k": k, "tasks": found.tasks}
        row |= {"short": found.short, "pass_at_k": found.at, "pass_hat_k": found.every}
        row |= {"runs": len(spread.rates), "mean": spread.mean, "variance": spread.variance}
        rows.append(row | {"unstable": spread.unstable})
    show({"groups": rows}, as_json)


@command.command()
@click.option("--tasks", type=click.IntRange(min=1), help="Find the smallest visible effect.")
@click.option("--effect", type=float, help="Find the number of tasks this effect needs.")
@click.option("--discordance", type=float, required=True, help="Share of discordant pairs.")
@click.option("--alpha", type=float, default=0.05, show_default=True)
@click.option("--power", type=float, default=0.8, show_default=True)
@JSON_FLAG
def mde(
    tasks: int | None,
    effect: float | None,
    discordance: float,
    alpha: float,
    power: float,
    as_json: bool,
) -> None:
    """What a paired design can see: minimum detectable effect, or tasks needed."""
    report: dict[str, Any] = {"discordance": discordance, "alpha": alpha, "power": power}
    if tasks is not None and effect is not None:
        got = stats.mcnemar_power(tasks, discordance=discordance, effect=effect, alpha=alpha)
        report |= {"tasks": tasks, "effect": effect, "power": got}
    elif tasks is not None:
        report["tasks"] = tasks
        report["minimum_detectable_effect"] = stats.minimum_detectable_effect(
            tasks, discordance=discordance, alpha=alpha, power=power
        )
    elif effect is not None:
        report["effect"] = effect
        report["tasks_needed"] = stats.tasks_needed(
            discordance=discordance, effect=effect, alpha=alpha, power=power
        )
    else:
        raise click.UsageError("give --tasks, --effect, or both for the power they have together")
    show(report, as_json)


@command.command()
@FILES
@ARMS
@CONFIDENCE
@RESAMPLED
@SEEDED
@JSON_FLAG
def r2(
    files: Sequence[Path],
    arms: tuple[str, str] | None,
    confidence: float,
    draws: int,
    seed: int,
    as_json: bool,
) -> None:
    """Mean calls after the goal succeeded, for each model: first arm minus second."""
    first, second = _two_arms(_outcomes(files), arms)
    rows = []
    for model in dict.fromkeys(outcome.model for outcome in (*first, *second)):
        sides = [[one for one in side if one.model == model] for side in (first, second)]
        found = stats.post_goal(*sides, confidence=confidence, draws=draws, seed=seed)
        row: dict[str, Any] = {"model": model}
        row |= {"first": found.first, "first_runs": found.first_runs}
        row |= {"second": found.second, "second_runs": found.second_runs, "delta": found.delta}
        rows.append(row | _resampled(found.interval))
    show({"confidence": confidence, "groups": rows}, as_json)


def _outcomes(files: Sequence[Path]) -> tuple[Outcome, ...]:
    return stats.outcomes_from(rows_of(files))


def _of_run(outcomes: tuple[Outcome, ...], run: int | None) -> tuple[Outcome, ...]:
    if run is None:
        return outcomes
    kept = tuple(outcome for outcome in outcomes if outcome.run == run)
    if not kept:
        raise UserMistake(f"no outcome of run `{run}`")
    return kept


def _two_arms(
    outcomes: Iterable[Outcome], arms: tuple[str, str] | None
) -> tuple[list[Outcome], list[Outcome]]:
    by_arm: dict[str, list[Outcome]] = {}
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


def _discordance(part: str) -> Discordance:
    wins, colon, losses = part.partition(":")
    if not colon or not (wins.isdecimal() and losses.isdecimal()):
        raise click.BadParameter(f"`{part}` is not W:L, as in 9:1", param_hint="W:L")
    return Discordance(int(wins), int(losses))


def _bounds(interval: Interval | Undefined, prefix: str = "") -> dict[str, Any]:
    low = interval if isinstance(interval, Undefined) else interval.low
    high = interval if isinstance(interval, Undefined) else interval.high
    return {f"{prefix}low": low, f"{prefix}high": high}


def _resampled(found: stats.BootstrapInterval | Undefined, prefix: str = "") -> dict[str, Any]:
    return _bounds(found if isinstance(found, Undefined) else found.interval, prefix)


def _leave_one_out(found: stats.LeaveOneOut | Undefined) -> dict[str, Any]:
    if isinstance(found, Undefined):
        return {"logo_max_p": found, "logo_goal": None}
    return {"logo_max_p": found.p, "logo_goal": found.goal}


def _dropped(dropped: Iterable[stats.Dropped]) -> dict[str, Any]:
    return {"dropped": {item.reason: item.count for item in dropped}}
