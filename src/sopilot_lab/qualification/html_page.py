"""The qualification as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator

from sopilot.runner.qualifications import Answer, answer_of
from sopilot.values.json import JSON, Fields
from sopilot.web.pages import Drawing, Mark, dot_plot, render, view_colour

_SENTENCES = {
    Answer.PAGE: "{model} qualifies for paging. Run it with `{view}`.",
    Answer.MAY_PAGE: "{model} may be paged: paging neither helps nor harms. Run it with `{view}`.",
    Answer.DO_NOT_PAGE: "{model} doesn't qualify for paging. Run it with `{view}`.",
    Answer.TOO_FEW: "Undecided: too few cases to tell whether {model} qualifies for paging.",
    Answer.BROKEN: "Undecided: the endpoint of {model} didn't answer.",
}


_PROBE = "Probe: function and step named rightly, by depth"


def render_page(document: Fields) -> str:
    """``document`` is what ``verdict_document`` makes."""
    answer = answer_of(document)
    return render(
        "discipline.html",
        title=f"{document['model']}: {answer}",
        heading=f"Qualification of {document['model']}",
        under=[
            _SENTENCES[answer].format(model=document["model"], view=document["arm"]),
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
        ("localisation", _share(document["probe"]["localisation"]), ""),
        ("requests", document["used"]["requests"], ""),
    ]


def _plots(document: Fields) -> Iterator[Drawing]:
    rates = [
        Mark(
            arm,
            item["rate"],
            item["interval"],
            f"{item['pass']}/{item['n']} (execute {_share(item['execute'])}, "
            f"refuse {_share(item['refuse'])})",
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
        yield _probe(document["probe"])


def _natural(document: Fields) -> Drawing:
    marks = [
        Mark(
            arm,
            item["r2"],
            None,
            "–" if item["r2"] is None else f"{item['r2']:.2f}",
            colour=view_colour(arm),
        )
        for arm, item in document["arms"].items()
    ]
    result = document["natural"]
    delta = result["delta"]
    shown = "undefined" if delta is None else f"{delta:+.2f} (90 % interval)"
    marks.append(Mark("ΔR2 = pg − flat", delta, result["interval"], shown, True))
    title = "Calls after the goal had succeeded (R2)"
    return dot_plot(title, marks, least=-0.5, most=0.5, zero=0.0, axis="mean calls")


def _probe(probe: Fields) -> Drawing:
    rows = {"all": probe, **{f"depth {depth}": item for depth, item in probe["depths"].items()}}
    marks = [
        Mark(
            name,
            item["localisation"],
            item["interval"],
            f"{_share(item['localisation'])} of {item['questions']}, score {_share(item['score'])}",
            name == "all",
        )
        for name, item in rows.items()
    ]
    return dot_plot(_PROBE, marks, least=0.0, most=1.0, axis="localisation, exact 95 % intervals")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
