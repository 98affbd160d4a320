"""All 830 tasks as programs: accepted, closed, complete, the same bytes every time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter

import pytest

from sopbench_checkout import NEEDS_SOPBENCH
from sopilot.compiler.pipeline import Compiler
from sopilot.handbook.requirements import leaves
from sopilot.program.codec import program_from_yaml, program_to_yaml
from sopilot.program.verifier import verify_program
from sopilot.runner.compile_figures import summarise
from sopilot.runner.sources import Unit, compile_source
from sopilot.views.program_text import correspondence
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.reference import DOMAINS
from sopilot_lab.sopbench.source import load_tasks, offered_actions, sopbench_handbook

pytestmark = NEEDS_SOPBENCH


@pytest.fixture(scope="module", params=["official", "full-state"])
def units(request: pytest.FixtureRequest) -> list[Unit]:
    return compile_source("sopbench:all", tools=request.param)


def test_every_task_compiles_and_is_accepted(units: list[Unit]) -> None:
    figures = summarise(units, [program_to_yaml(unit.program) for unit in units], 0.0)
    assert figures["programs"] == 830
    assert figures["goals"] == 70
    assert figures["rules"] == 166
    assert figures["missing_recipes"] == 0
    for unit in units:
        needed = {leaf.predicate for leaf in leaves(unit.explanation.tree)}
        assert verify_program(unit.program, frozenset(needed)) == []


def test_call_graphs_are_closed(units: list[Unit]) -> None:
    for unit in units:
        functions = unit.program.functions
        called = {check.function for function in functions.values() for check in function.checks}
        assert called <= set(functions), unit.label
        assert set(functions) - called == {unit.program.entry}, unit.label


def test_no_frame_is_over_the_budget(units: list[Unit]) -> None:
    for unit in units:
        for function in unit.program.functions.values():
            assert len({check.function for check in function.checks}) <= 7, function.name


def test_artifacts_read_back_unchanged(units: list[Unit]) -> None:
    for unit in units[::40]:
        text = program_to_yaml(unit.program)
        assert program_from_yaml(text, unit.label) == unit.program


def test_sentences_are_byte_identical_in_every_rendering(units: list[Unit]) -> None:
    for unit in units[::20]:
        assert correspondence(unit.handbook, unit.procedure, unit.program).mismatches == ()


def test_postponing_options_without_a_tool_would_change_hotel_programs_alone() -> None:
    """The figure in docs/research/study.md."""
    upstream = shared_upstream()
    shelf = ProgramShelf("official", upstream)
    changed: Counter[str] = Counter()
    for domain in DOMAINS:
        shared = sopbench_handbook(domain, upstream)
        offered = offered_actions(shared, "official")
        postponing = Compiler(shared.actions, shared.predicates, offered=offered)
        for task in load_tasks(f"sopbench:{domain}", upstream=upstream):
            procedure = task.handbook.procedures[task.goal]
            program = postponing.compile(task.handbook, procedure).program
            changed[domain] += program.functions != shelf.program(task).program.functions
    assert +changed == {"hotel": 125}


def test_same_bytes_under_other_hash_seeds() -> None:
    script = (
        "from sopilot.runner.sources import compile_source\n"
        "from sopilot.program.codec import program_to_yaml\n"
        "for unit in compile_source('sopbench:bank') + compile_source('sopbench:hotel'):\n"
        "    print(program_to_yaml(unit.program))\n"
    )
    digests = set()
    for seed in ("0", "7"):
        run = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        digests.add(hashlib.sha256(run.stdout).hexdigest())
    assert len(digests) == 1
