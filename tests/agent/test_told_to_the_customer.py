"""A refusal that must not say why: the customer's words apart from the reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sopilot.audit.audit import audit_trace
from sopilot.cli.main import sopilot
from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.reader import load_handbook
from sopilot.trace.files import read_trace

WORDS = "We cannot carry out this payment at the moment."
BOOK = f"""handbook: wire-desk
actions:
  screen: {{input: {{name: string}}, read_only: true}}
  balance: {{input: {{name: string}}, read_only: true}}
  wire: {{input: {{name: string, amount: integer}}, irreversible: true, confirm: false}}
predicates:
  sanctioned(name):
    says: "{{name}} is on the sanctions list."
    says_not: "{{name}} is not on the sanctions list."
    verify: screen(name)
    verdict: result.listed
    customer_message: {WORDS}
  covered(name, amount):
    says: "The account of {{name}} covers {{amount}}."
    verify: balance(name)
    verdict: result.balance >= amount
procedures:
  wire: {{requires: [not: sanctioned(name), covered(name, amount)]}}
"""


def run(*arguments: str, **given: str) -> Result:
    return CliRunner().invoke(sopilot, list(arguments), **given)  # type: ignore[arg-type]  # input


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{tmp_path}/store.db")
    (tmp_path / "wire.yaml").write_text(BOOK)
    answers = "screen: {listed: true, list: EU consolidated}\nbalance: {balance: 5}\nwire: {}\n"
    (tmp_path / "answers.yaml").write_text(answers)
    return tmp_path / "wire.yaml"


def refused(book: Path, view: str, *, listed: bool = True) -> Mapping[str, Any]:
    answers = book.with_name("answers.yaml")
    if not listed:
        answers.write_text("screen: {listed: false}\nbalance: {balance: 5}\nwire: {}\n")
    done = run(
        "run", str(book), "--view", view, "--results", str(answers), "--request", "Pay Ivan.",
        "--input", "name=Ivan", "--input", "amount=10", "--json",
    )  # fmt: skip
    found: Mapping[str, Any] = json.loads(done.stdout)
    assert found["ending"] == "refused", done.output
    return found


@pytest.mark.parametrize("view", ["fused", "pg", "pg-paper", "flat-state", "state-only"])
def test_the_customer_hears_the_words_and_the_records_the_reason(book: Path, view: str) -> None:
    found = refused(book, view)
    assert found["to_customer"] == WORDS
    assert [one["sentence"] for one in found["refusals"]] == ["Ivan is on the sanctions list."]
    (refusal,) = found["audit"]["refusals"]
    assert refusal["causes"][0]["found"] == "Ivan is on the sanctions list."
    assert refusal["causes"][0]["customer_message"] == WORDS
    assert found["audit"]["clean"]
    trace = read_trace(run("trace", "export", found["session"], "--payloads").stdout)
    said = [one.event.payload["text"] for one in trace.events if one.event.kind == "assistant_said"]
    assert said[-1] == WORDS
    assert not [text for text in said if "sanction" in text or "EU" in text]


def test_without_a_machine_the_text_says_what_may_be_told(book: Path) -> None:
    found = refused(book, "flat")
    assert (found["reason"], found["to_customer"]) == (WORDS, WORDS)
    assert found["audit"]["refusals"][0]["causes"][0]["customer_message"] == WORDS


def test_another_refusal_by_the_same_handbook_says_why(book: Path) -> None:
    found = refused(book, "pg", listed=False)
    assert found["to_customer"] == found["reason"] != WORDS


def test_a_person_who_is_served_sees_nothing_else(book: Path) -> None:
    given = 'goal: "wire"\nname: "Ivan"\namount: 10\n' * 3
    results = str(book.with_name("answers.yaml"))
    shown = run("chat", str(book), "--results", results, "--view", "fused", input=given).output
    assert WORDS in shown
    assert "sanction" not in shown
    assert "EU consolidated" not in shown


def test_page_audit_and_explain_show_both(book: Path, tmp_path: Path) -> None:
    session = refused(book, "fused")["session"]
    text = run("audit", session, "--html", str(tmp_path / "page.html")).stdout
    for shown in (text, (tmp_path / "page.html").read_text()):
        assert "Ivan is on the sanctions list." in shown
        assert WORDS in shown
    explained = run("show", str(book), "--as", "explanation").stdout
    assert f"refused for sanctioned: the customer is told only: {WORDS}" in explained


@pytest.mark.parametrize(
    ("said", "severity"),
    [
        ("I must tell you: Ivan is on the  SANCTIONS list.", "warning"),
        ("You are named in EU consolidated, sorry.", "note"),
        (WORDS, None),
        ("I am sorry, Ivan.", None),
    ],
)
def test_the_audit_finds_a_customer_who_was_told(
    book: Path, said: str, severity: str | None
) -> None:
    session = refused(book, "pg")["session"]
    trace = read_trace(run("trace", "export", session, "--payloads").stdout)
    events = [one.event for one in trace.events]
    last = max(one.seq for one in events if one.kind == "assistant_said")
    changed = [
        one._replace(payload={**one.payload, "text": said}) if one.seq == last else one
        for one in events
    ]
    program = compile_procedure(load_handbook(BOOK), "wire").program
    found = [
        one for one in audit_trace({"wire": program}, changed).findings if one.code == "tipped-off"
    ]
    assert [str(one.severity) for one in found] == ([severity] if severity else [])
    assert all((one.seq, one.predicate) == (last, "sanctioned") for one in found)
