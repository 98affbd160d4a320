"""The passes, in order.

simplify            one-child nodes, nesting, repeats
rank recipes        the verifier of each predicate
close guards        Eq. 2: the gates those verifiers need
order               gates before the checks that need them, where the order is free
hoist               the missing gates in front
settle              drop checks that earlier ones have settled
factor              functions of at most seven checks
schedule            Eq. 3: jumping code, evidence-complete code, reuse
thread              no check twice on one path
rules and gates     one function a predicate
verify              the program verifier, always
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sopilot import __version__
from sopilot.compiler.action_facts import HandbookFacts, handbook_facts, scope_types
from sopilot.compiler.factoring import Factoring, Group, Names
from sopilot.compiler.functions import (
    done_function,
    gate_function,
    left_out,
    optional_names,
    optional_parameters,
    rule_function,
)
from sopilot.compiler.prerequisites import (
    Guard,
    GuardClosure,
    Unopened,
    order_by_prerequisite,
    unopened_gates,
)
from sopilot.compiler.recipes import Callees, ChosenRecipes, RankedRecipes, require_origins
from sopilot.compiler.schedule import (
    Schedule,
    goal_arguments,
    goal_terms,
    inputs_by_name,
    refusal,
    start_names,
)
from sopilot.compiler.simplify import Dropped, Settled, simplify
from sopilot.compiler.threading import without_uncalled
from sopilot.handbook.consistency import obligations
from sopilot.handbook.model import BUILT_IN, Action, Handbook, Predicate, Procedure
from sopilot.handbook.requirements import InOrder, Leaf, Tree, leaves
from sopilot.handbook.writer import handbook_hash
from sopilot.messages.diagnostic import Place, did_you_mean
from sopilot.messages.errors import mistake
from sopilot.program.model import Act, CompleteStep, Function, Kind, Program, Source
from sopilot.program.verifier import require_valid


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why the program looks as it does."""

    guards: tuple[Guard, ...]
    recipes: Mapping[str, RankedRecipes]
    groups: tuple[Group, ...]
    tree: Tree
    unchecked: tuple[tuple[str, Leaf], ...] = ()
    """Verifier actions with a requirement that is neither hoisted nor checked here."""
    unopened: tuple[Unopened, ...] = ()
    """Checks that may run while a gate they need is shut."""
    dropped: tuple[Dropped, ...] = ()
    """Checks and options that earlier checks have settled."""
    postponed: tuple[Tree, ...] = ()
    """Options without a verifier, tried only if no other option holds."""
    excluded: tuple[str, ...] = ()
    """Predicates that no path reaches, because earlier checks exclude them."""


@dataclass(frozen=True, slots=True)
class Compiled:
    program: Program
    explanation: Explanation

    @property
    def missing_recipes(self) -> tuple[str, ...]:
        return tuple(name for name, ranked in self.explanation.recipes.items() if ranked.missing)


class Compiler:
    """Compiles the procedures of handbooks that share actions and predicates.

    Results that depend only on the actions, predicates and offered tools are computed once. Two
    options are for benchmarks: with ``wide_first`` a reader of the full state comes before narrower
    verifiers, and with ``evidence_complete`` every option of an ``any`` is checked before it is
    decided, even without a tool.
    """

    def __init__(
        self,
        actions: Mapping[str, Action],
        predicates: Mapping[str, Predicate],
        *,
        offered: frozenset[str] | None = None,
        tools: str = "",
        wide_first: bool = False,
        evidence_complete: bool = False,
    ) -> None:
        self._evidence_complete = evidence_complete
        self._actions = {**actions, **{name: Action(name) for name in BUILT_IN}}
        self._predicates = predicates
        if offered is None:
            offered = frozenset(name for name, action in actions.items() if action.offered)
        self._offered = offered | frozenset(BUILT_IN)
        self._tools = tools
        self._functions: dict[tuple[str, str, tuple[str, ...]], Function] = {}
        self._accepted: dict[str, Function] = {}
        self._skeletons: dict[object, Compiled] = {}
        self._recipes = ChosenRecipes(
            predicates, self._actions, self._offered, wide_first=wide_first
        )
        self._closure = GuardClosure(self._actions, predicates, self._recipes.verifying)
        self._facts: dict[object, HandbookFacts] = {}

    def compile(
        self, handbook: Handbook, procedure: Procedure, *, source_hash: str | None = None
    ) -> Compiled:
        key = _key(procedure, handbook.actions[procedure.action])
        stored = self._skeletons.get(key)
        skeleton = stored or self._skeleton(handbook, procedure)
        facts = self._facts_of(handbook)
        program = replace(
            skeleton.program,
            source=Source(
                handbook=handbook.name,
                procedure=procedure.name,
                sha256=source_hash or handbook_hash(handbook),
                tools=self._tools,
            ),
            # By name: the order of a handbook's keys must not change the program.
            constants=dict(sorted(handbook.parameters.items())),
            guarded=facts.guarded,
            actions=facts.actions,
            read_only=facts.read_only,
            secrets=facts.secrets,
            not_found=facts.not_found,
        )
        if stored is None:
            self._verify(program)
            self._skeletons[key] = skeleton
        return Compiled(program, skeleton.explanation)

    def _facts_of(self, handbook: Handbook) -> HandbookFacts:
        """Facts, shared by handbooks with the same goals unless something is secret: how a secret
        spreads depends on the requirements."""
        procedures = handbook.procedures.values()
        goals = tuple(
            [
                (item.action, bool(item.confirm), handbook.actions[item.action].requires)
                for item in procedures
            ]
        )
        guarded = tuple([item.name for item in handbook.actions.values() if item.is_guarded])
        key = (goals, guarded)
        hides = any(item.secret for procedure in procedures for item in procedure.inputs)
        facts = None if hides else self._facts.get(key)
        if facts is None:
            facts = handbook_facts(handbook)
            if not facts.secrets:
                self._facts[key] = facts
        return facts

    def _verify(self, program: Program) -> None:
        """The verifier doesn't read constants, so it runs once per skeleton."""
        functions = program.functions
        judging = {name: item for name, item in functions.items() if item.predicate}
        predicates = frozenset([item.predicate or "" for item in judging.values()])
        require_valid(program, predicates, accepted=self._accepted)
        self._accepted.update(judging)

    def _checked(
        self, handbook: Handbook, procedure: Procedure
    ) -> tuple[Tree, tuple[Guard, ...], Settled]:
        """The tree that is left to check, the gates that it needs, and what was dropped."""
        tree = simplify(obligations(handbook, procedure), self._closure.same)
        guards = self._closure.close(tree)
        ordered = order_by_prerequisite(tree, guards, self._closure)
        front = tuple([guard.leaf for guard in guards if guard.hoisted])
        if front:
            ordered = tree = simplify(InOrder((*front, ordered)))
        settled = Settled(self._actions, self._predicates, postpones=not self._evidence_complete)
        left = settled.tree(ordered)
        return left if left is tree else simplify(left), guards, settled

    def _skeleton(self, handbook: Handbook, procedure: Procedure) -> Compiled:
        """The part that programs with the same tree share: the functions and their types."""
        tree, guards, settled = self._checked(handbook, procedure)
        in_front = all(guard.hoisted for guard in guards)
        names = Names(procedure.name, self._predicates)
        factoring = Factoring(names.group)
        plan = factoring.plan(tree)

        goal = handbook.actions[procedure.action]
        terms = goal_terms(goal, procedure)
        parameters = start_names(terms, procedure)
        scope = frozenset(parameters)
        required = leaves(tree)
        optional = optional_parameters(
            required, left_out(procedure, goal, terms), self._predicates, self._actions
        )
        callees = Callees(names, scope, optional)
        functions: dict[str, Function] = {}
        act = Act("act", procedure.action, goal_arguments(terms, scope), goal=True)
        functions[procedure.name] = Function(
            name=procedure.name,
            kind=Kind.PROCESS,
            parameters=parameters,
            steps=Schedule(callees.of).process(
                plan,
                act,
                CompleteStep("done"),
                lambda follows: refusal(handbook, follows),
                procedure.otherwise,
            ),
            says=procedure.says or goal.says,
        )
        for group in factoring.groups:
            functions[group.name] = Function(
                name=group.name,
                kind=Kind.GROUP,
                parameters=tuple([name for name in group.parameters if name in scope]),
                steps=Schedule(callees.of).group(group),
                optional=optional_names(group.parameters, required, optional),
            )
        called = without_uncalled(functions, procedure.name)
        rules = [(names.rule(entry), entry) for entry in callees.predicates]
        used = [predicate for rule, predicate in rules if rule in called]
        for rule, predicate in rules:
            if rule in called:
                functions[rule] = self._function(rule, predicate, optional.get(predicate, ()))
        for name, item in self._predicates.items():
            # A gate that identifies the customer belongs to every procedure.
            if item.principal and name not in used:
                functions[names.rule(name)] = self._function(names.rule(name), name, ())
        ranked = self._recipes.ranked
        explanation = Explanation(
            guards=guards,
            recipes={name: ranked[name] for name in used if name in ranked},
            groups=tuple(entry for entry in factoring.groups if entry.name in functions),
            tree=tree,
            unchecked=self._closure.unchecked(required),
            unopened=() if in_front else unopened_gates(tree, guards, self._closure),
            dropped=tuple(settled.dropped),
            postponed=tuple(settled.postponed),
            excluded=tuple(entry for entry in callees.predicates if entry not in used),
        )
        types = scope_types(
            parameters,
            inputs_by_name(terms, goal, procedure),
            required,
            self._actions,
            self._predicates,
        )
        source = Source("", procedure.name, "")
        program = Program(procedure.name, functions, source, __version__, types=types)
        return Compiled(program, explanation)

    def _function(self, name: str, predicate_name: str, optional: tuple[str, ...]) -> Function:
        # One name may belong to two predicates: the goal's namesake is renamed.
        key = (name, predicate_name, optional)
        function = self._functions.get(key)
        if function is None:
            predicate = self._predicates[predicate_name]
            if predicate.done is not None:
                function = done_function(name, predicate, self._actions)
            elif predicate.is_gate:
                function = gate_function(
                    name, predicate, self._actions, self._predicates, self._offered
                )
            else:
                recipes = RankedRecipes(())
                if not predicate.tool_free:
                    recipes = self._recipes.of(predicate_name)
                require_origins(predicate)
                function = rule_function(name, predicate, recipes, self._actions, optional)
            self._functions[key] = function
        return function


def _key(procedure: Procedure, goal: Action) -> object:
    """Everything that a skeleton depends on."""
    return (
        procedure.name,
        procedure.action,
        procedure.requires,
        procedure.says,
        procedure.arguments,
        goal.requires,
        # A schema is a dictionary, which has no hash.
        repr((procedure.inputs, procedure.computed)),
        procedure.confirm,
        procedure.otherwise,
        goal.confirm,
    )


def compile_procedure(
    handbook: Handbook,
    procedure: str,
    *,
    offered: frozenset[str] | None = None,
    tools: str = "",
) -> Compiled:
    """One procedure of one handbook. ``offered`` defaults to every offered action."""
    if procedure not in handbook.procedures:
        raise mistake(
            "unknown-procedure",
            f"`{procedure}` is not a procedure of `{handbook.name}`",
            Place(path=f"procedures.{procedure}"),
            did_you_mean(procedure, handbook.procedures),
        )
    compiler = Compiler(handbook.actions, handbook.predicates, offered=offered, tools=tools)
    goal = handbook.procedures[procedure]
    return compiler.compile(handbook, goal)


def compile_handbook(
    handbook: Handbook, *, offered: frozenset[str] | None = None, tools: str = ""
) -> dict[str, Compiled]:
    """Every procedure of the handbook, by name, in source order."""
    compiler = Compiler(handbook.actions, handbook.predicates, offered=offered, tools=tools)
    digest = handbook_hash(handbook)
    return {
        name: compiler.compile(handbook, procedure, source_hash=digest)
        for name, procedure in handbook.procedures.items()
    }
