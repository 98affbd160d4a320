"""Wherever a process is killed, trace, register, log and journals agree at the next start."""

from __future__ import annotations

from unittest.mock import patch

from crashes import crashed


def test_they_agree_wherever_the_work_breaks_off() -> None:
    for point in (1, 30, 83, 190, 300, 410, 520, 640):
        went, found = crashed(point, seed=3)
        assert went
        assert found == []


def test_a_register_that_is_not_kept_up_would_be_seen() -> None:
    with patch("sopilot.stores.sqlite._ADD_ACTION", "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?"):
        found = [one for point in (300, 500) for one in crashed(point, seed=3)[1]]
    assert any("disagree" in one for one in found)
