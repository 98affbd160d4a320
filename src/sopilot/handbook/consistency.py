"""Checks of a handbook whose parts are all well formed, and the obligations of a procedure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches

from sopilot.handbook.expressions import free_names, limits
from sopilot.handbook.model import (
    BUILT_IN,
    Action,
    Handbook,
    Predicate,
    Procedure,
    computed_name,
    confirmation,
    confirmed_name,
)
from sopilot.handbook.read_recipes import HandbookProblem, missing_inputs, no_origin
from sopilot.handbook.requirements import (
    NOTHING,
    All,
    AnyOf,
    First,
    InOrder,
    Leaf,
    Name,
    Path,
    Tree,
    leaves,
    otherwise_of,
    substitute,
)
from sopilot.messages.catalogue import sentence
from sopilot.messages.diagnostic import DiagnosticCollector, Positioned

_Problems = Iterator[HandbookProblem]
_Check = Callable[[Handbook], _Problems]


def check_handbook(
    report: DiagnosticCollector,
    handbook: Handbook,
    predicates: Mapping[str, Positioned],
    actions: Mapping[str, Positioned],
    root: Positioned,
) -> None:
    """Report problems of the whole handbook at the places of its predicates and actions."""

    def run(check: _Check, places: Mapping[str, Positioned], add: Callable[..., None]) -> None:
        for problem in check(handbook):
            add(problem.code, problem.message, places[problem.about], problem.help)

    run(_circles, predicates, report.error)
    run(_missing_inputs, predicates, report.error)
    run(_failures_as_answers, actions, report.error)
    run(_shadows, actions, report.error)
    run(_principals, predicates, report.warning)
    if report.failed:
        return  # these checks may miss a part that could not be read
    run(_unused, predicates, report.warning)
    run(_unread_parameters, predicates, report.warning)
    run(_unlicensed, actions, report.warning)
    run(_shared_tools, actions, report.warning)
    run(_odd_topics, actions, report.warning)
    run(_unlimited, predicates, report.warning)
    if not handbook.procedures:
        report.warning(
            "no-procedures", "the handbook has no procedure, so it serves no request", root
        )


def _unused(handbook: Handbook) -> _Problems:
    trees = [action.requires for action in handbook.actions.values()]
    for procedure in handbook.procedures.values():
        trees.append(procedure.requires)
        if procedure.worded is not None:
            trees.append(procedure.worded)
    used = {leaf.predicate for tree in trees for leaf in leaves(tree)}
    for name, predicate in handbook.predicates.items():
        if name not in used and not predicate.made:
            yield HandbookProblem(
                "unused-predicate", f"nothing requires the predicate `{name}`", about=name
            )


def _failures_as_answers(handbook: Handbook) -> _Problems:
    for predicate in handbook.predicates.values():
        for call in (predicate.established_by, predicate.closed_by, predicate.done):
            if call is None or call.action not in handbook.actions:
                continue
            if handbook.actions[call.action].not_found is not None:
                message = (
                    f"`{predicate.name}` is true or false by the success of `{call.action}`, whose "
                    "`not_found` treats a failure as an answer"
                )
                help = "leave `not_found` out, or verify with another action"
                yield HandbookProblem("gate-not-found", message, help, call.action)


def _unlicensed(handbook: Handbook) -> _Problems:
    """A guarded action without a procedure is never called, in any view."""
    goals = {procedure.action for procedure in handbook.procedures.values()}
    for name, action in handbook.actions.items() if goals else ():
        if action.is_guarded and name not in goals:
            message = f"`{name}` is guarded, and no procedure carries it out: it is never called"
            help = f"write a procedure with `action: {name}`, or drop the guard"
            yield HandbookProblem("no-procedure-for-action", message, help, name)


def _shared_tools(handbook: Handbook) -> _Problems:
    """Tools that a guarded action shares with another action, which may call them unproven."""
    by_tool: dict[str, list[Action]] = {}
    for action in handbook.actions.values():
        for tool in {action.name, action.tool or action.name}:
            by_tool.setdefault(tool, []).append(action)
    for tool, actions in by_tool.items():
        if len(actions) > 1 and any(action.is_guarded for action in actions):
            listed = " and ".join(f"`{action.name}`" for action in actions)
            message = f"{listed} share the tool `{tool}`: the proof for one doesn't guard the other"
            help = "give each tool one action; frameworks and the decision service require it"
            yield HandbookProblem("shared-tool", message, help, actions[-1].name)


def _odd_topics(handbook: Handbook) -> _Problems:
    """Topics on one side only that are spelled almost like one of the other side: then a change
    makes no answer stale."""
    actions = handbook.actions.values()
    changed = {topic for action in actions for topic in action.changes or ()}
    read = {topic for action in actions for topic in action.reads or ()}
    for action in actions:
        sides = (("changes", action.changes, read), ("reads", action.reads, changed))
        for key, topics, others in sides:
            for topic in topics or ():
                near = get_close_matches(topic, others, n=1, cutoff=0.8)
                if near and topic not in others:
                    message = (
                        f"`{action.name}` {key} `{topic}`, and another action names `{near[0]}`: "
                        "if both mean the same, a change doesn't make the answers stale"
                    )
                    help = "spell a topic the same way everywhere"
                    yield HandbookProblem("odd-topic", message, help, action.name)


def _shadows(handbook: Handbook) -> _Problems:
    """Inputs that are named like a parameter of the handbook: a caller would set it."""
    for procedure in handbook.procedures.values():
        if procedure.action not in handbook.actions:
            continue
        of_action = f"the action `{procedure.action}`"
        named = dict.fromkeys(handbook.actions[procedure.action].input_names(), of_action)
        named |= {item.name: f"the procedure `{procedure.name}`" for item in procedure.inputs}
        for name in sorted(named.keys() & handbook.parameters.keys()):
            message = (
                f"`{name}` is a parameter of the handbook and an input of {named[name]}: "
                "a model could set it in a call"
            )
            help = "give one of the two another name"
            yield HandbookProblem("shadowed-parameter", message, help, procedure.action)


def _principals(handbook: Handbook) -> _Problems:
    """Only equal names tell that two gates identify the same customer."""
    gates = [predicate for predicate in handbook.predicates.values() if predicate.principal]
    for gate in gates[1:]:
        if gate.parameters != gates[0].parameters:
            message = (
                f"`{gate.name}({', '.join(gate.parameters)})` and `{gates[0].name}"
                f"({', '.join(gates[0].parameters)})` identify the customer by different parameters"
            )
            help = (
                "give both the same parameters, such as a customer number that the action answers"
            )
            yield HandbookProblem("principal-parameters", message, help, gate.name)


_LOWER = frozenset({"minimum", "exclusiveMinimum", "enum", "const"})


def _unlimited(handbook: Handbook) -> _Problems:
    """A number of a guarded action that is limited from above alone may be negative."""
    for procedure in handbook.procedures.values():
        action = handbook.actions[procedure.action]
        if not action.is_guarded and not procedure.confirm:
            continue
        bound = dict(procedure.arguments)
        computed = {item.name for item in procedure.computed}
        numbers = {
            term.name
            for item in action.inputs
            if item.type in ("number", "integer") and _LOWER.isdisjoint(item.schema or ())
            if isinstance(term := bound.get(item.name, Name(item.name)), Name)
        }
        limited: dict[str, dict[str, str]] = {name: {} for name in sorted(numbers - computed)}
        for leaf in leaves(obligations(handbook, procedure)):
            predicate = handbook.predicates[leaf.predicate]
            for parameter, term in leaf.arguments:
                if isinstance(term, Name) and term.name in limited:
                    for side in _limits(predicate, parameter, leaf.wanted):
                        limited[term.name].setdefault(side, predicate.name)
        for name, sides in limited.items():
            if sides.keys() == {"upper"}:
                upper = sides["upper"]
                message = sentence(
                    "no-lower-bound", goal=procedure.name, name=name, predicate=upper
                )
                help = sentence("add-lower-bound", name=name)
                yield HandbookProblem("no-lower-bound", message, help, upper)


def _limits(predicate: Predicate, parameter: str, wanted: bool) -> set[str]:
    calls = [call for recipe in predicate.recipes for call in recipe]
    tools = [call for call in calls if call.action not in BUILT_IN]
    if any(Name(parameter) == term for call in tools for _, term in call.arguments):
        return {"other"}  # a tool reads it, and may refuse it
    return limits(predicate.verdict, parameter, true=wanted) if predicate.verdict else set()


def _missing_inputs(handbook: Handbook) -> _Problems:
    for name, predicate in handbook.predicates.items():
        for call, missing in missing_inputs(predicate, handbook.actions):
            message = (
                f"`{call.action}` needs `{missing}`, but the recipe of `{name}` doesn't pass it"
            )
            help = no_origin(missing, name, ()).help
            if missing in predicate.parameters:
                help = f"write `{call.action}({missing}={missing})`"
                if len(handbook.actions[call.action].inputs) == 1:
                    help = f"write `{call.action}({missing})`"
            yield HandbookProblem("missing-input", message, help, name)


def _unread_parameters(handbook: Handbook) -> _Problems:
    """Parameters that neither a call nor the verdict reads."""
    for name, predicate in handbook.predicates.items():
        by_success = [
            item for item in (predicate.established_by, predicate.done) if item is not None
        ]
        if predicate.question or not (by_success or predicate.verdict):
            continue  # the user's answer decides, or a model by the sentence
        calls = [*by_success, *(call for recipe in predicate.recipes for call in recipe)]
        terms = [term for call in calls for term in (call.each, *dict(call.arguments).values())]
        read = {term.name for term in terms if isinstance(term, Name)}
        read |= {term.root for term in terms if isinstance(term, Path)}
        read |= free_names(predicate.verdict) if predicate.verdict else set()
        for parameter in predicate.parameters:
            if parameter not in read:
                message = (
                    f"`{name}` does not depend on `{parameter}`: it is the same for every value"
                )
                help = f"pass it to a call, or compare it in a verdict: `result.… == {parameter}`"
                yield HandbookProblem("unread-parameter", message, help, name)


def decidable(handbook: Handbook) -> frozenset[str]:
    """The predicates that an executor can come to know, as a least fixed point.

    A gate needs what its establishing action requires; a verified predicate needs one recipe
    whose calls are all allowed. The other predicates wait, in the end, for themselves.
    """
    known: set[str] = set()
    waiting = dict(handbook.predicates)
    while True:
        ready = [name for name in waiting if not _missing(handbook, name, known)]
        if not ready:
            return frozenset(known)
        known.update(ready)
        for name in ready:
            del waiting[name]


def _missing(handbook: Handbook, name: str, known: set[str]) -> list[tuple[str, str]]:
    """Why a predicate cannot be known yet: (action, predicate it waits for) pairs."""
    predicate = handbook.predicates[name]
    if predicate.done is not None:
        return []
    if predicate.established_by is not None:
        return _blocked(handbook, predicate.established_by.action, known)
    blocked: list[tuple[str, str]] = []
    for recipe in predicate.recipes:
        here = [pair for call in recipe for pair in _blocked(handbook, call.action, known)]
        if not here:
            return []
        blocked.extend(here)
    return blocked


def _blocked(handbook: Handbook, action: str, known: set[str]) -> list[tuple[str, str]]:
    declared = handbook.actions.get(action)
    if declared is None:
        return []
    return [(action, name) for name in _waits_for(handbook, declared.requires, known)]


def _waits_for(handbook: Handbook, tree: Tree, known: set[str]) -> list[str]:
    if isinstance(tree, Leaf):
        if tree.predicate in known or tree.predicate not in handbook.predicates:
            return []
        # That a gate has not been passed needs no action at all.
        if not tree.wanted and handbook.predicates[tree.predicate].is_gate:
            return []
        return [tree.predicate]
    parts = [_waits_for(handbook, child, known) for child in tree.children]
    if isinstance(tree, AnyOf | First) and any(not part for part in parts):
        return []
    return [name for part in parts for name in part]


def _circles(handbook: Handbook) -> _Problems:
    known = set(decidable(handbook))
    reported: set[frozenset[str]] = set()
    for name in (item for item in handbook.predicates if item not in known):
        circle = _circle(handbook, name, known)
        members = frozenset(needed for _, needed in circle)
        if members in reported:
            continue
        reported.add(members)
        start = circle[-1][1]
        steps = [f"`{action}`, which requires `{needed}`" for action, needed in circle]
        verb = "established" if handbook.predicates[start].is_gate else "verified"
        message = f"`{start}` can never be {verb}: it needs " + ", which needs ".join(steps)
        help = "drop one of these `requires`, or give a recipe that does not need it"
        yield HandbookProblem("circular-guard", message, help, start)


def _circle(handbook: Handbook, name: str, known: set[str]) -> list[tuple[str, str]]:
    """The circle that the first unmet need of each predicate leads into; it ends where it
    starts."""
    path: list[tuple[str, str]] = []
    visited = {name: 0}
    while True:
        step = _missing(handbook, name, known)[0]
        path.append(step)
        name = step[1]
        if name in visited:
            return path[visited[name] :]
        visited[name] = len(path)


def obligations(handbook: Handbook, procedure: Procedure) -> Tree:
    """The procedure's tree, joined by the goal action's ``requires`` where that says more.

    An action's requirement binds every call of it, so a procedure that leaves it
    out does not lift it.
    """
    action, tree = handbook.actions[procedure.action], procedure.requires
    if action.requires not in (NOTHING, tree):
        demanded = substitute(action.requires, dict(procedure.arguments))
        if demanded != tree:
            # Requirements of every call, such as ownership, come first: strangers learn no details.
            tree = All((demanded, tree))
    return with_made(handbook, procedure, tree)


def with_made(handbook: Handbook, procedure: Procedure, tree: Tree) -> Tree:
    """The tree with each computed argument before its first reader, and the confirmation last:
    the user confirms only what isn't refused."""
    names = [computed_name(procedure, item) for item in procedure.computed]
    if confirmation(procedure, handbook.actions[procedure.action]) is not None:
        names.append(confirmed_name(procedure))
    leaves_made = {
        name: Leaf(name, tuple((item, Name(item)) for item in handbook.predicates[name].parameters))
        for name in names
    }
    for item in procedure.computed:
        if _reads(tree, item.name):
            tree = _before_use(tree, item.name, leaves_made.pop(computed_name(procedure, item)))
    return InOrder((tree, *leaves_made.values())) if leaves_made else tree


def _before_use(tree: Tree, name: str, made: Leaf) -> Tree:
    """Place it as late as possible: checks before it may refuse a stranger."""
    if not isinstance(tree, All | InOrder) or otherwise_of(tree):
        return InOrder((made, tree))
    using = [child for child in tree.children if _reads(child, name)]
    before: tuple[Tree, ...]
    behind: tuple[Tree, ...] = ()
    if isinstance(tree, InOrder):
        at = tree.children.index(using[0])
        before, behind = tree.children[:at], tree.children[at + 1 :]
    else:
        # Their order stays free: a gate among them comes first.
        rest = tuple(child for child in tree.children if child not in using)
        before = (All(rest),) if rest else ()
        if len(using) > 1:
            return InOrder((*before, made, All(tuple(using))))
    own = _before_use(using[0], name, made)
    spliced = own.children if isinstance(own, InOrder) else (own,)
    return InOrder((*before, *spliced, *behind))


def _reads(tree: Tree, name: str) -> bool:
    return any(Name(name) == term for leaf in leaves(tree) for _, term in leaf.arguments)
