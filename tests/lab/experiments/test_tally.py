from __future__ import annotations

from bench_records import verdict

from sopilot_lab.sopbench.recorded import sequence_only, tally


def test_goals_not_reached_and_wrongly_reached_are_counted_apart() -> None:
    counts = tally(
        [
            verdict(should=True, passed=True),
            verdict(should=True, passed=False),
            verdict(should=False, passed=True),
            verdict(should=False, passed=False),
            verdict(should=False, passed=False, action_successfully_called=False),
        ]
    )
    assert (counts.n, counts.passed) == (5, 2)
    assert (counts.execute, counts.execute_passed) == (2, 1)
    assert (counts.refuse, counts.refuse_passed) == (3, 1)
    assert (counts.not_reached, counts.wrongly_reached) == (1, 1)
    assert counts.balanced == (1 / 2 + 1 / 3) / 2


def test_only_the_order_of_calls_makes_a_sequence_failure() -> None:
    wrong_order = {"dirgraph_satisfied": False, "action_called_correctly": True}
    assert sequence_only(verdict(should=True, passed=False, **wrong_order))
    assert not sequence_only(
        verdict(should=True, passed=False, database_match=False, **wrong_order)
    )
    assert not sequence_only(verdict(should=True, passed=True))


def test_balanced_accuracy_needs_both_classes() -> None:
    assert tally([verdict(should=True, passed=True)]).balanced is None
