"""Claims that follow from figures the study prints: nothing but arithmetic and exact tests."""

from __future__ import annotations

from collections.abc import Iterator

from claims import Claim, discordant, hosted, p_as_printed

from sopilot.lab.stats import Interval, benjamini_hochberg, clopper_pearson, mcnemar, sign_flip

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
        yield Claim(
            where, "sum of the domains", pairs, lambda place=place: _sum(place), "arithmetic"
        )
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
        yield Claim(f"{table}, Pooled", "tasks", whole, lambda parts=parts: str(sum(parts)),
                    "arithmetic")  # fmt: skip


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
            "arithmetic",
        )


def _balanced(execute: str, refuse: str) -> str:
    shares = [round(39 * float(execute) / 100) / 39, round(86 * float(refuse) / 100) / 86]
    return f"{100 * sum(shares) / 2:.1f}"


def _clustered() -> Iterator[Claim]:
    for name, pairs, goal, logo in CLUSTERS:
        what = f"goal-clustered p and leave-one-out p of {pairs}"
        yield hosted(f"tab:goalcluster, {name}", what, f"{goal}, {logo}")
    for arm, tokens, calls, characters in (
        ("offtext", "65,802 [52,503–114,312]", "7 [6–12]", "16,299"),
        ("flat", "59,051 [43,607–115,755]", "6 [5–12]", "9,941"),
        ("pg", "160,658 [103,114–225,509]", "14 [11–17]", "7,711"),
    ):
        what = "prompt tokens, calls, system characters"
        yield hosted(f"tab:tokens, {arm}", what, f"{tokens}; {calls}; {characters}")
    for panel, what, paper in (
        ("a", "probe score of four models", "0.91–0.99"),
        ("b", "ΔR2 of the two harmed and the four unharmed models", "+0.37, +0.57; −0.14 to −0.49"),
        ("c", "frame's attention over length share, V4; 7B own and clean", "1.05; 0.15, 0.87"),
    ):
        command = {
            "a": "sopilot gate --from RUNS --json",
            "b": "sopilot stats r2",
            "c": "sopilot lens RUNS --json",
        }
        yield hosted(f"fig:mech, panel {panel}", what, paper, command[panel])


def _in_words() -> Iterator[Claim]:
    yield Claim(
        "sec:attribution", "86 of 86 refusals, two-sided 95 % from", "95.8 %", _refusals,
        "sopilot stats clopper-pearson 86 86",
    )  # fmt: skip
    yield Claim(
        "sec:setup", "full denominator, offtext/flat/pg", "65.7/80.6/86.6",
        lambda: "/".join(_over_134(rates) for rates in MODELS[0][1:4]), "arithmetic",
    )  # fmt: skip
    yield Claim(
        "sec:threshold", "Benjamini–Hochberg over twelve contrasts keeps", "4 of 12", _adjusted,
        "sopilot stats bh",
    )  # fmt: skip
    yield Claim(
        "sec:threshold", "strong pair pooled, 15:3: task-joint p", ".016",
        lambda: p_as_printed(sign_flip([2, 2, *[1] * 11, *[-1] * 3]).p), "sopilot stats joint",
        because="it sampled 20,000 sign flips (standard error .0009); this is exact, with two "
        "tasks won by both models, the one split whose p rounds to it",
    )  # fmt: skip
    yield Claim(
        "sec:threshold", "4o-mini's pg with sequence-only failures credited", "64.0",
        lambda: f"{100 * (round(125 * 0.488) + 19) / 125:.1f}", "arithmetic",
    )  # fmt: skip
    for what, pairs in (
        ("flat+protocol:flat, V4-Flash", "3:4"),
        ("flat+protocol:flat, GPT-4o-mini", "11:20"),
        ("flat+protocol:flat, 7B", "22:15"),
    ):
        wins, losses = map(int, pairs.split(":"))
        yield Claim(
            "sec:threshold", f"{what}: {pairs} is not significant", "n.s.",
            lambda wins=wins, losses=losses: "n.s." if mcnemar(wins, losses) > 0.05 else "p < .05",
            f"sopilot stats mcnemar {wins} {losses}",
        )  # fmt: skip
    for where, what, paper in (
        ("sec:setup", "official turn budget, flat/pg", "87.2/90.4"),
        ("sec:setup", "a top official model in this offtext loop", "79.2"),
        ("sec:setup", "cross-family user simulator, three arms", "72.8/83.2/89.6"),
        ("sec:setup", "English off-code of the weak model", "−5.6"),
        ("sec:threshold", "re-runs of the weak harm", "−24.0 to −33.6"),
        ("sec:p1", "recipes below the official text", "76.8"),
        ("sec:p1", "flat and c-prose over recipes, p", ".029, .016"),
        ("sec:mechanism", "ΔR2 of GPT-4o-mini by run", "+0.37/+0.12/+0.48"),
        ("sec:mechanism", "history taken away: nats for the gold action", "+1.9"),
        ("sec:attribution", "domain calls a task, flat to pg", "3.0 to 2.8"),
        ("sec:attribution", "wall clock of the arms, seconds", "181/105/132"),
        ("app:industrial", "an employee-run workflow of 13 functions and 87 steps", "24 events"),
    ):
        yield hosted(where, what, paper)


def _refusals() -> str:
    found = clopper_pearson(86, 86)
    assert isinstance(found, Interval)
    return f"{100 * found.low:.1f} %"


def _over_134(rate: str) -> str:
    return f"{100 * round(125 * float(rate) / 100) / 134:.1f}"


def _adjusted() -> str:
    pairs = [cell for *_, off, _, pg, _ in MODELS for cell in (off, pg)]
    p_values = [mcnemar(*map(int, each.split(":"))) for each in pairs]
    return f"{sum(each.rejected for each in benjamini_hochberg(p_values))} of {len(p_values)}"
