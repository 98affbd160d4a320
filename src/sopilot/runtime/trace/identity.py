"""How a trace says who stood behind a decision: proven, or not."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.runtime.vm.values import JSON

MACHINE = "machine"
UNAUTHENTICATED = "unauthenticated"


def identity_of(principal: JSON) -> str:
    """In a word or two: how whoever decided proved who they are."""
    if not isinstance(principal, Mapping) or not principal.get("method"):
        return UNAUTHENTICATED
    word = str(principal["method"])
    word = {MACHINE: "the machine itself"}.get(word, word)
    return f"{word}, {principal['through']}" if principal.get("through") else word
