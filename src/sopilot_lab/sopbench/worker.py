"""SOPBench in a process of its own: a script, never imported.

Upstream's packages are called ``env`` and ``swarm`` and must not meet the
project's. This file therefore imports the standard library and the checkout
(its first argument) and nothing else, and speaks JSON lines over stdin/stdout:

    {"id": 1, "verb": "open", "arguments": {…}}  →  {"id": 1, "result": …}
                                                 →  {"id": 1, "error": {"kind", "message"}}

Only JSON values come in, so nothing a model wrote is ever evaluated as code.
Results stay native Python objects on this side, for the official evaluator.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import json
import os
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

DATABASE_READER = "internal_get_database"
NOT_A_TOOL = "name_outside_the_tool_list"
"""Stands for a call not made: the evaluator looks names up by ``getattr``."""
SIMULATOR_FAULTS: tuple[type[Exception], ...] = (
    ArithmeticError, AssertionError, AttributeError, LookupError, NameError, RuntimeError,
    TypeError, ValueError,
)  # fmt: skip
"""Errors that upstream's code raises on unexpected arguments."""
GATE_EFFECTS = {
    "login_user": ("set_login_user", "add_logged_in_user"),
    "logout_user": ("set_logout_user", "remove_logged_in_user"),
    "authenticate_admin_password": ("set_authenticate_admin_password",),
}
"""Action → the tracker's method for it, under the names the domains give it."""
SHOWN = (
    "constraints", "constraints_original", "constraint_parameters", "user_known", "user_prompt",
    "user_instruction",
)  # fmt: skip
CHANGING_CALLS = {"add", "append", "discard", "extend", "insert", "pop", "remove", "update"}
JSON_TYPES = {
    "int": "integer", "float": "number", "bool": "boolean", "str": "string", "list": "array",
    "dict": "object",
}  # fmt: skip


class Refused(Exception):
    """A request for something that is not on offer."""


def included(task: dict[str, Any]) -> list[str]:
    """The tools of the right answer: upstream's `oracle` tool list."""
    return [node[0] for node in task["directed_action_graph"]["nodes"]]


class Simulator:
    """One task's domain system with its tracker of gates and its log of native calls."""

    def __init__(self, upstream: Upstream, domain: str, task: dict[str, Any], tools: str) -> None:
        self.domain, self.task, self.evaluator = domain, task, upstream.evaluator
        assistant = upstream.assistant(domain)
        parameters = task["constraint_parameters"]
        self.system = upstream.systems[domain](
            copy.deepcopy(task["initial_database"]),
            assistant.action_innate_dependencies,
            parameters,
        )
        # A second tracker, as the strict system has one: the innate one must stay untouched.
        self.tracker = type(self.system.innate_state_tracker)(self.system, **parameters)
        self.offered = frozenset(upstream.offered(domain, tools, task))
        self.described = frozenset(assistant.action_descriptions)
        self.predicates = frozenset(assistant.positive_constraint_descriptions)
        self.log: list[dict[str, Any]] = []

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(arguments, dict):
            raise Refused("arguments must be an object")
        if tool not in self.offered:
            text = f"Error: Tool {tool} not found."
            name = tool if tool in self.described else NOT_A_TOOL
            self.log.append({"tool_name": name, "arguments": arguments, "content": text})
            return {"ok": False, "value": text, "known": False}
        deepcopy = copy.deepcopy(arguments)
        try:
            native = getattr(self.system, tool)(**arguments)
        except SIMULATOR_FAULTS as fault:
            ok, value = False, (native := f"{type(fault).__name__}: {fault}")
        else:
            # Readers hand out the live database: keep what it was at this moment.
            native = copy.deepcopy(native)
            ok, value = outcome(native)
        self.log.append({"tool_name": tool, "arguments": deepcopy, "content": native})
        if ok:
            self._track(tool, deepcopy)
        return {"ok": ok, "value": plain(value), "known": True}

    def unmade(self, tool: str, arguments: dict[str, Any], problem: str) -> None:
        """Under the name of an offered tool the evaluator would run it, and might find nothing
        wrong with it."""
        if tool not in self.offered:
            self.call(tool, arguments)
        else:
            text = f"Error: {problem}"
            self.log.append({"tool_name": NOT_A_TOOL, "arguments": arguments, "content": text})

    def _track(self, tool: str, arguments: dict[str, Any]) -> None:
        """Upstream's strict system opens a gate before it looks at the password; here a
        gate opens only when its action succeeded, which is what the wording says."""
        for name in GATE_EFFECTS.get(tool, ()):
            change = getattr(self.tracker, name, lambda: None)
            known = inspect.signature(change).parameters
            with suppress(*SIMULATOR_FAULTS):  # a logout without a login
                change(**{key: value for key, value in arguments.items() if key in known})

    def judge(self, predicate: str, arguments: dict[str, Any]) -> bool | None:
        if predicate not in self.predicates:
            raise Refused(f"no predicate `{predicate}` in {self.domain}")
        tracker = copy.deepcopy(self.tracker)  # with its own system: judging changes nothing
        judge = tracker if hasattr(tracker, predicate) else tracker.domain_system
        if not hasattr(judge, predicate):
            raise Refused(f"{self.domain} has no function for `{predicate}`")
        try:
            answer = getattr(judge, predicate)(**arguments)
            return bool(answer if isinstance(answer, bool) else answer[1])
        except SIMULATOR_FAULTS:
            return None

    def evaluate(self, messages: int) -> Any:
        """The official verdict on native calls and a native database. The evaluator only
        counts the messages that have a sender, less the closing one."""
        return plain(
            self.evaluator.evaluator_function_directed_graph(
                domain_str=self.domain,
                task=self.task,
                log_msg_fcall=[{"sender": "any"}] * (messages + 1),
                func_calls=copy.deepcopy(self.log),
                results={"final_database": self.system.evaluation_get_database()},
                default_constraint_option="full",
            )
        )

    def changed(self) -> list[str]:
        """The places in which the database has changed since it was opened."""
        now = plain(self.system.evaluation_get_database())
        return differences(plain(self.task["initial_database"]), now)


class Upstream:
    """The checkout's own modules and data, loaded once."""

    def __init__(self, home: Path) -> None:
        self.home = home
        sys.path.insert(0, str(home))
        self.text = importlib.import_module("env.task")
        self.evaluator = importlib.import_module("env.evaluator")
        variables = importlib.import_module("env.variables")
        self.assistants: dict[str, Any] = variables.domain_assistant_keys
        self.systems: dict[str, Any] = variables.domain_keys
        self.loaded: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self.simulators: dict[int, Simulator] = {}
        self.opened = 0
        self.default_texts: dict[str, Any] = {}

    def assistant(self, domain: str) -> Any:
        if domain not in self.assistants:
            raise Refused(f"no domain `{domain}`")
        return self.assistants[domain]

    def offered(self, domain: str, tools: str, task: dict[str, Any]) -> list[str]:
        if tools == "described":
            return list(self.assistant(domain).action_descriptions)
        names = [action["name"] for action in self.assistant(domain).actions]
        if tools == "oracle":
            names = [name for name in names if name in included(task)]
        return [name for name in names if tools == "full-state" or name != DATABASE_READER]

    def data(self, domain: str) -> dict[str, list[dict[str, Any]]]:
        self.assistant(domain)
        if domain not in self.loaded:
            text = (self.home / "data" / f"{domain}_tasks.json").read_text("utf-8")
            goals: dict[str, list[dict[str, Any]]] = json.loads(text)
            for goal, tasks in goals.items():
                for task in tasks:
                    if missing := [key for key in SHOWN if key not in task]:
                        raise Refused(
                            f"`data/{domain}_tasks.json` has tasks without `{missing[0]}`: "
                            "this checkout is older than the data that sopilot reads; "
                            "check out e786bed"
                        )
                    task["user_goal"] = goal
            self.loaded[domain] = goals
        return self.loaded[domain]

    def task(self, domain: str, goal: str, index: int) -> dict[str, Any]:
        goals = self.data(domain)
        if goal not in goals or not 0 <= index < len(goals[goal]):
            raise Refused(f"no task `{domain}/{goal}#{index}`")
        return goals[goal][index]

    # --- verbs -----------------------------------------------------------------------

    def metadata(self, domain: str) -> Any:
        assistant = self.assistant(domain)
        strict = self.systems[f"{domain}_strict"]()
        system, tracker = strict.domain_system, strict.state_tracker
        names = [*assistant.positive_constraint_descriptions, *assistant.constraint_processes]
        judges = {name: tracker if hasattr(tracker, name) else system for name in names}
        return plain(
            {
                "instructions": assistant.instructions,
                "schemas": {action["name"]: action["parameters"] for action in assistant.actions},
                "descriptions": {
                    name: f"{text} {assistant.action_returns[name]}"
                    for name, text in assistant.action_descriptions.items()
                },
                "signatures": {
                    name: signature(getattr(system, name)) for name in assistant.action_descriptions
                },
                "links": assistant.constraint_links,
                "recipes": assistant.constraint_processes,
                "predicates": {
                    name: [each["name"] for each in signature(getattr(judge, name))]
                    for name, judge in judges.items()
                    if hasattr(judge, name)
                },
                "positive": assistant.positive_constraint_descriptions,
                "negative": assistant.negative_constraint_descriptions,
                "requires": self.text.get_default_dep_full(domain, "full"),
                "innate": assistant.action_innate_dependencies,
                "parameters": strict.evaluation_get_dependency_parameters(),
            }
        )

    def tasks(self, domain: str) -> Any:
        """The part of a task that may be shown; the answers and the database stay on this side."""
        return self.of_tasks(domain, lambda task: {key: task[key] for key in SHOWN})

    def scoring(self, domain: str) -> Any:
        return self.of_tasks(domain, lambda task: bool(task["action_should_succeed"]))

    def graphs(self, domain: str) -> Any:
        """The oracle's own graphs of calls: for the search for a passing run, never for agents."""
        return self.of_tasks(domain, lambda task: task["directed_action_graph"])

    def of_tasks(self, domain: str, read: Callable[[dict[str, Any]], Any]) -> Any:
        return {goal: [read(task) for task in tasks] for goal, tasks in self.data(domain).items()}

    def official_text(self, domain: str, goal: str, index: int, tools: str = "official") -> Any:
        """The text that upstream's runner shows by default with its full or `oracle` tool list, and
        the trees that it puts into words: ``blocks``, in the order of the text."""
        task = self.task(domain, goal, index)
        innate, requires, described = self.defaults(domain)
        names = included(task) if tools == "oracle" else None
        _, user, assistant, _ = self.text.task_initializer(
            domain, task, innate, requires, described, names, "prompt", False, "structured"
        )
        preamble = self.text.create_assistant(domain, False, "prompt", None, None)["instructions"]
        if not assistant["instructions"].startswith(preamble):
            raise RuntimeError("the official text does not begin with its own preamble")
        return plain(
            {
                "system": assistant["instructions"],
                "preamble": preamble,
                "blocks": self.blocks(domain, task, described),
                "user": task["user_prompt"],
                "user_role": user["instructions"],
                "tools": assistant["tools"],
            }
        )

    def defaults(self, domain: str) -> Any:
        if domain not in self.default_texts:
            self.default_texts[domain] = self.text.task_default_dep_full(
                domain, "full", "structured", dependency_verb_dep_orig=True
            )
        return self.default_texts[domain]

    def blocks(self, domain: str, task: dict[str, Any], described: dict[str, str]) -> Any:
        """Actions and the trees that are put into words, in the order of the text: the task's
        own for the goal, the defaults for the others, internal functions without any last."""
        trees = {**self.text.get_default_dep_full(domain, "full", False)}
        trees[task["user_goal"]] = task["constraints_original"]
        names = list(dict.fromkeys([*described, task["user_goal"]]))
        last = [name for name in names if not trees.get(name) and name.startswith("internal_")]
        first = [name for name in names if name not in last]
        shown = [*first, *(name for name in last if name != DATABASE_READER)]
        return [[name, trees.get(name)] for name in shown]

    def sentences(self, domain: str, leaves: list[Any], parameters: dict[str, Any]) -> Any:
        """Upstream's own wording of leaves, to hold ours against."""
        self.assistant(domain)
        return [self.text.get_single_dep_verb(domain, leaf, parameters) for leaf in leaves]

    def open(self, domain: str, goal: str, index: int, tools: str) -> Any:
        if tools not in ("official", "full-state", "oracle", "described"):
            raise Refused(f"no tool list `{tools}`")
        self.opened += 1
        task = self.task(domain, goal, index)
        self.simulators[self.opened] = Simulator(self, domain, task, tools)
        return self.opened

    def writes(self, domain: str, action: str) -> Any:
        """Whether the action's own code contains a change of state, read and not run."""
        if action not in self.assistant(domain).action_descriptions:
            raise Refused(f"no action `{action}` in {domain}")
        return changes_state(getattr(self.systems[domain], action))

    def close(self, handle: int) -> Any:
        return self.simulators.pop(handle, None) is not None

    def simulator(self, handle: int) -> Simulator:
        if handle not in self.simulators:
            raise Refused(f"no open simulator {handle}")
        return self.simulators[handle]


def outcome(native: Any) -> tuple[bool, Any]:
    """Upstream's convention: a bool is its own success, a pair is (success, value)."""
    if isinstance(native, bool):
        return native, native
    if isinstance(native, tuple) and len(native) == 2 and isinstance(native[0], bool):
        return native[0], native[1]
    return native is not None, native


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return [] if before == after else [path]
    texts: list[str] = []
    for key in dict.fromkeys([*before, *after]):
        where = f"{path}.{key}" if path else str(key)
        both = key in before and key in after
        texts += differences(before[key], after[key], where) if both else [where]
    return texts


def changes_state(function: Any) -> bool:
    """An assignment to, or a deletion or a changing call on something other than a name."""
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING_CALLS:
                return True
        elif isinstance(node, ast.Assign | ast.Delete | ast.AugAssign):
            targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
            if any(isinstance(target, ast.Subscript | ast.Attribute) for target in targets):
                return True
    return False


def signature(function: Any) -> list[dict[str, Any]]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [
        {
            "name": name,
            "type": JSON_TYPES.get(getattr(parameter.annotation, "__name__", ""), "string"),
            "required": parameter.default is inspect.Parameter.empty,
        }
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in named
    ]


def plain(value: Any) -> Any:
    """The JSON value that stands for a native one."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=repr)
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)


UPSTREAM_VERBS = {
    "metadata", "tasks", "scoring", "graphs", "official_text", "sentences", "open", "writes",
    "close",
}  # fmt: skip
SIMULATOR_VERBS = {"call", "unmade", "judge", "evaluate", "changed"}
"""With the handle of the simulator beside their arguments."""


def answer(upstream: Upstream, request: dict[str, Any]) -> dict[str, Any]:
    verb, arguments = request["verb"], request["arguments"]
    try:
        if verb in UPSTREAM_VERBS:
            return {"result": getattr(upstream, verb)(**arguments)}
        if verb not in SIMULATOR_VERBS:
            raise Refused(f"no verb `{verb}`")
        simulator = upstream.simulator(arguments.pop("handle"))
        return {"result": getattr(simulator, verb)(**arguments)}
    except Refused as refusal:
        return {"error": {"kind": "refused", "message": str(refusal)}}
    except SIMULATOR_FAULTS as fault:
        return {"error": {"kind": "fault", "message": f"{type(fault).__name__}: {fault}"}}


def main() -> None:
    # Upstream prints as it likes: keep the line to the client for answers alone.
    with os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n") as replies:
        os.dup2(2, 1)
        upstream = Upstream(Path(sys.argv[1]))
        for line in sys.stdin:
            request = json.loads(line)
            replies.write(json.dumps({"id": request["id"], **answer(upstream, request)}) + "\n")
            replies.flush()


if __name__ == "__main__":
    main()
