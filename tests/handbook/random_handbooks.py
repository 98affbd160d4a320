"""Random handbooks that the language can say."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from sopilot.handbook.model import (
    Action,
    ActionCall,
    Approval,
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
    CallBinding,
    Constant,
    First,
    InOrder,
    Leaf,
    Name,
    Origin,
    Path,
    Scalar,
    Tree,
)

_WORDS = ("user", "item", "amount", "code", "place", "on", "no", "y")
_TEXT = st.text(st.characters(codec="utf-8"), max_size=30).map(
    lambda text: text.replace("{", "(").replace("}", ")")
)
_NUMBERS = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
_SCALARS: st.SearchStrategy[Scalar] = st.none() | st.booleans() | _NUMBERS | _TEXT
_JSON: st.SearchStrategy[Any] = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_TOPICS = st.none() | st.lists(st.sampled_from(["stock", "on", "no"]), unique=True, max_size=2).map(
    tuple
)
_STEPS = st.lists(st.sampled_from(["key", "no", "null"]) | st.integers(0, 999_999), max_size=2).map(
    tuple
)
_TYPES = st.sampled_from(["string", "number", "integer", "boolean", "object", "array"])
_VERDICTS = st.sampled_from(
    [None, "true", "result.ok", "limit > 3", 'results["a"] == "x: #y"', 'result == "it\'s"']
)


@st.composite
def inputs(draw: st.DrawFn) -> tuple[Input, ...]:
    names = draw(st.lists(st.sampled_from(_WORDS), unique=True, max_size=4))
    return tuple(
        Input(
            name,
            draw(_TYPES),
            draw(_TEXT),
            draw(st.booleans()),
            draw(st.none() | st.dictionaries(_TEXT, _JSON, max_size=2)),
        )
        for name in names
    )


@st.composite
def bindings(
    draw: st.DrawFn, parameters: tuple[str, ...], names: tuple[str, ...], complete: bool
) -> Binding:
    terms = _SCALARS.map(Constant)
    anything = st.sampled_from(names).map(Name) | terms if names else terms
    kept = [one for one in parameters if complete or draw(st.booleans())]
    return tuple((one, draw(anything)) for one in kept)


@st.composite
def trees(
    draw: st.DrawFn, predicates: dict[str, tuple[str, ...]], names: tuple[str, ...], depth: int = 3
) -> Tree:
    kinds = ["leaf"] if depth == 0 else ["leaf", "all", "any", "in_order", "first"]
    kind = draw(st.sampled_from(kinds))
    if kind == "leaf":
        predicate = draw(st.sampled_from(sorted(predicates)))
        arguments = draw(bindings(predicates[predicate], names, True))
        return Leaf(predicate, arguments, draw(st.booleans()))
    least = 1 if kind in ("any", "first") else 0
    deeper = trees(predicates, names, depth - 1)
    children = tuple(draw(st.lists(deeper, min_size=least, max_size=3)))
    trees_by_kind: dict[str, Tree] = {
        "all": All(children),
        "any": AnyOf(children),
        "in_order": InOrder(children),
        "first": First(children),
    }
    return trees_by_kind[kind]


def _approvals() -> st.SearchStrategy[Approval | None]:
    roles = st.lists(st.sampled_from(["boss", "second-line", "auditor"]), min_size=1, max_size=3)
    expires = st.none() | st.integers(1, 10**6)
    return st.none() | roles.flatmap(
        lambda some: st.builds(Approval, st.just(tuple(some)), st.integers(1, len(some)), expires)
    )


@st.composite
def handbooks(draw: st.DrawFn) -> Handbook:
    parameters: dict[str, Scalar] = {"limit": draw(_SCALARS)} | draw(
        st.dictionaries(st.sampled_from(["rate", "city"]), _SCALARS, max_size=2)
    )
    # Only tools that anyone may call verify or establish, so that no guard is circular.
    free = {f"read_{at}": draw(inputs()) for at in range(draw(st.integers(1, 3)))}
    predicates = {}
    for at in range(draw(st.integers(1, 4))):
        predicate = draw(_predicates(f"holds_{at}", free))
        predicates[predicate.name] = predicate
    signatures = {one.name: one.parameters for one in predicates.values()}
    actions = {name: draw(_free_actions(name, some)) for name, some in free.items()}
    procedures = {}
    for at in range(draw(st.integers(0, 3))):
        name = f"do_{at}"
        some = draw(inputs())
        names = tuple(one.name for one in some)
        actions[name] = Action(
            name,
            some,
            draw(_TEXT),
            draw(st.just(NOTHING) | trees(signatures, names)),
            draw(st.booleans()),
            draw(_approvals()),
            draw(st.booleans()),
            draw(st.booleans()),
            changes=draw(_TOPICS),
            reads=draw(_TOPICS),
            recheck=draw(st.booleans()),
        )
        given = draw(bindings(names, names, False))
        new = [term.name for _, term in given if isinstance(term, Name)]
        # An input that is fixed, or has another name, is not known by its own.
        known = tuple(dict.fromkeys([*(n for n in names if n not in dict(given)), *new]))
        procedures[f"goal_{at}"] = Procedure(
            f"goal_{at}",
            name,
            draw(trees(signatures, known)),
            draw(_TEXT),
            given,
            draw(st.none() | trees(signatures, known)),
        )
    return Handbook("random-desk", draw(_TEXT), parameters, actions, predicates, procedures)


@st.composite
def _free_actions(draw: st.DrawFn, name: str, some: tuple[Input, ...]) -> Action:
    quiet = draw(st.booleans())
    changes = draw(st.sampled_from([None, ()]) if quiet else _TOPICS)
    return Action(name, some, draw(_TEXT), read_only=quiet, changes=changes, reads=draw(_TOPICS))


@st.composite
def _recipes(
    draw: st.DrawFn, actions: dict[str, tuple[Input, ...]], names: tuple[str, ...]
) -> Recipe:
    """Every required input is given; a name is known, or leads into an earlier answer."""
    calls: list[ActionCall] = []
    answers: list[str] = []
    for at in range(draw(st.integers(1, 3))):
        action = draw(st.sampled_from(sorted(actions)))
        each: Path | None = None
        roots = list(answers)
        if draw(st.booleans()) and answers:
            each = Path(draw(st.sampled_from(answers)), draw(_STEPS))
            roots.append("one")
        origin: st.SearchStrategy[Origin] = _SCALARS.map(Constant)
        if names:
            origin |= st.sampled_from(names).map(Name)
        if roots:
            origin |= st.builds(Path, st.sampled_from(roots), _STEPS)
        given: CallBinding = tuple(
            (item.name, draw(origin))
            for item in actions[action]
            if item.required or draw(st.booleans())
        )
        named = action in answers or draw(st.booleans())
        call = ActionCall(
            action, given, f"answer_{at}" if named else "", each, "one" if each else ""
        )
        answers.append(call.answer)
        calls.append(call)
    return tuple(calls)


@st.composite
def _predicates(draw: st.DrawFn, name: str, actions: dict[str, tuple[Input, ...]]) -> Predicate:
    parameters = tuple(draw(st.lists(st.sampled_from(_WORDS), unique=True, max_size=3)))

    def gate_call() -> ActionCall:
        action = draw(st.sampled_from(sorted(actions)))
        expected = tuple(one.name for one in actions[action])
        return ActionCall(action, draw(bindings(expected, (*parameters, "found"), False)))

    kind = draw(st.sampled_from(["verify", "gate", "arguments"]))
    recipes: tuple[Recipe, ...] = ()
    asks: tuple[str, ...] = ()
    if kind == "verify":
        asks = draw(st.sampled_from([(), ("found",), ("found", "no_one")]))
        known = (*parameters, *asks)
        recipes = tuple(draw(st.lists(_recipes(actions, known), min_size=1, max_size=3)))
    placeholder = "{" + draw(st.sampled_from((*parameters, "limit"))) + "}"
    verdict = "limit != 3" if kind == "arguments" else draw(_VERDICTS)
    if draw(st.booleans()) and asks:
        verdict = "found == result.found"
    by_model = kind != "gate" and draw(st.booleans())
    return Predicate(
        name,
        parameters,
        draw(_TEXT) + placeholder,
        draw(_TEXT),
        recipes,
        gate_call() if kind == "gate" else None,
        kind == "arguments",
        None if by_model else verdict,
        draw(_TEXT),
        asks,
        by_model,
        gate_call() if kind == "gate" and draw(st.booleans()) else None,
    )
