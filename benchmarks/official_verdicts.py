"""SOPBench's recorded trajectories, and what its own simulator and evaluator say of their calls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sopilot.audit.state import SessionCall
from sopilot.audit.transcript_files import (
    Transcript,
    read_messages,
    success_first_outcome,
)
from sopilot.audit.transcript_reading import Reading
from sopilot.audit.transcripts import Review
from sopilot.handbook.expressions import judge
from sopilot.handbook.model import Handbook, Procedure
from sopilot.handbook.requirements import NOTHING, Leaf, Name, Tree, leaves, substitute, values_of
from sopilot.values.json import agree, plain
from sopilot_lab.sopbench.process import Simulator, Upstream
from sopilot_lab.sopbench.reference import TaskReference
from sopilot_lab.sopbench.source import read_tree, recorded_reference

NOT_A_TOOL = frozenset({"exit_conversation", "n/a", "na", "none", "null"})
NOT_FOUND = "Error: Tool "


@dataclass(frozen=True)
class Run:
    """One recorded trajectory."""

    file: str
    number: int
    reference: TaskReference
    transcript: Transcript
    messages: list[dict[str, Any]]
    stored: Mapping[str, bool]


def recorded_runs(upstream: Upstream, domain: str, skipped: Counter[str]) -> Iterator[Run]:
    folder = upstream.checkout.path / "output" / domain
    for path in sorted(folder.glob("*.json")):
        for number, entry in enumerate(json.loads(path.read_text("utf-8"))):
            if "evaluations" not in entry:
                skipped["without a stored evaluation"] += 1
                continue
            reference = recorded_reference(domain, entry["task"], upstream)
            if reference is None:
                skipped["of a task that the data set does not have"] += 1
                continue
            for one, stored in zip(entry["interactions"], entry["evaluations"], strict=True):
                messages = one["interaction"]
                transcript = read_messages(
                    messages, outcome=success_first_outcome, ignored=NOT_A_TOOL
                )
                yield Run(path.name, number, reference, transcript, messages, stored)


def enforced_checks(upstream: Upstream, domain: str) -> tuple[dict[str, Tree], dict[str, Tree]]:
    """The checks that each tool makes: as the official evaluator counts them, and all."""
    metadata = upstream.metadata(domain)
    everything = {
        name: read_tree(tree, metadata["predicates"])
        for name, tree in metadata["innate"].items()
        if tree
    }

    def innermost(tree: Tree) -> Tree:
        leaf = next(iter(leaves(tree)))
        inner = everything.get(leaf.predicate)
        return leaf if inner is None else innermost(substitute(inner, dict(leaf.arguments)))

    return {name: innermost(tree) for name, tree in everything.items()}, everything


# --- the audit under upstream's assumptions ---------------------------------------------

TruthAt = Callable[[int, str, Mapping[str, Any]], bool | None]
"""The truth of a predicate at a call: (number of the call, predicate, parameters)."""


class OfficialReading(Reading):
    """Takes the truth of predicates from upstream, at the call that is judged."""

    def __init__(self, handbook: Handbook, truth_at: TruthAt) -> None:
        super().__init__(handbook, judge)
        self.truth_at = truth_at
        self.index = 0

    def truth(self, leaf: Leaf, values: Mapping[str, Any]) -> bool | None:
        return self.truth_at(self.index, leaf.predicate, values_of(leaf.arguments, values))

    def is_unproven(self, leaf: Leaf, values: Mapping[str, Any]) -> bool:
        return False


class OfficialReview(Review):
    """Judges the calls alone. ``enforced`` are the checks that an action's own tool makes: such
    a call counts as a call of those verifiers."""

    def __init__(
        self, run: Run, handbook: Handbook, truth_at: TruthAt, enforced: Mapping[str, Tree]
    ) -> None:
        self.official = OfficialReading(handbook, truth_at)
        super().__init__(self.official, run.transcript, (run.reference.goal,))
        self.enforced = enforced

    def judge_call(self, call: SessionCall, *, after: bool) -> None:
        self.official.index = call.seq
        super().judge_call(call, after=after)
        if self.reading.calls[-1:] == [call] and call.asked_for:
            self.reading.calls[-1:-1] = self._inner(call)

    def _judge_proof(self, call: SessionCall, procedure: Procedure) -> None:
        """Upstream has no guarded actions."""

    def _inner(self, call: SessionCall) -> list[SessionCall]:
        """The verifiers that the tool ran by itself, as far as they are actions."""
        calls: list[SessionCall] = []
        for leaf in leaves(self.enforced.get(call.action, NOTHING)):
            if leaf.predicate in self.handbook.actions:
                inner = SessionCall(
                    call.seq, leaf.predicate, values_of(leaf.arguments, call.arguments)
                )
                calls += [*self._inner(inner), inner]
        return calls


# --- upstream's own truth and verdict -------------------------------------------------


def not_offered(call: SessionCall) -> bool:
    return isinstance(call.value, str) and call.value.startswith(NOT_FOUND)


def spelled(call: SessionCall) -> str:
    return json.dumps([call.action, call.arguments, not_offered(call)], sort_keys=True)


class Official:
    """The worker's answers, each asked for once: trajectories of one task share beginnings."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._truths: dict[tuple[object, ...], bool | None] = {}
        self._borrowed: list[Simulator] = []
        self._verdicts: dict[tuple[object, ...], tuple[bool, bool, bool]] = {}

    def _open(self, reference: TaskReference) -> Simulator:
        return self._upstream.open(
            reference.domain, reference.goal, reference.index, tools="full-state"
        )

    def truth(self, run: Run, handbook: Handbook, *, gates_by_success: bool) -> TruthAt:
        calls = run.transcript.calls
        keys = [spelled(call) for call in calls]
        simulator: list[Simulator] = []
        made = 0

        def ask(index: int, predicate: str, subject: Mapping[str, Any]) -> bool | None:
            nonlocal made
            if not gates_by_success and attempted(handbook, predicate, subject, calls[:index]):
                return True
            key = (
                run.reference,
                tuple(keys[:index]),
                predicate,
                json.dumps(dict(subject), sort_keys=True),
            )
            if key not in self._truths:
                if not simulator:
                    simulator.append(self._open(run.reference))
                    self._borrowed.append(simulator[0])
                while made < index:
                    replay(simulator[0], calls[made])
                    made += 1
                self._truths[key] = simulator[0].judge(predicate, subject)
            return self._truths[key]

        return ask

    def verdict(self, run: Run) -> tuple[bool, bool, bool]:
        """Native (dirgraph, constraint), and whether every recorded answer was reproduced."""
        while self._borrowed:
            self._borrowed.pop().close()
        key = (run.reference, tuple(spelled(call) for call in run.transcript.calls))
        if key not in self._verdicts:
            self._verdicts[key] = self._verdict(run)
        return self._verdicts[key]

    def _verdict(self, run: Run) -> tuple[bool, bool, bool]:
        calls = run.transcript.calls
        simulator = self._open(run.reference)
        replayed = [replay(simulator, call) for call in calls]
        answer = simulator.evaluate()
        simulator.close()
        dirgraph = answer["dirgraph_satisfied"]
        if any(not_offered(call) for call in calls):
            # Officially such a call is judged by its place, whatever it was answered.
            simulator = self._open(run.reference)
            for call in calls:
                if call.is_readable:
                    simulator.call(call.action, call.arguments)
            dirgraph = simulator.evaluate()["dirgraph_satisfied"]
            simulator.close()
        return dirgraph, answer["constraint_not_violated"], all(replayed)


def replay(simulator: Simulator, call: SessionCall) -> bool:
    """Make the call again; whether it was answered as recorded."""
    if not call.is_readable or not_offered(call):
        return True
    outcome = simulator.call(call.action, call.arguments)
    return bool(plain(outcome.value) == call.value) or call.awaited


def attempted(
    handbook: Handbook,
    predicate: str,
    subject: Mapping[str, Any],
    earlier: tuple[SessionCall, ...],
) -> bool:
    """Whether a gate's action was called for this subject, since the last logout."""
    gate = handbook.predicates[predicate].established_by
    if gate is None:
        return False
    terms = [(name, term.name) for name, term in gate.arguments if isinstance(term, Name)]
    for call in reversed(earlier):
        if call.action == "logout_user" and call.ok:
            return False
        if call.action == gate.action and all(
            agree(subject[term], call.arguments.get(name))
            for name, term in terms
            if term in subject
        ):
            return True
    return False
