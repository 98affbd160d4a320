"""Whole handbooks at random, with everything that a compiler decides about in them: several
recipes, gates behind gates, sessions' facts, guarded goals, computed arguments, refusals of one's
own, inputs that may be left out, secrets. A number makes the same one for ever."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from sopilot.handbook.model import (
    Action,
    ActionCall,
    Approval,
    Computed,
    Handbook,
    Input,
    Predicate,
    Procedure,
    Recipe,
)
from sopilot.handbook.requirements import (
    NOTHING,
    All,
    AnyOf,
    Binding,
    Constant,
    First,
    InOrder,
    Leaf,
    Name,
    Origin,
    Path,
    Term,
    Tree,
)

NAMES = ("user", "item", "amount", "code")
SCHEMAS: tuple[dict[str, object], ...] = (
    {"type": ["string", "null"]},
    {"type": "string", "enum": ("a", "b"), "title": "left out"},
    {"minimum": 1, "maximum": 9},
    {"type": "array", "items": {"type": "string", "format": "x"}, "minItems": 1},
    {"type": "object", "properties": {"k": {"type": "integer", "format": "x"}, "l": True}},
)
T = TypeVar("T")


class Desk:
    """``dense``: a few checks again and again, in deep trees with options that demand nothing."""

    def __init__(self, seed: int, *, dense: bool = False) -> None:
        self._dice = random.Random(seed)
        self._gates = 0 if dense else self._dice.randint(0, 3)
        self._rules = self._dice.randint(2, 4 if dense else 12)
        self._dense = dense
        self.actions: dict[str, Action] = {}
        self.predicates: dict[str, Predicate] = {}

    def handbook(self) -> Handbook:
        for number in range(self._gates):
            self._gate(number)
        if self._gates > 1 and self._often(0.15):
            # The first needs the last, which may need the first.
            last = self.predicates[f"gate{self._gates - 1}"]
            needs = Leaf(last.name, tuple((one, Name(one)) for one in last.parameters))
            self.actions["open0"] = replace(self.actions["open0"], requires=needs)
        for number in range(max(3, self._rules // 2)):
            self._look(f"look{number}")
        for number in range(self._rules):
            self._rule(f"p{number}")
        procedures = {}
        for number in range(self._dice.randint(1, 3)):
            goal = f"goal{number}"
            self.actions[goal] = self._goal(goal)
            name = goal if self._often() else f"do_{goal}"
            if self._often(0.1):
                name = self._one(list(self.predicates))
            procedures[name] = self._procedure(name, goal, list(procedures))
        return Handbook(
            "random",
            parameters={"limit": 3, "fee": 0.5} if self._often() else {},
            actions=self.actions,
            predicates=self.predicates,
            procedures=procedures,
        )

    def _often(self, chance: float = 0.5) -> bool:
        return self._dice.random() < chance

    def _one(self, of: Sequence[T]) -> T:
        return self._dice.choice(of)

    def _some(self, of: Sequence[str], most: int) -> list[str]:
        return self._dice.sample(list(of), self._dice.randint(0, min(most, len(of))))

    def _inputs(self, most: int = 3) -> tuple[Input, ...]:
        return tuple(
            Input(
                name,
                self._one(("string", "integer", "null")),
                required=self._often(0.7),
                schema=self._one(SCHEMAS) if self._often(0.3) else None,
                secret=self._often(0.04),
            )
            for name in self._some(NAMES, most)
        )

    def _term(self, names: Sequence[str] = NAMES) -> Term:
        if names and self._often(0.8):
            return Name(self._one(names))
        return Constant(self._one((None, 1, "k", True)))

    def _leaf(self) -> Leaf:
        name = self._one(list(self.predicates))
        arguments = tuple((one, self._term()) for one in self.predicates[name].parameters)
        return Leaf(name, arguments, self._often(0.75))

    def _tree(self, size: int, *, refuses: bool = False) -> Tree:
        """``refuses``: where a requirement may have a refusal of its own."""
        if size == 0 or not self.predicates:
            return NOTHING
        if size == 1:
            return self._leaf()
        kind = self._one((All, InOrder, AnyOf, First))
        most = size if kind in (AnyOf, First) else min(size, 9)
        parts = self._dice.randint(2, min(most, 3 if self._dense else 9))
        cuts = sorted(self._dice.sample(range(1, size), parts - 1))
        sizes = [b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
        goes_on = refuses and kind in (All, InOrder)
        children = tuple(self._tree(one, refuses=goes_on) for one in sizes)
        if kind in (AnyOf, First) and self._often(0.3 if self._dense else 0.08):
            # An option that demands nothing.
            place = self._dice.randint(0, len(children))
            children = (*children[:place], NOTHING, *children[place:])
        if goes_on and self._often(0.3):
            return InOrder(children, self._one(("ask a colleague", "come again")))
        tree: Tree = kind(children)
        return tree

    def _requires(self) -> Tree:
        gates = [name for name, one in self.predicates.items() if one.is_gate]
        if not gates or self._often(0.4):
            return NOTHING
        wanted = [
            Leaf(name, tuple((one, Name(one)) for one in self.predicates[name].parameters))
            for name in self._dice.sample(gates, self._dice.randint(1, min(2, len(gates))))
        ]
        if self._often(0.2):
            wanted[0] = Leaf(wanted[0].predicate, wanted[0].arguments, False)
        return wanted[0] if len(wanted) == 1 else self._one((All, InOrder, AnyOf))(tuple(wanted))

    def _gate(self, number: int) -> None:
        inputs = self._inputs()
        requires = self._requires()
        opener, closer = f"open{number}", f"shut{number}"
        self.actions[opener] = Action(
            opener, inputs, requires=requires, offered=self._often(0.9), changes=self._topics()
        )
        self.actions[closer] = Action(closer, inputs)
        parameters = tuple(self._some(NAMES, 2))
        given = tuple((one.name, self._term(parameters)) for one in inputs if self._often(0.8))
        name = f"gate{number}"
        if self._often(0.2):
            # It is opened only where it is shut.
            shut = Leaf(name, tuple((one, Name(one)) for one in parameters), False)
            both = All((requires, shut))
            self.actions[opener] = replace(self.actions[opener], requires=both)
            given = tuple((one.name, Name(one.name)) for one in inputs)
        self.predicates[name] = Predicate(
            name,
            parameters,
            says=f"gate {number}",
            established_by=ActionCall(opener, given),
            closed_by=ActionCall(closer, given) if self._often() else None,
            principal=self._often(0.2),
            verdict=self._one((None, "result.ok")),
        )

    def _topics(self) -> tuple[str, ...] | None:
        return None if self._often() else tuple(self._some(("stock", "money"), 2))

    def _look(self, name: str) -> None:
        self.actions[name] = Action(
            name,
            self._inputs(),
            requires=self._requires(),
            full_state=self._often(0.15),
            offered=self._often(0.85),
            read_only=self._often(0.3),
            irreversible=self._often(0.05),
            changes=None if self._often(0.7) else self._topics(),
            reads=self._topics(),
            not_found="result.none" if self._often(0.2) else None,
            secrets=("code",) if self._often(0.03) else (),
        )

    def _recipe(self, parameters: Sequence[str]) -> Recipe:
        looks = [name for name in self.actions if name.startswith("look")]
        calls: list[ActionCall] = []
        for number, action in enumerate(self._dice.sample(looks, self._one((1, 1, 1, 2)))):
            given: list[tuple[str, Origin]] = []
            for item in self.actions[action].inputs:
                if number and self._often(0.4):
                    given.append((item.name, Path("first", ("rows", 0, item.name))))
                elif parameters and self._often(0.05):
                    given.append((item.name, Path(self._one(parameters), ("id",))))
                elif parameters and self._often(0.85):
                    given.append((item.name, self._term(parameters)))
            calls.append(ActionCall(action, tuple(given), name="" if number else "first"))
        if len(calls) > 1 and self._often(0.3):
            each = Path(self._one(("first", "first", *parameters)), ("rows",))
            item = ("item", Path("row", ("id",)))
            calls[1] = replace(calls[1], arguments=(item,), each=each, element="row")
        return tuple(calls)

    def _rule(self, name: str) -> None:
        parameters = () if self._dense else tuple(self._some(NAMES, 2))
        kind = self._one(("tools", "tools", "tools", "tools", "free", "done"))
        if self._dense:
            kind = self._one(("tools", "free"))
        verdicts = [None, "true", *(f"{one} == null || {one} > limit" for one in parameters)]
        verdicts += [f"{one} != 'x'" for one in parameters]
        done = ActionCall(self._one(list(self.actions))) if kind == "done" else None
        recipes: tuple[Recipe, ...] = ()
        if kind == "tools":
            recipes = tuple(self._recipe(parameters) for _ in range(self._one((1, 1, 2, 3))))
        self.predicates[name] = Predicate(
            name,
            parameters,
            says=f"{name} holds",
            says_not=f"{name} does not" if self._often() else "",
            recipes=recipes,
            tool_free=kind == "free",
            done=done,
            verdict=None if done else self._one(verdicts),
            remedy="call" if self._often(0.2) else "",
            customer_message="no" if self._often(0.2) else "",
            judged_by_model=self._often(0.3),
        )

    def _goal(self, name: str) -> Action:
        approval = None
        if self._often(0.3):
            approval = Approval(
                ("clerk", "head")[: self._dice.randint(1, 2)],
                self._dice.randint(1, 2),
                self._one((None, 60)),
                self._one((None, "amount > 3")),
            )
        return Action(
            name,
            self._inputs(4),
            says=f"{name} is done",
            requires=self._tree(self._dice.randint(0, 3)) if self._often(0.4) else NOTHING,
            irreversible=self._often(0.4),
            approval=approval,
            recheck=self._often(0.2),
            confirm=self._one((None, None, "", "Shall it be {amount}?")),
        )

    def _procedure(self, name: str, goal: str, others: Sequence[str]) -> Procedure:
        computed: tuple[Computed, ...] = ()
        declared = self.actions[goal].inputs
        if declared and self._often(0.3):
            first = declared[0].name
            uses = tuple(one for one in self._some(NAMES, 2) if one != first)
            recipes = (self._recipe(uses),) if self._often() else ()
            computed = (Computed(first, "limit + 1", recipes, uses),)
        arguments: Binding = tuple(
            (one.name, self._term()) for one in declared[1:] if self._often(0.4)
        )
        own = (Input("extra", "integer", required=self._often()),) if self._often(0.2) else ()
        follows = self._one(("", "", "tell the head", *others))
        return Procedure(
            name,
            goal,
            self._tree(
                self._one((6, 9, 12) if self._dense else (0, 1, 2, 4, 8, 12, 18)),
                refuses=not self._dense,
            ),
            says="" if self._often() else f"{name} goes",
            arguments=arguments,
            inputs=own,
            computed=computed,
            confirm="Really?" if self._often(0.1) else None,
            otherwise=follows,
        )
