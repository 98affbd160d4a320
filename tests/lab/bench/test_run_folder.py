from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from pathlib import Path

import pytest
from bench_records import configuration, record
from hypothesis import given, settings
from hypothesis import strategies as st

import sopilot
from sopilot.lab.bench.record import BenchRecord
from sopilot.lab.bench.run_folder import RunFolder
from sopilot.lab.bench.source_fingerprint import ROOMS, deciding_sources, hash_sources
from sopilot.language.diagnostics import UserMistake

TASKS = [f"sopbench:bank/goal_{goal}#{index}" for goal in "ab" for index in range(12)]


def write(folder: RunFolder, *records: BenchRecord) -> None:
    with folder.writer() as writer:
        for each in records:
            writer.write(each)


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
        whole = RunFolder.create(Path(scratch, "whole"), configuration())
        write(whole, *(record(task, passed="a#" in task) for task in TASKS))
        pieces = RunFolder.create(Path(scratch, "pieces"), configuration())
        ends = [0, *sorted(cuts), len(order)]
        for number, (begin, end) in enumerate(itertools.pairwise(ends)):
            part: list[BenchRecord] = []
            for task in order[begin:end]:
                if task in broken:
                    part.append(record(task, run_id="broken", verdict=None))
                run_id = f"{number}-{task}"
                part.append(record(task, passed="a#" in task, run_id=run_id, seconds=float(number)))
            write(pieces, *part)
        assert whole.write_scores().read_bytes() == pieces.write_scores().read_bytes()
        assert len(pieces.discarded()) == len(broken)


def test_a_torn_line_is_no_record_and_tasks_are_sorted_by_number(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", configuration())
    write(folder, *(record(f"sopbench:bank/goal#{index}") for index in (10, 2, 1)))
    (path,) = (tmp_path / "runs" / "records").glob("*.jsonl")
    path.write_bytes(path.read_bytes()[:-5])
    assert set(folder.records()) == {"sopbench:bank/goal#10", "sopbench:bank/goal#2"}
    lines = folder.write_scores().read_text().splitlines()
    assert [("goal#2" in lines[0]), ("goal#10" in lines[1])] == [True, True]


def test_another_configuration_is_refused_and_says_what_differs(tmp_path: Path) -> None:
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


def test_a_foreign_folder_is_not_taken_for_runs(tmp_path: Path) -> None:
    with pytest.raises(UserMistake, match="not a folder of bench runs"):
        RunFolder.open(tmp_path)


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


def test_a_sweep_does_not_go_on_with_other_code(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, configuration())
    with pytest.raises(UserMistake) as caught:
        RunFolder.create(tmp_path, configuration(sources="t" * 64))
    (found,) = caught.value.diagnostics
    assert found.place is not None
    assert found.place.source == str(tmp_path)
    assert found.message.endswith(": other code made it (sources differs)")
    assert found.help == "name another folder with -o, or go on with the code that made it"


def test_a_folder_without_its_sources_can_be_read_and_not_continued(tmp_path: Path) -> None:
    old = configuration(sources="")
    RunFolder.create(tmp_path, old)
    named = tmp_path / "configuration.json"
    row = json.loads(named.read_text())
    del row["configuration"]["sources"]
    named.write_text(json.dumps(row))
    folder = RunFolder.open(tmp_path)
    assert folder.configuration == old
    assert folder.configuration.fingerprint == row["fingerprint"]
    with pytest.raises(UserMistake, match="nobody recorded which code made it"):
        RunFolder.create(tmp_path, configuration())


def test_a_change_anywhere_in_what_decides_a_run_is_seen(tmp_path: Path) -> None:
    for room in ROOMS:
        shutil.copytree(Path(sopilot.__file__).parent / room, tmp_path / room)
    seen = [hash_sources(tmp_path)]
    assert seen == [deciding_sources()]
    for room in ROOMS:
        source = next((tmp_path / room).glob("*.py"))
        source.write_text(source.read_text() + "\n")
        seen.append(hash_sources(tmp_path))
    assert len(set(seen)) == len(ROOMS) + 1


def test_a_change_of_the_tables_changes_no_run(tmp_path: Path) -> None:
    shutil.copytree(Path(sopilot.__file__).parent, tmp_path / "sopilot")
    before = hash_sources(tmp_path / "sopilot")
    (tmp_path / "sopilot" / "lab" / "bench" / "report" / "new.py").write_text("")
    (tmp_path / "sopilot" / "doors" / "cli" / "new.py").write_text("")
    assert hash_sources(tmp_path / "sopilot") == before
