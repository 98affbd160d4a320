"""The programs of a session: hashed, written and laid out once, however many sessions run them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain

from sopilot.handbook.expressions import free_names
from sopilot.handbook.grammar import NOW
from sopilot.machine.evidence import changes
from sopilot.machine.layout import Limits
from sopilot.machine.machine import Machine
from sopilot.messages.errors import StoreCorrupt
from sopilot.program.codec import program_from_yaml, program_to_yaml
from sopilot.program.model import Act, Guarded, Program


class ProgramSet:
    """Goal → program, with the hash and the text of each. Not changed after it is made."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        # As a store gives them back: what lists the goals reads the same after a resumption.
        self.programs = dict(sorted(programs.items()))
        self.hashes: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        for goal, program in self.programs.items():
            text = program_to_yaml(program)
            digest = hashlib.sha256(text.encode()).hexdigest()
            self.hashes[goal] = digest
            self.texts[digest] = text
        self.guarded: dict[str, Guarded] = guarded_actions(self.programs)
        self.passed = _passed_inputs(self.programs)
        self.reads_clock = any(map(_reads_clock, self.programs.values()))
        self.secrets = frozenset(name for item in self.programs.values() for name in item.secrets)
        self._machines: dict[Limits, Machine] = {}

    def machine(self, limits: Limits) -> Machine:
        machine = self._machines.get(limits)
        if machine is None:
            machine = Machine(self.programs, limits=limits, hashes=self.hashes)
            self._machines[limits] = machine
        return machine

    def changing(self, action: str) -> bool:
        """Whether a success of ``action`` may change anything beside gates."""
        return changes(self.machine(Limits()).programs, action) != ()

    @classmethod
    def of(cls, programs: Mapping[str, Program] | ProgramSet) -> ProgramSet:
        return programs if isinstance(programs, ProgramSet) else cls(programs)

    @classmethod
    def from_texts(cls, hashes: Mapping[str, str], texts: Mapping[str, str]) -> ProgramSet:
        """From stored artifacts. A text that its hash does not name is refused."""
        return _read(
            tuple((goal, item, texts.get(item, "")) for goal, item in sorted(hashes.items()))
        )


def guarded_actions(programs: Mapping[str, Program]) -> dict[str, Guarded]:
    """Action → its guard. Programs of one handbook agree; where they do not, the stricter holds."""
    guardeds: dict[str, Guarded] = {}
    for program in programs.values():
        for guarded in program.guarded:
            earlier = guardeds.get(guarded.action)
            if earlier is None or earlier == guarded:
                guardeds[guarded.action] = guarded
                continue
            stricter = guarded if guarded.needed > earlier.needed else earlier
            guardeds[guarded.action] = replace(
                stricter,
                recheck=guarded.recheck or earlier.recheck,
                when=guarded.when if guarded.when == earlier.when else None,
                not_done=guarded.not_done if guarded.not_done == earlier.not_done else None,
            )
    return guardeds


def _passed_inputs(programs: Mapping[str, Program]) -> dict[str, set[str]]:
    """Action → the inputs that a step passes to it."""
    passed: dict[str, set[str]] = {}
    for function in chain.from_iterable(item.functions.values() for item in programs.values()):
        for step in (*function.steps, *chain(*function.fallbacks), function.closed_by):
            if isinstance(step, Act):
                passed.setdefault(step.action, set()).update(name for name, _ in step.arguments)
    return passed


@lru_cache(maxsize=32)
def _read(stored: tuple[tuple[str, str, str], ...]) -> ProgramSet:
    """Goal, hash and text of each: sessions that run the same programs share what they say."""
    programs = {}
    for goal, digest, text in stored:
        if hashlib.sha256(text.encode()).hexdigest() != digest:
            raise StoreCorrupt(f"the stored program of `{goal}` doesn't match its hash")
        programs[goal] = program_from_yaml(text, f"{goal}.yaml")
    program_set = ProgramSet(programs)
    # Another release may spell an artifact differently; the stored spelling is the name.
    program_set.hashes = {goal: digest for goal, digest, _ in stored}
    program_set.texts = {digest: text for _, digest, text in stored}
    return program_set


def _reads_clock(program: Program) -> bool:
    """Whether an expression reads ``now``, and the author gave that name no other meaning."""
    functions = any(function.reads_clock for function in program.functions.values())
    conditions = (item.when for item in program.guarded if item.when is not None)
    reads = functions or any(NOW in free_names(condition) for condition in conditions)
    return reads and NOW not in program.constants
