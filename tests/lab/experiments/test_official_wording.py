"""The official arms: upstream's own text, and nothing of it changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sopbench_checkout import MISSING
from sopilot.views.catalogue import VIEWS
from sopilot_lab.experiments.selection import select_tasks
from sopilot_lab.sopbench.process import ToolList, Upstream, shared_upstream
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.reference import task_references
from sopilot_lab.sopbench.source import load_task
from sopilot_lab.sopbench.tasks import as_task
from sopilot_lab.sopbench.wording import OfficialCheck, check_official, read_sentences

on_sopbench = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def first_message(upstream: Upstream, which: str, arm: str, tools: ToolList = "official") -> str:
    (reference,) = task_references(which, upstream=upstream)
    own = load_task(reference, upstream)
    program = ProgramShelf(tools, upstream).program(own).program
    return VIEWS[arm].first_message(as_task(own, program, tools, upstream, "en").briefing)


def test_every_arm_of_the_miniature_shows_its_text(upstream: Upstream) -> None:
    found = check_official(select_tasks("bank", upstream), "official", upstream)
    assert found.holds
    assert found.tasks == found.identical > 3
    assert found.sentences > found.tasks
    assert found.mismatches == []


def test_a_model_under_official_is_told_the_text_and_how_the_loop_works_and_no_more(
    upstream: Upstream,
) -> None:
    message = first_message(upstream, "sopbench:bank/lend_tool#0", "official")
    text = upstream.official_text("bank", "lend_tool", 0)
    before, _, after = message.partition(text.system)
    assert after == ""
    assert "end_session" in before
    assert "lend_tool" not in before  # which of the requests it is, the text does not say


def test_recipes_name_only_what_is_offered(upstream: Upstream) -> None:
    for tools, reader in (("official", False), ("full-state", True)):
        message = first_message(upstream, "sopbench:bank/lend_tool#0", "official-recipes", tools)  # type: ignore[arg-type]
        recipes = message.partition("### How Each Condition")[2]
        assert "find_tool(" in recipes
        assert ("internal_get_database(" in recipes) is reader


def test_a_changed_sentence_is_found(upstream: Upstream) -> None:
    (reference,) = task_references("sopbench:bank/lend_tool#0", upstream=upstream)
    task = load_task(reference, upstream)
    text = upstream.official_text("bank", "lend_tool", 0)
    said = next(iter(read_sentences(text)))[1]
    other = replace(text, system=text.system.replace(said, said[:-1] + "!"))
    found = OfficialCheck()
    found.check_sentences(task, other, upstream)
    assert any("our wording" in each for each in found.mismatches)


@pytest.mark.sopbench
@on_sopbench
def test_a_sample_of_every_domain() -> None:
    upstream = shared_upstream()
    sample = [each for each in select_tasks("all", upstream) if each.index == 1][::5]
    found = check_official(sample, "official", upstream)
    assert found.holds, found.mismatches[:3]
    assert found.as_recorded == found.recorded > len(sample) // 2
