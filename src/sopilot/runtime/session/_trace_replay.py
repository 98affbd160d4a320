"""A trace file run again, with the programs it carries."""

from __future__ import annotations

from sopilot.runtime.session._trace_file import TraceFile
from sopilot.runtime.session.program_set import ProgramSet
from sopilot.runtime.session.recovery import Recovered, program_changes, recover, whole_events
from sopilot.runtime.trace import head
from sopilot.runtime.vm import Limits, TraceError


def replay_trace(trace: TraceFile) -> Recovered:
    """Where the run stood at the end of the file.

    Raises ``TraceBroken`` when the chain does not hold, ``TraceError`` when the
    events are not what the programs make or a program did not come along.
    """
    named = [dict(trace.programs)]
    named += [changed for _, changed in program_changes(whole_events(trace.events, trace.payloads))]
    for hashes in named:
        for goal, digest in hashes.items():
            if digest not in trace.program_texts:
                raise TraceError(f"the program of `{goal}` did not come along")
    sets = {
        frozenset(hashes.items()): ProgramSet.from_texts(hashes, trace.program_texts)
        for hashes in named
    }
    return recover(
        trace.session_id,
        trace.events,
        head=head(trace.session_id, trace.events),
        hashes=trace.programs,
        programs=sets,
        payloads=trace.payloads,
        limits=Limits(),
    )
