"""Reachability of many tasks, kept in the user's cache by the commit of the checkout."""

from __future__ import annotations

import hashlib
import json
import os
import queue
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sopilot_lab.sopbench import action_graph, reach
from sopilot_lab.sopbench.process import ToolList, Upstream
from sopilot_lab.sopbench.reach import Reach, find_reach
from sopilot_lab.sopbench.reference import TaskReference

Told = Callable[[int, int], None]
"""``told(done, of)``"""


def survey(
    references: Sequence[TaskReference],
    tools: ToolList,
    upstream: Upstream,
    *,
    cache: Path | None,
    workers: int = 2,
    told: Told = lambda done, of: None,
) -> dict[str, Reach]:
    """Task → reach. What is not in the cache is searched for, by several simulators at once."""
    path = None if cache is None else cache / f"{_key(upstream)}-{tools}.json"
    known = _load(path)
    missing = [each for each in references if str(each) not in known]
    for done, result in enumerate(_search(missing, tools, upstream, workers), 1):
        known[result.task] = result
        told(done, len(missing))
    if missing and path is not None:
        _save(path, known)
    return {str(each): known[str(each)] for each in references}


def reach_cache() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "sopilot" / "reach"


def _search(
    references: Sequence[TaskReference], tools: ToolList, upstream: Upstream, workers: int
) -> Iterable[Reach]:
    if len(references) < 2 * workers:
        yield from (find_reach(each, tools, upstream) for each in references)
        return
    free: queue.Queue[Upstream] = queue.Queue()
    hired = [upstream.another() for _ in range(workers)]
    for each in hired:
        free.put(each)

    def find(reference: TaskReference) -> Reach:
        mine = free.get()
        try:
            return find_reach(reference, tools, mine)
        finally:
            free.put(mine)

    try:
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(find, references)
    finally:
        for each in hired:
            each.close()


def _key(upstream: Upstream) -> str:
    """The checkout's commit and the search's own code: either one changed, search again."""
    own = b"".join(Path(str(each.__file__)).read_bytes() for each in (reach, action_graph))
    commit = upstream.checkout.commit or _content(upstream.checkout.path)
    seed = upstream.hash_seed
    return f"{commit[:12]}-{hashlib.sha256(own).hexdigest()[:12]}-{seed}"


def _content(home: Path) -> str:
    """For a checkout whose commit nobody knows."""
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
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({task: each.as_json() for task, each in sorted(known.items())}, indent=1)
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    unfinished.write_text(text, "utf-8")
    unfinished.replace(path)


def reach_document(
    references: Sequence[TaskReference],
    lists: Sequence[ToolList],
    upstream: Upstream,
    cache: Path | None,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """What can be passed with each tool list; what cannot, with the proof."""
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
