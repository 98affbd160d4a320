"""Campaigns that go on from run to run: what they add up, and what they choose."""

from __future__ import annotations

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_inputs_are_added_up_and_crashes_are_the_last_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from fuzz import added

    def run(inputs: int, edges: int, crashes: int) -> dict[str, object]:
        return {"inputs": inputs, "seconds": 1.0, "edges": edges, "crashes": crashes, "hangs": 0}

    first = added({}, {"trace": run(10, 5, 1), "config": run(3, 2, 0)})
    assert (first["inputs"], first["crashes"], first["passed"]) == (13, 1, False)
    later = added({**first, "mended": ["it"]}, {"trace": run(7, 4, 0)})
    assert (later["inputs"], later["crashes"], later["passed"]) == (20, 0, True)
    assert later["readers"]["trace"] == {**run(17, 5, 0), "seconds": 2.0}
    assert later["mended"] == ["it"]


def test_a_mutant_is_tried_with_the_tests_that_run_its_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import mutants
    from mutant_tests import Coverage

    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    file = tmp_path / "one.py"
    file.write_text("def least(a, b):\n    return a if a < b else b\n")
    found = list(mutants.mutants_of(file))
    assert {(one.line, one.kind) for one in found} == {
        (2, "return"), (2, "condition"), (2, "comparison"),
    }  # fmt: skip
    assert all(compile(one.text, "one.py", "exec") for one in found)
    assert {one.where for one in found} == {"least: return a if a < b else b"}
    lines = {"one.py": {1: ["t::c"], 2: ["t::a", "t::b"], 5: []}}
    known = Coverage({"t::a": 2.0, "t::b": 1.0, "t::c": 3.0}, lines, [])
    assert known.stages("one.py", 2, 2) == [["t::b", "t::a"]]
    assert known.stages("one.py", 5, 5) == [["t::b", "t::a", "t::c"]]  # run by importing it
    assert known.stages("one.py", 9, 9) == []
    file_, own = "src/sopilot/machine/moves.py", "tests/machine/test_a.py::slowest"
    many = {f"t::{number}": float(number) for number in range(100)} | {own: 500.0}
    first, rest = Coverage(many, {file_: {1: list(many)}}, []).stages(file_, 1, 1)
    assert first == list(many)[:30]
    assert rest == [*list(many)[30:90], own]  # the package's own, however slow
