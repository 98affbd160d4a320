"""Recipe ranking: which of several equivalent ways to verify comes first.

In:  a predicate's alternatives in source order, the actions that are offered.
Out: the alternatives that can be carried out, most robust first, and notes on the others.

The narrowest comes first: a reader of the full state shows everybody's data, so it comes after
every whole recipe without one. Then: fewest values to find, fewest gates to open, fewest calls,
source order. ``wide_first`` reverses the first rule, for benchmarks with such a reader. A fallback
must not need a gate that the chosen recipe doesn't need, because that gate is still shut.

The module also resolves the calls of a procedure's checks (``Callees``), and finds the checks of a
guarded action that a model judges or that can't be proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sopilot.compiler.factoring import Group, Names
from sopilot.compiler.prerequisites import required_gates
from sopilot.compiler.schedule import argument_of
from sopilot.handbook.model import Action, ActionCall, Predicate, Recipe
from sopilot.handbook.read_recipes import resolved_recipe
from sopilot.handbook.requirements import Leaf, Name, Path, Tree, plain_binding, substitute
from sopilot.messages.diagnostic import Diagnostic, Place
from sopilot.messages.errors import UserMistake
from sopilot.program.model import Act, ActionFacts, Arguments, Function, Kind, Local, Program


@dataclass(slots=True)
class Callees:
    """The function and arguments of each check. ``scope`` are the names of the process,
    ``optional`` the parameters of each predicate that may have no value."""

    names: Names
    scope: frozenset[str]
    optional: Mapping[str, tuple[str, ...]]
    predicates: dict[str, None] = field(default_factory=dict)
    """The predicates of all resolved leaves, in order."""

    def of(self, leaf: Leaf | Group) -> tuple[str, Arguments]:
        if isinstance(leaf, Group):
            passed = (name for name in leaf.parameters if name in self.scope)
            return leaf.name, tuple((name, Local(name)) for name in passed)
        self.predicates[leaf.predicate] = None
        optional = self.optional.get(leaf.predicate, ())
        arguments = tuple(
            [
                (parameter, argument_of(term, self.scope))
                for parameter, term in leaf.arguments
                if parameter not in optional or isinstance(term, Name)
            ]
        )
        return self.names.rule(leaf.predicate), arguments


@dataclass(frozen=True, slots=True)
class Unprovable:
    """A predicate that can't be proven. ``verifier`` is the action that changes what it reads;
    empty if there is no verdict and the handbook trusts no model."""

    predicate: str
    verifier: str = ""


def judged_by_model(program: Program) -> tuple[str, ...]:
    """The predicates of a guarded action that may rest on a model's word."""
    return tuple(
        function.judges
        for function in _rules(program)
        if function.verdict is None and function.judged_by_model
    )


def shared_state(program: Program) -> tuple[str, ...]:
    """Actions whose answers and gates a guarded call accepts from any connection (P8)."""
    if not _has_guarded_goal(program):
        return ()
    called = {
        act.action
        for function in program.functions.values()
        for recipe in function.recipes
        for act in recipe
        if function.kind in (Kind.RULE, Kind.GATE)
    }
    return tuple(
        sorted(name for name in called if name in program.actions and program.actions[name].shared)
    )


def unprovable(program: Program) -> tuple[Unprovable, ...]:
    unprovables: list[Unprovable] = []
    for function in _rules(program):
        disturbing = [_disturbs_itself(recipe, program) for recipe in function.recipes]
        if function.verdict is None and not function.judged_by_model:
            unprovables.append(Unprovable(function.judges))
        elif disturbing and all(disturbing):
            unprovables.append(Unprovable(function.judges, disturbing[0]))
    return tuple(unprovables)


def _has_guarded_goal(program: Program) -> bool:
    guarded = {guard.action for guard in program.guarded}
    steps = program.functions[program.entry].steps
    return any(isinstance(step, Act) and step.goal and step.action in guarded for step in steps)


def _rules(program: Program) -> Iterator[Function]:
    if _has_guarded_goal(program):
        yield from (
            function for function in program.functions.values() if function.kind is Kind.RULE
        )


def _disturbs_itself(recipe: tuple[Act, ...], program: Program) -> str:
    """The first call of a recipe that makes its own answer stale; empty if there is none."""
    return next((act.action for act in recipe if _is_never_fresh(program.actions[act.action])), "")


def _is_never_fresh(facts: ActionFacts) -> bool:
    if facts.changes is None or facts.reads is None:
        return facts.changes != ()
    return not set(facts.changes).isdisjoint(facts.reads)


_Rank = tuple[bool, int, bool, int, int, int, int]


@dataclass(frozen=True, slots=True)
class RankedRecipes:
    """``chosen`` is empty when no alternative has a single offered call."""

    chosen: Recipe
    fallbacks: tuple[Recipe, ...] = ()
    notes: tuple[str, ...] = ()
    because: str = ""

    @property
    def missing(self) -> bool:
        return not self.chosen


def _values_to_find(call: ActionCall, action: Action, parameters: tuple[str, ...]) -> int:
    """The number of inputs for which neither the predicate nor a constant gives a value."""
    mapped = dict(call.arguments)
    number = 0
    for item in action.inputs:
        term = mapped.get(item.name)
        if term is None:
            number += item.required
        elif isinstance(term, Name):
            number += term.name not in parameters
    return number


def _carried_out(recipe: Recipe, offered: frozenset[str]) -> Recipe:
    """The calls that are offered and don't read the answer of a call that isn't."""
    usable: list[ActionCall] = []
    gone: set[str] = set()
    for call in recipe:
        terms = (call.each, *(term for _, term in call.arguments))
        roots = {term.root for term in terms if isinstance(term, Path)}
        if call.action in offered and not gone & roots:
            usable.append(call)
        else:
            gone.add(call.answer)
    return tuple(usable)


@dataclass(slots=True)
class ChosenRecipes:
    """Ranks the recipes of predicates on first use. It has no reference to the compiler, so that no
    reference cycle keeps a compiler alive."""

    predicates: Mapping[str, Predicate]
    actions: Mapping[str, Action]
    offered: frozenset[str]
    wide_first: bool
    ranked: dict[str, RankedRecipes] = field(default_factory=dict)

    def of(self, predicate: str) -> RankedRecipes:
        ranked = self.ranked.get(predicate)
        if ranked is None:
            ranked = self.ranked[predicate] = self._rank(self.predicates[predicate])
        return ranked

    def _rank(self, predicate: Predicate) -> RankedRecipes:
        notes: list[str] = []
        ranked: list[tuple[_Rank, Recipe, Recipe, frozenset[Tree]]] = []
        for position, recipe in enumerate(predicate.recipes):
            usable = _carried_out(recipe, self.offered)
            absent = tuple(call for call in recipe if call.action not in self.offered)
            if not usable:
                notes.append(f"dropped: {_called(absent)} is not offered")
                continue
            actions = [self.actions[call.action] for call in usable]
            gates = frozenset(
                substitute(gate, dict(plain_binding(call.arguments)))
                for call, action in zip(usable, actions, strict=True)
                for gate in required_gates(action.requires, self.predicates)
            )
            unknown = sum(
                _values_to_find(call, action, predicate.parameters)
                for call, action in zip(usable, actions, strict=True)
            )
            # A reader that replaces only a part of the recipe proves less than the whole.
            left_out = len(recipe) - len(usable)
            reads_all = [action.full_state for action in actions]
            whole = self.wide_first and not left_out and all(reads_all)
            wide = not self.wide_first and any(reads_all)
            key = (not whole, left_out, wide, unknown, len(gates), len(usable), position)
            ranked.append((key, usable, absent, gates))
        ranked.sort(key=lambda entry: entry[0])
        if not ranked:
            return RankedRecipes((), notes=tuple(notes))
        key, chosen, absent, open_gates = ranked[0]
        if absent:
            names = ", ".join(call.action for call in absent)
            notes.append(f"not offered: {names}; the recipe uses its other calls")
        fallbacks = []
        for _, recipe, _, gates in ranked[1:]:
            if gates <= open_gates:
                fallbacks.append(recipe)
            else:
                reason = "needs a gate that no step opens"
                notes.append(f"no fallback: {_called(recipe)} {reason}")
        return RankedRecipes(chosen, tuple(fallbacks), tuple(notes), _because(key, len(ranked)))

    def verifying(self, predicate: str) -> Recipe:
        """The chosen recipe; empty if no tool verifies the predicate."""
        result = self.predicates[predicate]
        unverified = result.tool_free or result.done is not None
        return () if unverified else self.of(predicate).chosen


def _called(recipe: Recipe) -> str:
    return " + ".join(call.action for call in recipe)


def _because(key: _Rank, rivals: int) -> str:
    if rivals == 1:
        return "the only recipe that is offered"
    not_whole, absent, _, unknown, gates, calls, position = key
    if not not_whole:
        return "it reads the full state, so it needs no argument and no gate"
    return (
        f"narrowest of {rivals} recipes, with fewest obstacles: {absent} verifiers missing, "
        f"{unknown} values to find, {gates} gates to open, {calls} calls, "
        f"position {position + 1} in the source"
    )


def require_origins(predicate: Predicate) -> None:
    what = f"the recipe of `{predicate.name}`"
    recipes = [
        problem
        for recipe in predicate.recipes
        for problem in resolved_recipe(recipe, predicate.parameters, predicate.asks, what)[1]
    ]
    if recipes:
        place = Place(path=f"predicates.{predicate.name}")
        raise UserMistake(
            [Diagnostic(item.code, item.message, place, item.help) for item in recipes]
        )
