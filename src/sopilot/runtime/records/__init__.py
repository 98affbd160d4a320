"""What can be said of all sessions together: which actions there were, and that none is left out.

Owns the register of actions (folded from events), the log of sessions with its
Merkle tree, sealed heads, and what a store must keep of them. Pure: stores give
it rows and take rows from it. May import ``trace``, ``vm`` and the ``language``
wing; ``session`` keeps the register up, ``adapters`` keep the rows.
"""

from sopilot.runtime.records._action import ActionEntry, ActionOutcome, ActionRow
from sopilot.runtime.records._register import FOLDED, Register
from sopilot.runtime.records._selection import (
    Condition,
    Selected,
    Wanted,
    read_condition,
    read_moment,
    select,
    value_at,
)
from sopilot.runtime.records._store import Records

__all__ = [
    "FOLDED",
    "ActionEntry",
    "ActionOutcome",
    "ActionRow",
    "Condition",
    "Records",
    "Register",
    "Selected",
    "Wanted",
    "read_condition",
    "read_moment",
    "select",
    "value_at",
]
