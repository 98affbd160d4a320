"""Claims that follow from figures the study prints: nothing but arithmetic and exact tests."""

from __future__ import annotations

from collections.abc import Iterator
from math import log10
from pathlib import Path

from claims import Claim, discordant, hosted, not_significant, p_as_printed, private

from sopilot_lab.experiments.outcome_files import rows_of
from sopilot_lab.statistics.clustered import task_joint
from sopilot_lab.statistics.intervals import Interval, clopper_pearson
from sopilot_lab.statistics.paired import benjamini_hochberg, mcnemar, pair
from sopilot_lab.statistics.reading import outcomes_from

# model, pass rates of offtext, flat and pg, flat:off with p, pg:flat with p
MODELS = [
    ("DS-V4-Flash", "70.4", "86.4", "92.8", "26:6", "<.001", "9:1", ".021"),
    ("Q3.7-Plus", "85.6", "85.6", "88.8", "9:9", "1.000", "6:2", ".289"),
    ("Q3.6-A3B", "81.6", "81.6", "84.0", "14:14", "1.000", "12:9", ".664"),
    ("Q3.6-27B", "79.2", "86.4", "85.6", "16:7", ".093", "4:5", "1.000"),
    ("Q2.5-7B", "65.6", "68.8", "54.4", "22:18", ".636", "14:32", ".011"),
    ("GPT-4o-mini", "60.8", "75.2", "48.8", "32:14", ".011", "9:42", "<.001"),
]
FACTORIAL = [
    ("DS-V4-Flash", "70.4", "84.8", "88.0", "26:8", ".003", "27:5", "<.001"),
    ("Q2.5-7B", "65.6", "52.8", "68.0", "10:26", ".011", "21:18", ".749"),
]
MATRIX = {
    "Bank": ("9:1", "6:2", "4:5", "14:32"),
    "Hotel": ("13:7", "26:16", "", ""),
    "Library": ("2:1", "3:4", "9:6", "5:19"),
    "DMV": ("4:1", "5:3", "0:4", "10:43"),
    "Healthcare": ("16:6", "20:3", "18:3", "14:54"),
    "Market": ("14:2", "15:3", "9:11", "15:66"),
    "University": ("0:1", "0:0", "1:1", "1:23"),
}
POOLED = {
    "V4": ("58:19", "<.001"),
    "Plus": ("75:31", "<.001"),
    "27B": ("41:30", ".235"),
    "7B": ("59:237", "<.001"),
}
PLUS = [
    ("Bank", 125, "85.6", "88.8", "6:2", ".289"),
    ("Hotel", 195, "82.1", "87.2", "26:16", ".164"),
    ("Library", 66, "93.9", "92.4", "3:4", "1.000"),
    ("DMV", 97, "92.8", "94.8", "5:3", ".727"),
    ("Healthcare", 124, "78.2", "91.9", "20:3", "<.001"),
    ("Market", 172, "86.0", "93.0", "15:3", ".008"),
    ("University", 42, "95.2", "95.2", "0:0", "1.000"),
    ("Pooled", 821, "85.7", "91.1", "75:31", "<.001"),
]
CURSOR = [
    ("Bank", 125, "89.6", "92.8", "5:1", ".219"),
    ("Hotel", 195, "90.8", "92.3", "11:8", ".648"),
    ("Library", 65, "96.9", "95.4", "0:1", "1.000"),
    ("DMV", 96, "97.9", "97.9", "1:1", "1.000"),
    ("Healthcare", 124, "84.7", "87.9", "7:3", ".344"),
    ("Market", 172, "90.7", "93.6", "10:5", ".302"),
    ("University", 42, "90.5", "92.9", "2:1", "1.000"),
    ("Pooled", 819, "91.0", "92.9", "36:20", ".044"),
]
# model, arm, pass, execute, refusal, balanced, sequence only
BALANCED = [
    ("DS-V4", "flat", "86.4", "71.8", "93.0", "82.4", 0),
    ("DS-V4", "pg", "92.8", "76.9", "100.0", "88.5", 0),
    ("Q3.7-Plus", "flat", "85.6", "61.5", "96.5", "79.0", 0),
    ("Q3.7-Plus", "pg", "88.8", "69.2", "97.7", "83.5", 0),
    ("Q3.6-A3B", "flat", "81.6", "61.5", "90.7", "76.1", 0),
    ("Q3.6-A3B", "pg", "84.0", "71.8", "89.5", "80.7", 1),
    ("Q3.6-27B", "flat", "86.4", "64.1", "96.5", "80.3", 1),
    ("Q3.6-27B", "pg", "85.6", "64.1", "95.3", "79.7", 2),
    ("Q2.5-7B", "flat", "68.8", "46.2", "79.1", "62.6", 1),
    ("Q2.5-7B", "pg", "54.4", "10.3", "74.4", "42.3", 10),
    ("4o-mini", "flat", "75.2", "69.2", "77.9", "73.6", 0),
    ("4o-mini", "pg", "48.8", "23.1", "60.5", "41.8", 19),
]
CLUSTERS = [
    ("V4 Bank", "9:1", ".191", ".125"),
    ("V4 seven-domain", "58:19", ".004", "<.001"),
    ("V4 Bank+Hotel", "22:8", ".134", ".119"),
    ("Plus seven-domain", "75:31", ".004", "<.001"),
    ("27B six-domain", "41:30", ".333", ".519"),
    ("7B six-domain", "59:237", "≤.0001", "<.001"),
    ("GPT-4o-mini Bank", "9:42", ".028", ".001"),
    ("Plus Bank", "6:2", ".499", ".688"),
]
SEVEN_B = [
    ("All", 125, "68.8", "74.4", "55.2", "54.4"),
    ("Execute", 39, "46.2", "23.1", "12.8", "10.3"),
    ("Refusal", 86, "79.1", "97.7", "74.4", "74.4"),
]
PROBE = "sopilot qualify --model MODEL --from RUNS --json"
AFTER_GOAL = "sopilot lab stats compare OUTCOMES --arms pg-paper flat"
LENS = "sopilot lab lens RUNS --model WEIGHTS --json"
STRONG_PAIR = "benchmarks/study/strong_pair.jsonl"


def printed_claims() -> Iterator[Claim]:
    yield from _models()
    yield from _domains()
    yield from _classes()
    yield from _clustered()
    yield from _in_words()


def _models() -> Iterator[Claim]:
    for name, *rates, off, p_off, pg, p_pg in MODELS:
        where = f"tab:models, {name}"
        yield hosted(where, "offtext/flat/pg, pass %", "/".join(rates))
        yield discordant(where, "flat:offtext", off, p_off)
        # Rounded halves: .0215 is printed as .021 there and as .022 by a rounding half up.
        yield discordant(where, "pg:flat", pg, p_pg)
    for name, *rates, code, p_code, prose, p_prose in FACTORIAL:
        where = f"tab:p1, {name}"
        yield hosted(where, "offtext/off-code/c-prose, pass %", "/".join(rates))
        yield discordant(where, "off-code:offtext", code, p_code)
        yield discordant(where, "c-prose:offtext", prose, p_prose)


def _domains() -> Iterator[Claim]:
    for domain, cells in MATRIX.items():
        shown = " ".join(cell or "–" for cell in cells)
        yield hosted(f"tab:matrix, {domain}", "pg:flat of V4, Plus, 27B, 7B", shown)
    for place, (name, (pairs, p)) in enumerate(POOLED.items()):
        where = f"tab:matrix, pooled {name}"
        yield Claim(where, "sum of the domains", pairs, lambda place=place: _sum(place))
        yield discordant(where, "pooled", pairs, p)
    for table, arms, rows in (
        ("tab:plus-details", "flat/pg", PLUS),
        ("tab:fullcursor-domains", "full-cursor/pg", CURSOR),
    ):
        for domain, n, first, second, pairs, p in rows:
            where = f"{table}, {domain}"
            yield hosted(where, f"n = {n}, {arms}, pass %", f"{first}/{second}")
            yield discordant(where, "wins:losses", pairs, p)
        parts = [n for domain, n, *_ in rows if domain != "Pooled"]
        whole = str(rows[-1][1])
        yield Claim(f"{table}, Pooled", "tasks", whole, lambda parts=parts: str(sum(parts)))


def _sum(place: int) -> str:
    cells = [row[place].split(":") for row in MATRIX.values() if row[place]]
    return ":".join(str(sum(int(cell[side]) for cell in cells)) for side in (0, 1))


def _classes() -> Iterator[Claim]:
    for split, n, *rates in (
        ("All", 819, "88.2", "91.0", "92.9"),
        ("Execute", 277, "91.7", "90.3", "91.0"),
        ("Refusal", 542, "86.3", "91.3", "93.9"),
    ):
        what = f"n = {n}, flat/full-cursor/pg, pass %"
        yield hosted(f"tab:fullcursor, {split}", what, "/".join(rates))
    yield discordant("tab:fullcursor, All", "full-cursor:flat", "57:34", ".021")
    yield discordant("tab:fullcursor, All", "pg:full-cursor", "36:20", ".044")
    for split, n, *rates in SEVEN_B:
        what = f"n = {n}, flat/flat+protocol/full-cursor/pg, pass %"
        yield hosted(f"tab:7b-fullcursor, {split}", what, "/".join(rates))
    yield discordant("tab:7b-fullcursor, All", "pg:full-cursor", "20:21", "1.000")
    for model, arm, passed, execute, refuse, balanced, sequence in BALANCED:
        where = f"tab:balanced, {model} {arm}"
        what = "pass/execute/refusal %, sequence only"
        yield hosted(where, what, f"{passed}/{execute}/{refuse}, {sequence}")
        yield Claim(
            where,
            "balanced, from its classes of 39 and 86",
            balanced,
            lambda execute=execute, refuse=refuse: _balanced(execute, refuse),
        )


def _balanced(execute: str, refuse: str) -> str:
    shares = [round(39 * float(execute) / 100) / 39, round(86 * float(refuse) / 100) / 86]
    return f"{100 * sum(shares) / 2:.1f}"


def _clustered() -> Iterator[Claim]:
    for name, pairs, goal, logo in CLUSTERS:
        what = f"goal-clustered p and leave-one-out p of {pairs}"
        yield hosted(f"tab:goalcluster, {name}", what, f"{goal}, {logo}")
    for arm, tokens, calls, characters in (
        ("offtext", "65,802 [52,503–114,312]; mean 109,553", "7 [6–12]", "16,299"),
        ("flat", "59,051 [43,607–115,755]; mean 85,867", "6 [5–12]", "9,941"),
        ("pg", "160,658 [103,114–225,509]; mean 168,602", "14 [11–17]", "7,711"),
    ):
        what = "prompt tokens, calls, system characters"
        yield hosted(f"tab:tokens, {arm}", what, f"{tokens}; {calls}; {characters}")
    for panel, what, paper, command in (
        ("a", "probe score of four models", "0.91–0.99", PROBE),
        ("a", "probe: localisation", "100 %", PROBE),
        ("b", "ΔR2 of the two harmed models", "+0.37, +0.57", AFTER_GOAL),
        ("b", "ΔR2 of the four unharmed models", "−0.14 to −0.49", AFTER_GOAL),
        ("c", "V4: the frame's share of the context", "2.1 %", LENS),
        ("c", "V4: attention over length share, the frame; flat's program", "1.05; 0.96", LENS),
        ("c", "7B: attention over length share, own and clean", "0.15, 0.87", LENS),
    ):
        yield hosted(f"fig:mech, panel {panel}", what, paper, command)


def _in_words() -> Iterator[Claim]:
    yield from _attribution()
    yield from _threshold()
    yield from _seven_domains()
    yield from _content_and_format()
    yield from _mechanism()
    yield from _around()


def _attribution() -> Iterator[Claim]:
    where = "sec:attribution"
    for what, paper, models in (
        ("compilation gains, significant: V4, 4o-mini", "+16.0/+14.4", (0, 5)),
        ("compilation gains, not significant: 27B, 7B", "+7.2/+3.2", (3, 4)),
        ("compilation gains where official prose is at flat's level: Plus, A3B", "0.0/0.0", (1, 2)),
    ):
        yield Claim(
            where, what, paper,
            lambda models=models: "/".join(_points(MODELS[n][2], MODELS[n][1]) for n in models),
        )  # fmt: skip
    yield Claim(
        where, "offtext of V4: execute 74.4 and refusal 68.6 of 39 and 86 give", "70.4",
        lambda: _of_classes("74.4", "68.6"),
    )  # fmt: skip
    yield Claim(where, "86 of 86 refusals, two-sided 95 % from", "95.8 %", _refusals,
                "sopilot lab stats clopper-pearson 86 86")  # fmt: skip
    for place in ("sec:setup", "app:defects"):
        yield Claim(
            place, "full denominator of 134, offtext/flat/pg", "65.7/80.6/86.6",
            lambda: "/".join(_over_134(rates) for rates in MODELS[0][1:4]),
        )  # fmt: skip
    yield hosted(where, "V4 offtext: execute/refusal %", "74.4/68.6")
    yield hosted(where, "100 % refusal in both re-runs", "86/86")
    yield hosted(where, "domain calls per task, flat to pg", "3.0 to 2.8")
    yield hosted(where, "wall clock of offtext/flat/pg, seconds", "181/105/132")


def _threshold() -> Iterator[Claim]:
    where = "sec:threshold"
    yield Claim(
        where, "runtime effect of V4, Plus, A3B, 27B, 7B, 4o-mini",
        "+6.4, +3.2, +2.4, −0.8, −14.4, −26.4",
        lambda: ", ".join(_points(row[3], row[2]) for row in MODELS),
    )  # fmt: skip
    p_values = [f"{mcnemar(*map(int, each.split(':'))):.4g}" for each in _contrasts()]
    yield Claim(
        where, "Benjamini–Hochberg over twelve contrasts keeps", "4 of 12", _adjusted,
        f"sopilot lab stats bh {' '.join(p_values)}",
    )  # fmt: skip
    yield Claim(
        where, "strong pair pooled: V4's 9:1 and Plus's 6:2", "15:3",
        lambda: _joint()[0], f"sopilot lab stats compare {STRONG_PAIR} --arms pg flat",
    )  # fmt: skip
    yield Claim(
        where,
        "strong pair: task-joint p. Of all splits of 9:1 and 6:2 over tasks, one rounds to it: "
        "5 tasks won by both models, 2 won by V4 and lost by Plus, 1 the other way (p = 1/64)",
        ".016", lambda: _joint()[1], f"sopilot lab stats compare {STRONG_PAIR} --arms pg flat",
    )  # fmt: skip
    yield hosted(where, "strong pair: goal-clustered p over seven goals", ".19")
    yield hosted(where, "re-runs of the severe weak harm, all p < .001", "−24.0 to −33.6")
    for what, pairs in (
        ("flat+protocol:flat, V4-Flash", "3:4"),
        ("flat+protocol:flat, GPT-4o-mini", "11:20"),
        ("flat+protocol:flat, 7B", "22:15"),
    ):
        yield not_significant(where, what, pairs)
    yield discordant(where, "7B, full-cursor:pg", "21:20", "1.000")
    yield Claim(
        where, "sequence-only failures: 19 of 4o-mini's pg failures, 10 of 7B's", "64, 57",
        lambda: ", ".join(str(125 - _count(MODELS[n][3])) for n in (5, 4)),
    )  # fmt: skip
    yield Claim(
        where, "4o-mini's pg with sequence-only failures credited; below flat by", "64.0; 11.2",
        lambda: f"{_credited():.1f}; {float(MODELS[5][2]) - _credited():.1f}",
    )  # fmt: skip


def _seven_domains() -> Iterator[Claim]:
    where = "sec:hotel"
    for name, pairs, paper in (("V4", "58:19", "≈1e-5"), ("7B", "59:237", "≈1e-26")):
        wins, losses = map(int, pairs.split(":"))
        yield Claim(
            where, f"{name}, pooled {pairs}: order of p", paper,
            lambda wins=wins, losses=losses: f"≈1e{log10(mcnemar(wins, losses)):.0f}",
            f"sopilot lab stats mcnemar {wins} {losses}",
        )  # fmt: skip
    yield Claim(
        where, "Plus, pooled 75:31: p", "2.3e-05", lambda: f"{mcnemar(75, 31):.1e}",
        "sopilot lab stats mcnemar 75 31",
    )  # fmt: skip
    yield not_significant(where, "27B pooled", "41:30")
    yield Claim(where, "domains that lean to pg: V4, Plus", "6, 5",
                lambda: ", ".join(str(_leaning(place)) for place in (0, 1)))  # fmt: skip
    yield Claim(
        where, "Hotel of V4: 13:7 over 195 tasks is a difference of", "3.1",
        lambda: f"{100 * (13 - 7) / 195:.1f}",
    )  # fmt: skip
    yield hosted(where, "Hotel of V4, flat/pg, pass %", "89.2/92.3")
    yield Claim(
        where,
        "Hotel of V4: refusal 87.3 to 96.0 and execution 7.3 lower are, of 126 and 69 tasks, "
        "a net of 11 and of −5; together, as 13:7 says",
        "6", lambda: str(round(126 * (0.960 - 0.873)) - round(69 * 0.073)),
    )  # fmt: skip
    yield hosted(where, "Hotel of V4: refusal, flat/pg; execution, flat ahead by",
                 "87.3/96.0; 7.3")  # fmt: skip
    yield not_significant(where, "Hotel of V4", "13:7")
    yield hosted(where, "Hotel: wall clock of flat/pg, seconds per task", "166/418")
    yield Claim(
        "app:results", "latency of pg to flat, Bank and Hotel", "1.3–2.5",
        lambda: f"{132 / 105:.1f}–{418 / 166:.1f}",
    )  # fmt: skip
    yield hosted("app:results", "V4: largest net goals: Hotel modify_reservation, Healthcare "
                 "update_policy, Market place_order", "+7, +7, +6")  # fmt: skip
    yield hosted("app:results", "Plus: largest net goals: Healthcare update_policy, Hotel "
                 "book_room, Hotel modify_reservation", "+9, +7, +6")  # fmt: skip


def _content_and_format() -> Iterator[Claim]:
    where = "sec:p1"
    for what, paper, column in (
        ("format effect, strong and weak", "+14.4, −12.8", 2),
        ("content effect, strong and weak", "+17.6, +2.4", 3),
    ):
        yield Claim(
            where, what, paper,
            lambda column=column: ", ".join(_points(row[column], row[1]) for row in FACTORIAL),
        )  # fmt: skip
    yield Claim(
        where, "flat against c-prose, strong and weak", "−1.6, +0.8",
        lambda: ", ".join(_points(MODELS[n][2], row[3]) for n, row in zip((0, 4), FACTORIAL,
                                                                          strict=True)),
    )  # fmt: skip
    yield Claim(
        where, "recipes below the official text; flat and c-prose ahead of it", "76.8; +9.6, +11.2",
        lambda: f"76.8; {_points(MODELS[0][2], '76.8')}, {_points(FACTORIAL[0][3], '76.8')}",
    )  # fmt: skip
    yield hosted(where, "recipes below the official text, pass %", "76.8")
    yield hosted(where, "flat and c-prose over recipes, p", ".029, .016")
    yield hosted("sec:setup", "English off-code of the weak model", "−5.6")


def _mechanism() -> Iterator[Claim]:
    where = "sec:mechanism"
    yield hosted(where, "ΔR2 of GPT-4o-mini by run", "+0.37/+0.12/+0.48", AFTER_GOAL)
    yield hosted(where, "ΔR2 of the strong models in the second re-run", "+0.09, +0.15", AFTER_GOAL)
    yield hosted(where, "history taken away: nats for the gold action, V4", "+1.9", LENS)


def _around() -> Iterator[Claim]:
    for where, what, paper in (
        ("sec:setup", "ten user turns, flat/pg", "87.2/90.4"),
        ("sec:setup", "a tied-top official model (82.4) in this offtext loop", "79.2"),
        ("sec:setup", "cross-family user simulator, three arms", "72.8/83.2/89.6"),
        ("app:protocol", "tasks that full-cursor completed", "821 of 821"),
    ):
        yield hosted(where, what, paper)
    for what, paper in (
        ("domain adapters and runtime tools of the industrial program", "4, 2"),
        ("events of the employee-run workflow's trace", "24"),
        ("entries of its calculation trace", "560"),
        ("formulas and checks of the synthetic workbook", "91, 7"),
    ):
        yield private("app:industrial", what, paper)
    yield private("app:protocol", "software of the study's host",
                  "Python 3.12.7, LiteLLM 1.82.6, PyYAML 6.0.3, NumPy 1.26.4, SciPy 1.17.1, "
                  "PyTorch 2.4.0, Transformers 4.36.0; 10 cores, 16 GB, 2 GPUs")  # fmt: skip


def _points(first: str, second: str) -> str:
    shown = f"{float(first) - float(second):+.1f}".replace("-", "−")
    return "0.0" if shown in ("+0.0", "−0.0") else shown


def _count(rate: str, of: int = 125) -> int:
    return round(of * float(rate) / 100)


def _of_classes(execute: str, refuse: str) -> str:
    return f"{100 * (_count(execute, 39) + _count(refuse, 86)) / 125:.1f}"


def _credited() -> float:
    return 100 * (_count(MODELS[5][3]) + 19) / 125


def _leaning(place: int) -> int:
    cells = [row[place].split(":") for row in MATRIX.values() if row[place]]
    return sum(int(wins) > int(losses) for wins, losses in cells)


def _joint() -> tuple[str, str]:
    path = Path(__file__).with_name("strong_pair.jsonl")
    outcomes = outcomes_from(rows_of([path]))
    sides = [[each for each in outcomes if each.arm == arm] for arm in ("pg", "flat")]
    pairs = pair(*sides)
    whole = pairs.discordance
    return f"{whole.wins}:{whole.losses}", p_as_printed(task_joint(pairs).p)


def _refusals() -> str:
    interval = clopper_pearson(86, 86)
    assert isinstance(interval, Interval)
    return f"{100 * interval.low:.1f} %"


def _over_134(rate: str) -> str:
    return f"{100 * _count(rate) / 134:.1f}"


def _contrasts() -> list[str]:
    return [cell for *_, off, _, pg, _ in MODELS for cell in (off, pg)]


def _adjusted() -> str:
    p_values = [mcnemar(*map(int, each.split(":"))) for each in _contrasts()]
    return f"{sum(each.rejected for each in benjamini_hochberg(p_values))} of {len(p_values)}"
