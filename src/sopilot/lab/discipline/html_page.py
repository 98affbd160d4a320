"""The verdict as one page that needs nothing else: no script, no font, no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from sopilot.lab.discipline.plots import Mark, plot
from sopilot.runtime.audit.html_style import STYLE
from sopilot.runtime.session.protocols import JSON

_PLOTS: Final = """
.plot{display:block;width:100%;max-width:940px;background:var(--card);
border:1px solid var(--line);border-radius:10px;padding:8px 4px}
.plot text{fill:var(--ink);font:13px system-ui,sans-serif}
.plot .label{text-anchor:end}.plot .tick{text-anchor:middle;fill:var(--soft);font-size:11px}
.plot .value{fill:var(--soft);font-size:12px}
.plot .grid{stroke:var(--line)}.plot .zero{stroke:var(--soft);stroke-dasharray:4 3}
.plot line.mark{stroke:var(--soft);stroke-width:3}.plot circle.mark{fill:var(--soft)}
.plot line.strong{stroke:var(--accent)}.plot circle.strong{fill:var(--accent)}
table{border-collapse:collapse;width:100%;background:var(--card);border:1px solid var(--line)}
th,td{text-align:left;padding:8px 12px;border-top:1px solid var(--line);vertical-align:top}
th{font-size:12px;color:var(--soft)}td.met{color:var(--good)}td.unmet{color:var(--bad)}
.small{color:var(--soft);font-size:13px}
"""


def render_page(document: Mapping[str, JSON]) -> str:
    """``document`` is what ``verdict_document`` makes."""
    page = bool(document["page"])
    word = "page" if page else "do not page"
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width,initial-scale=1">',
        f"<title>{escape(document['model'])}: {word}</title>",
        f"<style>{STYLE}{_PLOTS}</style><main>",
        f"<header><div><h1>Discipline check: {escape(document['model'])}</h1>",
        f"<p class=session>{document['cases']} of {document['planned']} cases, rule version "
        f"{document['rule_version']}, one-sided level {document['level']}</p></div>",
        f"<p class='verdict {'good' if page else 'bad'}'>{word}</p></header>",
        _tiles(document),
        _list("Why", document["reasons"]),
        _list("Notes", document["notes"]),
        "<h2>Conditions for paging</h2>",
        _conditions(document["conditions"]),
        _list("What would change the verdict", document["changes"]),
        "<h2>Pass rates, 95 % intervals</h2>",
        _rates(document),
        "<h2>Differences of paired pass rates, 95 % intervals</h2>",
        _differences(document["contrasts"]),
        "<h2>Calls after the goal had succeeded (R2)</h2>",
        _natural(document),
        "<h2>Probe: function and step named rightly, by depth</h2>",
        _probe(document["probe"]),
        "<h2>Used</h2>",
        _used(document),
        "</main></html>",
    ]
    return "".join(parts)


def _tiles(document: Mapping[str, JSON]) -> str:
    delta = document["natural"]["delta"]
    figures = {
        "run it with": document["arm"] or "–",
        "representation": document["representation"] or "–",
        "paging": "yes" if document["page"] else "no",
        "ΔR2": "–" if delta is None else f"{delta:+.2f}",
        "localisation": _share(document["probe"]["localisation"]),
        "requests": document["used"]["requests"],
    }
    tiles = "".join(
        f"<div class=tile><dt>{name}</dt><dd>{escape(str(value))}</dd></div>"
        for name, value in figures.items()
    )
    return f"<dl class=tiles>{tiles}</dl>"


def _list(title: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<h2>{title}</h2><ul>{items}</ul>"


def _conditions(conditions: Sequence[Mapping[str, JSON]]) -> str:
    if not conditions:
        return "<p class=none>Paged and flat runs are missing.</p>"
    rows = "".join(
        f"<tr><td>{escape(one['name'])}</td>"
        f"<td class={'met' if one['met'] else 'unmet'}>{'met' if one['met'] else 'not met'}</td>"
        f"<td>{escape(one['found'])}</td></tr>"
        for one in conditions
    )
    return f"<table><tr><th>condition<th>holds<th>figures</tr>{rows}</table>"


def _rates(document: Mapping[str, JSON]) -> str:
    marks = [
        Mark(
            arm,
            one["rate"],
            one["interval"],
            f"{one['pass']}/{one['n']} (execute {_share(one['execute'])}, "
            f"refuse {_share(one['refuse'])})",
            arm == document["arm"],
        )
        for arm, one in document["arms"].items()
    ]
    return plot(marks, least=0.0, most=1.0)


def _differences(contrasts: Sequence[Mapping[str, JSON]]) -> str:
    marks = [
        Mark(
            f"{one['first']} − {one['second']}",
            one["difference"],
            one["interval"],
            f"{one['wins']}:{one['losses']}, p = {one['p_one_sided']:.3g}",
            one["p_one_sided"] <= 0.05,
        )
        for one in contrasts
    ]
    return plot(marks, least=-1.0, most=1.0, zero=0.0)


def _natural(document: Mapping[str, JSON]) -> str:
    marks = [
        Mark(arm, one["r2"], None, "–" if one["r2"] is None else f"{one['r2']:.2f}")
        for arm, one in document["arms"].items()
    ]
    found = document["natural"]
    delta = found["delta"]
    shown = "undefined" if delta is None else f"{delta:+.2f} (90 % interval)"
    marks.append(Mark("ΔR2 = pg − flat", delta, found["interval"], shown, True))
    drawn = [value for mark in marks for value in (mark.value, *(mark.interval or ()))]
    reach = max([1.0, *(abs(value) for value in drawn if value is not None)])
    return plot(marks, least=-reach, most=reach, zero=0.0)


def _probe(probe: Mapping[str, JSON]) -> str:
    if not probe["questions"]:
        return "<p class=none>The probe was not asked.</p>"
    rows = {"all": probe, **{f"depth {depth}": one for depth, one in probe["depths"].items()}}
    marks = [
        Mark(
            name,
            one["localisation"],
            one["interval"],
            f"{_share(one['localisation'])} of {one['questions']}, score {_share(one['score'])}",
            name == "all",
        )
        for name, one in rows.items()
    ]
    return plot(marks, least=0.0, most=1.0)


def _used(document: Mapping[str, JSON]) -> str:
    used, budget, estimate = document["used"], document["budget"], document["estimate"]
    stopped = document["stopped_by"]
    ended = f" Ended by {escape(stopped)}." if stopped else ""
    return (
        f"<p class=small>{used['requests']} requests of {budget['requests']} allowed, "
        f"{used['prompt_tokens']} prompt and {used['completion_tokens']} completion tokens, "
        f"{used['seconds']:.0f} s; estimated at {estimate['requests']} requests and "
        f"{estimate['prompt_tokens']} prompt tokens.{ended}</p>"
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
