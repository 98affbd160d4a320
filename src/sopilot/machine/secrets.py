"""Values of secret inputs, which must not be stored or shown in clear.

The trace holds a digest of each; the value itself, and any text that contains it, is stored beside
the trace. Free text of people and models is always stored there, because it may contain a password
that isn't known yet. So is an argument with an undeclared name: it may be a misspelled password.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from sopilot.machine.call_ledger import HeldCall
from sopilot.machine.program_set import ProgramSet
from sopilot.trace.chain import SealedEvent
from sopilot.trace.events import Event
from sopilot.trace.redaction import (
    MASK,
    REF,
    SecretTexts,
    is_reference,
    mask,
    restore,
    secrets_under,
)
from sopilot.values.json import JSON, plain_mapping

WRITTEN = frozenset({"calls", "answers"})
"""Fields of notes that keep a model's calls, and their answers, word for word."""


_WORDS: Mapping[str, frozenset[str]] = {
    "user_said": frozenset({"text"}),
    "assistant_said": frozenset({"text"}),
    "fail": frozenset({"reason"}),
    "complete": frozenset({"summary"}),
    "emit_artifact": frozenset({"content"}),
    "return": frozenset({"value"}),
    "decision": frozenset({"reason"}),
    "note": frozenset({"reason", *WRITTEN}),
}
"""Fields with free text."""

_NONE: frozenset[str] = frozenset()

_UNREAD = frozenset({"arguments", "problem"})
"""Of a call that could not be read, and that may have had a secret in it."""


class _Supplied(NamedTuple):
    """The arguments of an event, the action or goal that they are for, and their declared names."""

    arguments: Mapping[str, JSON]
    declared: frozenset[str] | None


class SecretPlaces:
    """Where in an event secrets stand, as far as the programs tell: ``names`` are those of
    secret inputs. Elsewhere a secret is recognised by its value."""

    def __init__(self, programs: ProgramSet) -> None:
        self.names = programs.secrets
        self._inputs: dict[str, frozenset[str]] = {}
        self._goals: dict[str, frozenset[str]] = {}
        self._all: frozenset[str] = self.names
        self._knows_all = False
        if self.names:
            self._read(programs)

    def _read(self, programs: ProgramSet) -> None:
        inputs: dict[str, set[str]] = {}
        for goal, program in programs.programs.items():
            for action, facts in program.actions.items():
                inputs.setdefault(action, set()).update(facts.inputs)
                self._knows_all = True
            for function in program.functions.values():
                self._all |= {*function.parameters, *function.optional}
                acts = [act for recipe in function.recipes for act in recipe]
                for act in (*acts, *filter(None, (function.closed_by,))):
                    inputs.setdefault(act.action, set()).update(name for name, _ in act.arguments)
            self._goals[goal] = frozenset(program.functions[program.entry].parameters)
        self._inputs = {action: frozenset(names) for action, names in inputs.items()}
        self._all |= frozenset(name for names in inputs.values() for name in names)

    def fields_in(self, event: Event) -> frozenset[str]:
        """The fields of an event that are kept beside the trace, wherever they stand in it."""
        kind, payload = event.kind, event.payload
        if kind == "rejected":
            request = payload.get("operation")
            message = request.get("operation") if isinstance(request, Mapping) else ""
            return self.names | {"reason"} | _WORDS.get(str(message), frozenset())
        if _is_unread(event):
            return self.names | _UNREAD
        return self.names | _WORDS.get(kind, frozenset())

    def strange_in(self, event: Event) -> frozenset[str]:
        """The undeclared names of its arguments."""
        return self._strange(self._supplied(event.kind, event.payload))

    def _strange(self, value: _Supplied | None) -> frozenset[str]:
        if not self.names or value is None or value.declared is None:
            return _NONE  # where nothing is secret, no name is a misspelt one
        return frozenset(value.arguments) - value.declared - self.names

    def kept_back_in(self, event: Event) -> frozenset[str]:
        """The names of an event whose values are never shown."""
        unread = WRITTEN if event.kind == "note" else frozenset()
        if _is_unread(event):
            unread |= {"arguments"}
        return self.names | unread | self.strange_in(event)

    def values_in(self, event: Event) -> set[str]:
        """The secrets that the event shows. An argument that is not declared for its call is one
        where the call leaves out a secret that it should have had, or nothing goes by its name."""
        return self.read(event)[0]

    def read(self, event: Event) -> tuple[set[str], frozenset[str]]:
        """The secrets that it shows, and what is strange in it."""
        meant = _as_meant(event)
        result = secrets_under(self.names, meant.payload)
        value = self._supplied(meant.kind, meant.payload)
        strange = self._strange(value)
        if strange and value is not None and value.declared is not None:
            left_out = (value.declared & self.names) - value.arguments.keys()
            result |= secrets_under(strange if left_out else strange - self._all, value.arguments)
        return result, strange if meant is event else self.strange_in(event)

    def _supplied(self, kind: str, payload: Mapping[str, JSON]) -> _Supplied | None:
        inner = payload.get("operation" if kind == "rejected" else "details")
        if isinstance(inner, Mapping):
            if kind == "rejected":
                return self._supplied(str(inner.get("operation")), inner)
            payload = inner
        arguments = payload.get("arguments")
        if not isinstance(arguments, Mapping) or not arguments:
            return None
        if kind == "start":
            return _Supplied(arguments, self._goals.get(str(payload.get("goal")), frozenset()))
        if kind == "domain_call" or (kind == "note" and "action" in payload):
            return _Supplied(arguments, self.inputs(str(payload.get("action"))))
        return _Supplied(arguments, self._all)

    def inputs(self, action: str) -> frozenset[str] | None:
        """``None`` where nothing tells: programs that guard nothing name no other actions than
        those that they call."""
        return self._inputs.get(action, frozenset() if self._knows_all else None)


@lru_cache(maxsize=32)
def secret_places(programs: ProgramSet) -> SecretPlaces:
    """Read once, however many sessions run these programs."""
    return SecretPlaces(programs)


class Secrets:
    """``places`` say where secrets stand, ``values`` are what was passed there in these events."""

    def __init__(self, programs: ProgramSet, events: Iterable[Event]) -> None:
        self.places = secret_places(programs)
        self.names = self.places.names
        self.values = SecretTexts()
        if self.names:
            names = "|".join(map(re.escape, sorted(self.names)))
            self._stated = re.compile(rf"^(\s*(?:{names})\s*[:=][ \t]*).+$", re.MULTILINE)
            for event in events:
                self.learn(event)

    def learn(self, event: Event) -> frozenset[str]:
        """The undeclared names in it."""
        result, strange = self.places.read(event)
        self.values.learn(result)
        return strange

    def masked(self, text: str) -> str:
        """Without secrets that a call has passed, and without those that a line names."""
        if self.names:
            text = self._stated.sub(rf"\1{MASK}", text)
        return str(mask(text, self.values)) if self.values else text

    def shown(self, action: str, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
        """The arguments of a call as people may see them."""
        if not self.names:
            return dict(arguments)
        declared = self.places.inputs(action)
        clear = {
            key: MASK
            if item is not None
            and (key in self.names or (declared is not None and key not in declared))
            else item
            for key, item in arguments.items()
        }
        masked = mask(clear, self.values, data=True)
        return dict(masked) if isinstance(masked, Mapping) else {}

    def shown_call(self, held: HeldCall) -> HeldCall:
        """A held call as people may see it."""
        if not self.names:
            return held
        return replace(
            held,
            arguments=self.shown(held.action, held.arguments),
            why=self.masked(held.why),
            rulings=tuple(
                replace(ruling, reason=mask(ruling.reason, self.values)) for ruling in held.rulings
            ),
        )

    def shown_decision(self, decision: JSON, held: Mapping[str, HeldCall]) -> JSON:
        """A decision that isn't recorded yet, as people may see it."""
        if not isinstance(decision, Mapping):
            return decision
        clear, value = dict(decision), decision.get("arguments")
        about = held.get(str(decision.get("call_id")))
        if isinstance(value, Mapping):
            clear["arguments"] = self.shown(about.action if about is not None else "", value)
        return mask(clear, self.values)


def shown_events(
    events: Sequence[SealedEvent], payloads: Mapping[str, JSON], places: SecretPlaces | None
) -> list[Event]:
    """The events as people may see them: restored, but for what is secret by its place, and with
    the values of those made unreadable wherever else they stand."""
    whole = [restore(sealed.event, payloads) for sealed in events]
    if places is None or not places.names:
        return whole
    values = SecretTexts(set[str]().union(*map(places.values_in, whole)))
    result: list[Event] = []
    for sealed, event in zip(events, whole, strict=True):
        payload = _kept_back(event.payload, sealed.event.payload, places.kept_back_in(event))
        masked = mask(payload, values)
        result.append(event._replace(payload=masked if isinstance(masked, Mapping) else {}))
    return result


def has_all_contents(
    events: Sequence[SealedEvent], payloads: Mapping[str, JSON], places: SecretPlaces
) -> bool:
    """Whether every value beside the trace is at hand, except secrets and people's own words:
    an audit says for each of those where it would have needed it."""
    return all(
        ref in payloads
        for event in (sealed.event for sealed in events)
        for ref in _contents(event.payload, places.fields_in(event) | places.strange_in(event))
    )


_HOLD_CONTENTS = frozenset({"arguments", "bound", "details", "licence"})
"""Fields whose own fields stand beside the trace one by one. A reference deeper than that is
there because it holds a secret."""


def _contents(payload: Mapping[str, JSON], words: frozenset[str]) -> Iterator[str]:
    for name, value in payload.items():
        if name in words:
            continue
        if is_reference(value):
            yield str(value[REF])
        elif name in _HOLD_CONTENTS and isinstance(value, Mapping):
            yield from _contents(value, words)


def _as_meant(event: Event) -> Event:
    """A call that was not made, since it does not fit its tool, with arguments that can be read:
    what was passed in it as a secret is one."""
    if not _is_unread(event):
        return event
    try:
        request = json.loads(str(event.details["arguments"]))
    except (ValueError, LookupError, RecursionError):
        return event
    if not isinstance(request, Mapping):
        return event
    meant = {"action": str(event.details.get("tool")), "arguments": plain_mapping(request)}
    return event._replace(kind="domain_call", payload=meant)


def _is_unread(event: Event) -> bool:
    return event.note.startswith("malformed")


def _kept_back(whole: JSON, value: JSON, names: frozenset[str]) -> JSON:
    """The restored value with the references under ``names`` back in their places."""
    if isinstance(whole, Mapping):
        inner: Mapping[str, JSON] = value if isinstance(value, Mapping) else {}
        return {
            key: inner.get(key, MASK)
            if key in names and item is not None
            else _kept_back(item, inner.get(key), names)
            for key, item in whole.items()
        }
    if isinstance(whole, list):
        others = (
            value if isinstance(value, list) and len(value) == len(whole) else [None] * len(whole)
        )
        return [_kept_back(item, other, names) for item, other in zip(whole, others, strict=True)]
    return whole
