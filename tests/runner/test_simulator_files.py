"""Ids of sessions are whatever a program gave them; a simulated desk's file is named by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sopilot.runner.options import forget_simulators, simulator_file


@pytest.mark.parametrize("session_id", ["../precious", "/precious", "a/../../precious", "x" * 300])
def test_no_id_leads_out_of_the_folder(tmp_path: Path, session_id: str) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    precious = tmp_path / "precious.json"
    precious.write_text("{}", "utf-8")
    file = simulator_file(session_id, store)
    assert file.parent == tmp_path / "simulators"
    assert len(file.name) < 255
    forget_simulators([session_id], store)
    assert precious.exists()


def test_an_id_of_ours_is_the_name(tmp_path: Path) -> None:
    assert simulator_file("ab-1_c", f"sqlite:{tmp_path / 's.db'}").name == "ab-1_c.json"


def test_a_killed_process_leaves_no_words_of_an_erased_session(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    file = simulator_file("ab-1_c", store)
    file.parent.mkdir()
    other = file.with_name(".ab-1.json.x1y2")
    for each in (file, file.with_name(f".{file.name}.x1y2"), other):
        each.write_text("{}", "utf-8")
    forget_simulators(["ab-1_c"], store)
    assert list(file.parent.iterdir()) == [other]
