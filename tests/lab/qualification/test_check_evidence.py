"""The evidence about the check agrees with its own figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from local_model import judged
from qualification import CLASSES, good, table
from sopilot_lab.qualification.rule import LEAST_PAIRS, RULE_VERSION

EVIDENCE = Path(__file__).parents[3] / "evidence"


def stored(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EVIDENCE / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_a_check_with_one_pair_has_not_passed() -> None:
    found = stored("local-model")
    pairs = min(found["check"]["arms"][arm]["n"] for arm in ("flat", "pg"))
    if pairs < LEAST_PAIRS:
        assert found["check"]["answer"] == "too few"
        assert found["passed"] is False
    again = judged(found["check"], found["lens"])
    assert again["met"] == found["met"]
    assert found["passed"] is all(found["met"].values())


@pytest.mark.parametrize(
    ("answer", "passed"),
    [("do not page", True), ("too few", False), ("broken", False), ("may page", False)],
)
def test_only_a_finding_passes(answer: str, passed: bool) -> None:
    found = stored("local-model")
    check = found["check"] | {"answer": answer}
    assert all(judged(check, found["lens"])["met"].values()) is passed


def row(kind: str, **answers: int) -> dict[str, Any]:
    told = {name.replace("_", " "): count for name, count in answers.items()}
    return {"class": kind, "checks": sum(told.values()), "answers": told}


def test_a_confusion_table_can_fail() -> None:
    table = {
        "harmed": row("harmed", do_not_page=70),
        "neutral": row("neutral", do_not_page=10, may_page=10),
        "helped": row("helped", page=27, do_not_page=3),
        "strong": row("strong", may_page=94, page=1, do_not_page=5),
        "lost": row("lost", do_not_page=20),
    }

    def verdict(**other: dict[str, Any]) -> bool:
        return good({"classes": list((table | other).values())})

    assert verdict()
    assert not verdict(harmed=row("harmed", do_not_page=69, may_page=1))
    assert not verdict(harmed=row("harmed", do_not_page=69, page=1))
    assert not verdict(strong=row("strong", may_page=94, do_not_page=6))
    assert not verdict(helped=row("helped", page=20, do_not_page=10))
    assert not verdict(lost=row("lost", do_not_page=19, may_page=1))
    assert not verdict(lost=row("lost"))


def test_the_table_for_the_design_note() -> None:
    subject = {"subject": "a-b", "truth": "strong", "flat": 1.0, "pg": 0.99, "delta_r2": 0.1}
    subject |= {"localisation": 0.5, "answers": {"may page": 3}}
    lines = table({"subjects": [subject], "classes": [row("strong", may_page=3)]}).splitlines()
    assert lines[2] == "| a b | strong | 1.000 | 0.990 | +0.10 | 0.50 | 0 | 3 | 0 |"
    assert lines[3] == "| **all strong** | | | | | | 0 | 3 | 0 |"


def test_the_confusion_table_is_of_this_rule() -> None:
    figures = stored("qualification")
    assert figures["rule_version"] == RULE_VERSION
    assert [row["class"] for row in figures["classes"]] == list(CLASSES)
    assert figures["passed"] is good(figures)
