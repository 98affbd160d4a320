"""What admits a guarded call: the one place that knows the guard.

Everything else of the adversary asks here. The guard takes the machine, the configuration, the
action, its arguments and a judge of verdict expressions, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adversary.handbooks import Book
from adversary.values import JSON
from sopilot.language.handbook.cel import judge
from sopilot.runtime.session.guards import hold_reason
from sopilot.runtime.session.proof import missing_proof
from sopilot.runtime.vm import Configuration, Event

NEEDS_EVENTS = True


def admits(
    book: Book,
    configuration: Configuration,
    action: str,
    arguments: Mapping[str, JSON],
    events: Sequence[Event] = (),
) -> bool:
    if hold_reason(book.machine, configuration, action, arguments) is not None:
        return False
    process = configuration.process
    assert process is not None
    return not missing_proof(book.programs, events, process.id, changes={}, judge=judge)
