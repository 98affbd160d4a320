"""Paging, and paging at the price of a resident program: `pg`, `fused` and their switches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from sopilot.language.render import words
from sopilot.runtime.agent.arms._answers import Answers
from sopilot.runtime.agent.arms._arm import Arm
from sopilot.runtime.agent.arms._folding import fold_dialog
from sopilot.runtime.agent.arms._lookahead import start_lookahead, verdict_lookahead
from sopilot.runtime.agent.arms._offers import Offer
from sopilot.runtime.agent.arms._view import View
from sopilot.runtime.agent.arms.machine_state import evidence_line, frame_slot
from sopilot.runtime.vm import Automation


@dataclass(frozen=True, slots=True)
class FusedSwitches:
    """Each can be measured alone.

    ``enter_calls``: the machine enters calls, takes branches and leaves groups.
    ``reuse``: what the process has judged or called already, and is still fresh, is not asked
    again.
    ``machine_verdicts``: the machine judges what it can judge.
    ``combine``: a verdict and what follows it in one message; the slot looks ahead.
    ``fold``: bookkeeping and old blocks of the dialog are not sent again.
    ``short_step``: the bookkeeping tool in few words; one call may hold several verdicts.
    ``stated``: values that the user stated by name are the program's without being copied.
    ``offer``: which tool schemas a request carries.
    """

    enter_calls: bool = True
    reuse: bool = True
    machine_verdicts: bool = True
    combine: bool = True
    fold: bool = True
    short_step: bool = True
    stated: bool = True
    offer: Offer = Offer.ALL


ALL_ON: Final = FusedSwitches()
ALL_OFF: Final = FusedSwitches(False, False, False, False, False, False, False)
PAGED: Final = replace(ALL_OFF, enter_calls=True, reuse=True)
"""`pg`: one frame, one move; what needs no judgement is the machine's."""


def fused_arm(switches: FusedSwitches = ALL_ON, name: str = "fused") -> Arm:
    """The arm with these switches. With none of them it is `pg-paper` that lists evidence."""
    return Arm(
        name,
        True,
        slot=_looking_ahead if switches.combine else _with_evidence,
        automation=Automation(
            take_branches=switches.enter_calls,
            group_returns=switches.enter_calls,
            enter_calls=switches.enter_calls,
            bind_evidence=switches.reuse,
            machine_verdicts=switches.machine_verdicts,
            reuse_verdicts=switches.reuse,
        ),
        fold=fold_dialog if switches.fold else None,
        offer=switches.offer,
        guidance="fused" if switches.combine else "machine",
        answers=Answers.SHORT if switches.fold else Answers.WHOLE,
        in_order=switches.combine,
        short_step=switches.short_step,
        stated=switches.stated,
        frames_only=True,
    )


def _with_evidence(view: View) -> str:
    here = view.here
    lines = [frame_slot(view)]
    if here is not None:
        table = words(view.briefing.language)
        lines += evidence_line(here, table) or [table["gathered"].format(items=table["nothing"])]
    return "\n".join(lines)


def _looking_ahead(view: View) -> str:
    lines = verdict_lookahead(view) if view.here is not None else start_lookahead(view)
    return "\n".join([_with_evidence(view), *lines])
