"""Does the audit agree with SOPBench's official evaluator on its recorded trajectories?

    python benchmarks/audit_agreement.py [--domains bank dmv library] [--json FILE]

Every recorded trajectory with a stored evaluation is audited as a foreign
transcript and compared on two verdicts:

dirgraph      no call was made before the checks it needs (`dirgraph_satisfied`)
constraint    no call ran although what it needs was false (`constraint_not_violated`)
both          neither was the case

The official verdict is taken twice. `stored` is what the checkout's files say;
it was computed from text that upstream reads back with `eval`, so dates, JSON
literals and answers from a state that leaked between runs decide it at times.
`native` is the same official evaluator on the same calls, replayed with native
values. Where the two differ, the stored verdict is an artefact of the reading.
Each disagreement with either is listed in the figures with its reason.
"""

from __future__ import annotations

import ast
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign import main
from sopilot.audit.findings import Finding
from sopilot.audit.state import SessionCall
from sopilot.audit.transcript_files import Transcript, read_messages, success_first_outcome
from sopilot.audit.transcript_reading import Reading, recipes_of
from sopilot.audit.transcripts import Review
from sopilot.handbook.expressions import judge
from sopilot.handbook.model import Handbook, Procedure
from sopilot.handbook.requirements import NOTHING, Leaf, Name, Tree, leaves, substitute, values_of
from sopilot.messages.diagnostic import Severity
from sopilot.values.json import agree, plain
from sopilot_lab.sopbench.process import Simulator, Upstream, shared_upstream
from sopilot_lab.sopbench.reference import TaskReference
from sopilot_lab.sopbench.source import read_tree, recorded_reference, task_handbook

ROOT = Path(__file__).resolve().parent.parent
DOMAINS = ("bank", "dmv", "library")
OFFICIAL = ("dirgraph_satisfied", "constraint_not_violated")
FIELDS = ("dirgraph", "constraint", "both")
ASSUMPTIONS = (
    "the truth of a predicate at a call is upstream's own, on the task's initial database after "
    "the calls before it: the evidence-faithful assumption",
    "a gate is open once its action was called, as upstream's strict system tracks it; "
    "`gates_by_success` counts again with gates that only a success opens",
    "what a tool checks by itself counts as a check: the first verifier of each chain, as the "
    "official evaluator counts it; `all_enforced` counts again with every verifier of the chain",
    "the checks an agent owes are those of the text it was shown (constraints_original), the "
    "truth is judged on the expanded tree (constraints)",
    "a call of a known action that the run's tool list did not offer counts against the "
    "constraint verdict, as it does officially",
)
REASONS = {
    "json-literal": "upstream reads arguments with eval: JSON's true, false and null are not "
    "Python, so it drops the call; the audit reads it",
    "text-answer": "upstream reads an answer such as a date back as something else and takes "
    "the difference for a violation; with native values it does not",
    "answer-not-reproduced": "upstream's own simulator does not give the recorded answer on the "
    "task's initial database (the credit-card defect), so its comparison fails whatever was "
    "allowed",
    "name-coincidence": "a verifier's free argument has the name of a goal input; upstream takes "
    "the goal's value for it, the audit takes any value",
    "argument-names": "the call has arguments that the action does not take: the audit says no "
    "tool runs it, upstream's strict system judges it before it looks",
    "dropped-call": "the call raised inside upstream's evaluation, which then drops it; the "
    "audit judges it",
    "unexplained": "none of the above",
}


# --- recorded trajectories ------------------------------------------------------------

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


# --- the audit's verdicts -------------------------------------------------------------


def audit_verdicts(findings: Sequence[Finding], run: Run, handbook: Handbook) -> tuple[bool, bool]:
    early = any(
        finding.code in ("premature-goal", "unlicensed-call") and finding.severity is Severity.ERROR
        for finding in findings
    )
    against = any(finding.code == "executed-against-condition" for finding in findings)
    return not early, not (against or calls_something_not_offered(run, handbook))


def reason(
    field: str,
    run: Run,
    handbook: Handbook,
    *,
    verdict: bool,
    stored: bool,
    native: bool,
    same_answers: bool,
) -> str:
    if stored != native and unreadable_arguments(run):
        return "json-literal"
    if field == "constraint" and stored != native:
        return "text-answer" if same_answers else "answer-not-reproduced"
    if misfitting_arguments(run, handbook):
        return "argument-names"
    if field == "dirgraph" and verdict and free_argument_named_as_input(run, handbook):
        return "name-coincidence"
    if not verdict and not run.stored.get("no_tool_call_error", True):
        return "dropped-call"
    return "unexplained"


def unreadable_arguments(run: Run) -> bool:
    for message in run.messages:
        for call in message.get("tool_calls") or ():
            text = call["function"]["arguments"]
            try:
                json.loads(text)
            except ValueError:
                continue
            try:
                ast.literal_eval(text)
            except (ValueError, SyntaxError):
                return True
    return False


def misfitting_arguments(run: Run, handbook: Handbook) -> bool:
    return any(
        call.action in handbook.actions and not well_formed(call, handbook)
        for call in run.transcript.calls
    )


def well_formed(call: SessionCall, handbook: Handbook) -> bool:
    """Whether the action exists and takes these arguments."""
    action = handbook.actions.get(call.action)
    if action is None or not call.is_readable:
        return False
    wanted = {one.name for one in action.inputs if one.required}
    names = set(call.arguments)
    return not names - set(action.input_names()) and not wanted - names


def calls_something_not_offered(run: Run, handbook: Handbook) -> bool:
    return any(not_offered(call) and well_formed(call, handbook) for call in run.transcript.calls)


def free_argument_named_as_input(run: Run, handbook: Handbook) -> bool:
    goal = handbook.procedures[run.reference.goal]
    inputs = set(handbook.actions[goal.action].input_names())
    for leaf in leaves(goal.worded or goal.requires):
        predicate = handbook.predicates[leaf.predicate]
        for recipe in recipes_of(predicate):
            for call in recipe:
                for _, term in call.arguments:
                    if not isinstance(term, Name) or term.name in predicate.parameters:
                        continue
                    if term.name in inputs:
                        return True
    return False


# --- the study ------------------------------------------------------------------------


class Tally:
    def __init__(self) -> None:
        self.runs = 0
        self.agreed: Counter[str] = Counter()
        self.reproducible: Counter[str] = Counter()
        self.agreed_reproducible: Counter[str] = Counter()
        self.reasons: dict[str, Counter[str]] = {field: Counter() for field in FIELDS}
        self.listed: list[dict[str, object]] = []


def study_domain(upstream: Upstream, domain: str) -> dict[str, object]:
    official = Official(upstream)
    enforced, all_enforced = enforced_checks(upstream, domain)
    handbooks: dict[TaskReference, Handbook] = {}
    skipped: Counter[str] = Counter()
    tally = Tally()
    for run in recorded_runs(upstream, domain, skipped):
        handbook = handbooks.setdefault(run.reference, task_handbook(run.reference, upstream))
        study_run(official, run, handbook, enforced, all_enforced, tally)
    runs = tally.runs
    result: dict[str, object] = {
        "trajectories": runs,
        "skipped": dict(skipped),
    }
    for field in FIELDS:
        reproducible = tally.reproducible[field]
        result[field] = {
            "with_stored": share(tally.agreed[f"{field} stored"], runs),
            "with_native": share(tally.agreed[f"{field} native"], runs),
            "stored_equals_native": share(reproducible, runs),
            "with_stored_where_it_equals_native": share(
                tally.agreed_reproducible[field], reproducible
            ),
            **({"reasons": dict(tally.reasons[field].most_common())} if field != "both" else {}),
        }
    result["gates_by_success"] = share(tally.agreed["gates_by_success"], runs)
    result["all_enforced"] = share(tally.agreed["all_enforced"], runs)
    result["disagreements"] = tally.listed
    return result


def study_run(
    official: Official,
    run: Run,
    handbook: Handbook,
    enforced: Mapping[str, Tree],
    all_enforced: Mapping[str, Tree],
    tally: Tally,
) -> None:
    def audit(table: Mapping[str, Tree], *, gates_by_success: bool) -> tuple[bool, bool]:
        truth_at = official.truth(run, handbook, gates_by_success=gates_by_success)
        review = OfficialReview(run, handbook, truth_at, table)
        review.judge_calls()
        return audit_verdicts(review.findings, run, handbook)

    tally.runs += 1
    verdicts = audit(enforced, gates_by_success=False)
    by_success = audit(enforced, gates_by_success=True)[1]
    with_all = audit(all_enforced, gates_by_success=False)[0]
    native_dirgraph, native_constraint, same = official.verdict(run)
    missing = calls_something_not_offered(run, handbook)
    natives = (native_dirgraph, native_constraint and not missing)
    stored_pair = [bool(run.stored[name]) for name in OFFICIAL]
    tally.agreed["gates_by_success"] += by_success == natives[1]
    tally.agreed["all_enforced"] += with_all == natives[0]
    for field, verdict, stored, native in zip(
        FIELDS,
        (*verdicts, all(verdicts)),
        (*stored_pair, all(stored_pair)),
        (*natives, all(natives)),
        strict=True,
    ):
        tally.agreed[f"{field} stored"] += verdict == stored
        tally.agreed[f"{field} native"] += verdict == native
        if stored == native:
            tally.reproducible[field] += 1
            tally.agreed_reproducible[field] += verdict == stored
        if verdict == stored == native or field == "both":
            continue
        why = reason(
            field,
            run,
            handbook,
            verdict=verdict,
            stored=stored,
            native=native,
            same_answers=same,
        )
        tally.reasons[field][why] += 1
        tally.listed.append(
            {
                "file": run.file,
                "entry": run.number,
                "task": str(run.reference),
                "verdict": field,
                "audit": verdict,
                "stored": stored,
                "native": native,
                "reason": why,
            }
        )


def share(part: int, whole: int) -> dict[str, object]:
    return {"agree": part, "of": whole, "share": round(part / whole, 5) if whole else None}


def measure(domains: list[str]) -> dict[str, Any]:
    upstream = shared_upstream()
    began = time.monotonic()
    results: dict[str, Any] = {}
    for domain in domains:
        results[domain] = study_domain(upstream, domain)
        shares = {field: results[domain][field]["with_native"]["share"] for field in FIELDS}
        print(f"{domain}: agrees with the evaluator on native values: {shares}", flush=True)
    return {
        "sopbench_commit": upstream.checkout.commit,
        "seconds": round(time.monotonic() - began, 1),
        "assumptions": ASSUMPTIONS,
        "reasons": REASONS,
        "domains": results,
    }


if __name__ == "__main__":
    main(__doc__, measure, domains=["bank", "dmv", "library"])
