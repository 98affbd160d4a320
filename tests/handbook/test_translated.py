"""Sentences in several languages, from the file to the frame."""

from __future__ import annotations

import copy

import pytest

from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.grammar import Translated, in_language
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.wording import fill, named
from sopilot.handbook.writer import handbook_hash, write_handbook
from sopilot.messages.errors import UserMistake
from sopilot.program.codec import program_from_yaml, program_to_yaml
from sopilot.views.official import render_official
from sopilot.views.program_text import render_flat

TEXT = """
handbook: two-tongues
says: {en: A desk., zh: 一个服务台。}
actions:
  pay: {says: {en: Pays., zh: 付款。}, input: {amount: number}}
  look: {input: {amount: number}}
predicates:
  small(amount):
    says: {en: "The amount {amount} is small.", zh: "金额 {amount} 较小。"}
    verify: look(amount)
  large(amount):
    says: {en: "The amount {amount} is large.", zh: "金额 {amount} 较大。"}
    says_not: {en: "The amount {amount} is not large.", zh: "金额 {amount} 不大。"}
    verify: look(amount)
procedures:
  pay:
    action: pay
    requires: {all: [{not: small(amount)}, {not: large(amount)}]}
"""
BOOK = load_handbook(TEXT)


def test_a_frame_quotes_the_language_of_the_scaffold() -> None:
    program = compile_procedure(BOOK, "pay").program
    chinese, english = render_flat(program, "zh").text, render_flat(program).text
    assert "以下情况不得成立：金额 <amount> 较小。" in chinese
    assert "金额 <amount> 不大。" in chinese
    assert "amount is" not in chinese
    assert "This must NOT be the case: The <amount> is small." in english
    official = render_official(BOOK, BOOK.procedures["pay"], "zh").text
    assert "• 以下情况不得成立：金额 <amount> 较小。" in official


def test_what_is_written_reads_back() -> None:
    assert load_handbook(write_handbook(BOOK)) == BOOK
    program = compile_procedure(BOOK, "pay").program
    assert program_from_yaml(program_to_yaml(program)) == program
    english = load_handbook(TEXT.replace(", zh: 付款。", ""))
    assert handbook_hash(english) != handbook_hash(BOOK)


def test_a_language_that_is_missing_falls_back_and_an_unknown_one_is_refused() -> None:
    assert in_language(Translated({"zh": "好"}), "en") == "好"
    assert in_language("plain", "zh") == "plain"
    with pytest.raises(UserMistake, match="has no key `fr`"):
        load_handbook(TEXT.replace("{en: Pays., zh: 付款。}", "{en: Pays., fr: Paie.}"))
    with pytest.raises(UserMistake, match="neither a parameter"):
        load_handbook(TEXT.replace("金额 {amount} 不大", "金额 {amout} 不大"))


def test_a_translated_text_is_a_value() -> None:
    said = Translated({"en": "yes", "zh": "是"})
    assert copy.deepcopy(said) == said
    assert said != "yes"
    assert str(said) == "yes"
    assert fill(said, {}) == said


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("The account {to} is open.", "The account <to> is open."),
        ("The amount {amount} is small.", "The <amount> is small."),
        ("At most {days} days old.", "At most <days> days old."),
        ('The guest "{to}" is here.', "The guest <to> is here."),
        ("`{to}`", "<to>"),
    ],
)
def test_names_are_quoted_once_and_stand_for_their_own_word(template: str, filled: str) -> None:
    names = named({"to": "to", "amount": "amount", "days": "days"})
    assert fill(template, names) == filled
