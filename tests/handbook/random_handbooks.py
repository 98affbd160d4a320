"""Random valid handbooks: everything the language can say, in awkward words.

One generator serves the properties of the reader, the compiler, the machine and the views. A
number always makes the same handbook. Its first procedure is `goal`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from sopilot.compiler.pipeline import Compiler
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
    asking,
)
from sopilot.handbook.requirements import (
    NOTHING,
    All,
    AnyOf,
    Binding,
    CallBinding,
    Constant,
    First,
    InOrder,
    Leaf,
    Name,
    Origin,
    Path,
    Scalar,
    Term,
    Tree,
)
from sopilot.program.model import Program

NAMES = ("user", "item", "amount", "code", "on")
TYPES = ("string", "number", "integer", "boolean", "object", "array")
OPERATORS = (All, AnyOf, InOrder, First)
SCHEMAS: tuple[dict[str, Any], ...] = (
    {"type": ["string", "null"]},
    {"type": "string", "enum": ["a", "no"], "title": "left out"},
    {"minimum": 1, "maximum": 9},
    {"type": "array", "items": {"type": "string", "format": "x"}, "minItems": 1},
    {"type": "object", "properties": {"k": {"type": "integer", "format": "x"}, "l": True}},
)
TEXTS = (
    *("yes", "null", "~", "$x", "??", "a: b # c", "- a", "true", "1", "1e3", "x ", " x", "None"),
    *(
        "\u2028",
        "\ufeff",
        "\x7f",
        "\x85",
        '"',
        "\\",
        "a\nb",
        "\t x",
        "银行",
        "\U0001f3e6",
        "f(a, b)",
    ),
    "ALL of these conditions must be met:",
    "must be true; unmet → refuse",
    '"the" **limit** — for {{not a name}}',
    "> act: call the tool",
)
SCALARS: tuple[Scalar, ...] = (
    *(0, 1, -(10**40), 10**40, 1.5, -0.0, 1e300, True, False, None, "", "k", 'a "quoted" text'),
    *TEXTS[:12],
)
T = TypeVar("T")


def random_handbook(seed: int, *, dense: bool = False) -> Handbook:
    """``dense``: a few checks again and again, in deep trees with options that demand nothing."""
    return _Author(random.Random(seed), dense).handbook()


def handbooks() -> st.SearchStrategy[Handbook]:
    return st.integers(0, 2**32).map(random_handbook)


def compiled_programs(handbook: Handbook) -> Iterator[Program]:
    compiler = Compiler(handbook.actions, handbook.predicates)
    for procedure in handbook.procedures.values():
        yield compiler.compile(handbook, procedure).program


def programs() -> st.SearchStrategy[Program]:
    """The program of `goal`."""
    return handbooks().map(lambda handbook: next(compiled_programs(handbook)))


def random_tree(
    dice: random.Random,
    size: int,
    leaf: Callable[[], Leaf],
    *,
    widest: int = 9,
    empty: float = 0.0,
    refuses: bool = False,
) -> Tree:
    """A tree of so many leaves. ``empty``: how often an option demands nothing. ``refuses``:
    a part that must be met may have a refusal of its own."""
    if size == 1 and dice.random() < 0.9:
        return leaf()
    kind = dice.choice(OPERATORS)
    parts = dice.randint(1, min(size, widest))
    cuts = sorted(dice.sample(range(1, size), parts - 1))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    goes_on = refuses and kind in (All, InOrder)
    children = [
        random_tree(dice, part, leaf, widest=widest, empty=empty, refuses=goes_on) for part in sizes
    ]
    if kind in (AnyOf, First) and dice.random() < empty:
        children.insert(dice.randint(0, len(children)), NOTHING)
    tree: Tree = kind(tuple(children))
    if goes_on and dice.random() < 0.3:
        return InOrder((tree,), dice.choice(("ask a colleague", "come again")))
    return tree


class _Author:
    def __init__(self, dice: random.Random, dense: bool) -> None:
        self._dice = dice
        self._dense = dense
        self._parameters: dict[str, Scalar] = {"limit": 3, "rate": self._one(SCALARS)}
        self._actions: dict[str, Action] = {}
        self._predicates: dict[str, Predicate] = {}

    def handbook(self) -> Handbook:
        for number in range(0 if self._dense else self._dice.randint(0, 3)):
            self._gate(number)
        rules = self._dice.randint(2, 4 if self._dense else 9)
        for number in range(max(2, rules // 2)):
            self._look(f"look{number}")
        for number in range(rules):
            self._rule(f"p{number}")
        procedures: dict[str, Procedure] = {}
        for number in range(self._dice.randint(1, 3)):
            goal = f"goal{number}" if number else "goal"
            self._actions[goal] = self._goal(goal)
            name = goal if self._often() or not number else f"do_{goal}"
            procedures[name] = self._procedure(name, goal, list(procedures))
        return Handbook(
            "random-desk",
            self._text(()),
            self._parameters,
            self._actions,
            self._predicates,
            procedures,
        )

    # --- chance -----------------------------------------------------------------------

    def _often(self, chance: float = 0.5) -> bool:
        return self._dice.random() < chance

    def _one(self, of: Sequence[T]) -> T:
        return self._dice.choice(of)

    def _some(self, of: Sequence[str], most: int) -> list[str]:
        return self._dice.sample(list(of), self._dice.randint(0, min(most, len(of))))

    def _text(self, names: Sequence[str], chance: float = 0.5) -> str:
        """Words, mostly; awkward ones, now and then; with the values of some names."""
        if not self._often(chance):
            return ""
        start = self._one(TEXTS) if self._often(0.3) else self._one(("It is so", "Look"))
        if self._often(0.05):
            start += "".join(chr(self._dice.choice((65, 0xE9, 0x2003, 0x1F600))) for _ in range(9))
        shown = "".join(f" {{{name}}}" for name in self._some([*names, "limit"], 2))
        return f"{start}{shown}."

    # --- terms and trees --------------------------------------------------------------

    def _term(self, names: Sequence[str]) -> Term:
        if names and self._often(0.8):
            return Name(self._one(names))
        return Constant(self._one(SCALARS))

    def _bound(self, parameters: Sequence[str], names: Sequence[str], chance: float = 1) -> Binding:
        return tuple((one, self._term(names)) for one in parameters if self._often(chance))

    def _leaf(self, names: Sequence[str]) -> Leaf:
        predicate = self._one(list(self._predicates.values()))
        return Leaf(
            predicate.name, self._bound(predicate.parameters, names), wanted=self._often(0.75)
        )

    def _tree(self, size: int, names: Sequence[str], *, refuses: bool = False) -> Tree:
        if size == 0:
            return NOTHING
        return random_tree(
            self._dice,
            size,
            lambda: self._leaf(names),
            widest=3 if self._dense else 9,
            empty=0.3 if self._dense else 0.08,
            refuses=refuses,
        )

    def _opened(self, names: Sequence[str]) -> Tree:
        """A requirement of gates alone, so that no guard is circular."""
        gates = [one for one in self._predicates.values() if one.is_gate]
        if not gates or self._often(0.4):
            return NOTHING
        leaves = [
            Leaf(gate.name, self._bound(gate.parameters, names), wanted=self._often(0.8))
            for gate in self._dice.sample(gates, self._dice.randint(1, min(2, len(gates))))
        ]
        return leaves[0] if len(leaves) == 1 else self._one((All, InOrder, AnyOf))(tuple(leaves))

    # --- actions ----------------------------------------------------------------------

    def _inputs(self, most: int = 3) -> tuple[Input, ...]:
        return tuple(
            Input(
                name,
                self._one(TYPES),
                self._text((), 0.2),
                required=self._often(0.7),
                schema=self._one(SCHEMAS) if self._often(0.2) else None,
                secret=self._often(0.04),
            )
            for name in self._some(NAMES, most)
        )

    def _topics(self) -> tuple[str, ...] | None:
        return None if self._often() else tuple(self._some(("stock", "no", "on"), 2))

    def _look(self, name: str) -> None:
        inputs = self._inputs()
        read_only = self._often(0.4)
        self._actions[name] = Action(
            name,
            inputs,
            self._text([one.name for one in inputs]),
            requires=self._opened([one.name for one in inputs]),
            full_state=self._often(0.15),
            offered=self._often(0.85),
            read_only=read_only,
            changes=self._one((None, ())) if read_only else self._topics(),
            reads=self._topics(),
            not_found="result.none" if self._often(0.2) else None,
            secrets=("code",) if self._often(0.05) else (),
            shared=self._often(0.1),
            tool=self._one(("", "", "", "other", "server:other")),
        )

    def _goal(self, name: str) -> Action:
        inputs = self._inputs(4)
        names = [one.name for one in inputs]
        approval = None
        if self._often(0.3):
            roles = [self._one(("boss", "second-line", "auditor")) for _ in range(3)]
            needed = self._dice.randint(1, 3)
            when = "amount > 3" if "amount" in names and self._often(0.4) else None
            approval = Approval(tuple(roles), needed, self._one((None, 60, 7200)), when)
        asks = "Shall it be {amount}?" if "amount" in names else "Shall it be?"
        return Action(
            name,
            inputs,
            self._text(names),
            requires=self._tree(self._dice.randint(0, 3), names) if self._often(0.4) else NOTHING,
            irreversible=self._often(0.4),
            approval=approval,
            recheck=self._often(0.2),
            changes=self._topics(),
            confirm=self._one((None, None, "", asks)),
        )

    # --- predicates -------------------------------------------------------------------

    def _gate(self, number: int) -> None:
        inputs = self._inputs()
        names = [one.name for one in inputs]
        opener, closer, parameters = f"open{number}", f"shut{number}", self._some(NAMES, 2)
        self._actions[opener] = Action(
            opener, inputs, requires=self._opened(names), changes=self._topics()
        )
        self._actions[closer] = Action(closer, inputs)
        bound = self._bound(names, (*parameters, "secret"), 0.8)
        self._predicates[f"gate{number}"] = Predicate(
            f"gate{number}",
            tuple(parameters),
            self._text(parameters, 1),
            self._text(parameters),
            established_by=ActionCall(opener, bound),
            closed_by=ActionCall(closer, bound) if self._often() else None,
            principal=self._often(0.2),
            verdict=self._one((None, "result.ok")),
        )

    def _rule(self, name: str) -> None:
        parameters = () if self._dense else tuple(self._some(NAMES, 2))
        kind = self._one(("tools", "free") if self._dense else ("tools",) * 4 + _KINDS)
        says, says_not = self._text(parameters, 1), self._text(parameters)
        verdicts = ["true", *(f"{one} == null || {one} != 'x: #y'" for one in parameters)]
        verdicts += [f"{one} == null || size(string({one})) > limit" for one in parameters]
        plain = Predicate(name, parameters, says, says_not)
        remedy, message = self._one((("", ""), ("call us", ""), ("", "no")))
        by_model = self._often(0.3)
        more: dict[str, Any] = {"remedy": remedy, "customer_message": message}
        if kind == "done":
            # A call that can be refused without saying so: its success alone counts.
            looks = [one for one in self._looks() if not self._actions[one].not_found]
            if looks:
                action = self._actions[self._one(looks)]
                bound = self._bound(action.input_names(), parameters, 0.7)
                more["done"] = ActionCall(action.name, bound)
            else:
                kind = "free"
        if kind == "tools":
            asks = self._one(((), (), ("found",), ("found", "no_one")))
            ways = self._one((1, 1, 2, 3))
            each = [self._recipe((*parameters, *asks)) for _ in range(ways)]
            recipes = tuple(dict.fromkeys(each))
            more |= {"asks": _used(asks, recipes), "recipes": recipes}
            verdicts += ["result.ok", "limit > 3", 'result == "it\'s"']
        if kind == "free":
            more["tool_free"] = True
        if kind != "done":
            more |= {"judged_by_model": by_model}
            more["verdict"] = None if by_model else self._one((None, *verdicts))
        if kind == "user":
            more = {"question": self._text(parameters, 1), "reusable": self._often()}
        predicate = Predicate(name, parameters, plain.says, plain.says_not, **more)
        self._predicates[name] = asking(predicate) if kind == "user" else predicate

    def _looks(self) -> list[str]:
        return [name for name in self._actions if name.startswith("look")]

    def _recipe(self, names: Sequence[str]) -> Recipe:
        """Every required input has an origin: a name, or a place in an earlier answer."""
        calls: list[ActionCall] = []
        for number in range(self._one((1, 1, 1, 2, 3))):
            action = self._actions[self._one(self._looks())]
            roots = [call.answer for call in calls]
            each = None
            if roots and self._often(0.4):
                each = Path(self._one(roots), self._one(((), ("rows",), ("no", 0))))
                roots.append("row")
            bound: CallBinding = tuple(
                (one.name, self._origin(names, roots))
                for one in action.inputs
                if one.required or self._often()
            )
            named = any(call.action == action.name for call in calls) or self._often()
            answer = f"answer_{number}" if named else ""
            calls.append(ActionCall(action.name, bound, answer, each, "row" if each else ""))
        return tuple(calls)

    def _origin(self, names: Sequence[str], roots: Sequence[str]) -> Origin:
        if roots and self._often():
            return Path(self._one(roots), self._one(((), ("key",), ("rows", 0, "no"))))
        return self._term(names)

    # --- procedures -------------------------------------------------------------------

    def _procedure(self, name: str, goal: str, others: Sequence[str]) -> Procedure:
        declared = list(self._actions[goal].input_names())
        own = (Input("extra", "integer", required=self._often()),) if self._often(0.2) else ()
        bound = self._bound(declared[1:], [*declared, "friend"], 0.3)
        renamed = [term.name for _, term in bound if isinstance(term, Name)]
        # An input that is fixed, or has another name, is not known by its own.
        names = [one for one in declared if one not in dict(bound)]
        names = list(dict.fromkeys([*names, *renamed, *(one.name for one in own)]))
        computed: tuple[Computed, ...] = ()
        if declared and self._often(0.3) and declared[0] not in renamed:
            uses = self._some([one for one in names if one != declared[0]], 1)
            recipes = (self._recipe(uses),) if self._often() else ()
            computed = (Computed(declared[0], "limit + 1", recipes, _used(uses, recipes)),)
        sizes = (6, 9, 12) if self._dense else (0, 1, 2, 4, 8, 12, 18)
        requires = self._tree(self._one(sizes), names, refuses=not self._dense)
        return Procedure(
            name,
            goal,
            requires,
            self._text(declared),
            bound,
            self._tree(3, names) if self._often(0.2) else None,
            own,
            computed,
            "Really?" if self._often(0.1) else None,
            self._one(("", "", "tell the head", *others)),
        )


_KINDS = ("free", "done", "user")


def _used(names: Sequence[str], recipes: Sequence[Recipe]) -> tuple[str, ...]:
    terms = {term for recipe in recipes for call in recipe for _, term in call.arguments}
    return tuple(name for name in names if Name(name) in terms)
