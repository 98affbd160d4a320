"""What of a session must not be kept or shown in clear: the values of secret inputs.

In the trace a digest stands for them, as for every value that is kept beside it; a text that
holds one is kept beside it as a whole. What the user says is always kept there: when it is
said, nobody knows yet which word of it is the password.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sopilot.runtime.session.program_set import ProgramSet
from sopilot.runtime.trace import SealedEvent, mask, restore, secrets_under
from sopilot.runtime.vm import JSON, Configuration, Event

_UNREAD = frozenset({"arguments", "problem"})
"""Of a call that could not be read, and that may have had a secret in it."""


class Secrets:
    """``names`` are those of secret inputs, ``values`` what was passed under them."""

    def __init__(self, programs: ProgramSet, configuration: Configuration) -> None:
        self.names = programs.secrets
        self.values: frozenset[str] = frozenset()
        if self.names:
            called = [
                dict(one.arguments)
                for some in configuration.answers.values()
                for one in some.values()
            ]
            called += [dict(one.arguments) for one in configuration.pending.values()]
            called += [dict(one.known) for one in configuration.processes.values()]
            self.learn(called)

    def learn(self, payload: JSON) -> None:
        self.values |= secrets_under(self.names, payload)

    def hidden_in(self, event: Event) -> frozenset[str]:
        """The fields of an event that are kept beside the trace whatever they hold."""
        if event.kind == "user_said":
            return self.names | {"text"}
        if event.kind == "note" and str(event.payload.get("name", "")).startswith("malformed"):
            return self.names | _UNREAD
        return self.names

    def masked(self, text: str) -> str:
        return str(mask(text, self.values)) if self.values else text


def shown_events(
    events: Sequence[SealedEvent], payloads: Mapping[str, JSON], names: frozenset[str]
) -> list[Event]:
    """The events as people may see them: restored, but for what stands under ``names``, and
    with the values of those made unreadable wherever else they stand."""
    whole = [restore(sealed.event, payloads) for sealed in events]
    if not names:
        return whole
    values = frozenset(secrets_under(names, [event.payload for event in whole]))
    found: list[Event] = []
    for sealed, event in zip(events, whole, strict=True):
        payload = _kept_back(event.payload, sealed.event.payload, names)
        masked = mask(payload, values)
        found.append(event._replace(payload=masked if isinstance(masked, Mapping) else {}))
    return found


def _kept_back(whole: JSON, kept: JSON, names: frozenset[str]) -> JSON:
    """The restored value with the references under ``names`` back in their places."""
    if isinstance(whole, Mapping):
        inner: Mapping[str, JSON] = kept if isinstance(kept, Mapping) else {}
        return {
            key: inner.get(key, "•••")
            if key in names and item is not None
            else _kept_back(item, inner.get(key), names)
            for key, item in whole.items()
        }
    if isinstance(whole, list):
        others = kept if isinstance(kept, list) and len(kept) == len(whole) else [None] * len(whole)
        return [_kept_back(item, other, names) for item, other in zip(whole, others, strict=True)]
    return whole
