"""Every page: one look, loads nothing, and nothing that is put into it becomes markup."""

from __future__ import annotations

import html.parser
import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.audit.findings import Finding
from sopilot.audit.report import Decided, Report, ScoreCard
from sopilot.audit.state import CheckMade, RefusedGoal
from sopilot.cli.main import sopilot
from sopilot.messages.diagnostic import Severity
from sopilot.trace.events import Event
from sopilot.views.catalogue import VIEWS
from sopilot.web.audit_page import render_audit
from sopilot.web.pages import (
    Bar,
    Mark,
    diverging_bars,
    dot_plot,
    even_ticks,
    grouped_bars,
    render,
    view_colour,
)
from sopilot_lab.experiments.report.document import Document, to_html
from sopilot_lab.experiments.report.formats import Table
from sopilot_lab.lens.moments import Region
from sopilot_lab.lens.report import plot
from sopilot_lab.qualification.report import render_page

VERDICT = json.loads(Path(__file__).with_name("qualification_verdict.json").read_text())
HOSTILE = "<script>alert(1)</script>&\"'`x`\u202e\u0007\u200b"


class Reader(html.parser.HTMLParser):
    """What a browser would load, run or show; tags must nest."""

    VOID = frozenset({"meta", "br", "link", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def audit_page(tmp_path: Path) -> str:
    trace, page = Path(__file__).with_name("findings.jsonl"), tmp_path / "audit.html"
    done = CliRunner().invoke(sopilot, ["audit", str(trace), "--html", str(page)])
    assert done.exit_code == 1, done.output
    return page.read_text()


def check_page(tmp_path: Path) -> str:
    return render_page(VERDICT)


def bench_page(tmp_path: Path) -> str:
    return to_html(bench_document("pg"))


def bench_document(word: str) -> Document:
    table = Table("t", word, [word, "n"], [[word, "12"]], method=word, missing=[word])
    plots = [
        grouped_bars(
            word,
            {word: {word: Bar(50.0, (40.0, 60.0), 9), "flat": Bar(0.0, None, 9)}},
            {word: "#111111", "flat": "#eeeeee"},
            axis=word,
        ),
        diverging_bars(word, [(word, 3, 0)], (word, "#111111"), ("b", "#eeeeee")),
    ]
    return Document(word, [word], [word], [table], plots)


PAGES = {"audit": audit_page, "check": check_page, "bench": bench_page}


@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
def test_a_page_needs_nothing_else(make: Callable[[Path], str], tmp_path: Path) -> None:
    page = make(tmp_path)
    reader = read(page)
    assert not {"script", "link", "img", "iframe", "object"} & set(reader.tags)
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in reader.attributes
    assert "url(" not in page
    assert "@import" not in page
    links = {value for name, value in reader.attributes if name in ("href", "src", "action")}
    assert links <= {f"#{value}" for name, value in reader.attributes if name == "id"}
    assert render("style.css").strip() in page


def test_the_links_of_an_audit_lead_to_its_events(tmp_path: Path) -> None:
    links = [value for name, value in read(audit_page(tmp_path)).attributes if name == "href"]
    assert len(links) >= 7


@pytest.mark.parametrize(
    ("severity", "outcome"),
    [(Severity.WARNING, "refused, as required"), (Severity.ERROR, "refused, against the")],
)
def test_only_an_error_puts_an_outcome_against_the_requirement(
    severity: Severity, outcome: str
) -> None:
    finding = Finding("premature-goal", 4, "tried early, and blocked", severity=severity)
    card = ScoreCard("s", "refused").counting([finding])
    assert outcome in render_audit(Report((finding,), card), [])


def spoiled(value: Any, text: str) -> Any:
    """The same document with ``text`` wherever text may stand."""
    match value:
        case str():
            return text
        case dict():
            return {key: spoiled(each, text) for key, each in value.items()}
        case list():
            return [spoiled(each, text) for each in value]
    return value


def audited(text: str) -> tuple[Report, list[Event]]:
    finding = Finding(text, 0, f"`{text}`", text, text, text, text)
    cause = {"predicate": text, "sentence": text, "evidence": [0], "remedy": text}
    refusal = RefusedGoal(0, text, text, text, (cause,), text)
    made = CheckMade(0, text, text, text, text, True, (0, 7), True, True)
    decided = Decided(0, text, text, text, text, text)
    report = Report(
        (finding,), ScoreCard(text, text), (refusal,), (made,), (decided,), proofs={0: (made,)}
    )
    call = {"call_id": text, "action": text, "arguments": {text: text}}
    return report, [
        Event(0, 1.0, text, "domain_call", text, text, call),
        Event(1, 1.0, text, "domain_result", text, text, {**call, "ok": True, "value": [text]}),
        Event(2, 1.0, text, text, text, text, {"text": text}),
    ]


@settings(deadline=None, max_examples=20)
@given(st.text(max_size=30))
def test_no_text_becomes_markup_or_stays_unseen(text: str) -> None:
    hostile = f"{HOSTILE}{text}"
    pages = [
        render_page(spoiled(VERDICT, hostile)),
        to_html(bench_document(hostile)),
        render_audit(*audited(hostile), name=hostile),
        render_audit(*audited(hostile), name=hostile, language="zh"),
    ]
    for page in pages:
        reader = read(page)
        assert "script" not in reader.tags
        ids = [value for name, value in reader.attributes if name == "id"]
        assert len(ids) == len(set(ids))
        assert not [name for name, _ in reader.attributes if name.startswith("on")]
        assert "<script>alert(1)</script>" in reader.text
        assert "\\u202e\\u0007\\u200b" in reader.text
        page.encode()
        unseen = {sign for sign in page if unicodedata.category(sign) in ("Cc", "Cf", "Cs")}
        assert unseen <= set("\n\t")


def shapes(picture: str, tag: str) -> list[dict[str, str]]:
    found = re.findall(rf"<{tag} ([^>]*)>", picture)
    return [dict(re.findall(r'([\w-]+)="([^"]*)"', each)) for each in found]


def test_a_scale_reaches_as_far_as_its_marks() -> None:
    """Nothing is drawn at an end of the scale that lies beyond it."""
    marks = [Mark("near", 1.0, None, "1"), Mark("far", 10.24, (9.0, 11.0), "10.24")]
    picture = dot_plot("p", marks, least=0.0, most=2.0).__html__()
    near, far = [float(each["cx"]) - 12 for each in shapes(picture, "circle")]
    assert far == pytest.approx(10.24 * near)
    assert far < 360


@pytest.mark.parametrize(
    ("least", "most", "ticks"),
    [
        (0.0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (-0.677362, 0.5, [-1, -0.5, 0, 0.5]),
        (0.0, 100.0, [0, 20, 40, 60, 80, 100]),
        (0.0, 10.24, [0, 5, 10, 15]),
        (3.0, 3.0, [3, 3.2, 3.4, 3.6, 3.8, 4]),
    ],
)
def test_ticks_are_round_numbers(least: float, most: float, ticks: list[float]) -> None:
    assert even_ticks(least, most) == ticks


def test_bars_are_as_long_as_their_values() -> None:
    bars = {
        "m": {"pg": Bar(100.0, (90.0, 100.0), 8), "flat": Bar(50.0, None, 8)},
        "n": {"pg": Bar(0.0, None, 3)},
    }
    colours = {"pg": "#111111", "flat": "#eeeeee"}
    picture = grouped_bars("p", bars, colours, highest=100.0, axis="% passed").__html__()
    whole, half, none = [float(each["width"]) for each in shapes(picture, "rect")]
    assert (whole, none) == (2 * half, 0.0)
    assert "<title>m, flat: 50.0, n = 8</title>" in picture
    assert "100.0 (n = 8)" in picture
    assert "% passed" in picture
    assert [each["fill"] for each in shapes(picture, "rect")] == ["#111111", "#eeeeee", "#111111"]


@pytest.mark.parametrize(("bar", "inside"), [("#1b3a6b", "#fff"), ("#ccb974", "#000")])
def test_an_interval_can_be_seen_on_its_bar(bar: str, inside: str) -> None:
    bars = {"m": {"fused": Bar(50.0, (40.0, 60.0), 8)}}
    picture = grouped_bars("p", bars, {"fused": bar}, highest=100.0, axis="").__html__()
    [rect] = shapes(picture, "rect")
    end = float(rect["x"]) + float(rect["width"])
    lines = [
        (line["stroke"], float(line["x1"]), float(line["x2"]))
        for line in shapes(picture, "line")
        if line["y1"] == line["y2"]
    ][:2]
    (low_colour, low_from, low_to), (high_colour, high_from, high_to) = lines
    assert (low_colour, high_colour) == (inside, "currentColor")
    assert low_from == high_from == pytest.approx(end)
    assert low_to < end < high_to


def test_a_view_has_one_colour_and_no_other_view_has_it() -> None:
    colours = [view_colour(name) for name in VIEWS]
    assert len({*colours}) == len(VIEWS)


def test_a_picture_as_pdf_is_as_wide_as_a_column() -> None:
    pytest.importorskip("cairosvg")
    made = dot_plot("p", [Mark("a", 0.5, None, "½")], least=0.0, most=1.0).as_pdf()
    assert made.startswith(b"%PDF")
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ", made)
    assert box is not None
    assert float(box[1]) == pytest.approx(8.5 / 2.54 * 72, abs=1)


def test_a_picture_of_its_own_has_a_size_and_a_ground() -> None:
    lines = [{"presentation": "own", "region": region, "parity": 1.0} for region in Region]
    summary = {"model": f"tiny {HOSTILE}", "focus": Region.FRAME, "regions": lines}
    summary["parity_by_layer_and_head"] = [[0.5, 2.0], [1.0, 64.0]]
    picture = plot(summary).as_file()
    assert picture.startswith("<svg xmlns=")
    assert picture.count("<title>layer") == 4
    assert '<rect width="100%" height="100%" fill="#fff"/>' in picture
    assert "<script" not in picture
    assert "currentColor" in picture


def test_commands_that_make_no_page_do_not_load_jinja() -> None:
    code = (
        "import sys; from click.testing import CliRunner\n"
        "from sopilot.cli.main import sopilot\n"
        "from sopilot.web import pages; from sopilot_lab.experiments.report import document\n"
        "assert CliRunner().invoke(sopilot, ['--help']).exit_code == 0\n"
        "assert CliRunner().invoke(sopilot, ['audit', '--help']).exit_code == 0\n"
        "assert 'jinja2' not in sys.modules and 'markupsafe' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
