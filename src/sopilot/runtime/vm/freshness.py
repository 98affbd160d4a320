"""P4 and P5: whether an answer is the newest, and nothing may have changed what it says since."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sopilot.language.handbook import CONFIRM, values_asked_about
from sopilot.language.program.model import ActionFacts
from sopilot.runtime.vm.position import Programs
from sopilot.runtime.vm.state import NEVER, Answered, Configuration, Observed
from sopilot.runtime.vm.values import JSON, key_of, same

_UNKNOWN = ActionFacts({})
"""Of an action that nobody described: it changes everything, and reads everything."""


def changes(programs: Programs, action: str) -> tuple[str, ...] | None:
    """The topics that a success of ``action`` may change; ``None`` is everything.

    Programs that guard nothing carry no facts: there only what a program is for changes
    anything.
    """
    if not programs.actions:
        return None if action in programs.goal_actions else ()
    return programs.actions.get(action, _UNKNOWN).changes


def may_disturb(programs: Programs, action: str, verifier: str) -> bool:
    known = programs.disturbs.get((action, verifier))
    if known is None:
        known = _may_disturb(programs, action, verifier)
        # Only what the programs name: whoever calls may think of names without end.
        if action in programs.actions and verifier in programs.actions:
            programs.disturbs[action, verifier] = known
    return known


def _may_disturb(programs: Programs, action: str, verifier: str) -> bool:
    touched = changes(programs, action)
    if touched == ():
        return False
    read = programs.actions.get(verifier, _UNKNOWN).reads
    return touched is None or read is None or not set(touched).isdisjoint(read)


def stale_since(
    programs: Programs, configuration: Configuration, verifier: str, newest: Answered
) -> str:
    """What may have changed since ``newest`` was asked for, in words; empty when nothing."""
    for action, by_arguments in configuration.answers.items():
        if not may_disturb(programs, action, verifier):
            continue
        latest = max(
            (one.touched for one in by_arguments.values() if one is not newest), default=NEVER
        )
        if latest > newest.call_seq:
            return f"`{action}` (#{latest}) may have changed it since"
    for pending in configuration.pending.values():
        if pending.seq != newest.call_seq and may_disturb(programs, pending.action, verifier):
            return f"`{pending.action}` (#{pending.seq}) may be changing it, its outcome is unknown"
    return _used_up(configuration, newest) if verifier == CONFIRM else ""


def asked_otherwise(
    programs: Programs,
    configuration: Configuration,
    action: str,
    arguments: Mapping[str, JSON],
    newest: Answered,
) -> int:
    """The same call since, but for arguments that the action does not know, by its number; 0 where
    there is none. Whatever it was told beside, it answered what was asked before."""
    facts = programs.actions.get(action)
    declared: Collection[str] = facts.inputs.keys() if facts is not None else ()

    def is_it(given: Mapping[str, JSON]) -> bool:
        more = given.keys() - arguments.keys()
        shared = {name: one for name, one in given.items() if name in arguments}
        return bool(more) and more.isdisjoint(declared) and same(shared, dict(arguments))

    for other in configuration.answers.get(action, {}).values():
        if other.seq > newest.seq and is_it(other.arguments):
            return other.seq
    for pending in configuration.pending.values():
        if pending.action == action and is_it(pending.arguments):
            return pending.seq
    return 0


def _used_up(configuration: Configuration, newest: Answered) -> str:
    """A yes serves one call, whatever the action says that it changes."""
    action = str(newest.arguments.get("action"))
    confirmed = key_of(values_asked_about(CONFIRM, newest.arguments))
    made = configuration.answers.get(action, {}).get(confirmed)
    if made is None or made.touched <= newest.call_seq:
        return ""
    return f"`{action}` (#{made.touched}) was carried out on it, and a yes serves one call"


def is_current(programs: Programs, configuration: Configuration, result: Observed) -> bool:
    """Whether a result still says how things are: asking again would tell nothing new."""
    key = key_of(result.arguments)
    newest = configuration.answers.get(result.action, {}).get(key)
    if newest is None or newest.seq != result.seq:
        return False
    if any(
        one.action == result.action and key_of(one.arguments) == key
        for one in configuration.pending.values()
    ):
        return False
    return not may_disturb(programs, result.action, result.action) and not stale_since(
        programs, configuration, result.action, newest
    )
