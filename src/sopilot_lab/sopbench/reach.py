"""Which tasks can be passed at all: a search over the call orders that upstream's graph allows."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import queue
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sopilot.files.text import write_whole
from sopilot_lab.sopbench.checkout import cache_folder
from sopilot_lab.sopbench.process import ReplayTools, Simulator, ToolList, Upstream
from sopilot_lab.sopbench.reference import TaskReference, is_sopbench, task_references

Way = tuple[int, ...]
"""Nodes of calls in the order in which they are made, the goal last."""
MOST_CHOICES = 4096
"""Combinations to try per node; many of them lead to the same way."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """``arguments`` maps the action's parameters to the names of their values."""

    action: str
    arguments: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ActionGraph:
    """``nodes`` are ``[action, {parameter: name}]``, ``and`` or ``or``; node 0 is the goal.
    A connection leads from what needs to what is needed."""

    nodes: Sequence[Any]
    needs: Mapping[int, tuple[int, ...]]

    @classmethod
    def of(cls, graph: Mapping[str, Any]) -> ActionGraph:
        needs: dict[int, tuple[int, ...]] = {}
        for source, target in graph["connections"]:
            needs[source] = (*needs.get(source, ()), target)
        return cls(graph["nodes"], needs)

    def call(self, node: int) -> PlannedCall:
        action, arguments = self.nodes[node]
        return PlannedCall(action, arguments)

    def ways(self, limit: int) -> Ways:
        """Up to ``limit`` ways to the goal, one per choice of alternatives."""
        return self._ways(0, limit, {})

    def _ways(self, node: int, limit: int, known: dict[int, Ways]) -> Ways:
        if node in known:
            return known[node]
        parts = [self._ways(each, limit, known) for each in self.needs.get(node, ())]
        own = self.nodes[node]
        if own == "or":
            unfolded: Iterable[Way] = itertools.chain.from_iterable(part.ways for part in parts)
        else:
            last: Way = () if isinstance(own, str) else (node,)
            unfolded = (
                tuple(dict.fromkeys([*itertools.chain.from_iterable(choice), *last]))
                for choice in _product([part.ways for part in parts])
            )
        result: dict[Way, None] = {}
        cut = any(part.cut for part in parts)
        for number, way in enumerate(unfolded):
            if number >= MOST_CHOICES or (len(result) >= limit and way not in result):
                cut = True
                break
            result[way] = None
        known[node] = Ways(tuple(result), cut)
        return known[node]


@dataclass(frozen=True, slots=True)
class Ways:
    """``cut``: there may be more of them."""

    ways: tuple[Way, ...]
    cut: bool


def _product(choices: Sequence[Sequence[Way]]) -> Iterator[tuple[Way, ...]]:
    """Like ``itertools.product``, but every single choice is met early."""
    if not choices:
        yield ()
        return
    most = max(len(each) for each in choices)
    for turn in range(most):
        yield tuple(each[turn % len(each)] for each in choices)
    yield from itertools.product(*choices)


MOST_WAYS = 256
INVENTED = "invented"
TOOL_LISTS: tuple[ReplayTools, ...] = ("official", "full-state")


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason that forbids a way: ``goal-not-offered``, ``tool-not-offered``, ``missing-value``,
    ``call-fails``, ``goal-fails`` or ``oracle``."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Reach:
    """``calls`` is the run that passed; ``proof`` says why none does. ``by_inventing`` tells
    that a run with made-up values would pass: the oracle counts a call that failed as made.
    No honest executor makes it, so such a task is not reachable. ``cut``: no run passed, but the
    search wasn't complete, so ``proof`` proves nothing and lists the obstacles so far."""

    task: str
    should_succeed: bool
    tools: str
    reachable: bool
    calls: Sequence[str] = ()
    ways_tried: int = 0
    obstacles: Sequence[str] = ()
    proof: str = ""
    by_inventing: bool = False
    cut: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class Replay:
    """One way, made on a fresh simulator."""

    made: list[str] = field(default_factory=list)
    obstacle: Obstacle | None = None
    goal_ok: bool = False
    goal_value: Any = None
    changed: Sequence[str] = ()
    verdict: Mapping[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return bool(self.verdict.get("success"))


def find_reach(reference: TaskReference, tools: ReplayTools, upstream: Upstream) -> Reach:
    should = upstream.scoring(reference.domain)[reference.goal][reference.index]
    if not should:
        return _refusal(reference, tools, upstream)
    obstacles: dict[Obstacle, None] = {}
    tried = 0
    for plan in plans(reference, upstream):
        tried += 1
        replay = replay_plan(reference, plan, tools, upstream)
        if replay.passed:
            return Reach(str(reference), True, tools, True, replay.made, tried)
        if replay.obstacle is not None:
            obstacles[replay.obstacle] = None
    by_inventing = any(each.code == "missing-value" for each in obstacles) and any(
        replay_plan(reference, plan, tools, upstream, invent=True).passed
        for plan in plans(reference, upstream)
    )
    cut = _graph(reference, upstream).ways(MOST_WAYS).cut
    proof = _proof(reference, tried, list(obstacles), upstream, cut=cut)
    if by_inventing:
        proof += "; only with an invented value does the oracle let a run pass"
    return Reach(
        str(reference),
        True,
        tools,
        False,
        ways_tried=tried,
        obstacles=tuple(dict.fromkeys(each.code for each in obstacles)),
        proof=proof,
        by_inventing=by_inventing,
        cut=cut,
    )


def plans(reference: TaskReference, upstream: Upstream) -> Iterator[tuple[PlannedCall, ...]]:
    """Call orders worth replaying: those of the graph, and each with its gates first."""
    graph = _graph(reference, upstream)
    links = upstream.metadata(reference.domain)["links"]
    gates = [action for action, _ in links.values()]
    seen: set[tuple[str, ...]] = set()
    for way in graph.ways(MOST_WAYS).ways:
        plain = tuple(graph.call(node) for node in way)
        first = tuple(sorted(plain[:-1], key=lambda call: call.action not in gates))
        for plan in (plain, (*first, plain[-1])):
            key = tuple(repr(call) for call in plan)
            if key not in seen:
                seen.add(key)
                yield plan


def _graph(reference: TaskReference, upstream: Upstream) -> ActionGraph:
    return ActionGraph.of(upstream.graphs(reference.domain)[reference.goal][reference.index])


def replay_plan(
    reference: TaskReference,
    plan: Sequence[PlannedCall],
    tools: ReplayTools,
    upstream: Upstream,
    *,
    invent: bool = False,
) -> Replay:
    """``invent`` makes up the values that neither the user nor a result gives."""
    known = upstream.tasks(reference.domain)[reference.goal][reference.index]["user_known"]
    simulator = upstream.open(reference.domain, reference.goal, reference.index, tools=tools)
    try:
        replay = Replay()
        values = dict(known)
        if invent:
            names = [name for call in plan[:-1] for name in call.arguments.values()]
            values = dict.fromkeys(names, INVENTED) | values
        _make_calls(replay, plan, values, simulator, tools)
        replay.changed = simulator.changed()
        replay.verdict = simulator.evaluate()
    finally:
        simulator.close()
    if not replay.passed and replay.obstacle is None:
        failed = [key for key, value in replay.verdict.items() if value is False]
        replay.obstacle = Obstacle("oracle", f"the oracle objects ({', '.join(failed)})")
    return replay


def _make_calls(
    replay: Replay,
    plan: Sequence[PlannedCall],
    known: dict[str, Any],
    simulator: Simulator,
    tools: ReplayTools,
) -> None:
    """Stops at the first obstacle. A call whose values are not known yet is put off."""
    waiting = list(plan)
    while waiting:
        before = waiting[:-1]  # the goal comes last, whatever it needs
        ready = next((call for call in before if not _lacking(call, known)), None)
        if not before:  # the goal: what the user does not give may be optional
            ready = waiting[0]
        if ready is None:
            call = waiting[0]
            names = ", ".join(f"`{name}`" for name in _lacking(call, known))
            text = f"`{call.action}` needs {names}, which neither the user nor any result tells"
            replay.obstacle = Obstacle("missing-value", text)
            return
        waiting.remove(ready)
        is_goal = not waiting
        arguments = {key: known[name] for key, name in ready.arguments.items() if name in known}
        outcome = simulator.call(ready.action, arguments)
        if not outcome.known:
            code = "goal-not-offered" if is_goal else "tool-not-offered"
            text = f"`{ready.action}` is not in the tool list `{tools}`"
            replay.obstacle = Obstacle(code, text)
            return
        replay.made.append(ready.action)
        if is_goal:
            replay.goal_ok, replay.goal_value = outcome.ok, outcome.value
        if not outcome.ok:
            code = "goal-fails" if is_goal else "call-fails"
            replay.obstacle = Obstacle(code, f"`{ready.action}` fails after what it needs")
            if is_goal:
                return
        for name, value in _scalars(outcome.value):
            known.setdefault(name, value)


def _lacking(call: PlannedCall, known: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name for name in call.arguments.values() if name not in known)


def _scalars(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, Mapping | list):
                yield from _scalars(item)
            else:
                yield str(key), item
    elif isinstance(value, list):
        for item in value:
            yield from _scalars(item)


def _refusal(reference: TaskReference, tools: ReplayTools, upstream: Upstream) -> Reach:
    simulator = upstream.open(reference.domain, reference.goal, reference.index, tools=tools)
    try:
        passed = bool(simulator.evaluate()["success"])
    finally:
        simulator.close()
    proof = "" if passed else "the run without calls does not pass"
    return Reach(str(reference), False, tools, passed, (), 1, () if passed else ("oracle",), proof)


def _proof(
    reference: TaskReference,
    tried: int,
    obstacles: Sequence[Obstacle],
    upstream: Upstream,
    *,
    cut: bool,
) -> str:
    ways = "the one way" if tried == 1 else f"each of the {tried} ways"
    reasons = "; ".join(dict.fromkeys(each.text for each in obstacles))
    text = f"{ways} that the oracle's graph allows is blocked: {reasons}"
    if cut:
        text = f"not proved, the search was cut: each of the {tried} ways tried is blocked"
        text += f", the graph has more: {reasons}"
    if any(each.code in ("goal-not-offered", "goal-fails") for each in obstacles):
        text += f"; {transition(reference, upstream).text}"
    return text


@dataclass(frozen=True, slots=True)
class Transition:
    """Replay the goal action after everything it needs, whatever the tool list offers."""

    replayed: bool
    ok: bool
    changed: Sequence[str]
    writes: bool
    text: str

    @property
    def is_defect(self) -> bool:
        return self.replayed and (not self.ok or (self.writes and not self.changed))


@functools.cache
def transition(reference: TaskReference, upstream: Upstream) -> Transition:
    """Replayed with every action that upstream describes."""
    goal = reference.goal
    writes = upstream.writes(reference.domain, goal)
    best: Replay | None = None
    for plan in plans(reference, upstream):
        replay = replay_plan(reference, plan, "described", upstream)
        if replay.passed or (replay.goal_ok and replay.changed):
            best = replay
            break
        if goal in replay.made and (best is None or replay.goal_ok > best.goal_ok):
            best = replay
    if best is None:
        return Transition(False, False, (), writes, f"`{goal}` could not be replayed")
    if not best.goal_ok:
        text = f"replayed past the tool list, `{goal}` itself returns failure"
    elif writes and not best.changed:
        text = f"replayed past the tool list, `{goal}` returns success and changes nothing"
    else:
        text = f"replayed past the tool list, `{goal}` does what it should"
    return Transition(True, best.goal_ok, tuple(best.changed), writes, text)


_WORKERS = 2
"""Simulators that search at once."""


def survey(
    references: Sequence[TaskReference],
    tools: ToolList,
    upstream: Upstream,
    *,
    cache: Path | None,
) -> dict[str, Reach]:
    """Task → reach. Search for the tasks that the cache lacks, with several simulators at once."""
    path = None if cache is None else cache / f"{_key(upstream)}-{tools}.json"
    known = _load(path)
    missing = [each for each in references if str(each) not in known]
    known |= {result.task: result for result in _search(missing, tools, upstream)}
    if missing and path is not None:
        _save(path, known)
    return {str(each): known[str(each)] for each in references}


def survey_tasks(tasks: Iterable[str], tools: ToolList, upstream: Upstream) -> dict[str, Reach]:
    """The reach of those of the tasks that are SOPBench's, in the order of their names."""
    wanted = sorted(filter(is_sopbench, tasks))
    references = [task_references(each, upstream=upstream)[0] for each in wanted]
    return survey(references, tools, upstream, cache=reach_cache())


def reach_cache() -> Path:
    return cache_folder("reach")


def _search(
    references: Sequence[TaskReference], tools: ToolList, upstream: Upstream
) -> Iterable[Reach]:
    if len(references) < 2 * _WORKERS:
        yield from (find_reach(each, tools, upstream) for each in references)
        return
    hired: queue.Queue[Upstream] = queue.Queue()
    for _ in range(_WORKERS):
        hired.put(upstream.another())

    def find(reference: TaskReference) -> Reach:
        mine = hired.get()
        try:
            return find_reach(reference, tools, mine)
        finally:
            hired.put(mine)

    try:
        with ThreadPoolExecutor(_WORKERS) as pool:
            yield from pool.map(find, references)
    finally:
        while not hired.empty():
            hired.get().close()


def _key(upstream: Upstream) -> str:
    """The checkout's commit and the search's own code: either one changed, search again."""
    own = Path(__file__).read_bytes()
    commit = upstream.checkout.commit or _content(upstream.checkout.path)
    seed = upstream.hash_seed
    return f"{commit[:12]}-{hashlib.sha256(own).hexdigest()[:12]}-{seed}"


def _content(home: Path) -> str:
    """A hash of the contents, for a checkout without a commit."""
    digest = hashlib.sha256()
    for path in sorted([*home.glob("env/**/*.py"), *home.glob("data/*.json")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _load(path: Path | None) -> dict[str, Reach]:
    if path is None:
        return {}
    try:
        stored: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return {task: Reach(**each) for task, each in stored.items()}
    except (OSError, ValueError, TypeError):  # absent, or torn by a kill: search again
        return {}


def _save(path: Path, known: Mapping[str, Reach]) -> None:
    text = json.dumps({task: each.as_json() for task, each in sorted(known.items())}, indent=1)
    write_whole(path, text)


def reach_document(
    references: Sequence[TaskReference],
    lists: Sequence[ToolList],
    upstream: Upstream,
    cache: Path | None,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Print what can be passed with each tool list, and a proof for every other task."""
    answer: dict[str, Any] = {"n": len(references), "upstream_commit": upstream.checkout.commit}
    for each in lists:
        tell(f"searching with the tool list `{each}` …")
        result = survey(references, each, upstream, cache=cache)
        answer[each] = {
            "reachable": sum(item.reachable for item in result.values()),
            "unreachable": [item.as_json() for item in result.values() if not item.reachable],
        }
    return answer


def reach_lines(answer: Mapping[str, Any], lists: Sequence[ToolList]) -> Iterator[str]:
    for each in lists:
        yield f"{each}: {answer[each]['reachable']} of {answer['n']} tasks can be passed"
        for item in answer[each]["unreachable"]:
            yield f"  {item['task']}: {item['proof']}"
