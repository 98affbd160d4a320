"""Claims that can be measured here: of the benchmark's data, its recordings, the compiler."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from claims import REPRODUCED, Claim, hosted

from sopilot.lab.bench import DOMAINS, shared_upstream
from sopilot.lab.bench.baselines import recompute, subset_size
from sopilot.lab.bench.defects import replay_goals
from sopilot.lab.bench.screen import SCREENED_GOALS, SCREENS
from sopilot.lab.bench.source import load_tasks

EVIDENCE = Path(__file__).resolve().parents[2] / "evidence"
OTHER_COPY = (
    "the recordings of this copy lack some configurations, and the study says not which it counted"
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
    yield from _recordings()
    yield from _compiler()
    yield from _proofs()


def _data() -> Iterator[Claim]:
    def claim(what: str, paper: str, ours: Any, command: str = "sopilot bench reach") -> Claim:
        return Claim("sec:setup", what, paper, ours, command, REPRODUCED, needs_checkout=True)

    yield claim("tasks / goals", "830 / 70", lambda: f"{len(_tasks())} / {_goals()}")
    yield claim(
        "tasks by domain (Bank, DMV, Healthcare, Hotel, Library, Market, University)",
        "134/97/124/195/66/172/42",
        lambda: "/".join(str(len(_of_domain(domain))) for domain in DOMAINS),
    )
    yield claim(
        "Bank, screened: execute / refusal", "39 / 86", lambda: _classes("bank"),
        "sopilot bench baselines",
    )  # fmt: skip
    for screen, paper in (("paper", "819"), ("paper-bank", "821")):
        yield claim(
            f"tasks left by the screen `{screen}`", paper, lambda screen=screen: _left(screen),
            f"sopilot bench run --screen {screen}",
        )  # fmt: skip


def _recordings() -> Iterator[Claim]:
    for label, model, mode, tools, paper in (
        ("o4-mini-high (FC)", "o4-mini-high", "fc", "full", "82.4, 90.7"),
        ("GPT-4o (FC)", "gpt-4o", "fc", "oracle", "82.4, 84.9"),
        ("Qwen2.5-32B (ReAct)", "qwen2.5-32b-instruct", "react", "oracle", "82.4, 90.7"),
    ):
        yield Claim(
            f"tab:official, {label}", f"pass and refusal %, its {tools} tool list", paper,
            lambda model=model, mode=mode, tools=tools: _baseline(model, mode, tools),
            "sopilot bench baselines", needs_checkout=True,
        )  # fmt: skip
    yield hosted(
        "tab:official, Qwen2.5-7B (FC)", "official leaderboard score on the full set", "5.2"
    )
    for name, (passes, classification) in GOALS.items():
        where = f"tab:defects, {name}"
        yield Claim(
            where, "recorded passes of execute runs", passes,
            lambda name=name: _defect(name)["passes"], "sopilot bench screen",
            because=OTHER_COPY, needs_checkout=True,
        )  # fmt: skip
        yield Claim(
            where, "classification by replay", classification,
            lambda name=name: _defect(name)["classification"], "sopilot bench defects", REPRODUCED,
            needs_checkout=True,
        )  # fmt: skip


def _compiler() -> Iterator[Claim]:
    own = "it is another compiler"
    for what, paper, ours, because in (
        ("Compiler source lines (nonblank/noncomment)", "1,118 (978)", _lines("Compiler"), own),
        ("Factorial/language emitters", "432 (372)", _lines("Emitters"), own),
        ("Production-loader validator", "112 (94)", _lines("Program:"),
         "ours checks meaning, not only form, and the count holds codec and printer too"),
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
            ours, "sopilot bench report", REPRODUCED, because, needs_checkout=True,
        )  # fmt: skip
    yield Claim(
        "app:mechanism", "leaf correspondences, no mismatch", "834",
        lambda: str(_kept("official-wording")["correspondences"]["by_the_study"]),
        "sopilot bench wording", REPRODUCED,
        "the study names no rule; by the reading that comes closest it is "
        "six fewer, because guards are hoisted differently; by ours every sentence of every text "
        "is compared",
    )  # fmt: skip
    yield Claim(
        "sec:soft", "830 programs compile in", "~0.1 s",
        lambda: f"{_kept('compile-speed')['sopbench']['official']['total_seconds']:.2f} s",
        "python benchmarks/evidence.py compile-speed", REPRODUCED,
        "it is this machine, with rendering; compiling alone takes "
        "what evidence/compile-speed.json says under compile_seconds",
    )  # fmt: skip


def _proofs() -> Iterator[Claim]:
    yield Claim(
        "prop. 1", "compiled meaning is the SOP's: differences on random cases", "0",
        lambda: str(_kept("proposition-1")["differences"]),
        "python benchmarks/evidence.py proposition-1", REPRODUCED,
    )  # fmt: skip
    yield Claim(
        "prop. 2", "violations that the trace does not show, and false alarms", "0, 0",
        lambda: f"{_kept('labelled-traces')['false_negatives']}, "
        f"{_kept('labelled-traces')['false_positives']}",
        "python benchmarks/evidence.py labelled-traces", REPRODUCED,
    )  # fmt: skip
    yield Claim(
        "app:formal", "programs that the loader accepts", "830/830",
        lambda: f"{_kept('compile-speed')['sopbench']['programs']}/{len(_tasks())}",
        "sopilot compile sopbench:all", REPRODUCED, needs_checkout=True,
    )  # fmt: skip


# --- how each is found out ------------------------------------------------------------


@cache
def _kept(name: str) -> Any:
    return json.loads((EVIDENCE / f"{name}.json").read_text("utf-8"))


@cache
def _tasks() -> Any:
    return load_tasks("sopbench:all", upstream=shared_upstream())


def _of_domain(domain: str) -> list[Any]:
    return [task for task in _tasks() if task.domain == domain]


def _goals() -> int:
    return len({(task.domain, task.goal) for task in _tasks()})


def _stays(screen: str) -> list[tuple[Any, bool]]:
    upstream = shared_upstream()
    found = [
        (task.reference, upstream.scoring(task.domain)[task.goal][task.index]) for task in _tasks()
    ]
    return [(task, should) for task, should in found if SCREENS[screen](task, should)]


def _left(screen: str) -> str:
    return str(len(_stays(screen)))


def _classes(domain: str) -> str:
    kinds = [should for task, should in _stays("paper") if task.domain == domain]
    return f"{sum(kinds)} / {len(kinds) - sum(kinds)}"


def _baseline(model: str, mode: str, tools: str) -> str:
    upstream, screen = shared_upstream(), SCREENS["paper"]
    size = subset_size(upstream.scoring("bank"), "bank", screen)
    for row in recompute(upstream.checkout, "bank", screen, subset_size=size):
        if (row.model, row.mode, row.tools) == (model, mode, tools) and row.complete:
            return f"{100 * (row.pass_rate or 0):.1f}, {100 * (row.refusal_rate or 0):.1f}"
    return "not in this copy"


@cache
def _defects() -> Any:
    return {each.goal: each for each in replay_goals(shared_upstream(), list(SCREENED_GOALS))}


def _defect(name: str) -> dict[str, str]:
    found = _defects()[name.split()[1]]
    return {
        "passes": f"{found.passes}/{found.runs}",
        "classification": found.classification,
    }


@cache
def _effort_rows() -> dict[str, str]:
    from sopilot.lab.bench.report._compiler_effort import compiler_effort

    return dict(compiler_effort(shared_upstream()).rows)  # type: ignore[arg-type]


def _effort(begins: str) -> Any:
    return lambda: next(v for k, v in _effort_rows().items() if k.startswith(begins))


def _lines(begins: str) -> Any:
    return _effort(begins)
