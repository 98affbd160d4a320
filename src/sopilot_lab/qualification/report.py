"""A check's estimate and verdict: as data, at the terminal, as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from sopilot.runner.qualifications import Answer, answer_of
from sopilot.values.json import JSON, Fields
from sopilot.values.text import Heading, table
from sopilot.web.pages import Drawing, Mark, dot_plot, render, view_colour
from sopilot_lab.experiments.run_folder import Effort, RecordedRun
from sopilot_lab.qualification.checking import CheckSpending
from sopilot_lab.qualification.conditions import Contrast, PagingCondition, foresight
from sopilot_lab.qualification.paging_decision import Verdict, by_arm
from sopilot_lab.qualification.plan import PreparedCheck, RehearsedCases
from sopilot_lab.qualification.probe import ProbeGrade, ProbeScore, scores_by_depth
from sopilot_lab.statistics.intervals import Interval, Undefined, clopper_pearson
from sopilot_lab.statistics.rates import accuracy

_STATED = (
    "model", "answer", "page", "representation", "arm", "guarded_arm", "rule_version", "complete",
    "cases", "planned", "level", "reasons", "conditions", "changes", "notes",
)  # fmt: skip


def verdict_document(
    verdict: Verdict,
    runs: Sequence[RecordedRun],
    grades: Sequence[ProbeGrade],
    spending: CheckSpending,
    rehearsal: RehearsedCases,
    *,
    stopped: str | None = None,
    seconds: float = 0.0,
) -> dict[str, JSON]:
    """Undefined figures are ``null``."""
    natural = verdict.natural
    return {
        **{name: _plain(getattr(verdict, name)) for name in _STATED},
        "stopped_by": stopped,
        "arms": {arm: _arm(held, verdict.model) for arm, held in by_arm(runs).items()},
        "contrasts": [_contrast(contrast) for contrast in verdict.contrasts],
        "natural": {
            "paged": _plain(natural.first),
            "paged_runs": natural.first_runs,
            "flat": _plain(natural.second),
            "flat_runs": natural.second_runs,
            "delta": _plain(natural.delta),
            "interval": _plain(natural.interval),
        },
        "probe": _probe(verdict.probe)
        | {"depths": {str(depth): _probe(item) for depth, item in scores_by_depth(grades).items()}},
        "estimate": rehearsal.total.as_json(),
        "used": {
            **spending.used.as_json(),
            "money": _money(spending.cost(spending.used)),
            "seconds": round(seconds, 1),
        },
        "budget": {
            "requests": spending.allowance.calls,
            "money": spending.allowance.money,
            "minutes": spending.allowance.minutes,
        },
    }


def _arm(runs: Sequence[RecordedRun], model: str) -> dict[str, JSON]:
    judged = [run for run in runs if run.passed is not None]
    passed = sum(run.record.passed for run in judged)
    result = accuracy([run.outcome(model) for run in judged])
    records = [run.record for run in runs]
    after = [record.r2 for record in records if record.r2 is not None]
    took = sum((record.effort for record in records), Effort())
    return {
        "n": len(judged),
        "pass": passed,
        "rate": passed / len(judged) if judged else None,
        "interval": _plain(clopper_pearson(passed, len(judged))),
        "execute": _plain(result.execute.share),
        "refuse": _plain(result.refuse.share),
        "r2": sum(after) / len(after) if after else None,
        **took.as_json(),
        "domain_calls": sum(len(record.calls) for record in records),
        "broken": len(runs) - len(judged),
        "seconds": round(sum(record.seconds for record in records), 1),
    }


def _contrast(contrast: Contrast) -> dict[str, JSON]:
    return {
        "first": contrast.first,
        "second": contrast.second,
        "pairs": contrast.pairs,
        "goals": contrast.compared.goals,
        "wins": contrast.discordance.wins,
        "losses": contrast.discordance.losses,
        "p_one_sided": contrast.p,
        "p_goals": contrast.clustered_p,
        "p_inferior": _plain(contrast.inferior_p),
        "goals_interval": _plain(contrast.compared.clustered_interval),
        "difference": _plain(contrast.compared.difference),
        "interval": _plain(contrast.compared.interval),
    }


def _probe(score: ProbeScore) -> dict[str, JSON]:
    return {each.name: _plain(getattr(score, each.name)) for each in fields(score)}


def _plain(value: Any) -> JSON:
    """An undefined figure is ``null``, an interval a pair."""
    if isinstance(value, Interval):
        return [value.low, value.high]
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, PagingCondition):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return None if isinstance(value, Undefined) else value


def estimate_document(prepared: PreparedCheck, spending: CheckSpending) -> Fields:
    """The least that a check will take, before anything is spent."""
    rehearsal = prepared.rehearsal
    total = rehearsal.total
    return {
        "cases": prepared.planned,
        "arms": {arm: round(rehearsal.of_arm(arm).requests) for arm in prepared.arms},
        **total.as_json(),
        "money": _money(spending.cost(total)),
        "unreachable": list(rehearsal.unreachable),
        "can_show": foresight(prepared.planned),
    }


def _money(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def recorded_lines(prepared: PreparedCheck) -> Iterator[str]:
    yield (
        f"{len(prepared.runs)} runs of {prepared.recorded} on {prepared.planned} tasks; "
        f"{len(prepared.questions)} questions about places in {prepared.sessions} of them"
    )


def estimate_lines(
    document: Fields, prepared: PreparedCheck, spending: CheckSpending
) -> Iterator[str]:
    """A lower estimate, because the reference executor makes no detours."""
    yield Heading(f"{document['cases']} cases under {len(document['arms'])} arms")
    rows = [
        (arm, requests, prepared.rehearsal.of_arm(arm).as_json()["prompt_tokens"])
        for arm, requests in document["arms"].items()
    ]
    yield table(rows, ("arm", "requests", "prompt tokens"))
    priced = "" if document["money"] is None else f", {document['money']:.2f} in money"
    yield (
        f"at least {document['requests']} requests, about {document['prompt_tokens']} prompt and "
        f"{document['completion_tokens']} reply tokens{priced}"
    )
    allowance = spending.allowance
    limit = f", {allowance.money:g} in money" if allowance.money is not None else ""
    yield f"allowed: {allowance.calls} requests, {allowance.minutes:g} minutes{limit}"
    if document["unreachable"]:
        yield f"left out, the reference executor fails them: {', '.join(document['unreachable'])}"
    yield "what this check can show:"
    for line in document["can_show"]["says"]:
        yield f"  {line}"
    yield ""


def verdict_lines(document: Fields) -> Iterator[str]:
    yield ""
    rows = [
        (
            arm,
            f"{entry['pass']}/{entry['n']}",
            _number(entry["rate"]),
            _interval(entry["interval"]),
            _number(entry["execute"]),
            _number(entry["refuse"]),
            _number(entry["r2"]),
            entry["requests"],
        )
        for arm, entry in document["arms"].items()
    ]
    header = ("arm", "passed", "rate", "95 % interval", "execute", "refuse", "R2", "requests")
    yield table(rows, header)
    probe = document["probe"]
    if probe["questions"]:
        yield (
            f"probe: localisation {_number(probe['localisation'])} "
            f"{_interval(probe['interval'])}, score {_number(probe['score'])}, whole state "
            f"{_number(probe['whole'])} over {probe['questions']} questions"
        )
        depths = ", ".join(
            f"{depth}: {_number(entry['localisation'])}" for depth, entry in probe["depths"].items()
        )
        yield f"       by depth {depths}"
    yield ""
    for item in document["conditions"]:
        only = "" if len(item["needed_for"]) > 1 else f" (for *{item['needed_for'][0]}*)"
        met = "met    " if item["met"] else "NOT MET"
        yield f"  {met}  {item['name']:<16} {item['figures']}{only}"
    yield ""
    yield Heading(f"verdict for {document['model']}: {document['answer']}{_use(document)}")
    for line in document["reasons"]:
        yield f"  {line}"
    for line in document["notes"]:
        yield f"  note: {line}"
    if document["changes"]:
        yield "what would change it:"
        for line in document["changes"]:
            yield f"  {line}"
    used = document["used"]
    ended = f"; ended by {document['stopped_by']}" if document["stopped_by"] else ""
    money = used["money"]
    priced = "price not known (--price)" if money is None else f"{money:.4f} in money"
    yield (
        f"used: {used['requests']} requests, {used['prompt_tokens']} prompt and "
        f"{used['completion_tokens']} reply tokens, {priced}, {used['seconds']:.0f} s{ended}"
    )
    yield f"page: {document['report']}"


def _use(document: Fields) -> str:
    arm, guarded = document["arm"], document["guarded_arm"]
    if arm is None:
        return ""
    if guarded in (None, arm):
        return f"; run it with `{arm}`"
    return f"; run it with `{arm}`, or with `{guarded}` where actions are guarded"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _interval(value: Sequence[float] | None) -> str:
    return "–" if value is None else f"{value[0]:.2f}–{value[1]:.2f}"


_SENTENCES = {
    Answer.PAGE: "{model} qualifies for paging. Run it with `{view}`.",
    Answer.MAY_PAGE: "{model} may be paged: paging neither helps nor harms. Run it with `{view}`.",
    Answer.DO_NOT_PAGE: "{model} doesn't qualify for paging. Run it with `{view}`.",
    Answer.TOO_FEW: "Undecided: too few cases to tell whether {model} qualifies for paging.",
    Answer.BROKEN: "Undecided: the endpoint of {model} didn't answer.",
}
_PROBE = "Probe: correct answers about function and step, by depth"


def render_page(document: Fields) -> str:
    """``document`` is what ``verdict_document`` makes."""
    answer = answer_of(document)
    return render(
        "qualification.html",
        title=f"{document['model']}: {answer}",
        heading=f"Qualification of {document['model']}",
        lead=_SENTENCES[answer].format(model=document["model"], view=document["arm"]),
        under=[
            f"{document['cases']} of {document['planned']} cases, rule version "
            f"{document['rule_version']}, one-sided level {document['level']}",
        ],
        verdict=(str(answer), "good" if answer in (Answer.PAGE, Answer.MAY_PAGE) else "bad"),
        tiles=_tiles(document),
        check=document,
        plots=list(_plots(document)),
        probe_title=_PROBE,
    )


def _tiles(document: Fields) -> list[tuple[str, JSON, str]]:
    delta = document["natural"]["delta"]
    return [
        ("run it with", document["arm"] or "–", ""),
        ("representation", document["representation"] or "–", ""),
        ("where actions are guarded", document.get("guarded_arm") or "–", ""),
        ("ΔR2", "–" if delta is None else f"{delta:+.2f}", ""),
        ("localisation", _number(document["probe"]["localisation"]), ""),
        ("requests", document["used"]["requests"], ""),
    ]


def _plots(document: Fields) -> Iterator[Drawing]:
    rates = [
        Mark(
            arm,
            item["rate"],
            item["interval"],
            f"{item['pass']}/{item['n']} (execute {_number(item['execute'])}, "
            f"refuse {_number(item['refuse'])})",
            arm == document["arm"],
            view_colour(arm),
        )
        for arm, item in document["arms"].items()
    ]
    yield dot_plot("Pass rates", rates, least=0.0, most=1.0, axis="passed, exact 95 % intervals")
    differences = [
        Mark(
            f"{item['first']} − {item['second']}",
            item["difference"],
            item["interval"],
            f"{item['wins']}:{item['losses']}, p = {item['p_one_sided']:.3g}",
            item["p_one_sided"] <= 0.05,
        )
        for item in document["contrasts"]
    ]
    title = "Differences of paired pass rates"
    yield dot_plot(
        title, differences, least=-0.5, most=0.5, zero=0.0, axis="difference, 95 % intervals"
    )
    yield _natural(document)
    if document["probe"]["questions"]:
        yield _probe_plot(document["probe"])


def _natural(document: Fields) -> Drawing:
    marks = [
        Mark(arm, item["r2"], None, _number(item["r2"]), colour=view_colour(arm))
        for arm, item in document["arms"].items()
    ]
    result = document["natural"]
    delta = result["delta"]
    shown = "undefined" if delta is None else f"{delta:+.2f} (90 % interval)"
    marks.append(Mark("ΔR2 = pg − flat", delta, result["interval"], shown, True))
    title = "Calls after the goal had succeeded (R2)"
    return dot_plot(title, marks, least=-0.5, most=0.5, zero=0.0, axis="mean calls")


def _probe_plot(probe: Fields) -> Drawing:
    rows = {"all": probe, **{f"depth {depth}": item for depth, item in probe["depths"].items()}}
    marks = [
        Mark(
            name,
            item["localisation"],
            item["interval"],
            f"{_number(item['localisation'])} of {item['questions']}, "
            f"score {_number(item['score'])}",
            name == "all",
        )
        for name, item in rows.items()
    ]
    return dot_plot(_PROBE, marks, least=0.0, most=1.0, axis="localisation, exact 95 % intervals")
