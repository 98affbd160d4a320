"""What admits a guarded call: the one place that knows the guard.

Everything else of the adversary asks here. The guard takes the machine, the configuration, the
action, its arguments and a judge of verdict expressions, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

from adversary.handbooks import Book
from adversary.values import JSON
from sopilot.handbook.expressions import judge
from sopilot.machine.proof.guard import hold_reason
from sopilot.machine.proof.licence import Licence, license_call
from sopilot.machine.state import Configuration


def licence_of(
    book: Book,
    configuration: Configuration,
    action: str,
    arguments: Mapping[str, JSON],
) -> Licence | None:
    """``None`` where the call is held."""
    if hold_reason(book.machine, configuration, action, arguments) is not None:
        return None
    here = book.machine.position(configuration)
    assert here is not None
    licence = license_call(book.machine.programs, here, arguments, judge)
    return None if licence.missing else licence
