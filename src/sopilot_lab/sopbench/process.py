"""The client of the SOPBench worker: one process, many simulators, answers with a time limit.

Upstream's modules live in the worker alone. A worker that hangs or dies is
replaced at the next request; simulators that were open in it are lost, and
say so.
"""

from __future__ import annotations

import atexit
import functools
import json
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

from sopilot.messages.errors import InternalBug, RunEnded
from sopilot_lab.sopbench.checkout import Checkout, find_checkout

ToolList = Literal["official", "full-state", "oracle"]
"""Upstream offers every action but the reader of the whole database; ``full-state`` adds it;
``oracle`` offers the tools of the right answer alone."""
ReplayTools = Literal["official", "full-state", "oracle", "described"]
"""``described`` has every action that upstream describes, offered or not: for replays of what
an action does, never for agents."""
_WORKER = Path(__file__).with_name("worker.py")
_KEPT_ERROR_LINES = 20


class UpstreamError(RunEnded):
    """SOPBench cannot answer."""


class UpstreamTimeout(UpstreamError):
    """No answer in time; the worker was ended."""


class UpstreamLost(UpstreamError):
    """The worker died, or the simulator belonged to one that did."""


class UpstreamFault(UpstreamError):
    """Upstream's own code failed on the request."""


class UpstreamRefused(InternalBug):
    """The worker doesn't offer what the request needs."""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """``ok`` as in ``ToolResult``; ``known`` is false for a name outside the tool list."""

    ok: bool
    value: Any
    known: bool = True


@dataclass(frozen=True, slots=True)
class OfficialText:
    """The text that upstream's runner shows to the model. ``preamble`` is the part of ``system``
    before the constraints; ``blocks`` are put into words behind it: actions and their trees in
    upstream's notation."""

    system: str
    preamble: str
    blocks: Sequence[tuple[str, Any]]
    user: str
    user_role: str
    tools: Sequence[Mapping[str, Any]]


class Simulator:
    """One task's domain, open in the worker. It remembers its calls for the evaluation."""

    def __init__(self, upstream: Upstream, generation: int, handle: int) -> None:
        self._upstream, self._generation, self._handle = upstream, generation, handle

    def call(self, tool: str, arguments: Mapping[str, Any]) -> CallOutcome:
        """A name outside the tool list runs nothing, is not ok, and counts against the run."""
        return CallOutcome(**self._ask("call", tool=tool, arguments=dict(arguments)))

    def unmade(self, tool: str, arguments: Mapping[str, Any], problem: str) -> None:
        """A call that does not fit the tool list: nothing is run, and it counts against the
        run."""
        self._ask("unmade", tool=tool, arguments=dict(arguments), problem=problem)

    def judge(self, predicate: str, arguments: Mapping[str, Any]) -> bool | None:
        """The truth of upstream's own predicate now; ``None`` where its function raised, for
        example on the balance of an account that does not exist. Changes nothing."""
        holds: bool | None = self._ask("judge", predicate=predicate, arguments=dict(arguments))
        return holds

    def evaluate(self, *, messages: int = 0) -> dict[str, Any]:
        """The official verdict on the calls so far. ``messages`` is for its statistics only."""
        verdict: dict[str, Any] = self._ask("evaluate", messages=messages)
        return verdict

    def changed(self) -> list[str]:
        """The places of the database that are no longer what they were at first."""
        places: list[str] = self._ask("changed")
        return places

    def close(self) -> None:
        if self._upstream.generation == self._generation:
            self._ask("close")

    def _ask(self, verb: str, **arguments: Any) -> Any:
        if self._upstream.generation != self._generation:
            raise UpstreamLost("the worker that held this simulator is gone")
        return self._upstream.request(verb, handle=self._handle, **arguments)


class Upstream:
    """A worker on a checkout. ``hash_seed`` matters: upstream invents numbers with ``hash()``."""

    def __init__(
        self, checkout: Checkout, *, hash_seed: int = 0, timeout_seconds: float = 60.0
    ) -> None:
        self.checkout = checkout
        self.timeout_seconds = timeout_seconds
        self.generation = 0
        """Counts the workers that ended; a simulator belongs to one generation."""
        self.hash_seed = hash_seed
        self._process: subprocess.Popen[str] | None = None
        self._replies: queue.Queue[str | None] = queue.Queue()
        self._errors: deque[str | None] = deque(maxlen=_KEPT_ERROR_LINES)
        self._readers: tuple[threading.Thread, ...] = ()
        self._sent = 0
        self._lock = threading.Lock()
        self._answers: dict[tuple[str, str], Any] = {}

    def another(self) -> Upstream:
        """A worker of its own on the same checkout."""
        return Upstream(
            self.checkout, hash_seed=self.hash_seed, timeout_seconds=self.timeout_seconds
        )

    # --- what upstream says, kept for the life of this object ------------------------

    def metadata(self, domain: str) -> dict[str, Any]:
        return cast(dict[str, Any], self._keep("metadata", domain))

    def tasks(self, domain: str) -> dict[str, list[dict[str, Any]]]:
        """Goal → tasks as an agent may know them: without answers and database."""
        return cast(dict[str, list[dict[str, Any]]], self._keep("tasks", domain))

    def scoring(self, domain: str) -> dict[str, list[bool]]:
        """Goal → whether the goal action should succeed. For scorers, never for agents."""
        return cast(dict[str, list[bool]], self._keep("scoring", domain))

    def graphs(self, domain: str) -> dict[str, list[dict[str, Any]]]:
        """Goal → the oracle's graphs of calls. For the reachability search, never for agents."""
        return cast(dict[str, list[dict[str, Any]]], self._keep("graphs", domain))

    def _keep(self, verb: str, domain: str) -> Any:
        if (verb, domain) not in self._answers:
            self._answers[verb, domain] = self.request(verb, domain=domain)
        return self._answers[verb, domain]

    def official_text(
        self, domain: str, goal: str, index: int, *, tools: ToolList = "official"
    ) -> OfficialText:
        requests = {"domain": domain, "goal": goal, "index": index, "tools": tools}
        return OfficialText(**self.request("official_text", **requests))

    def sentences(
        self, domain: str, leaves: Sequence[Any], parameters: Mapping[str, Any]
    ) -> list[str]:
        """Upstream's wording of leaves in its own notation."""
        requests = {"leaves": list(leaves), "parameters": dict(parameters)}
        return cast(list[str], self.request("sentences", domain=domain, **requests))

    def writes(self, domain: str, action: str) -> bool:
        """Whether the code of the action contains a change of state."""
        return bool(self.request("writes", domain=domain, action=action))

    def open(
        self, domain: str, goal: str, index: int, *, tools: ReplayTools = "official"
    ) -> Simulator:
        handle = self.request("open", domain=domain, goal=goal, index=index, tools=tools)
        return Simulator(self, self.generation, handle)

    # --- the wire --------------------------------------------------------------------

    def request(self, verb: str, **arguments: Any) -> Any:
        with self._lock:
            process = self._running()
            self._sent += 1
            line = json.dumps({"id": self._sent, "verb": verb, "arguments": arguments})
            try:
                _pipe(process.stdin).write(line + "\n")
                _pipe(process.stdin).flush()
                reply = self._replies.get(timeout=self.timeout_seconds)
            except queue.Empty:
                self._end()
                raise UpstreamTimeout(
                    f"no answer to `{verb}` within {self.timeout_seconds:g} s"
                ) from None
            except OSError:
                reply = None
            if reply is None:
                self._end(grace_seconds=2.0)  # time for its last words
                strip = "".join(filter(None, self._errors)).strip()
                raise UpstreamLost(f"the worker ended during `{verb}`\n{strip}".strip())
            answer = json.loads(reply)
        if "error" not in answer:
            return answer["result"]
        message = answer["error"]["message"]
        if answer["error"]["kind"] == "refused":
            raise UpstreamRefused(message)
        raise UpstreamFault(message)

    def close(self) -> None:
        with self._lock:
            self._end()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            # No site packages, no user folder, no script folder, nothing written into the
            # checkout. Not `-I`: that would ignore the hash seed, the one variable passed on.
            command = [sys.executable, "-S", "-s", "-P", "-B", str(_WORKER)]
            environment = {"PYTHONHASHSEED": str(self.hash_seed), "PYTHONUTF8": "1"}
            self._process = subprocess.Popen(
                [*command, str(self.checkout.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd=self.checkout.path,
                process_group=0,  # Ctrl-C is for the leader; here it would look like a crash
                text=True,
                encoding="utf-8",
            )
            self._replies = queue.Queue()
            self._errors.clear()
            self._readers = (
                _follow(self._process.stdout, self._replies.put),
                _follow(self._process.stderr, self._errors.append),
            )
        return self._process

    def _end(self, *, grace_seconds: float = 0.0) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        self.generation += 1
        try:
            process.wait(timeout=grace_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for reader in self._readers:
            reader.join()  # both pipes have ended: what the worker said last is complete
        try:
            _pipe(process.stdin).close()
        except OSError:  # what was written to a dead worker cannot be flushed
            return


def _pipe(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise InternalBug("the worker was started without pipes")
    return stream


def _follow(stream: IO[str] | None, take: Callable[[str | None], None]) -> threading.Thread:
    """Read a pipe to its end in the background; ``None`` tells that it ended."""

    def read(source: IO[str]) -> None:
        with source:
            for line in source:
                take(line)
        take(None)

    thread = threading.Thread(target=read, args=(_pipe(stream),), daemon=True)
    thread.start()
    return thread


def shared_upstream(hash_seed: int = 0) -> Upstream:
    """This process's worker on the checkout that the environment names now."""
    return _worker_on(find_checkout(), hash_seed)


@functools.cache
def _worker_on(checkout: Checkout, hash_seed: int) -> Upstream:
    upstream = Upstream(checkout, hash_seed=hash_seed)
    atexit.register(upstream.close)
    return upstream
