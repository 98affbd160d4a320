from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from pathlib import Path

import pytest
from bench_records import configuration, record, write_runs
from hypothesis import given, settings
from hypothesis import strategies as st

import sopilot
from sopilot.messages.errors import UserMistake
from sopilot_lab.experiments.run_folder import BenchRecord, RunFolder
from sopilot_lab.experiments.source_fingerprint import (
    PACKAGES,
    Sources,
    deciding_sources,
    describe_difference,
    read_sources,
)

TASKS = [f"sopbench:bank/goal_{goal}#{index}" for goal in "ab" for index in range(12)]


@given(
    order=st.permutations(TASKS),
    cuts=st.lists(st.integers(0, len(TASKS)), max_size=4),
    broken=st.sets(st.sampled_from(TASKS), max_size=4),
)
@settings(deadline=None, max_examples=25)
def test_scores_do_not_depend_on_order_writers_identities_or_broken_runs(
    order: list[str], cuts: list[int], broken: set[str]
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        whole = write_runs(
            Path(scratch, "whole"), *(record(task, passed="a#" in task) for task in TASKS)
        )
        ends = [0, *sorted(cuts), len(order)]
        for number, (begin, end) in enumerate(itertools.pairwise(ends)):
            part: list[BenchRecord] = []
            for task in order[begin:end]:
                if task in broken:
                    part.append(record(task, run_id="broken", broken="timeout"))
                run_id = f"{number}-{task}"
                part.append(record(task, passed="a#" in task, run_id=run_id, seconds=float(number)))
            pieces = write_runs(Path(scratch, "pieces"), *part)
        assert whole.write_scores().read_bytes() == pieces.write_scores().read_bytes()
        assert len(pieces.discarded()) == len(broken)


def test_a_torn_line_is_no_record_and_tasks_are_sorted_by_number(tmp_path: Path) -> None:
    tasks = [f"sopbench:bank/goal#{index}" for index in (10, 2, 1)]
    folder = write_runs(tmp_path / "runs", *map(record, tasks))
    (path,) = (tmp_path / "runs" / "records").glob("*.jsonl")
    path.write_bytes(path.read_bytes()[:-5])
    assert set(folder.records()) == {"sopbench:bank/goal#10", "sopbench:bank/goal#2"}
    lines = folder.write_scores().read_text().splitlines()
    assert [("goal#2" in lines[0]), ("goal#10" in lines[1])] == [True, True]


def test_another_configuration_is_refused_and_says_what_differs(tmp_path: Path) -> None:
    with pytest.raises(UserMistake, match="not a folder of runs"):
        RunFolder.open(tmp_path)
    RunFolder.create(tmp_path, configuration())
    with pytest.raises(UserMistake) as caught:
        RunFolder.create(tmp_path, configuration(arm="flat"))
    assert "arm differs" in caught.value.diagnostics[0].message
    again = RunFolder.create(tmp_path, configuration())
    assert again.configuration == configuration()


def test_one_sweep_at_a_time(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, configuration())
    with folder.leader(), pytest.raises(UserMistake, match="another sweep"), folder.leader():
        pass
    with folder.leader():
        pass


def test_the_fingerprint_changes_with_everything_it_covers() -> None:
    base = configuration()
    others = [
        configuration(arm="flat"),
        configuration(model="x"),
        configuration(tools="full-state"),
        configuration(sources="t" * 64),
        configuration(sources=""),
    ]
    assert len({each.fingerprint for each in [base, *others]}) == 6


def test_a_sweep_does_not_go_on_with_other_code_and_says_which_files(tmp_path: Path) -> None:
    here = deciding_sources()
    RunFolder.create(tmp_path, configuration(sources=here.fingerprint))
    manifest = tmp_path / "sources.json"
    row = json.loads(manifest.read_text())
    assert row == {"files": here.files}
    then = {
        **here.files,
        "sopilot/machine/machine.py": "0" * 64,
        "sopilot/machine/dropped.py": "1" * 64,
    }
    del then["sopilot/program/model.py"]
    manifest.write_text(json.dumps({**row, "files": then}))
    made = configuration(sources=Sources(then).fingerprint)
    named = tmp_path / "configuration.json"
    named.write_text(json.dumps({**json.loads(named.read_text()), "configuration": made.as_json()}))
    with pytest.raises(UserMistake) as caught:
        RunFolder.create(tmp_path, configuration(sources=here.fingerprint))
    (found,) = caught.value.diagnostics
    assert found.place is not None
    assert found.place.source == str(tmp_path)
    assert found.message.endswith(
        ": other code made it: changed `sopilot/machine/machine.py`; "
        "new `sopilot/program/model.py`; gone `sopilot/machine/dropped.py`"
    )
    assert found.help == "name another folder with -o, or resume with the code that made it"
    manifest.unlink()
    with pytest.raises(UserMistake, match=r"other code made it, and its sources\.json is missing"):
        RunFolder.create(tmp_path, configuration(sources=here.fingerprint))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with both packages."""
    sources = Path(sopilot.__file__).parents[1]
    for name in ("sopilot", "sopilot_lab"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(sources / name, tmp_path / name, ignore=ignored)
    return tmp_path


def test_a_change_anywhere_in_what_decides_a_run_is_seen(package: Path) -> None:
    seen = [read_sources(package)]
    assert seen == [deciding_sources()]
    for name in PACKAGES:
        place = package / name
        source = (
            place
            if place.is_file()
            else next(path for path in sorted(place.rglob("*.py")) if path.name != "__init__.py")
        )
        source.write_text(source.read_text() + "CHANGED = 1\n")
        seen.append(read_sources(package))
    assert len({each.fingerprint for each in seen}) == len(PACKAGES) + 1


def test_a_change_of_the_tables_changes_no_run(package: Path) -> None:
    before = read_sources(package).fingerprint
    (package / "sopilot_lab" / "experiments" / "report" / "new.py").write_text("NEW = 1\n")
    (package / "sopilot" / "cli" / "new.py").write_text("NEW = 1\n")
    assert read_sources(package).fingerprint == before


def test_many_differing_files_are_counted() -> None:
    now = Sources({f"{number}.py": str(number) for number in range(8)})
    assert describe_difference(Sources({}), now) == (
        "new `0.py`, `1.py`, `2.py`, `3.py`, `4.py` and 3 more"
    )
