"""The reference executor's own judgement of a predicate, on the results that it has seen."""

from __future__ import annotations

import pytest

from sopilot.agent.reference.judging import Seen, VerdictJudge
from sopilot.handbook.reader import load_handbook

LEVEL = """
handbook: till
actions:
  login: {input: {user: string, password: string}}
  pay: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  strong(user): {says: ok, established_by: "login(user, password)", verdict: "result.level >= 2"}
procedures:
  pay: {requires: strong(user)}
"""


@pytest.mark.parametrize(
    ("answers", "holds"),
    [
        ([(True, 2)], True),
        ([(True, 1), (True, 2)], True),
        ([(True, 2), (True, 1)], False),
        ([(True, 2), (False, 1)], True),
        ([(False, 2)], False),
        ([], False),
    ],
)
def test_a_gate_is_judged_by_its_newest_success(
    answers: list[tuple[bool, int]], holds: bool
) -> None:
    arguments = {"user": "ann", "password": "x"}
    seen = [
        Seen(seq, "login", arguments, ok, {"level": level})
        for seq, (ok, level) in enumerate(answers)
    ]
    judge = VerdictJudge(load_handbook(LEVEL, "till.yaml"))
    assert judge("strong", {"user": "ann"}, seen) is holds
