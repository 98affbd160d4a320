"""What the calls of a transcript prove about a leaf, where nobody else knows its truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sopilot.language.diagnostics import SopilotError
from sopilot.language.handbook import Handbook, Leaf, Predicate
from sopilot.language.handbook.wording import fill, template
from sopilot.runtime.audit._acceptance import Truth
from sopilot.runtime.audit._requirement import leaf_values, supporting_calls
from sopilot.runtime.audit.transcript import TranscriptCall
from sopilot.runtime.vm.values import JSON, Judge

TruthAt = Callable[[int, str, Mapping[str, JSON]], bool | None]
"""What is known of a predicate when call number ``index`` was made: (index, predicate,
parameters) → truth, ``None`` where nobody knows."""

UNKNOWN = "…"


@dataclass(slots=True)
class Proof:
    """``made`` are the calls so far that can show something."""

    handbook: Handbook
    machine: Judge | None = None
    oracle: TruthAt | None = None
    made: list[TranscriptCall] = field(default_factory=list)

    def calls(self, leaf: Leaf, values: Mapping[str, JSON]) -> list[TranscriptCall] | None:
        return supporting_calls(self.handbook, leaf, values, self.made)

    def known(self, index: int, values: Mapping[str, JSON]) -> Callable[[Leaf], Truth]:
        """The truth of predicates, each looked up once."""
        cache: dict[Leaf, Truth] = {}

        def known(leaf: Leaf) -> Truth:
            bare = Leaf(leaf.predicate, leaf.arguments)
            if bare not in cache:
                cache[bare] = self._truth(index, bare, values)
            return cache[bare]

        return known

    def is_unproven(self, leaf: Leaf, values: Mapping[str, JSON]) -> bool:
        """Whether the leaf was checked and nothing came of it: calls that failed or were never
        answered, or answers that its machine verdict cannot be evaluated on."""
        calls = self.calls(leaf, values)
        if self.oracle is not None or calls is None or any(call.by_tool for call in calls):
            return False
        predicate = self.handbook.predicates[leaf.predicate]
        if predicate.is_gate and predicate.verdict is None:
            return not all(call.answered for call in calls)
        telling = self._telling(leaf, values)
        if telling is None:
            return True
        return self._judged_by_machine(predicate, leaf, values) and (
            self._verdict(predicate, leaf, values, telling) is None
        )

    def sentence(self, leaf: Leaf, values: Mapping[str, JSON]) -> str:
        """The SOP's sentence under the values of a call; what is not known is left open."""
        predicate = self.handbook.predicates[leaf.predicate]
        known = {name: value for name, value in leaf_values(leaf, values).items() if value != ""}
        holes = dict.fromkeys(predicate.parameters, UNKNOWN)
        return fill(template(predicate, leaf), {**self.handbook.parameters, **holes, **known})

    # --- truth -----------------------------------------------------------------------

    def _truth(self, index: int, leaf: Leaf, values: Mapping[str, JSON]) -> Truth:
        if self.oracle is not None:
            return self.oracle(index, leaf.predicate, leaf_values(leaf, values))
        predicate = self.handbook.predicates[leaf.predicate]
        calls = self.calls(leaf, values)
        if calls is None:
            return None
        if predicate.is_gate and predicate.verdict is None:
            answered = all(call.answered for call in calls)
            return any(call.ok for call in calls) if answered else None
        telling = self._telling(leaf, values)
        if telling is None or not self._judged_by_machine(predicate, leaf, values):
            return None
        return self._verdict(predicate, leaf, values, telling)

    def _telling(self, leaf: Leaf, values: Mapping[str, JSON]) -> list[TranscriptCall] | None:
        told = [
            one for one in self.made if one.answered and (one.ok or isinstance(one.value, bool))
        ]
        return supporting_calls(self.handbook, leaf, values, told)

    def _judged_by_machine(
        self, predicate: Predicate, leaf: Leaf, values: Mapping[str, JSON]
    ) -> bool:
        if predicate.verdict is None or self.machine is None:
            return False
        return leaf_values(leaf, values).keys() >= set(predicate.parameters)

    def _verdict(
        self,
        predicate: Predicate,
        leaf: Leaf,
        values: Mapping[str, JSON],
        calls: list[TranscriptCall],
    ) -> Truth:
        assert self.machine is not None
        assert predicate.verdict is not None
        variables: dict[str, JSON] = {**self.handbook.parameters, **leaf_values(leaf, values)}
        variables["results"] = {call.action: call.value for call in calls}
        variables["result"] = calls[-1].value if calls else None
        try:
            return self.machine(predicate.verdict, variables)
        except SopilotError:
            return None
