"""Claims that can be measured here: of the benchmark's data, its recordings, the compiler."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from claims import BENCHMARKS, REPRODUCED, Claim, figures_of

from sopilot.agent.budgets import DEEP_BUDGETS, Budgets
from sopilot.compiler.factoring import LEAF_BUDGET
from sopilot.program.model import Program
from sopilot.views.frame import render_function
from sopilot.views.step_tool import step_tool
from sopilot_lab.sopbench.defects import replay_goals
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.recorded import (
    SCREENED_GOALS,
    SCREENS,
    Baseline,
    leaderboard,
    recompute,
)
from sopilot_lab.sopbench.reference import DOMAINS
from sopilot_lab.sopbench.source import load_tasks
from sopilot_lab.sopbench.wording import check_official
from sopilot_lab.statistics.clustered import DRAWS
from sopilot_lab.statistics.intervals import SEED

RANDOM_CASES = 400
"""Enough to see that a proposition is checked; its campaign has hundreds of times as many."""
OTHER_COPY = (
    "the recordings of this copy lack some configurations, and the study doesn't say which it "
    "counted"
)
GOALS = {
    "Bank cancel_credit_card": ("0/300", "confirmed defect"),
    "Bank pay_bill_with_credit_card": ("0/100", "confirmed defect"),
    "Bank open_account": ("8/50", "reachable"),
    "Library add_book": ("0/48", "reachable"),
    "DMV update_test_status": ("0/49", "reachable"),
}


def measured_claims() -> Iterator[Claim]:
    yield from _data()
    yield from _design()
    yield from _recordings()
    yield from _compiler()
    yield from _proofs()


def _data() -> Iterator[Claim]:
    def claim(what: str, paper: str, ours: Any, command: str = "", where: str = "sec:setup",
              because: str = "") -> Claim:  # fmt: skip
        return Claim(where, what, paper, ours, command, REPRODUCED, because, needs_checkout=True)

    yield claim("tasks / goals", "830 / 70", lambda: f"{len(_tasks())} / {_goals(*DOMAINS)}",
                "sopilot compile sopbench:all")  # fmt: skip
    yield claim(
        "tasks by domain (Bank, DMV, Healthcare, Hotel, Library, Market, University)",
        "134/97/124/195/66/172/42",
        lambda: "/".join(str(len(_of_domain(domain))) for domain in DOMAINS),
    )
    yield claim("Bank: tasks / goals", "134 / 14",
                lambda: f"{len(_of_domain('bank'))} / {_goals('bank')}")  # fmt: skip
    yield claim(
        "execute tasks that the screen leaves out: Bank / Library / DMV", "9 / 1 / 1",
        lambda: " / ".join(str(len(_of_domain(each)) - sum(map(int, _classes(each).split(" / "))))
                           for each in ("bank", "library", "dmv")),
    )  # fmt: skip
    yield claim("Bank, screened: execute / refusal", "39 / 86", lambda: _classes("bank"))
    yield claim("three-arm common set: execute / refusal", "277 / 542",
                lambda: _classes(*DOMAINS), where="tab:fullcursor, All")  # fmt: skip
    yield claim("Hotel: execute / refusal, from 96.0, 87.3 and 7.3 of 195 tasks", "69 / 126",
                lambda: _classes("hotel"), where="sec:hotel")  # fmt: skip
    for screen, paper in (("paper", "819"), ("paper-bank", "821")):
        yield claim(f"tasks left by the screen `{screen}`", paper,
                    lambda screen=screen: str(len(_stays(screen))))  # fmt: skip
    yield claim(
        "SOPBench's commit", "b30bb29c3438", lambda: shared_upstream().checkout.commit[:12],
        where="app:artifact",
        because="the study's commit is in no public copy that we know; the counts of tasks, goals "
        "and recipes agree",
    )  # fmt: skip


def _design() -> Iterator[Claim]:
    def claim(where: str, what: str, paper: str, ours: Any, command: str = "") -> Claim:
        return Claim(where, what, paper, ours, command, REPRODUCED)

    plan = "sopilot lab study new paper.yaml"
    yield claim(
        "sec:setup", "agent turns, refresh window, seconds, domain calls, user turns",
        "150, 50, 900, 30, 3", lambda: _budgets(Budgets()),
    )  # fmt: skip
    yield claim(
        "sec:setup", "deep domains: seconds, user turns", "1800, 5",
        lambda: f"{DEEP_BUDGETS.wall_seconds:g}, {DEEP_BUDGETS.user_turns}",
    )  # fmt: skip
    yield claim(
        "app:protocol", "temperature, context tokens, request seconds", "0, 128000, 600",
        lambda: ", ".join(str(_preset()["budgets"][name]) for name in
                          ("temperature", "context_tokens", "request_seconds")), plan,
    )  # fmt: skip
    yield claim(
        "app:protocol", "assistant endpoints",
        "deepseek-v4-flash, qwen3.7-plus, qwen3.6-35b-a3b, qwen3.6-27b, qwen-2.5-7b-instruct, "
        "gpt-4o-mini",
        lambda: ", ".join(each["model"].rpartition("/")[2] for each in _preset()["models"]), plan,
    )  # fmt: skip
    yield claim(
        "sec:setup", "user simulator", "deepseek-v4-flash",
        lambda: _preset()["user"]["model"].rpartition("/")[2], plan,
    )  # fmt: skip
    yield claim("app:protocol", "sign flips sampled, seed", "20000, 27",
                lambda: f"{DRAWS}, {SEED}")  # fmt: skip
    yield claim(
        "sec:runtime", "operations of the bookkeeping tool", "7",
        lambda: str(len(step_tool(paper=True).parameters["properties"]["operation"]["enum"])),
    )  # fmt: skip
    yield claim("app:engineering", "leaf budget of a frame", "7", lambda: str(LEAF_BUDGET))
    yield claim("app:industrial", "functions and labelled steps; ours is `examples/quotation`, "
                "written to the same size", "13, 87", _industrial)  # fmt: skip


def _recordings() -> Iterator[Claim]:
    for label, model, mode, tools, paper in (
        ("o4-mini-high (FC)", "o4-mini-high", "fc", "full", "82.4, 90.7"),
        ("GPT-4o (FC)", "gpt-4o", "fc", "oracle", "82.4, 84.9"),
        ("Qwen2.5-32B (ReAct)", "qwen2.5-32b-instruct", "react", "oracle", "82.4, 90.7"),
    ):
        yield Claim(
            f"tab:official, {label}", f"pass and refusal %, its {tools} tool list", paper,
            lambda model=model, mode=mode, tools=tools: _baseline(model, mode, tools),
            "sopilot lab sopbench check baselines", needs_checkout=True,
        )  # fmt: skip
    yield Claim(
        "tab:official, best", "best pass and best refusal % of any configuration", "82.4, 90.7",
        _best_baseline, "sopilot lab sopbench check baselines", needs_checkout=True,
    )  # fmt: skip
    yield Claim(
        "tab:official, the remaining fifteen", "range of pass %", "70.4–80.8", _other_baselines,
        "sopilot lab sopbench check baselines",
        because="the study doesn't name the fifteen, and this copy's recordings hold only eight "
        "configurations between the tied-top three and 70.4; none is at 70.4 itself",
        needs_checkout=True,
    )  # fmt: skip
    seven = "tab:official, Qwen2.5-7B (FC)"
    yield Claim(
        seven, "official leaderboard score, Bank, all 134 tasks; the leaderboard calls it ReAct",
        "5.2", lambda: f"{_leaderboard_7b():.1f}",
        "sopilot lab sopbench check baselines --leaderboard",
        REPRODUCED, needs_checkout=True,
    )  # fmt: skip
    yield Claim(
        "sec:p1", "that score rescaled to the screened 125", "5.6",
        lambda: f"{100 * round(134 * _leaderboard_7b() / 100) / 125:.1f}", "", REPRODUCED,
        needs_checkout=True,
    )  # fmt: skip
    for name, (passes, classification) in GOALS.items():
        where = f"tab:defects, {name}"
        yield Claim(
            where, "recorded passes of execute runs", passes,
            lambda name=name: _defect(name)["passes"], "sopilot lab sopbench check screen",
            because=OTHER_COPY, needs_checkout=True,
        )  # fmt: skip
        yield Claim(
            where, "classification by replay", classification,
            lambda name=name: _defect(name)["classification"],
            "sopilot lab sopbench check defects", REPRODUCED,
            needs_checkout=True,
        )  # fmt: skip


def _compiler() -> Iterator[Claim]:
    own = "it is another compiler"
    for what, paper, ours, because in (
        ("Compiler source lines (nonblank/noncomment)", "1,118 (978)", _effort("Compiler"), own),
        ("Factorial/language emitters", "432 (372)", _effort("Emitters"), own),
        ("Production-loader validator", "112 (94)", _effort("Program:"),
         "ours checks meaning, not only form, and the count includes the codec and the printer"),
        ("Goal-specific hand mappings", "0", _effort("Goals named"), ""),
        ("Hand-written stateful predicate templates", "2", lambda: _effort("Stateful gates")()[0],
         ""),
        ("Generated artifacts / unique goal entries", "830 / 70", _effort("Programs / goals"), ""),
        ("Unique rule-function identifiers", "165", _effort("Rules"),
         "we count predicates by domain and cannot see how the study named its functions"),
        ("Functions per artifact, median / maximum", "7 / 21", _effort("Functions"),
         "our factoring differs"),
        ("Artifacts using a missing-recipe fallback", "0", _effort("Programs with a missing"),
         ""),
        ("serialized length, median (range)", "7,970 (1,500–26,604)", _effort("Characters"),
         "it is another format"),
        ("recipes in the data", "17/17/19/32/17/24/37", _effort("Recipes"), ""),
    ):  # fmt: skip
        yield Claim(
            f"tab:compiler-audit, {what}" if what[0].isupper() else "app:engineering", what, paper,
            ours, "", REPRODUCED, because, needs_checkout=True,
        )  # fmt: skip
    for where, what, paper, ours, because in (
        ("sec:hotel", "functions of the largest Hotel program", "14",
         lambda: str(max(len(each.functions) for each in _programs("hotel"))),
         "our factoring differs"),
        ("sec:compiler", "mean frame on Bank, characters", "~570",
         lambda: f"{_mean_frame('bank'):.0f}", "our sentences are shorter"),
        ("sec:intro", "resident official text on Bank, mean characters", "~10^4", _official_length,
         "the study rounds to a power of ten"),
        ("app:formal", "programs that the loader accepts", "830/830",
         lambda: f"{len(_programs(*DOMAINS))}/{len(_tasks())}", ""),
    ):  # fmt: skip
        command = "sopilot compile sopbench:all" if "frame" in what or "loader" in what else ""
        yield Claim(where, what, paper, ours, command, REPRODUCED, because, needs_checkout=True)
    yield Claim(
        "app:mechanism", "leaf correspondences, no mismatch", "834", _correspondences,
        "sopilot lab sopbench check wording", REPRODUCED,
        "the study names no rule; by the reading that comes closest it is "
        "six fewer, because guards are hoisted differently; by ours every sentence of every text "
        "is compared", needs_checkout=True,
    )  # fmt: skip
    yield Claim(
        "sec:soft", "830 programs compile in", "~0.1 s", _compile_seconds,
        "python benchmarks/compile_speed.py", REPRODUCED,
        "it was measured on our machine under load, rendering included", needs_checkout=True,
    )  # fmt: skip


def _proofs() -> Iterator[Claim]:
    what = "compiled meaning is the SOP's: differences"
    yield Claim("prop. 1", f"{what} in {RANDOM_CASES} random handbooks and every tree of 2 leaves",
                "0", _proposition_1, "python benchmarks/proposition_1.py --cases 400",
                REPRODUCED)  # fmt: skip
    for where, text, paper, campaign, names in (
        ("prop. 1", f"{what} in the campaign `evidence/compile.json`", "0",
         "compile/proposition-1", ("differences",)),
        ("prop. 2", "violations that the trace doesn't show, and false alarms, in the campaign "
         "`evidence/audit.json`", "0, 0", "audit/labelled-traces",
         ("false_negatives", "false_positives")),
    ):  # fmt: skip
        yield Claim(
            where, text, paper,
            lambda campaign=campaign, names=names: ", ".join(
                str(figures_of(campaign)[name]) for name in names
            ),
            f"python benchmarks/evidence.py {campaign}", REPRODUCED, evidence=campaign,
        )  # fmt: skip


# --- how each is found out ------------------------------------------------------------


@cache
def _tasks() -> Any:
    return load_tasks("sopbench:all", upstream=shared_upstream())


def _of_domain(domain: str) -> list[Any]:
    return [task for task in _tasks() if task.domain == domain]


def _goals(*domains: str) -> int:
    return len({(task.domain, task.goal) for task in _tasks() if task.domain in domains})


def _stays(screen: str) -> list[tuple[Any, bool]]:
    upstream = shared_upstream()
    claims = [
        (task.reference, upstream.scoring(task.domain)[task.goal][task.index]) for task in _tasks()
    ]
    return [(task, should) for task, should in claims if SCREENS[screen](task, should)]


def _classes(*domains: str) -> str:
    kinds = [should for task, should in _stays("paper") if task.domain in domains]
    return f"{sum(kinds)} / {len(kinds) - sum(kinds)}"


@cache
def _baselines() -> list[Baseline]:
    """The configurations with a verdict of every task, best first."""
    rows = recompute(shared_upstream(), "bank", SCREENS["paper"])
    return [row for row in rows if row.complete]


def _baseline(model: str, mode: str, tools: str) -> str:
    for row in _baselines():
        if (row.model, row.mode, row.tools) == (model, mode, tools):
            return f"{100 * (row.pass_rate or 0):.1f}, {100 * (row.refusal_rate or 0):.1f}"
    return "not in this copy"


def _best_baseline() -> str:
    rates = [(row.pass_rate or 0.0, row.refusal_rate or 0.0) for row in _baselines()]
    return ", ".join(f"{100 * max(column):.1f}" for column in zip(*rates, strict=True))


def _other_baselines() -> str:
    rates = [round(100 * (row.pass_rate or 0), 1) for row in _baselines()]
    within = [rate for rate in rates if 70.4 <= rate <= 80.8]
    return (
        f"{min(within)}–{max(within)} ({len(within)} configurations; "
        f"{sum(rate < 70.4 for rate in rates)} more are lower)"
    )


@cache
def _leaderboard_7b() -> float:
    rows = leaderboard(shared_upstream().checkout)
    return next(row["bank"] for model, row in rows.items() if model.startswith("Qwen2.5-7B"))


@cache
def _preset() -> Any:
    import sopilot_lab.experiments.study as study

    return yaml.safe_load((Path(study.__path__[0]) / "paper.yaml").read_text("utf-8"))


def _budgets(budgets: Budgets) -> str:
    return (
        f"{budgets.agent_turns}, {budgets.refresh_actions}, {budgets.wall_seconds:g}, "
        f"{budgets.domain_calls}, {budgets.user_turns}"
    )


def _industrial() -> str:
    path = BENCHMARKS.parent / "examples" / "quotation" / "program.yaml"
    functions = yaml.safe_load(path.read_text("utf-8"))["functions"]
    bodies = functions.values() if isinstance(functions, dict) else functions
    return f"{len(functions)}, {sum(len(each['steps']) for each in bodies)}"


@cache
def _programs(*domains: str) -> list[Program]:
    shelf = ProgramShelf("official", shared_upstream())
    return [shelf.program(task).program for task in _tasks() if task.domain in domains]


def _mean_frame(domain: str) -> float:
    return statistics.fmean(
        len(render_function(function, program))
        for program in _programs(domain)
        for function in program.functions.values()
    )


def _official_length() -> str:
    upstream = shared_upstream()
    texts = [
        upstream.official_text(task.domain, task.goal, task.index).system
        for task in _of_domain("bank")
    ]
    return f"{statistics.fmean(map(len, texts)):,.0f}"


def _correspondences() -> str:
    report = check_official([task.reference for task in _tasks()], "official", shared_upstream())
    return str(report.as_json()["correspondences"]["by_the_study"])


def _compile_seconds() -> str:
    from compile_speed import measure_sopbench

    return f"{measure_sopbench(3)['official']['total_seconds']:.2f} s"


def _proposition_1() -> str:
    from proposition_1 import measure

    return str(measure(RANDOM_CASES)["differences"])


@cache
def _defects() -> Any:
    return {each["goal"]: each for each in replay_goals(shared_upstream(), list(SCREENED_GOALS))}


def _defect(name: str) -> dict[str, str]:
    replay = _defects()[name.split()[1]]
    return {
        "passes": f"{replay['passes']}/{replay['runs']}",
        "classification": replay["classification"],
    }


@cache
def _effort_rows() -> dict[str, str]:
    from sopilot_lab.experiments.report.tables import compiler_effort

    return dict(compiler_effort(shared_upstream()).rows)  # type: ignore[arg-type]


def _effort(begins: str) -> Any:
    return lambda: next(v for k, v in _effort_rows().items() if k.startswith(begins))
