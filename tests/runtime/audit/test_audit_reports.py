"""Reports for terminals, scripts and browsers."""

from __future__ import annotations

import html.parser
import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from test_audit_trace import Desk

from sopilot.runtime.audit import Finding, Report, batch
from sopilot.runtime.audit.html_report import render_html
from sopilot.runtime.audit.report import card
from sopilot.runtime.audit.text_report import render_batch_text, render_text
from sopilot.runtime.audit.timeline import Row, rows_of_trace
from sopilot.runtime.vm import Fail


class Reader(html.parser.HTMLParser):
    """Collects what a browser would load or run, and checks that tags nest."""

    VOID = frozenset({"meta", "br", "link", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read_page(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def test_the_terminal_report_names_what_matters() -> None:
    report = Desk().log_in().check_funds(1, holds=False).do(Fail("too little")).report()
    assert render_text(report).splitlines() == [
        "audit: refused, no findings",
        "",
        "refused: pay at #9",
        "    said: too little",
        "    not met: The balance of ann is at least 5. (evidence: #7)",
        "    the user could: Pay in what is missing.",
        "",
        "what was checked:",
        "    yes  The user ann is logged in. (evidence: #3)",
        "    no   The balance of ann is at least 5. (evidence: #7)",
        "",
        "checks 2, evidence coverage 100 %, reused 0, rejected operations 0",
        "domain calls 2, after the goal (R2) 0",
    ]


def test_a_finding_in_the_terminal() -> None:
    text = render_text(Desk().log_in().do(Fail("no")).report())
    assert "#5 error refusal-without-cause: refusal without a false predicate" in text
    assert "    the SOP says: Pays a bill." in text


def test_a_batch_in_the_terminal() -> None:
    reports = [Desk().log_in().do(Fail("no")).report() for _ in range(2)]
    text = render_batch_text(batch(reports))
    assert text.splitlines()[0] == "2 sessions, 0 clean"
    assert "    2  refusal-without-cause in 2 sessions" in text


def test_json_survives_a_round_trip() -> None:
    report = Desk().log_in().do(Fail("no")).report()
    assert json.loads(json.dumps(report.as_json())) == report.as_json()


def test_the_page_needs_nothing_else() -> None:
    desk = Desk().log_in().do(Fail("no"))
    page = render_html(desk.report(), rows_of_trace(desk.events), title="Audit of pay")
    reader = read_page(page)
    assert not {"script", "link", "img", "iframe", "object"} & set(reader.tags)
    assert all(link.startswith("#e") for link in reader.links)
    assert "url(" not in page
    assert "@import" not in page
    targets = set(re.findall(r'id="(e\d+)"', page))
    assert {link.removeprefix("#") for link in reader.links} <= targets


@settings(deadline=None, max_examples=150)
@given(st.text(max_size=40), st.text(max_size=40))
def test_nothing_from_a_trace_becomes_markup(text: str, other: str) -> None:
    hostile = f"<script>{text}</script><b onclick='x'>{other}\"'>"
    finding = Finding(hostile, 0, f"`{hostile}`", hostile, hostile, hostile, hostile)
    blank = card(
        [finding],
        session_id=hostile,
        outcome=hostile,
        calls=0,
        calls_after_goal=0,
        checks=0,
        needing=0,
        covered=0,
    )
    rows = [Row(0, hostile, hostile, hostile, hostile, 1, "", (0,))]
    reader = read_page(render_html(Report((finding,), blank), rows, title=hostile))
    assert "script" not in reader.tags
    assert "b" not in reader.tags
