"""What admits a guarded call: the one place that knows the guard.

Everything else of the adversary asks here. The guard takes the machine, the configuration, the
action, its arguments and a judge of verdict expressions, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

from adversary.handbooks import Book
from adversary.values import JSON
from sopilot.language.handbook.cel import judge
from sopilot.runtime.proof import license_call
from sopilot.runtime.session.guards import hold_reason
from sopilot.runtime.vm import Configuration


def admits(
    book: Book,
    configuration: Configuration,
    action: str,
    arguments: Mapping[str, JSON],
) -> bool:
    if hold_reason(book.machine, configuration, action, arguments) is not None:
        return False
    here = book.machine.position(configuration)
    assert here is not None
    return not license_call(book.machine.programs, here, arguments, judge).missing
