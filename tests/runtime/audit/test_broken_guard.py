"""Guard and audit against each other in adversarial sessions: at one while the guard is whole,
apart as soon as one clause of it is off."""

from __future__ import annotations

from collections import Counter

import pytest

from adversary.campaign import campaign
from adversary.sabotage import SABOTAGES, sabotaged
from adversary.session_play import SessionPlay
from sopilot.language.handbook.cel import judge
from sopilot.runtime.audit import audit_trace

MOVES = 4_000
ENOUGH = 3


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What the audit says of every session that ends: unproven calls, and differences."""
    codes: Counter[str] = Counter()
    close = SessionPlay.close

    def audited(play: SessionPlay) -> None:
        close(play)
        session = play.session
        report = audit_trace(session.programs.programs, session.events, judge=judge, ended=False)
        for one in report.findings:
            unproven = "ran unproven" in one.explanation or one.code == "guard-violated"
            if unproven or one.code in ("guard-disagrees", "inconsistent-trace"):
                codes[one.code] += 1

    monkeypatch.setattr(SessionPlay, "close", audited)
    return codes


@pytest.mark.parametrize("through", ["session", "outside"])
def test_a_whole_guard_and_the_audit_agree(found: Counter[str], through: str) -> None:
    campaign(51, moves=MOVES, through=through)
    assert not found


@pytest.mark.parametrize("name", SABOTAGES)
def test_a_clause_that_is_off_shows_in_the_audit(found: Counter[str], name: str) -> None:
    with sabotaged(name):
        campaign(3, moves=MOVES, through="session", stop=lambda _: found.total() >= ENOUGH)
    assert found.total() >= ENOUGH
    assert "inconsistent-trace" not in found
